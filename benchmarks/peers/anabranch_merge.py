"""Ours: case R3, the output handed on batch by batch."""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from anabranch import Case, Merger
from anabranch.model.batch import Batch, Kind
from peers.arrivals import Job, Ready, copies, in_turn


def opened(inputs: int) -> Callable[[int, Batch], Batch]:
    """A merge as what it says to a batch of a numbered input."""
    merger = Merger(Case.R3)
    for number in range(inputs):
        merger.attach(str(number))
    return lambda number, batch: merger.push(str(number), batch)


def prepare(folder: Path, revised: bool, ready: Ready) -> Job:
    """The merge is the same with and without revisions.

    Compiled code is loaded once per process, before the clock runs; `./run bench merge cold` measures that.
    """
    opened(1)(0, next(Batch.from_arrow(batch) for _, batch in in_turn(folder))[:100])
    arrivals = ready((number, Batch.from_arrow(batch)) for number, batch in in_turn(folder))

    def job() -> tuple[int, int]:
        push = opened(len(copies(folder)))
        rows = ends = 0
        for number, batch in arrivals:
            out = push(number, batch)
            told = out.kind != Kind.STABLE
            removed = told & (out.end == out.start)
            rows += np.count_nonzero(out.kind == Kind.INSERT) - np.count_nonzero(removed)
            ends += int((out.end[told & ~removed]).sum() - out.old_end[told].sum())
        return int(rows), ends

    return job
