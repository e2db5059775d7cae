"""What a stream prefix means: a list of events and a stable, changed by one element after the other."""

from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

from anabranch.model.elements import Adjust, Element, Insert, Stable
from anabranch.model.time import BEGINNING, FOREVER
from anabranch.model.validity import Rule
from anabranch.oracle.payload import payload_key

Row: TypeAlias = tuple[Hashable, int, int]
"""An event: the key of its payload, its start, its end."""


@dataclass
class World:
    """All events there are, in a list."""

    rows: list[Row] = field(default_factory=list)
    stable: int = BEGINNING

    def verdict(self, element: Element) -> Rule | None:
        """The rule that this element would break if it came now."""
        match element:
            case Stable():
                return None
            case Insert(start=start, end=end):
                if not start < end:
                    return Rule.EMPTY_LIFETIME
                if not start >= self.stable:
                    return Rule.INSERT_BEHIND_STABLE
                return None
            case Adjust(payload=payload, start=start, old_end=old_end, end=end):
                if not start <= end:
                    return Rule.NEGATIVE_LIFETIME
                if self.stable == FOREVER or not old_end >= self.stable:
                    return Rule.ADJUST_OF_FROZEN
                if not end >= self.stable:
                    return Rule.ADJUST_BEHIND_STABLE
                if (payload_key(payload), start, old_end) not in self.rows:
                    return Rule.NO_SUCH_EVENT
                return None

    def apply(self, element: Element) -> Rule | None:
        """Let an element happen, unless it breaks a rule."""
        broken = self.verdict(element)
        if broken:
            return broken
        match element:
            case Stable(time=time):
                self.stable = max(self.stable, time)
            case Insert(payload=payload, start=start, end=end):
                self.rows.append((payload_key(payload), start, end))
            case Adjust(payload=payload, start=start, old_end=old_end, end=end):
                self.rows.remove((payload_key(payload), start, old_end))
                if end != start:
                    self.rows.append((payload_key(payload), start, end))
        return None

    def bag(self) -> Counter[Row]:
        """The events with how often each occurs."""
        return Counter(self.rows)


def denoted(prefix: Iterable[Element]) -> World:
    """The world after a valid prefix."""
    world = World()
    for element in prefix:
        broken = world.apply(element)
        assert broken is None, f"{element} breaks {broken}"
    return world


def equivalent(one: Iterable[Element], other: Iterable[Element]) -> bool:
    """Both prefixes denote the same events."""
    return denoted(one).bag() == denoted(other).bag()
