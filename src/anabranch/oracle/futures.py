"""Every relation a prefix can still become, by trying all valid elements, on a small piece of the world.

The piece is one payload at one start: a bag of ends, given as a sorted tuple. Freezing, mutual consistency
and compatibility are defined here as what they say about futures, with no rule of thumb in between.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

from anabranch.model.elements import Adjust, Insert
from anabranch.model.freeze import Freeze
from anabranch.oracle.relation import World

Ends: TypeAlias = tuple[int, ...]


@dataclass(frozen=True)
class Piece:
    """Ends that events of one payload and start may have, and how many such events at most."""

    start: int
    ends: Ends
    most: int

    @cache  # noqa: B019 - pieces are few and live as long as the tests that use them
    def futures(self, now: Ends, stable: int) -> frozenset[Ends]:
        """All bags that valid elements lead to, the present one included."""
        seen = {now}
        open_ends = [now]
        while open_ends:
            bag = open_ends.pop()
            for successor in self._successors(bag, stable) - seen:
                seen.add(successor)
                open_ends.append(successor)
        return frozenset(seen)

    def _successors(self, bag: Ends, stable: int) -> set[Ends]:
        elements = [Insert({}, self.start, end) for end in self.ends] + [
            Adjust({}, self.start, old, end) for old in set(bag) for end in (self.start, *self.ends)
        ]
        found = set()
        for element in elements:
            world = World([(frozenset(), self.start, end) for end in bag], stable)
            if world.apply(element) is None and len(world.rows) <= self.most:
                found.add(tuple(sorted(end for _, _, end in world.rows)))
        return found

    def common(self, prefixes: Sequence[tuple[Ends, int]]) -> frozenset[Ends]:
        """The bags that every one of these prefixes (its bag, its stable) can become."""
        return frozenset.intersection(*(self.futures(bag, stable) for bag, stable in prefixes))

    def consistent(self, prefixes: Sequence[tuple[Ends, int]]) -> bool:
        """Some future is open to all."""
        return bool(self.common(prefixes))

    def compatible(self, output: tuple[Ends, int], inputs: Sequence[tuple[Ends, int]]) -> bool:
        """The output can follow the inputs wherever they can still go together."""
        return self.common(inputs) <= self.futures(*output)


def freeze_by_futures(start: int, end: int, stable: int, ends: Iterable[int]) -> Freeze:
    """What of one event is the same in all its futures: all of it, that it exists, or nothing."""
    piece = Piece(start, tuple(ends), 1)
    futures = piece.futures((end,), stable)
    if futures == {(end,)}:
        return Freeze.FULLY_FROZEN
    return Freeze.HALF_FROZEN if () not in futures else Freeze.UNFROZEN
