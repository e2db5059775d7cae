"""Things that wait for a time."""

from collections import Counter
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from typing import Generic, TypeVar

Thing = TypeVar("Thing", bound=Hashable)

_SLACK = 64


@dataclass(slots=True)
class Agenda(Generic[Thing]):
    """A bag of things by the time each waits for, given back in the order of time.

    Memory: one entry per thing that waits, and at most twice as many times as there are times waited for.
    Cost: logarithmic in the number of times.

    >>> agenda = Agenda()
    >>> for time, thing in [(5, "b"), (2, "a"), (9, "c")]:
    ...     agenda.add(time, thing)
    >>> list(agenda.take_before(9)), len(agenda)
    ([(2, 'a'), (5, 'b')], 1)
    """

    _waiting: dict[int, Counter[Thing]] = field(default_factory=dict)
    _times: list[int] = field(default_factory=list)
    """A heap that holds every time waited for, and some that nothing waits for any more."""
    _size: int = 0

    def __len__(self) -> int:
        """How many things wait."""
        return self._size

    def count_at(self, time: int) -> int:
        """How many things wait for exactly this time."""
        return self._waiting[time].total() if time in self._waiting else 0

    def add(self, time: int, thing: Thing) -> None:
        """One more thing waits for this time."""
        if time not in self._waiting:
            self._waiting[time] = Counter()
            heappush(self._times, time)
            if len(self._times) > 2 * len(self._waiting) + _SLACK:
                self._times = list(self._waiting)
                heapify(self._times)
        self._waiting[time][thing] += 1
        self._size += 1

    def discard(self, time: int, thing: Thing) -> bool:
        """One such thing waits no longer; false where none did."""
        things = self._waiting.get(time)
        if things is None or thing not in things:
            return False
        things[thing] -= 1
        if not things[thing]:
            del things[thing]
        if not things:
            del self._waiting[time]
        self._size -= 1
        return True

    def take_before(self, time: int) -> Iterator[tuple[int, Thing]]:
        """The things that wait for an earlier time, in the order of time; they wait no longer."""
        while self._times and self._times[0] < time:
            reached = heappop(self._times)
            things: Counter[Thing] = self._waiting.pop(reached, Counter())
            self._size -= things.total()
            for thing in things.elements():
                yield reached, thing
