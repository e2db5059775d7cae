"""A bag of events as an open-addressing table, compiled.

A node is one distinct event (payload identity, start, end) with its count and the place of its payload.
`apply` is the meaning of a stream prefix: it applies elements one by one.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from anabranch.model.batch import Kind
from anabranch.model.murmur import mix
from anabranch.model.time import FOREVER
from anabranch.model.validity import Rule

NOBODY = -1
INSERT, ADJUST, STABLE = int(Kind.INSERT), int(Kind.ADJUST), int(Kind.STABLE)

BROKEN = (
    Rule.EMPTY_LIFETIME,
    Rule.NEGATIVE_LIFETIME,
    Rule.INSERT_BEHIND_STABLE,
    Rule.ADJUST_OF_FROZEN,
    Rule.ADJUST_BEHIND_STABLE,
    Rule.NO_SUCH_EVENT,
)
VALID = -1
EMPTY, NEGATIVE, INSERT_BEHIND, OF_FROZEN, ADJUST_BEHIND, MISSING = range(len(BROKEN))


class EventTable(NamedTuple):
    """State: the nodes in columns, the slots that lead to them, and a stack of the nodes that are free."""

    slots: NDArray[np.int32]
    low: NDArray[np.uint64]
    high: NDArray[np.uint64]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    copies: NDArray[np.int64]
    place: NDArray[np.int64]
    arrival: NDArray[np.int64]
    """The position of the element that made the event what it is."""
    free: NDArray[np.int32]
    unused: NDArray[np.int64]
    """How high the stack of free nodes is, as an array of one."""

    @classmethod
    def of_capacity(cls, capacity: int) -> "EventTable":
        """An empty table that holds this many distinct events (a power of two) before it must grow."""
        return cls(
            slots=np.full(2 * capacity, NOBODY, np.int32),
            low=np.zeros(capacity, np.uint64),
            high=np.zeros(capacity, np.uint64),
            start=np.zeros(capacity, np.int64),
            end=np.zeros(capacity, np.int64),
            copies=np.zeros(capacity, np.int64),
            place=np.zeros(capacity, np.int64),
            arrival=np.zeros(capacity, np.int64),
            free=np.arange(capacity, dtype=np.int32)[::-1].copy(),
            unused=np.array([capacity], np.int64),
        )

    @property
    def used(self) -> int:
        """How many distinct events there are."""
        return len(self.free) - int(self.unused[0])

    def live(self) -> NDArray[np.int64]:
        """The nodes that hold an event."""
        return np.flatnonzero(self.copies)

    def with_room(self, more: int) -> "EventTable":
        """A table with the same events in which this many distinct ones more fit."""
        if more <= self.unused[0]:
            return self
        larger = EventTable.of_capacity(1 << (self.used + more - 1).bit_length())
        live = self.live()
        for column in ("low", "high", "start", "end", "copies", "place", "arrival"):
            getattr(larger, column)[: len(live)] = getattr(self, column)[live]
        larger.unused[0] -= len(live)
        _link_first(larger, len(live))
        return larger

    def remove(self, nodes: NDArray[np.int64]) -> None:
        """Forget these nodes."""
        _remove_all(self, nodes)


@njit(inline="always")
def _home(low: Any, high: Any, start: int, end: int, mask: int) -> Any:
    word = mix(low ^ (mix(np.uint64(start) + high) + np.uint64(end) * np.uint64(0x9E3779B97F4A7C15)))
    return np.int64(word & np.uint64(mask))


@njit(cache=True)
def find(table: EventTable, low: Any, high: Any, start: int, end: int) -> Any:
    """The slot of this event, or the empty slot where it would go."""
    mask = len(table.slots) - 1
    slot = _home(low, high, start, end, mask)
    while True:
        node = table.slots[slot]
        if node == NOBODY or (
            table.low[node] == low
            and table.high[node] == high
            and table.start[node] == start
            and table.end[node] == end
        ):
            return slot
        slot = (slot + 1) & mask


@njit(cache=True)
def vacate(table: EventTable, slot: int) -> None:
    """Free the node of a slot and move up what it had pushed away, so that no probe meets a hole early."""
    mask = len(table.slots) - 1
    node = table.slots[slot]
    table.copies[node] = 0
    table.free[table.unused[0]] = node
    table.unused[0] += 1
    hole = slot
    slot = (slot + 1) & mask
    while table.slots[slot] != NOBODY:
        node = table.slots[slot]
        home = _home(table.low[node], table.high[node], table.start[node], table.end[node], mask)
        if ((slot - home) & mask) >= ((slot - hole) & mask):
            table.slots[hole] = node
            hole = slot
        slot = (slot + 1) & mask
    table.slots[hole] = NOBODY


@njit(cache=True)
def occupy(table: EventTable, slot: int, low: Any, high: Any, start: int, end: int) -> Any:
    """Put an event with one copy into an empty slot; its node."""
    table.unused[0] -= 1
    node = table.free[table.unused[0]]
    table.slots[slot] = node
    table.low[node], table.high[node] = low, high
    table.start[node], table.end[node] = start, end
    table.copies[node] = 1
    return node


@njit(cache=True)
def _link_first(table: EventTable, count: int) -> None:
    for node in range(count):
        slot = find(table, table.low[node], table.high[node], table.start[node], table.end[node])
        table.slots[slot] = node


@njit(cache=True)
def _remove_all(table: EventTable, nodes: Any) -> None:
    for node in nodes:
        vacate(table, find(table, table.low[node], table.high[node], table.start[node], table.end[node]))


@njit(cache=True)
def _rule_of_times(kind: int, start: int, end: int, old_end: int, stable: int) -> int:
    """The rule that an insert or an adjust breaks by its times alone."""
    if kind == INSERT:
        if end <= start:
            return EMPTY
        return INSERT_BEHIND if start < stable else VALID
    if end < start:
        return NEGATIVE
    if old_end < stable or stable == FOREVER:
        return OF_FROZEN
    return ADJUST_BEHIND if end < stable else VALID


@njit(cache=True)
def apply(
    table: EventTable,
    elements: tuple[Any, Any, Any, Any, Any],
    place: int,
    position: int,
    stable: int,
    stops: bool,
    broken: Any,
    created: Any,
) -> tuple[int, int, int]:
    """Apply elements in order; an invalid one changes nothing and, if ``stops``, is the last one looked at.

    ``elements`` are the columns kind, start, end, old_end and identity. Writes the rule each element breaks
    to ``broken`` and the nodes that came to be to ``created``; returns how many elements were looked at, how
    many nodes came to be, and the stable. Element i has the position ``position + i`` and its payload stands
    at ``place + i``; an event that is adjusted keeps its place.
    """
    kind, start, end, old_end, identity = elements
    births = 0
    for i in range(len(kind)):
        if kind[i] == STABLE:
            stable = max(stable, start[i])
            continue
        low, high = identity[i, 0], identity[i, 1]
        stands = place + i
        rule = _rule_of_times(kind[i], start[i], end[i], old_end[i], stable)
        if rule == VALID and kind[i] == ADJUST:
            slot = find(table, low, high, start[i], old_end[i])
            node = table.slots[slot]
            if node == NOBODY:
                rule = MISSING
            elif table.copies[node] == 1:
                stands = table.place[node]
                vacate(table, slot)
            else:
                table.copies[node] -= 1
        if rule != VALID:
            broken[i] = rule
            if stops:
                return i + 1, births, stable
            continue
        if end[i] == start[i]:
            continue
        slot = find(table, low, high, start[i], end[i])
        node = table.slots[slot]
        if node != NOBODY:
            table.copies[node] += 1
            continue
        node = occupy(table, slot, low, high, start[i], end[i])
        table.place[node] = stands
        table.arrival[node] = position + i
        created[births] = node
        births += 1
    return len(kind), births, stable
