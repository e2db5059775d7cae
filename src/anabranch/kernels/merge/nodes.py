"""The index of R3 (LM IV-D, in2t): one node per payload and start, with the end each input shows, compiled.

The paper visits every half-frozen node at every stable. A stable t of input i can change a node only if the
node starts before t and is not half frozen yet, or its end in the output is before t, or input i shows an end
before t that differs from it. Three kinds of heaps find exactly these, so a stable costs what it changes:

- ``due`` by (start, identity): the nodes that are not half frozen yet, and in a stable those to be visited;
- ``given`` by the end in the output: the half-frozen nodes;
- one for each input by the end it shows: the half-frozen nodes it would shorten.

Every heap holds a node at most once and knows where, so all of them are as large as the table and no larger.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from anabranch.model.compiled import compiled, inlined
from anabranch.model.murmur import mix
from anabranch.model.slots import NOBODY, TAG_MASK, link_all, node_in, slot_of, tag_in, vacate_slot
from anabranch.model.time import BEGINNING

ABSENT = BEGINNING
DUE, GIVEN, FIRST_INPUT = 0, 1, 2


class Nodes(NamedTuple):
    """State: the nodes in columns, the slots that lead to them, the heaps, and a stack of free nodes."""

    slots: NDArray[np.int64]
    low: NDArray[np.uint64]
    high: NDArray[np.uint64]
    start: NDArray[np.int64]
    given: NDArray[np.int64]
    """The end in the output."""
    shown: NDArray[np.int64]
    """The end each input shows, by input and node, or ABSENT."""
    place: NDArray[np.int64]
    heaps: NDArray[np.int32]
    where: NDArray[np.int32]
    """By heap and node, where in the heap the node is, or NOBODY."""
    sizes: NDArray[np.int64]
    free: NDArray[np.int32]
    unused: NDArray[np.int64]

    @classmethod
    def of_capacity(cls, capacity: int, inputs: int) -> "Nodes":
        """No nodes, with room for this many (a power of two) and this many inputs."""
        heaps = inputs + FIRST_INPUT
        return cls(
            slots=np.full(2 * capacity, NOBODY, np.int64),
            low=np.zeros(capacity, np.uint64),
            high=np.zeros(capacity, np.uint64),
            start=np.zeros(capacity, np.int64),
            given=np.full(capacity, ABSENT, np.int64),
            shown=np.full((inputs, capacity), ABSENT, np.int64),
            place=np.zeros(capacity, np.int64),
            heaps=np.zeros((heaps, capacity), np.int32),
            where=np.full((heaps, capacity), NOBODY, np.int32),
            sizes=np.zeros(heaps, np.int64),
            free=np.arange(capacity, dtype=np.int32)[::-1].copy(),
            unused=np.array([capacity], np.int64),
        )

    @property
    def capacity(self) -> int:
        """How many nodes fit."""
        return len(self.free)

    @property
    def used(self) -> int:
        """How many nodes there are."""
        return self.capacity - int(self.unused[0])

    @property
    def inputs(self) -> int:
        """How many inputs fit."""
        return len(self.shown)

    def live(self) -> NDArray[np.int64]:
        """The nodes there are."""
        return np.flatnonzero(self.given != ABSENT)

    def with_room(self, more: int, inputs: int) -> "Nodes":
        """The same nodes, each where it was, with room for more of them and for this many inputs."""
        if more <= self.unused[0] and inputs <= self.inputs:
            return self
        capacity = max(self.capacity, 1 << (self.used + more - 1).bit_length())
        larger = Nodes.of_capacity(capacity, max(inputs, self.inputs))
        old, heaps = self.capacity, len(self.sizes)
        for name in ("low", "high", "start", "given", "place"):
            getattr(larger, name)[:old] = getattr(self, name)
        larger.shown[: self.inputs, :old] = self.shown
        larger.heaps[:heaps, :old] = self.heaps
        larger.where[:heaps, :old] = self.where
        larger.sizes[:heaps] = self.sizes
        unused = int(self.unused[0])
        larger.free[capacity - old : capacity - old + unused] = self.free[:unused]
        larger.unused[0] = capacity - old + unused
        link_all(self.slots, larger.slots)
        return larger


@inlined
def tag_of(low: Any, high: Any, start: int) -> Any:
    """31 bits of the hash of a payload and start; the lowest of them are its home among the slots."""
    return np.int64(mix(low ^ mix(np.uint64(start) + high)) & TAG_MASK)


@compiled
def find(nodes: Nodes, tag: int, low: Any, high: Any, start: int) -> Any:
    """The slot of this payload and start, or the empty slot where it would go."""
    mask = len(nodes.slots) - 1
    slot = tag & mask
    while True:
        entry = nodes.slots[slot]
        if entry < 0:
            return slot
        if tag_in(entry) == tag:
            node = node_in(entry)
            if nodes.low[node] == low and nodes.high[node] == high and nodes.start[node] == start:
                return slot
        slot = (slot + 1) & mask


@inlined
def node_at(nodes: Nodes, slot: int) -> Any:
    """The node of a slot, or NOBODY."""
    return node_in(nodes.slots[slot])


@compiled
def create(nodes: Nodes, slot: int, tag: int, low: Any, high: Any, start: int, end: int) -> Any:
    """A node in an empty slot, with this end in the output; no input shows it yet."""
    nodes.unused[0] -= 1
    node = np.int64(nodes.free[nodes.unused[0]])
    nodes.slots[slot] = slot_of(tag, node)
    nodes.low[node], nodes.high[node] = low, high
    nodes.start[node], nodes.given[node] = start, end
    nodes.shown[:, node] = ABSENT
    push(nodes, DUE, node)
    return node


@compiled
def delete(nodes: Nodes, node: int) -> None:
    """Take a node out of the heaps and the slots."""
    for heap in range(len(nodes.sizes)):
        remove(nodes, heap, node)
    tag = tag_of(nodes.low[node], nodes.high[node], nodes.start[node])
    vacate_slot(nodes.slots, find(nodes, tag, nodes.low[node], nodes.high[node], nodes.start[node]))
    nodes.given[node] = ABSENT
    nodes.free[nodes.unused[0]] = node
    nodes.unused[0] += 1


@inlined
def _before(nodes: Nodes, heap: int, one: int, other: int) -> bool:
    """One node comes before another in a heap."""
    if heap == DUE:
        if nodes.start[one] != nodes.start[other]:
            return nodes.start[one] < nodes.start[other]
        if nodes.low[one] != nodes.low[other]:
            return nodes.low[one] < nodes.low[other]
        return nodes.high[one] < nodes.high[other]
    if heap == GIVEN:
        return nodes.given[one] < nodes.given[other]
    return nodes.shown[heap - FIRST_INPUT, one] < nodes.shown[heap - FIRST_INPUT, other]


@compiled
def _rise(nodes: Nodes, heap: int, spot: int) -> int:
    node = nodes.heaps[heap, spot]
    while spot > 0:
        parent = (spot - 1) >> 1
        above = nodes.heaps[heap, parent]
        if not _before(nodes, heap, node, above):
            break
        nodes.heaps[heap, spot] = above
        nodes.where[heap, above] = spot
        spot = parent
    nodes.heaps[heap, spot] = node
    nodes.where[heap, node] = spot
    return spot


@compiled
def _sink(nodes: Nodes, heap: int, spot: int) -> None:
    node = nodes.heaps[heap, spot]
    size = nodes.sizes[heap]
    while True:
        child = 2 * spot + 1
        if child >= size:
            break
        if child + 1 < size and _before(nodes, heap, nodes.heaps[heap, child + 1], nodes.heaps[heap, child]):
            child += 1
        below = nodes.heaps[heap, child]
        if not _before(nodes, heap, below, node):
            break
        nodes.heaps[heap, spot] = below
        nodes.where[heap, below] = spot
        spot = child
    nodes.heaps[heap, spot] = node
    nodes.where[heap, node] = spot


@compiled
def push(nodes: Nodes, heap: int, node: Any) -> None:
    """Put a node into a heap, or to its right place there."""
    spot = nodes.where[heap, node]
    if spot == NOBODY:
        spot = nodes.sizes[heap]
        nodes.sizes[heap] += 1
        nodes.heaps[heap, spot] = node
    _sink(nodes, heap, _rise(nodes, heap, spot))


@inlined
def remove(nodes: Nodes, heap: int, node: int) -> None:
    """Take a node out of a heap, if it is there."""
    if nodes.where[heap, node] != NOBODY:
        _remove(nodes, heap, node)


@compiled
def _remove(nodes: Nodes, heap: int, node: int) -> None:
    spot = nodes.where[heap, node]
    nodes.where[heap, node] = NOBODY
    nodes.sizes[heap] -= 1
    last = nodes.heaps[heap, nodes.sizes[heap]]
    if last != node:
        nodes.heaps[heap, spot] = last
        nodes.where[heap, last] = spot
        _sink(nodes, heap, _rise(nodes, heap, spot))


@inlined
def top(nodes: Nodes, heap: int) -> Any:
    """The first node of a heap, or NOBODY."""
    return np.int64(nodes.heaps[heap, 0]) if nodes.sizes[heap] else np.int64(NOBODY)
