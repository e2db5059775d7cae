"""Retractions that came before the events they retract."""

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from anabranch.model.dialects.alive import Lifetime
from anabranch.model.dialects.cedr import Retraction
from anabranch.model.dialects.payload_key import PayloadKey
from anabranch.model.time import FOREVER


@dataclass(slots=True)
class HeldRetractions:
    """Retractions by the event each waits for, and the earliest time they could still change."""

    _waiting: dict[tuple[PayloadKey, Lifetime], deque[Retraction]] = field(default_factory=dict)
    _new_ends: list[int] = field(default_factory=list)
    """In order."""

    def __iter__(self) -> Iterator[Retraction]:
        for retractions in self._waiting.values():
            yield from retractions

    def __len__(self) -> int:
        """How many wait."""
        return len(self._new_ends)

    @property
    def earliest(self) -> int:
        """The earliest time that one of them could still change."""
        return self._new_ends[0] if self._new_ends else FOREVER

    def add(self, key: PayloadKey, retraction: Retraction) -> None:
        """One more retraction waits."""
        self._waiting.setdefault((key, (retraction.start, retraction.end)), deque()).append(retraction)
        insort(self._new_ends, retraction.new_end)

    def take(self, key: PayloadKey, lifetime: Lifetime) -> Retraction | None:
        """A retraction that waits for this event, if there is one; the first that came."""
        waiting = self._waiting.get((key, lifetime))
        if waiting is None:
            return None
        retraction = waiting.popleft()
        if not waiting:
            del self._waiting[key, lifetime]
        del self._new_ends[bisect_left(self._new_ends, retraction.new_end)]
        return retraction
