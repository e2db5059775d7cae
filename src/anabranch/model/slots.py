"""The slots of an open-addressing table, compiled.

A slot holds a node in its lower half and 31 bits of the hash of what the node stands for in its upper half;
the lowest of those bits are its home. Probing, removing and growing look at slots alone, and at a node only
when it is almost surely the one.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from anabranch.model.compiled import compiled, inlined

NONE = -1
TAG_MASK = np.uint64(0x7FFFFFFF)
_NODE_BITS = 32
_NODE_MASK = np.int64(0xFFFFFFFF)


def empty_slots(nodes: int) -> NDArray[np.int64]:
    """The slots of a table with no nodes and room for this many (a power of two): at most half are in use."""
    return np.full(2 * nodes, NONE, np.int64)


def more_slots(slots: NDArray[np.int64], nodes: int) -> NDArray[np.int64]:
    """The slots of the same nodes with room for this many."""
    larger = empty_slots(nodes)
    link_all(slots, larger)
    return larger


@inlined
def slot_of(tag: int, node: Any) -> Any:
    """What a slot holds for a node."""
    return (tag << _NODE_BITS) | node


@inlined
def tag_in(entry: int) -> Any:
    """The hash bits that a slot holds."""
    return entry >> _NODE_BITS


@inlined
def node_in(entry: int) -> Any:
    """The node that a slot holds, or NONE."""
    return entry & _NODE_MASK if entry >= 0 else np.int64(NONE)


@compiled
def vacate_slot(slots: Any, slot: int) -> None:
    """Empty a slot and move up what it had pushed away, so that no probe meets a hole early."""
    mask = len(slots) - 1
    hole = slot
    slot = (slot + 1) & mask
    while slots[slot] >= 0:
        home = tag_in(slots[slot]) & mask
        if ((slot - home) & mask) >= ((slot - hole) & mask):
            slots[hole] = slots[slot]
            hole = slot
        slot = (slot + 1) & mask
    slots[hole] = NONE


@compiled
def link_all(old: Any, new: Any) -> None:
    """Put everything from the slots of one table into the empty slots of another."""
    mask = len(new) - 1
    for entry in old:
        if entry >= 0:
            slot = tag_in(entry) & mask
            while new[slot] >= 0:
                slot = (slot + 1) & mask
            new[slot] = entry
