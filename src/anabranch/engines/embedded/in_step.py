"""Recorded inputs read side by side, in an order that depends on nothing but what they say."""

from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import closing
from typing import Any

import numpy as np

from anabranch.engines.embedded.inbox import close, items_of
from anabranch.engines.embedded.merger import Merger
from anabranch.model.batch import Batch, Kind
from anabranch.model.relation import as_batch
from anabranch.model.time import BEGINNING, FOREVER


def in_step(
    inputs: Mapping[str, Iterable[Any]], *, rows: int = 1024
) -> Generator[tuple[str, Batch], None, None]:
    """The inputs slice by slice, so that all of them advance together in time.

    The next slice, of at most ``rows`` elements, is of the input whose last stable is least; of several, of
    the one that has said the least, and then the first in the mapping. A stable(FOREVER) is said when all
    have come to theirs or to their end. An input that has ended gives an empty batch, once.

    Memory: one batch of each input.

    >>> from anabranch import Stable, in_step
    >>> inputs = {"east": [[Stable(2)], [Stable(9)]], "west": [[Stable(5)]]}
    >>> for name, batch in in_step(inputs):
    ...     print(name, *batch.elements())
    east Stable(time=2)
    west Stable(time=5)
    east Stable(time=9)
    west
    east
    """
    if rows < 1:
        raise ValueError(f"a slice has at least 1 element, not {rows}")
    sources = {name: items_of(source) for name, source in inputs.items()}
    return _slices(sources, rows)


def merge_in_step(
    inputs: Mapping[str, Iterable[Any]], merger: Merger | None = None, *, rows: int = 1024
) -> Generator[Batch, None, None]:
    """Recorded inputs as one stream, the same whenever it is made; see `in_step`.

    Inputs that are not attached to the merger yet are attached as complete. One that ends while others go on
    is detached, unless it has said stable(FOREVER): then it has promised everything and stays, to be compared
    with them. What goes wrong is raised at once.
    """
    merger = Merger() if merger is None else merger
    settled = [merger.attach(name) for name in inputs if name not in merger.inputs]
    return _merged(in_step(inputs, rows=rows), set(inputs), merger, settled)


def _merged(
    slices: Generator[tuple[str, Batch], None, None], speaking: set[str], merger: Merger, settled: list[Batch]
) -> Generator[Batch, None, None]:
    yield from filter(len, settled)
    with closing(slices):
        for name, batch in slices:
            output = batch
            if len(batch):
                output = merger.push(name, batch)
            else:
                speaking.remove(name)
                if speaking and merger.inputs[name].frontier != FOREVER:
                    output = merger.detach(name)
            if len(output):
                yield output


def _slices(sources: dict[str, Iterator[Any]], rows: int) -> Generator[tuple[str, Batch], None, None]:
    reached = dict.fromkeys(sources, (BEGINNING, 0))
    read = {name: Batch.of([]) for name in sources}
    try:
        while reached:
            name = min(reached, key=reached.__getitem__)
            stable, said = reached[name]
            if not len(read[name]):
                read[name] = _next(sources[name])
            cut = rows if stable == FOREVER else _before_the_end_of_time(read[name][:rows])
            if len(read[name]) and not cut:
                reached[name] = (FOREVER, 0)
                continue
            batch, read[name] = read[name][:cut], read[name][cut:]
            if len(batch):
                stables = batch.start[batch.kind == Kind.STABLE]
                reached[name] = (int(np.max(stables, initial=stable)), said + len(batch))
            else:
                del reached[name]
            yield name, batch
    finally:
        for source in sources.values():
            close(source)


def _before_the_end_of_time(batch: Batch) -> int:
    """How many elements come before a stable(FOREVER)."""
    closing = np.flatnonzero((batch.kind == Kind.STABLE) & (batch.start == FOREVER))
    return int(closing[0]) if len(closing) else len(batch)


def _next(source: Iterator[Any]) -> Batch:
    """The next batch that says anything; an empty one at the end."""
    for item in source:
        batch = as_batch(item)
        if len(batch):
            return batch
    return Batch.of([])
