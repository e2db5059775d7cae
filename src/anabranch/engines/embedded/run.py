"""A plan over inputs that are read side by side, in an order that depends on nothing but what they say.

The next slice is of the source that is least far; of several, of the one that has given the least, and then
the first. A stable(FOREVER) is said when all have come to theirs or to their end. A source that ends leaves
the merges behind it, and is stable for ever to all others.

Memory: what the plan holds, and one piece of each input.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from anabranch.engines.embedded.inbox import close, items_of
from anabranch.engines.embedded.job import Job
from anabranch.model.batch import Batch, Kind
from anabranch.model.relation import as_batch
from anabranch.model.time import BEGINNING, FOREVER
from anabranch.plan.node import PlanError
from anabranch.plan.source import Source

ROWS = 4_096
"""Rows or elements of one push, at most."""


def run(
    job: Job,
    inputs: Mapping[str, Iterable[Any]],
    *,
    rows: int = ROWS,
    told: Callable[[str, int], object] | None = None,
) -> Generator[dict[str, Batch], None, None]:
    """What comes out of a job, by output, as its sources are read to their ends.

    ``told`` hears of each source how many rows or elements were read of it more.
    """
    check_inputs(job, inputs)
    return _run(job, {name: _slices(job.sources[name], given, rows) for name, given in inputs.items()}, told)


def _run(
    job: Job, sources: dict[str, Iterator[Any]], told: Callable[[str, int], object] | None
) -> Generator[dict[str, Batch], None, None]:
    closing: dict[str, Any] = {}
    try:
        while sources:
            name = min(sources, key=lambda one: (one in closing, _reached(job, one), job.heard[one]))
            piece = closing.pop(name, None) or next(sources[name], None)
            if piece is None:
                del sources[name]
                output = job.end(name) if sources else job.finish()
            elif _ends_time(piece) and {*closing, name} != {*sources}:
                closing[name] = piece
                continue
            else:
                if told is not None:
                    told(name, len(piece))
                output = job.take(name, piece)
            if any(len(batch) for batch in output.values()):
                yield output
    finally:
        for source in sources.values():
            close(source)


def check_inputs(job: Job, inputs: Mapping[str, Any]) -> None:
    """Raise where inputs are not the sources of a plan."""
    for name in job.sources:
        if name not in inputs:
            error = PlanError(f"the plan has a source {name!r}, and nothing is given for it")
            error.add_note(f"Given are {', '.join(map(repr, inputs)) or 'none'}.")
            raise error
    for name in inputs:
        if name not in job.sources:
            error = PlanError(f"the plan has no source {name!r}")
            error.add_note(f"Its sources are {', '.join(map(repr, job.sources))}.")
            raise error


def _reached(job: Job, source: str) -> int:
    gate = job.gates[source]
    return min((gate.reached(name) for name in gate.frontiers), default=BEGINNING)


def _slices(source: Source, given: Iterable[Any], rows: int) -> Iterator[Any]:
    """What a source gives in pieces of at most so many rows or elements."""
    items = items_of(given)
    try:
        for item in items:
            whole = _piece(source, item)
            for begin in range(0, len(whole), rows):
                yield from _before_and_from_the_end_of_time(whole[begin : begin + rows])
    finally:
        close(items)


def _piece(source: Source, item: Any) -> Batch | list[Any] | pa.RecordBatch:
    if isinstance(item, Batch):
        return item
    if source.layout is None:
        return as_batch(item)
    if isinstance(item, Mapping):
        return [item]
    if isinstance(item, list | tuple):
        return list(item)
    if isinstance(item, pa.RecordBatch):
        return item
    batches = pa.table(item).combine_chunks().to_batches()
    return batches[0] if batches else []


def _before_and_from_the_end_of_time(piece: Any) -> Iterator[Any]:
    """A piece, cut before the first stable(FOREVER): it is said when all sources have come to theirs."""
    cut = _end_of_time(piece)
    if cut:
        yield piece[:cut]
    if cut < len(piece):
        yield piece[cut:]


def _ends_time(piece: Any) -> bool:
    return _end_of_time(piece) == 0


def _end_of_time(piece: Any) -> int:
    """How many elements come before a stable(FOREVER)."""
    if not isinstance(piece, Batch):
        return len(piece)
    found = np.flatnonzero((piece.kind == Kind.STABLE) & (piece.start == FOREVER))
    return int(found[0]) if len(found) else len(piece)
