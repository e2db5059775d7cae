"""How far the counts of external CTIs have been met.

Each arrival has a sync time; each external CTI says how many arrivals have theirs in an interval. Both come
in any order. Everything before the cover has arrived: the cover moves from the origin through intervals that
touch each other and have received what they count.
"""

from bisect import bisect_left, bisect_right, insort
from dataclasses import dataclass, field

from anabranch.model.clock import lifetime_text, tick_text
from anabranch.model.dialects.error import DialectError


@dataclass(slots=True)
class Counted:
    """An interval whose arrivals are counted, and how many of them are still to come."""

    start: int
    end: int
    count: int
    missing: int

    def __str__(self) -> str:
        return f"X{lifetime_text(self.start, self.end)}#{self.count}"

    def receive(self, arrivals: int) -> None:
        """These arrivals had their sync times in the interval."""
        self.missing -= arrivals
        if self.missing < 0:
            raise DialectError(
                f"{self} counts {self.count} items, and {self.count - self.missing} came",
                "the interval was complete before the last of them, so no stable can rest on its count",
                "Count every insert at its start and every retraction at its new end, once each.",
            )


@dataclass(slots=True)
class Coverage:
    """The time before which everything has arrived.

    Memory: the intervals beyond the cover, and one time per arrival that no interval has counted yet.
    """

    origin: int
    cover: int = field(init=False)
    _pending: list[Counted] = field(default_factory=list)
    """The intervals beyond the cover, in order of time."""
    _uncounted: list[int] = field(default_factory=list)
    """Sync times that lie in no interval known so far, in order."""

    def __post_init__(self) -> None:
        self.cover = self.origin

    def arrive(self, sync: int) -> None:
        """One item with this sync time has arrived."""
        if sync < self.cover:
            raise self._behind(sync)
        place = bisect_right(self._pending, sync, key=_start)
        if place and sync < self._pending[place - 1].end:
            self._pending[place - 1].receive(1)
            self._advance()
        else:
            insort(self._uncounted, sync)

    def expect(self, start: int, end: int, count: int) -> None:
        """This many items in all have sync times in this interval."""
        interval = Counted(start, end, count, missing=count)
        place = bisect_left(self._pending, start, key=_start)
        for other in self._pending[max(place - 1, 0) : place + 1]:
            if other.start < end and start < other.end:
                raise _overlap(f"{interval}", f"{other}")
        if start < self.cover:
            raise _overlap(f"{interval}", f"everything before {tick_text(self.cover)}, which is complete")
        first, beyond = bisect_left(self._uncounted, start), bisect_left(self._uncounted, end)
        interval.receive(beyond - first)
        del self._uncounted[first:beyond]
        self._pending.insert(place, interval)
        self._advance()

    def _advance(self) -> None:
        while self._pending and self._pending[0].start == self.cover and not self._pending[0].missing:
            self.cover = self._pending.pop(0).end

    def _behind(self, sync: int) -> DialectError:
        if sync < self.origin:
            return DialectError(
                f"an item has the sync time {tick_text(sync)}, before the origin {tick_text(self.origin)}",
                "external CTIs count from the origin on, so nothing can promise that such items are complete",
                "Pass an origin at or before the earliest sync time, to the writer and to the reader.",
            )
        return DialectError(
            f"an item with sync time {tick_text(sync)} came after {lifetime_text(self.origin, self.cover)} "
            "had been counted complete",
            "stables may rest on that, and the item would break them",
            f"Raise the count of the external CTI whose interval holds {tick_text(sync)}.",
        )


def _start(interval: Counted) -> int:
    return interval.start


def _overlap(interval: str, other: str) -> DialectError:
    return DialectError(
        f"{interval} overlaps {other}",
        "an item that lies in both would be counted twice",
        "Cut the time line into intervals that do not overlap, from the origin on, and send each once.",
    )
