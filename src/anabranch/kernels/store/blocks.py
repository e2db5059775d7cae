"""Blocks of cells in columns that all share: each is twice as large as the next smaller one.

A block that is given back is the next one of its size to be given out, and names the one after it in its
first cell of the column that is handed in. Columns grow outside, where `take_block` has found no room.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from anabranch.model.compiled import inlined, inner
from anabranch.model.slots import NONE

_SIZES = 40


class Blocks(NamedTuple):
    """State: the free blocks by size, and how much of the columns was ever taken."""

    free: NDArray[np.int64]
    """Where the first free block of each size begins; NONE: there is none."""
    end: NDArray[np.int64]
    """How many cells were taken or given back, as an array of one."""

    @classmethod
    def none(cls) -> "Blocks":
        """No block was taken."""
        return cls(np.full(_SIZES, NONE, np.int64), np.zeros(1, np.int64))


@inlined
def take_block(blocks: Blocks, cells: Any, order: Any, size: Any) -> Any:
    """Where a block of a size begins, the size being that of its order; NONE: the column has no room."""
    found = blocks.free[order]
    if found != NONE:
        blocks.free[order] = np.int64(cells[found])
    elif blocks.end[0] + size <= len(cells):
        found = blocks.end[0]
        blocks.end[0] = found + size
    return found


@inlined
def give_block(blocks: Blocks, cells: Any, order: Any, base: Any) -> None:
    """Free a block that was taken."""
    cells[base] = blocks.free[order]
    blocks.free[order] = base


@inner
def order_of(used: Any, least: Any) -> Any:
    """The order of the smallest block that has room for so many: 0 for the least size, 1 for twice that."""
    order, size = np.int64(0), np.int64(least)
    while size < used:
        size *= 2
        order += 1
    return order
