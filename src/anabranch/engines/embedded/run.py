"""A plan over feeds that are read side by side, in an order that depends on nothing but what they say.

The next slice is of the feed that is least far; of several, of the one that has given the least, and then the
first. A stable(FOREVER) is said when all have come to theirs or to their end. A replica that ends while
others of its source speak leaves the merges behind it; a source that ends does so too, and is stable for ever
to all others.

Memory: what the plan holds, and one piece of each feed.
"""

from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from anabranch.engines.embedded.feeds import Feed, Mark, Reading, enter, feeds_of
from anabranch.engines.embedded.gathering import MOST, gathered
from anabranch.engines.embedded.in_step import end_of_time, in_turn
from anabranch.engines.embedded.inbox import close, items_of
from anabranch.engines.embedded.intake import Intake
from anabranch.engines.embedded.passes import Passes
from anabranch.engines.embedded.positions import Positions
from anabranch.engines.embedded.stopping import Stop
from anabranch.model.batch import Batch
from anabranch.model.elements import Stable
from anabranch.model.relation import as_batch
from anabranch.model.time import FOREVER
from anabranch.plan.source import Source

ROWS = 4_096
"""Rows or elements of one push, at most."""
APART = 16_384
"""The same where no source has two feeds, so that none is a replica which others wait for."""
ALONE = 65_536
"""The same of a feed that is read alone, so that no other waits for it."""


def run(
    passes: Passes,
    inputs: Mapping[str, Any],
    *,
    rows: int = ROWS,
    finish: bool = True,
    progress: Callable[[float], object] | None = None,
    stop: Stop | None = None,
    positions: Positions | None = None,
) -> Generator[dict[str, Batch], None, None]:
    """What comes out of a plan, by output, as its sources are read to their ends.

    ``progress`` is told how much of what has a known size has been read, from 0 to 1. Unless they are to
    ``finish``, sources stay as they are after their last row, and the plan can be dumped. So they do where it
    is asked to ``stop``. ``positions`` say from where feeds are read, and follow how far.
    """
    if rows < 1:
        raise ValueError(f"a push has at least 1 row or element, not {rows}")
    reading = Reading(finish=finish, stop=Stop() if stop is None else stop)
    positions = Positions() if positions is None else positions
    feeds = positions.resumed(feeds_of(passes, inputs, reading))
    if rows == ROWS and len({feed.source for feed in feeds}) == len(feeds):
        rows = ALONE if len(feeds) == 1 else APART
    return _run(passes, feeds, rows, progress, reading.stop, positions, finish=finish)


def _run(
    passes: Passes,
    feeds: Sequence[Feed],
    rows: int,
    progress: Callable[[float], object] | None,
    stop: Stop,
    positions: Positions,
    *,
    finish: bool,
) -> Generator[dict[str, Batch], None, None]:
    sending = {feed.label: feed for feed in feeds}
    slices = {feed.label: _slices(passes.sources[feed.source], feed, rows) for feed in feeds}
    try:
        enter(passes, feeds)
        if stop.asked():
            return
        turns = in_turn(slices, lambda one: sending[one].reached(passes), _ends_time, positions.given())
        for label, piece in turns:
            feed = sending[label]
            if isinstance(piece, Mark):
                positions.mark(feed, piece)
                continue
            output: dict[str, Batch] = {}
            if piece is not None:
                output = positions.push(passes, feed, piece)
            else:
                del sending[label]
                if finish:
                    output = ended(passes, feed, sending.values(), closes=True)
                    positions.end(feed)
            if progress is not None:
                progress(_done(feeds))
            if any(len(batch) for batch in output.values()):
                yield output
            if stop.asked():
                return
        if finish and not feeds and not passes.closed:
            yield passes.close()
    finally:
        for source in slices.values():
            close(source)


def ended(passes: Passes, feed: Feed, others: Collection[Feed], *, closes: bool) -> dict[str, Batch]:
    """What comes out when a feed is at its end and others speak; the last one ``closes`` all, or does not."""
    same_source = [other for other in others if other.source == feed.source]
    if not others and closes:
        return passes.close()
    if not same_source:
        return passes.end_source(feed.source, closes=closes)
    if any(other.replica == feed.replica for other in same_source):
        return passes.end_channel(feed.source, feed.replica, feed.channel)
    if passes.gates[feed.source].stable(feed.replica) == FOREVER:
        return {}
    return passes.detach(feed.source, feed.replica)


def _done(feeds: Sequence[Feed]) -> float:
    known = [feed.extent for feed in feeds if feed.extent is not None]
    size = sum(extent.size for extent in known)
    return min(sum(extent.done for extent in known) / size, 1.0) if size else 0.0


def _slices(source: Source, feed: Feed, rows: int) -> Iterator[Any]:
    """What a feed gives in pieces of at most so many rows or elements; what it has read itself is whole."""
    items = items_of(feed.items)
    try:
        for item, count in gathered(items, min(rows, MOST)):
            if isinstance(item, Mark):
                yield item
                continue
            if isinstance(item, Intake):
                yield from filter(len, item.cut(end_of_time))
                continue
            whole = _piece(source, item)
            if feed.extent is not None:
                feed.extent.done += count
            for begin in range(0, len(whole), rows):
                yield from _before_and_from_the_end_of_time(whole[begin : begin + rows])
    finally:
        close(items)


def _piece(source: Source, item: Any) -> Batch | list[Any] | pa.RecordBatch:
    if isinstance(item, Batch):
        return item
    if isinstance(item, list | tuple) and (source.layout is not None or source.columns is not None):
        return list(item)
    if source.layout is None:
        return as_batch(item)
    if isinstance(item, pa.RecordBatch):
        return item
    table = pa.table(item)
    batches = table.to_batches()
    if len(batches) > 1:
        batches = table.combine_chunks().to_batches()
    return batches[0] if batches else []


def _before_and_from_the_end_of_time(piece: Any) -> Iterator[Any]:
    """A piece, cut before the first stable(FOREVER): it is said when all feeds have come to theirs."""
    cut = _end_of_time(piece)
    if cut:
        yield piece[:cut]
    if cut < len(piece):
        yield piece[cut:]


def _ends_time(piece: Any) -> bool:
    if isinstance(piece, Mark):
        return False
    if isinstance(piece, Intake):
        return len(piece.rows) > 0 and len(piece.cut(end_of_time)[0].rows) < len(piece.rows)
    if isinstance(piece, list):
        return bool(piece) and _is_end(piece[0])
    return isinstance(piece, Batch) and end_of_time(piece) == 0


def _end_of_time(piece: Any) -> int:
    """How many elements of a batch or a list, or rows, come before a stable(FOREVER)."""
    if isinstance(piece, Batch):
        return end_of_time(piece)
    if isinstance(piece, list):
        return next((at for at, one in enumerate(piece) if _is_end(one)), len(piece))
    return len(piece)


def _is_end(item: Any) -> bool:
    return isinstance(item, Stable) and item.time == FOREVER
