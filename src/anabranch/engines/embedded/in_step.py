"""Recorded inputs read side by side, in an order that depends on nothing but what they say."""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sized
from contextlib import closing
from typing import Any, TypeVar

import numpy as np

from anabranch.engines.embedded.inbox import close, items_of
from anabranch.engines.embedded.merger import Merger
from anabranch.model.batch import Batch, Kind
from anabranch.model.relation import as_batch
from anabranch.model.time import BEGINNING, FOREVER
from anabranch.progress.channel_rows import Elements

_Piece = TypeVar("_Piece", bound=Sized)


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
    return _slices(inputs, rows)


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


def in_turn(
    pieces: Mapping[str, Iterator[_Piece]],
    reached: Callable[[str], int],
    ends_time: Callable[[_Piece], bool],
    before: Mapping[str, int] | None = None,
) -> Generator[tuple[str, _Piece | None], None, None]:
    """Pieces of several inputs, always the next of the one that has ``reached`` least; at its end None.

    Of several that have reached as much it is the one that has given the least, and then the first. A piece
    that ``ends_time`` begins with a stable(FOREVER): it waits until all others have come to theirs.
    ``before``: how much those that go on have given.
    """
    given, held = dict.fromkeys(pieces, 0) | dict(before or {}), dict[str, _Piece]()
    sending, closing = set(pieces), set[str]()
    while sending:
        name = min(
            (one for one in pieces if one in sending),
            key=lambda one: (1, 0, given[one]) if one in closing else (0, reached(one), given[one]),
        )
        piece = held.pop(name) if name in held else next(pieces[name], None)
        if piece is None:
            sending.remove(name)
        elif ends_time(piece) and name not in closing:
            closing.add(name)
            held[name], given[name] = piece, 0
            continue
        else:
            given[name] += len(piece)
        yield name, piece


def _slices(inputs: Mapping[str, Iterable[Any]], rows: int) -> Generator[tuple[str, Batch], None, None]:
    reached = dict.fromkeys(inputs, BEGINNING)
    pieces = {name: _pieces(source, rows) for name, source in inputs.items()}
    try:
        for name, piece in in_turn(pieces, reached.__getitem__, lambda one: end_of_time(one) == 0):
            batch = Batch.of([]) if piece is None else piece
            stables = batch.start[batch.kind == Kind.STABLE]
            reached[name] = int(np.max(stables, initial=reached[name]))
            yield name, batch
    finally:
        for source in pieces.values():
            source.close()


def _pieces(source: Iterable[Any], rows: int) -> Generator[Batch, None, None]:
    """What an input gives, in batches of at most so many elements, cut before a stable(FOREVER)."""
    items = items_of(source)
    try:
        for item in items:
            batch = as_batch(item)
            for begin in range(0, len(batch), rows):
                piece = batch[begin : begin + rows]
                yield from filter(len, (piece[: end_of_time(piece)], piece[end_of_time(piece) :]))
    finally:
        close(items)


def end_of_time(elements: Elements) -> int:
    """How many elements come before a stable(FOREVER)."""
    found = np.flatnonzero((elements.kind == Kind.STABLE) & (elements.start == FOREVER))
    return int(found[0]) if len(found) else len(elements)
