"""A bag of events as an open-addressing table, compiled.

A node is one distinct event (payload identity, start, end) with how many copies of it there are and the place
of its payload.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from anabranch.model.compiled import compiled, inlined
from anabranch.model.murmur import mix
from anabranch.model.pool import Pool, give_place, take_place
from anabranch.model.slots import NONE, TAG_MASK, link_all, node_in, slot_of, tag_in, vacate_slot


class EventTable(NamedTuple):
    """State: the nodes in columns, the slots that lead to them, and which nodes are free."""

    slots: NDArray[np.int64]
    low: NDArray[np.uint64]
    high: NDArray[np.uint64]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    copies: NDArray[np.int64]
    place: NDArray[np.int64]
    arrival: NDArray[np.int64]
    """The position of the element that made the event what it is."""
    pool: Pool

    @classmethod
    def of_capacity(cls, capacity: int) -> "EventTable":
        """An empty table that holds this many distinct events (a power of two) before it must grow."""
        return cls(
            slots=np.full(2 * capacity, NONE, np.int64),
            low=np.zeros(capacity, np.uint64),
            high=np.zeros(capacity, np.uint64),
            start=np.zeros(capacity, np.int64),
            end=np.zeros(capacity, np.int64),
            copies=np.zeros(capacity, np.int64),
            place=np.zeros(capacity, np.int64),
            arrival=np.zeros(capacity, np.int64),
            pool=Pool.of_capacity(capacity),
        )

    @property
    def capacity(self) -> int:
        """How many distinct events fit."""
        return self.pool.capacity

    @property
    def used(self) -> int:
        """How many distinct events there are."""
        return self.pool.used

    def live(self) -> NDArray[np.int64]:
        """The nodes that hold an event."""
        return np.flatnonzero(self.copies)

    def with_room(self, more: int) -> "EventTable":
        """A table with the same events, each at the same node, in which this many distinct ones more fit."""
        pool = self.pool.with_room(more)
        if pool is self.pool:
            return self
        larger = EventTable.of_capacity(pool.capacity)
        for column in ("low", "high", "start", "end", "copies", "place", "arrival"):
            getattr(larger, column)[: self.capacity] = getattr(self, column)
        link_all(self.slots, larger.slots)
        return larger._replace(pool=pool)

    def remove(self, nodes: NDArray[np.int64]) -> None:
        """Forget these nodes."""
        _remove_all(self, nodes)


@inlined
def tag_of(low: Any, high: Any, start: int, end: int) -> Any:
    """31 bits of an event's hash; the lowest of them are its home among the slots."""
    word = mix(low ^ (mix(np.uint64(start) + high) + np.uint64(end) * np.uint64(0x9E3779B97F4A7C15)))
    return np.int64(word & TAG_MASK)


@inlined
def node_at(table: EventTable, slot: int) -> Any:
    """The node of a slot, or NONE."""
    return node_in(table.slots[slot])


@compiled
def find(table: EventTable, tag: int, low: Any, high: Any, start: int, end: int) -> Any:
    """The slot of this event, or the empty slot where it would go."""
    mask = len(table.slots) - 1
    slot = tag & mask
    while True:
        entry = table.slots[slot]
        if entry < 0:
            return slot
        if tag_in(entry) == tag:
            node = node_in(entry)
            if (
                table.low[node] == low
                and table.high[node] == high
                and table.start[node] == start
                and table.end[node] == end
            ):
                return slot
        slot = (slot + 1) & mask


@compiled
def occupy(table: EventTable, slot: int, tag: int, low: Any, high: Any, start: int, end: int) -> Any:
    """Put an event with one copy into an empty slot; its node."""
    node = take_place(table.pool)
    table.slots[slot] = slot_of(tag, node)
    table.low[node], table.high[node] = low, high
    table.start[node], table.end[node] = start, end
    table.copies[node] = 1
    return node


@compiled
def vacate(table: EventTable, slot: int) -> None:
    """Free the node of a slot."""
    node = node_at(table, slot)
    table.copies[node] = 0
    give_place(table.pool, node)
    vacate_slot(table.slots, slot)


@compiled
def _remove_all(table: EventTable, nodes: Any) -> None:
    for node in nodes:
        low, high, start, end = table.low[node], table.high[node], table.start[node], table.end[node]
        vacate(table, find(table, tag_of(low, high, start, end), low, high, start, end))
