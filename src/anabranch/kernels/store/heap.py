"""A heap of numbered items by time, with the keys beside the items, compiled.

Four children to a node: the keys of all of them share a cache line, and the heap is half as deep as a binary
one. Items are not tracked: whoever changes the key of an item pushes it again, and drops what comes up with a
key that is no longer its own.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from anabranch.model.compiled import inner


class Heap(NamedTuple):
    """State: keys and items in heap order, and how many there are."""

    key: NDArray[np.int64]
    item: NDArray[np.int32]
    size: NDArray[np.int64]

    @classmethod
    def of_capacity(cls, capacity: int) -> "Heap":
        """Nothing, with room for this many."""
        return cls(np.empty(capacity, np.int64), np.empty(capacity, np.int32), np.zeros(1, np.int64))

    def with_room(self, more: int) -> "Heap":
        """The same items, with room for more."""
        held = int(self.size[0])
        if held + more <= len(self.key):
            return self
        larger = Heap.of_capacity(1 << (held + more - 1).bit_length())
        larger.key[:held] = self.key[:held]
        larger.item[:held] = self.item[:held]
        larger.size[0] = held
        return larger


@inner
def push(heap: Heap, key: Any, item: Any) -> None:
    """One more item; the caller has made room."""
    spot = heap.size[0]
    heap.size[0] = spot + 1
    while spot > 0:
        parent = (spot - 1) >> 2
        if heap.key[parent] <= key:
            break
        heap.key[spot] = heap.key[parent]
        heap.item[spot] = heap.item[parent]
        spot = parent
    heap.key[spot] = key
    heap.item[spot] = item


@inner
def pop(heap: Heap) -> Any:
    """The item with the least key, which is taken out; there is one."""
    item = heap.item[0]
    last = heap.size[0] - 1
    heap.size[0] = last
    key = heap.key[last]
    spot = 0
    while True:
        child = 4 * spot + 1
        if child >= last:
            break
        least = child
        for other in range(child + 1, min(child + 4, last)):
            if heap.key[other] < heap.key[least]:
                least = other
        if heap.key[least] >= key:
            break
        heap.key[spot] = heap.key[least]
        heap.item[spot] = heap.item[least]
        spot = least
    heap.key[spot] = key
    heap.item[spot] = heap.item[last]
    return np.int64(item)
