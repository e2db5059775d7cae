"""Deliberately wrong variants, each a mistake that is easy to make; the laws must catch them all."""

from collections import Counter
from collections.abc import Sequence

from anabranch import FOREVER, Adjust, Insert, Stable
from anabranch.model.elements import Element
from anabranch.model.validity import Rule
from anabranch.oracle.payload import payload_key
from anabranch.oracle.relation import Row, World


class FreezesEndsAtTheStable(World):
    """An end at the stable is taken as frozen (the most common reading of a watermark)."""

    def verdict(self, element: Element) -> Rule | None:
        if isinstance(element, Adjust) and element.old_end == self.stable:
            return Rule.ADJUST_OF_FROZEN
        return super().verdict(element)


class RefusesStartsAtTheStable(World):
    """An insert exactly at the stable counts as late."""

    def verdict(self, element: Element) -> Rule | None:
        if isinstance(element, Insert) and element.start == self.stable:
            return Rule.INSERT_BEHIND_STABLE
        return super().verdict(element)


class LetsTheStableGoBack(World):
    """A weaker stable replaces a stronger one."""

    def apply(self, element: Element) -> Rule | None:
        if isinstance(element, Stable):
            self.stable = element.time
            return None
        return super().apply(element)


class IsASet(World):
    """A true repeat is eaten."""

    def bag(self) -> Counter[Row]:
        return Counter(set(self.rows))


class AdjustsAllEqualEvents(World):
    """An adjust changes every event that looks like the one it names."""

    def apply(self, element: Element) -> Rule | None:
        broken = super().apply(element)
        if broken is None and isinstance(element, Adjust):
            key, start = payload_key(element.payload), element.start
            same = [row for row in self.rows if row == (key, start, element.old_end)]
            self.rows = [row for row in self.rows if row not in same]
            self.rows += [(key, start, element.end) for _ in same if element.end != start]
        return broken


class KeepsWhatIsRemoved(World):
    """A removal leaves an event of no length."""

    def apply(self, element: Element) -> Rule | None:
        broken = super().apply(element)
        if broken is None and isinstance(element, Adjust) and element.removes:
            self.rows.append((payload_key(element.payload), element.start, element.end))
        return broken


class LeavesUnendingEventsOpen(World):
    """After stable(FOREVER), an event without an end may still be adjusted to no end."""

    def verdict(self, element: Element) -> Rule | None:
        broken = super().verdict(element)
        frozen = broken is Rule.ADJUST_OF_FROZEN and self.stable == FOREVER
        if frozen and isinstance(element, Adjust) and element.old_end == element.end == FOREVER:
            return None
        return broken


class FindsEventsByPayloadAndStart(World):
    """An adjust with a wrong old end is accepted where payload and start are right."""

    def verdict(self, element: Element) -> Rule | None:
        broken = super().verdict(element)
        if broken is Rule.NO_SUCH_EVENT and isinstance(element, Adjust):
            key = (payload_key(element.payload), element.start)
            if any(row[:2] == key for row in self.rows):
                return None
        return broken

    def apply(self, element: Element) -> Rule | None:
        try:
            return super().apply(element)
        except ValueError:
            return None


WRONG_RELATIONS = [
    FreezesEndsAtTheStable,
    RefusesStartsAtTheStable,
    LetsTheStableGoBack,
    IsASet,
    AdjustsAllEqualEvents,
    KeepsWhatIsRemoved,
    LeavesUnendingEventsOpen,
    FindsEventsByPayloadAndStart,
]


Prefix = tuple[tuple[int, ...], int]


def c2_as_printed(output: Prefix, inputs: Sequence[Prefix]) -> bool:
    """C1 to C3 with the comparison of half-frozen stables the wrong way round."""
    from anabranch.oracle import conditions

    (bag, last), start = output, 1
    single = [((ends[0] if ends else None), stable) for ends, stable in inputs]
    end = bag[0] if bag else None
    right = conditions.compatible(start, (end, last), single)
    if end is not None and start < last <= end and last != FOREVER:
        return right and any(
            e is not None
            and (
                (start < stable <= e and stable <= last) or ((e < stable or stable == FOREVER) and last <= e)
            )
            for e, stable in single
        )
    return right


def contains_all_frozen(output: Prefix, inputs: Sequence[Prefix]) -> bool:
    """The multiset rule as printed: contain the frozen events, and as many half-frozen ones."""
    bag, last = output
    ends, leading = max(inputs, key=lambda prefix: prefix[1])
    if last > leading:
        return False
    clipped = [Counter(min(end, last) for end in side if last > 1) for side in (bag, ends)]
    ours, theirs = clipped
    frozen_missing = {end: n for end, n in (theirs - ours).items() if end < last}
    return not frozen_missing and ours[last] == theirs[last]
