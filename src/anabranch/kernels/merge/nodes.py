"""The index of a merge: one node per payload and start, the slots that lead to it, and who must look at it.

The paper visits every half-frozen node at every stable. A stable t of input i can change a node only if the
node starts before t and is not half frozen yet, or an end in the output is before t, or input i shows an end
before t that differs from it. Three kinds of heaps find exactly these, so a stable costs what it changes:

- ``due`` by start: the nodes that are not half frozen yet;
- ``open`` by the end in the output that freezes next: the half-frozen nodes;
- one for each input in ``shorter``, by the end it shows: the half-frozen nodes it would shorten. In R4 the
  inputs that have left have one too.

Entries of ``open`` and ``shorter`` are not taken back when a node changes; what comes up is looked at again.
A heap that is full is made anew from the nodes, which are at most half of what it can hold.

A node about which nothing can change any more stays to be compared with slower inputs, in a queue
(``decided``) that empties as these pass the stable that decided it.

No array is filled beyond the nodes that there are, for which the caller has made room: a node is in ``due``
once, until it is half frozen; among ``changing`` once, as its state says; and in the queue once, since one
that is decided is never open again.

A node is a row of ``cells``, so that finding, changing and settling one touches one or two cache lines. The
columns from EXTRA on belong to the case.
"""

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anabranch.kernels.store.heap import Heap, push
from anabranch.model.compiled import compiled, inlined, inner
from anabranch.model.murmur import mix
from anabranch.model.payloads import PayloadStore
from anabranch.model.pool import Pool, give_place, take_place
from anabranch.model.slots import NONE, TAG_MASK, link_all, node_in, slot_of, tag_in, vacate_slot
from anabranch.model.time import BEGINNING

ABSENT = BEGINNING
LOW, HIGH, START, PLACE, STATE, EXTRA = range(6)
FREE, UNFROZEN, HALF, VISITED, DECIDED = range(5)
"""States of a node. A visited one is half frozen or getting so, and noted as about to change."""

HEAD, LENGTH, SKIPPED, FORGOTTEN = range(4)


class Nodes(NamedTuple):
    """State: the nodes and the heaps."""

    slots: NDArray[np.int64]
    cells: NDArray[np.int64]
    pool: Pool
    due: Heap
    open: Heap
    shorter_key: NDArray[np.int64]
    shorter_item: NDArray[np.int32]
    shorter_size: NDArray[np.int64]
    changing: NDArray[np.int32]
    """Scratch: the nodes that a stable changes, each once, as its state says that it is noted."""
    decided: NDArray[np.int32]
    stamp: NDArray[np.int64]
    """By place in the queue, the stable that decided the node."""
    queue: NDArray[np.int64]
    """Where the queue begins, how many are in it, how many left it without being compared, and the stable
    that decided the last one that left it: what starts at or after that has not been forgotten."""

    @classmethod
    def of_capacity(cls, capacity: int, width: int, voices: int) -> "Nodes":
        """No nodes, with room for this many (a power of two) of this many cells.

        ``voices`` is how many may shorten what is half frozen, each with a heap of its own.
        """
        return cls(
            slots=np.full(2 * capacity, NONE, np.int64),
            cells=np.zeros((capacity, width), np.int64),
            pool=Pool.of_capacity(capacity),
            due=Heap.of_capacity(capacity),
            open=Heap.of_capacity(2 * capacity),
            shorter_key=np.empty((voices, 2 * capacity), np.int64),
            shorter_item=np.empty((voices, 2 * capacity), np.int32),
            shorter_size=np.zeros(voices, np.int64),
            changing=np.empty(capacity, np.int32),
            decided=np.empty(capacity, np.int32),
            stamp=np.empty(capacity, np.int64),
            queue=np.array([0, 0, 0, ABSENT], np.int64),
        )

    @property
    def capacity(self) -> int:
        """How many nodes fit."""
        return self.pool.capacity

    @property
    def used(self) -> int:
        """How many nodes there are."""
        return self.pool.used

    @property
    def live(self) -> int:
        """How many nodes can still change."""
        return self.used - int(self.queue[LENGTH])

    @property
    def place(self) -> NDArray[np.int64]:
        """Where the payload of each node stands."""
        return self.cells[:, PLACE]

    def all(self) -> NDArray[np.int64]:
        """The nodes there are."""
        return np.flatnonzero(self.cells[:, STATE] != FREE)

    @property
    def nbytes(self) -> int:
        """Bytes held, room included."""
        arrays = [*self.pool, *self.due, *self.open, *(a for a in self if isinstance(a, np.ndarray))]
        return sum(array.nbytes for array in arrays)

    def keep(self, payloads: PayloadStore, payload: pa.RecordBatch, created: NDArray[np.int32]) -> None:
        """Let a store hold the payloads of nodes that were created, and not much else."""
        if len(created):
            payloads.adopt(payload, self.place, created[: living_first(self.cells, created)])
        if payloads.crowded(self.used):
            payloads.compact(self.place, self.all())

    def in_order(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The nodes there are, first the decided ones in their queue; and the stables that decided those."""
        turns = (int(self.queue[HEAD]) + np.arange(int(self.queue[LENGTH]))) % self.capacity
        others = np.flatnonzero((self.cells[:, STATE] != FREE) & (self.cells[:, STATE] != DECIDED))
        keys = [self.cells[others, column] for column in (HIGH, LOW, START)]
        return np.concatenate([self.decided[turns], others[np.lexsort(keys)]]), self.stamp[turns]

    @classmethod
    def restored(cls, cells: NDArray[np.int64], stamps: NDArray[np.int64], voices: int) -> "Nodes":
        """Nodes with these cells in order, the first of them decided by these stables."""
        capacity = max(1024, 1 << (len(cells) - 1).bit_length())
        nodes = cls.of_capacity(capacity, cells.shape[1], voices)
        restore(nodes, np.ascontiguousarray(cells), np.ascontiguousarray(stamps))
        return nodes

    def with_room(self, more: int) -> "Nodes":
        """The same nodes, each where it was, with room for more of them."""
        pool, old = self.pool.with_room(more), self.capacity
        if pool is self.pool:
            return self
        capacity = pool.capacity
        larger = Nodes.of_capacity(capacity, self.cells.shape[1], len(self.shorter_size))
        larger.cells[:old] = self.cells
        larger.changing[:old] = self.changing
        larger.shorter_key[:, : 2 * old] = self.shorter_key
        larger.shorter_item[:, : 2 * old] = self.shorter_item
        larger.shorter_size[:] = self.shorter_size
        order = (int(self.queue[HEAD]) + np.arange(int(self.queue[LENGTH]))) % old
        larger.decided[: len(order)], larger.stamp[: len(order)] = self.decided[order], self.stamp[order]
        larger.queue[1:] = self.queue[1:]
        link_all(self.slots, larger.slots)
        due, opened = self.due.with_room(capacity), self.open.with_room(2 * capacity)
        return larger._replace(pool=pool, due=due, open=opened)

    def with_voices(self, voices: int, width: int) -> "Nodes":
        """The same nodes with more cells and heaps; new cells are 0."""
        old = len(self.shorter_size)
        cells = np.zeros((self.capacity, width), np.int64)
        cells[:, : self.cells.shape[1]] = self.cells
        key = np.empty((voices, 2 * self.capacity), np.int64)
        item = np.empty((voices, 2 * self.capacity), np.int32)
        size = np.zeros(voices, np.int64)
        key[:old], item[:old], size[:old] = self.shorter_key, self.shorter_item, self.shorter_size
        return self._replace(cells=cells, shorter_key=key, shorter_item=item, shorter_size=size)


@compiled
def living_first(cells: Any, created: Any) -> int:
    """Bring those of some nodes to the front that have not been forgotten; how many there are."""
    count = 0
    for n in range(len(created)):
        if cells[created[n], STATE] != FREE:
            created[count] = created[n]
            count += 1
    return count


@inlined
def tag_of(low: Any, high: Any, start: Any) -> Any:
    """31 bits of the hash of a payload and start; the lowest of them are its home among the slots."""
    return np.int64(mix(np.uint64(low) ^ mix(np.uint64(start) + np.uint64(high))) & TAG_MASK)


@inlined
def find(nodes: Nodes, tag: int, low: Any, high: Any, start: int) -> Any:
    """The slot of this payload and start, or the empty slot where it would go."""
    mask = len(nodes.slots) - 1
    slot = tag & mask
    while True:
        entry = nodes.slots[slot]
        if entry < 0:
            break
        if tag_in(entry) == tag:
            node = node_in(entry)
            cells = nodes.cells
            if cells[node, LOW] == low and cells[node, HIGH] == high and cells[node, START] == start:
                break
        slot = (slot + 1) & mask
    return slot


@inlined
def node_at(nodes: Nodes, slot: int) -> Any:
    """The node of a slot, or NONE."""
    return node_in(nodes.slots[slot])


@inlined
def create(nodes: Nodes, slot: int, tag: int, low: Any, high: Any, start: int, place: int) -> Any:
    """A node in an empty slot."""
    node = take_place(nodes.pool)
    nodes.slots[slot] = slot_of(tag, node)
    nodes.cells[node, LOW] = low
    nodes.cells[node, HIGH] = high
    nodes.cells[node, START] = start
    nodes.cells[node, PLACE] = place
    nodes.cells[node, STATE] = UNFROZEN
    return node


@inner
def delete(nodes: Nodes, node: int) -> None:
    """Forget a node; entries of heaps that name it are passed over when they come up."""
    low, high, start = nodes.cells[node, LOW], nodes.cells[node, HIGH], nodes.cells[node, START]
    vacate_slot(nodes.slots, find(nodes, tag_of(low, high, start), low, high, start))
    nodes.cells[node, STATE] = FREE
    give_place(nodes.pool, node)


@inlined
def shorter(nodes: Nodes, voice: int) -> Any:
    """The half-frozen nodes that an input would shorten, or in R4 those that have left."""
    return Heap(nodes.shorter_key[voice], nodes.shorter_item[voice], nodes.shorter_size[voice : voice + 1])


@inner
def decide(nodes: Nodes, node: int, time: int) -> None:
    """Nothing about a node changes after this stable."""
    nodes.cells[node, STATE] = DECIDED
    spot = nodes.queue[HEAD] + nodes.queue[LENGTH]
    if spot >= len(nodes.decided):
        spot -= len(nodes.decided)
    nodes.decided[spot] = node
    nodes.stamp[spot] = time
    nodes.queue[LENGTH] += 1


@inner
def leave_queue(nodes: Nodes) -> None:
    """Forget the node that was decided first."""
    head = nodes.queue[HEAD]
    nodes.queue[FORGOTTEN] = nodes.stamp[head]
    first: Any = np.int64(nodes.decided[head])
    delete(nodes, first)
    nodes.queue[HEAD] = head + 1 if head + 1 < len(nodes.decided) else 0
    nodes.queue[LENGTH] -= 1


@compiled
def restore(nodes: Nodes, cells: Any, stamps: Any) -> None:
    """Fill empty tables with nodes; node n has the n-th row of cells. Half-frozen ones are in no heap yet."""
    for row in range(len(cells)):
        low, high, start = cells[row, LOW], cells[row, HIGH], cells[row, START]
        tag = tag_of(low, high, start)
        node = create(nodes, find(nodes, tag, low, high, start), tag, low, high, start, cells[row, PLACE])
        for column in range(STATE, cells.shape[1]):
            nodes.cells[node, column] = cells[row, column]
        if row < len(stamps):
            decide(nodes, node, stamps[row])
        elif nodes.cells[node, STATE] == UNFROZEN:
            push(nodes.due, start, node)


@inner
def _before(nodes: Nodes, one: int, other: int) -> Any:
    """By start, then identity."""
    cells = nodes.cells
    if cells[one, START] != cells[other, START]:
        return cells[one, START] < cells[other, START]
    if cells[one, LOW] != cells[other, LOW]:
        return np.uint64(cells[one, LOW]) < np.uint64(cells[other, LOW])
    return np.uint64(cells[one, HIGH]) < np.uint64(cells[other, HIGH])


@inner
def sort_changing(nodes: Nodes, count: int) -> None:
    """Put the nodes that change in the order in which they are said: by start and identity (heapsort)."""
    changing = nodes.changing
    for first in range(count // 2 - 1, -1, -1):
        _sift(nodes, first, count)
    for last in range(count - 1, 0, -1):
        changing[0], changing[last] = changing[last], changing[0]
        _sift(nodes, 0, last)


@inner
def _sift(nodes: Nodes, spot: int, size: int) -> None:
    changing = nodes.changing
    node = changing[spot]
    while True:
        child = 2 * spot + 1
        if child >= size:
            break
        if child + 1 < size and _before(nodes, changing[child], changing[child + 1]):
            child += 1
        if not _before(nodes, node, changing[child]):
            break
        changing[spot] = changing[child]
        spot = child
    changing[spot] = node
