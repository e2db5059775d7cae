"""Events with other lifetimes, and what may be promised about them (SP 4.2, corrected as in its errata).

Each row is mapped by itself: the image of an event that is inserted is inserted, that of one that is removed
is removed. A revised end changes the image, or nothing (a fixed length), or takes the image away, or lets it
appear where there was none; where the start of the image moves, the image is removed and inserted anew.

**What is promised.** When the input is stable until t, these rows may still come (see `model.validity`):

- inserts and removals of events that start at s >= t. Their images start at the image of s, no earlier than
  the image of t, and the event [t, ∞) is one of them;
- adjusts of an event with any start s from x to y, both >= t and both after s. With a fixed length nothing
  comes of them. With an image that starts at the end, what comes has the sync times x and y: t where x is t.
  Else the image ends at x + d and y + d, where d, the distance between the end of an event and that of its
  image, is a constant less the remainder of s; so what comes has a sync time of at least t + d for the
  greatest remainder that s can have, and x = t shows that it may be just that. If one of the two images is
  empty, then x + d is not after the start of the image, which is where it then changes.

The promise is the least of those sync times. An event whose end equals t is still open, which is why t and
not t + 1 counts in the second case. The greatest remainder is every - 1, since s may be any time before t;
but a clipped image moves only if it ends with its event, so that s lies in the last ticks before t.

Whatever an input that has promised nothing may do, its output may do as well.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anabranch.kernels.kernel import Refused, Result
from anabranch.model.batch import Batch, Kind
from anabranch.model.lifetime import Lifetime
from anabranch.model.time import BEGINNING, FOREVER
from anabranch.model.validity import Rule

Times = NDArray[np.int64]


class Images(NamedTuple):
    """Lifetimes in columns; one that is not ``there`` is empty."""

    start: Times
    end: Times
    there: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class AlterLifetime:
    """The step that gives each event another lifetime.

    >>> from anabranch.model.elements import Adjust, Insert
    >>> step = AlterLifetime(Lifetime.clip(5))
    >>> rows = Batch.of([Insert({"v": 1}, 0, 9), Adjust({"v": 1}, 0, 9, 7), Adjust({"v": 1}, 0, 7, 3)])
    >>> for element in step.map(rows).events:
    ...     print(element)
    Insert(payload={'v': 1}, start=0, end=5)
    Adjust(payload={'v': 1}, start=0, old_end=5, end=3)
    """

    lifetime: Lifetime

    def map(self, batch: Batch) -> Result:
        """What comes of elements, in their order: of an adjust up to two; stables are left out."""
        if (batch.kind > Kind.ADJUST).any():
            batch = batch.take(batch.kind <= Kind.ADJUST)
        refused, failed = self._refused(batch)
        if refused:
            batch = batch.take(~failed)
        adjust = batch.kind == Kind.ADJUST
        new = self._images(batch.start, batch.end)
        old = self._images(batch.start, batch.old_end) if adjust.any() else new
        was = adjust & old.there
        now = new.there & (~adjust | (batch.end != batch.start))
        stays = was & now & (old.start == new.start)
        changes = np.where(stays, old.end != new.end, was)
        comes = now & ~stays
        rows = np.repeat(np.arange(len(batch)), changes.astype(np.int64) + comes)
        again = np.diff(rows, prepend=-1) == 0
        inserts = comes[rows] & (again | ~changes[rows])
        kind = np.where(inserts, Kind.INSERT, Kind.ADJUST).astype(np.int8)
        start = np.where(inserts, new.start[rows], old.start[rows])
        end = np.where(inserts | stays[rows], new.end[rows], old.start[rows])
        old_end = np.where(inserts, 0, old.end[rows])
        same = len(rows) == len(batch) and not again.any()
        events = (batch if same else batch.take(rows)).with_times(kind, start, end, old_end)
        return Result(events, refused)

    def reached(self, time: int) -> int:
        """Until when images are stable where the events are stable until a time."""
        moment, length = self.lifetime.start, self.lifetime.duration
        if time in (BEGINNING, FOREVER) or moment.end:
            return time
        promise = time - time % moment.every + moment.plus
        if self.lifetime.follows_end:
            last_ticks = moment.every if length.most is None else length.most - 1
            remainder = _greatest_remainder(time - last_ticks, time - 1, moment.every)
            promise = min(promise, time - remainder + moment.plus + length.plus)
        return _within(promise)

    def forgone(self, time: int) -> int:
        """Every event whose image ends at or after a time ends at or after this, and none can be later."""
        moment, length = self.lifetime.start, self.lifetime.duration
        if time == BEGINNING or length.ticks == FOREVER:
            return BEGINNING
        if moment.end:
            assert length.ticks is not None
            return _within(time - length.ticks)
        lasts = length.most if length.ticks is None else length.ticks
        earliest = BEGINNING
        if lasts is not None:  # the least start whose image lasts until then, and the event at least a tick
            earliest = -(-(time - moment.plus - lasts) // moment.every) * moment.every + 1
        if length.ticks is None:
            earliest = max(earliest, time - moment.plus - length.plus)
        return _within(earliest)

    def _refused(self, batch: Batch) -> tuple[tuple[Refused, ...], NDArray[np.bool_]]:
        """Rows of events that have no image because a time of it would be none."""
        moment, length = self.lifetime.start, self.lifetime.duration
        nobody = np.zeros(len(batch), np.bool_)
        if moment.end or not len(batch):
            return (), nobody
        starts = batch.start
        unbegun = starts == BEGINNING
        outside = nobody
        if self.lifetime.moves_start:
            lowest = -(-(BEGINNING + 1 - moment.plus) // moment.every) * moment.every
            highest = ((FOREVER - 1 - moment.plus) // moment.every + 1) * moment.every - 1
            outside = ~unbegun & ((starts < _within(lowest)) | (starts > _within(highest)))
        endless = length.ticks == FOREVER or (length.ticks is None and length.most is None)
        reasons = [
            (outside, f"{self.lifetime.start} is beyond the ends of time where the start is {{known}}"),
            (nobody if endless else unbegun, f"{length} ticks cannot be counted from a start of {{known}}"),
        ]
        refused = tuple(
            Refused(Rule.FAILED, batch.take(rows), starts[rows], detail)
            for rows, detail in reasons
            if rows.any()
        )
        return refused, reasons[0][0] | reasons[1][0]

    def _images(self, start: Times, end: Times) -> Images:
        """The images of lifetimes that do not fail."""
        moment, length = self.lifetime.start, self.lifetime.duration
        moved = np.where(start == BEGINNING, 0, moment.plus - start % moment.every)
        first = end if moment.end else start + moved
        if length.ticks is not None:
            last = _later(first, length.ticks)
        else:
            along = np.where(start == BEGINNING, moment.plus, moved) + length.plus
            last = _moved(end, along)
            if length.most is not None:
                last = np.minimum(last, _later(first, length.most))
        return Images(first, last, first < last)


def _later(times: Times, ticks: int) -> Times:
    if ticks == FOREVER:
        return np.full_like(times, FOREVER)
    return np.minimum(times, FOREVER - ticks) + ticks


def _moved(ends: Times, ticks: Times) -> Times:
    """Ends so much later, or earlier, within the ends of time; one that is FOREVER stays it."""
    later = np.minimum(ends, FOREVER - np.maximum(ticks, 0))
    both = np.maximum(later, BEGINNING - np.minimum(ticks, 0)) + ticks
    return np.where(ends == FOREVER, FOREVER, both)


def _greatest_remainder(first: int, last: int, every: int) -> int:
    """The greatest remainder of the times from first to last, which are some."""
    wraps = last - first + 1 >= every or first % every > last % every
    return every - 1 if wraps else last % every


def _within(time: int) -> int:
    return max(BEGINNING, min(time, FOREVER))
