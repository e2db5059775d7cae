"""The events of a stream that can still change."""

from bisect import bisect_left, bisect_right, insort
from dataclasses import dataclass, field
from typing import TypeAlias

from anabranch.model.dialects.agenda import Agenda
from anabranch.model.dialects.payload_key import PayloadKey
from anabranch.model.time import BEGINNING, FOREVER

Lifetime: TypeAlias = tuple[int, int]


@dataclass(slots=True)
class Alive:
    """A bag of events, by payload; a stable takes out those that it freezes.

    Memory: the events that are not fully frozen.
    """

    _lifetimes: dict[PayloadKey, list[Lifetime]] = field(default_factory=dict)
    """For each payload the lifetimes it has, in order."""
    _ends: Agenda[tuple[PayloadKey, int]] = field(default_factory=Agenda)

    def __len__(self) -> int:
        """How many events there are, equal ones counted each."""
        return len(self._ends)

    def lifetimes(self, key: PayloadKey) -> list[Lifetime]:
        """The lifetimes of a payload, in order."""
        return self._lifetimes.get(key, [])

    def starting_at(self, key: PayloadKey, start: int) -> list[Lifetime]:
        """The lifetimes of a payload that have this start."""
        lifetimes = self.lifetimes(key)
        first, beyond = bisect_left(lifetimes, (start, BEGINNING)), bisect_right(lifetimes, (start, FOREVER))
        return lifetimes[first:beyond]

    def has(self, key: PayloadKey, lifetime: Lifetime) -> bool:
        """Such an event is there."""
        return lifetime in self.starting_at(key, lifetime[0])

    def add(self, key: PayloadKey, lifetime: Lifetime) -> None:
        """One more event."""
        insort(self._lifetimes.setdefault(key, []), lifetime)
        self._ends.add(lifetime[1], (key, lifetime[0]))

    def move(self, key: PayloadKey, lifetime: Lifetime, end: int) -> None:
        """One such event, which is there, now ends at another time; at its start, it is gone."""
        start, old_end = lifetime
        there = self._ends.discard(old_end, (key, start))
        assert there, "an event that is moved is there"
        self._forget(key, lifetime)
        if end > start:
            self.add(key, (start, end))

    def freeze(self, stable: int) -> None:
        """Take out what a stable fully freezes: what ends before it, and everything at the end of time."""
        if stable == FOREVER:
            self._lifetimes, self._ends = {}, Agenda()
        for end, (key, start) in self._ends.take_before(stable):
            self._forget(key, (start, end))

    def _forget(self, key: PayloadKey, lifetime: Lifetime) -> None:
        lifetimes = self._lifetimes[key]
        del lifetimes[bisect_left(lifetimes, lifetime)]
        if not lifetimes:
            del self._lifetimes[key]
