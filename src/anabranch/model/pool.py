"""The places of a table that are free, and how a table grows: the same for every table of kernels.

A table is columns by place. A place is taken from the top of a stack and given back to it; when a table
grows, the places that were free are still taken first, and then the new ones, the least first. So columns
are as long as there were places taken at once, to the next power of two.

A stack cannot overflow: it has a cell for each place, and a place is given back only by who has taken it.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from anabranch.model.compiled import inlined


class Pool(NamedTuple):
    """State: the free places as a stack.

    >>> pool = Pool.of_capacity(4)
    >>> pool.take(3).tolist(), pool.used
    ([2, 1, 0], 3)
    >>> pool.give_back(np.array([1]))
    >>> larger = pool.with_room(4)
    >>> larger.take(3).tolist(), larger.capacity
    ([4, 3, 1], 8)
    """

    stack: NDArray[np.int32]
    height: NDArray[np.int64]
    """How many places are free, as an array of one."""

    @classmethod
    def of_capacity(cls, capacity: int) -> "Pool":
        """So many places, all free."""
        return cls(np.arange(capacity - 1, -1, -1, dtype=np.int32), np.array([capacity], np.int64))

    @property
    def capacity(self) -> int:
        """How many places there are."""
        return len(self.stack)

    @property
    def used(self) -> int:
        """How many of them are taken."""
        return self.capacity - int(self.height[0])

    @property
    def free(self) -> NDArray[np.int32]:
        """The places that are free, the next one last."""
        return self.stack[: int(self.height[0])]

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self.stack.nbytes + self.height.nbytes

    def with_room(self, more: int) -> "Pool":
        """The same places taken, and at least so many free: this pool, or another with more places."""
        if more <= self.height[0]:
            return self
        return self.of_size(1 << (self.used + more - 1).bit_length())

    def of_size(self, capacity: int) -> "Pool":
        """The same places taken, of more places."""
        larger, new = Pool.of_capacity(capacity), capacity - self.capacity
        larger.stack[new : new + len(self.free)] = self.free
        larger.height[0] = new + len(self.free)
        return larger

    def take(self, count: int) -> NDArray[np.int32]:
        """So many places, which are taken; the caller has made room."""
        left = int(self.height[0]) - count
        assert left >= 0, f"{count} places are taken of {left + count} that are free"
        self.height[0] = left
        return self.stack[left : left + count].copy()

    def give_back(self, places: NDArray[np.integer[Any]]) -> None:
        """Free places that were taken, each once."""
        height = int(self.height[0])
        self.stack[height : height + len(places)] = places
        self.height[0] = height + len(places)


@inlined
def take_place(pool: Pool) -> Any:
    """A place, which is taken; the caller has made room."""
    pool.height[0] -= 1
    return np.int64(pool.stack[pool.height[0]])


@inlined
def give_place(pool: Pool, place: Any) -> None:
    """Free a place that was taken."""
    pool.stack[pool.height[0]] = place
    pool.height[0] += 1


def grown(column: NDArray[Any], capacity: int, empty: Any = 0) -> NDArray[Any]:
    """A column by place with so many places, the new ones empty."""
    if capacity <= len(column):
        return column
    shape = (capacity, *column.shape[1:])
    longer = np.full(shape, empty, column.dtype) if empty else np.zeros(shape, column.dtype)
    longer[: len(column)] = column
    return longer
