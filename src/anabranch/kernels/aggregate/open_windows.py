"""Windows that are open, by slot: whose they are, when they began and when their last row started."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from anabranch.kernels.store.entries import by_serial
from anabranch.model.compiled import inlined
from anabranch.model.pool import Pool, grown, take_place
from anabranch.model.slots import NONE


class OpenWindows(NamedTuple):
    """State: windows by slot, and slots that are free."""

    number: NDArray[np.int32]
    """The number of the group."""
    nth: NDArray[np.int64]
    """Which window of its group it is, where windows of a group overlap."""
    first: NDArray[np.int64]
    last: NDArray[np.int64]
    """The starts of its first and last rows."""
    serial: NDArray[np.int64]
    """The serial number of the window; NONE where there is none."""
    pool: Pool
    """The slots that are free."""
    opened: NDArray[np.int64]
    """How many windows there have been, as an array of one."""

    @classmethod
    def of_capacity(cls, capacity: int) -> "OpenWindows":
        """None, with room for this many."""
        return cls(
            np.zeros(capacity, np.int32),
            np.zeros(capacity, np.int64),
            np.zeros(capacity, np.int64),
            np.zeros(capacity, np.int64),
            np.full(capacity, NONE, np.int64),
            Pool.of_capacity(capacity),
            np.array([0]),
        )

    @property
    def capacity(self) -> int:
        """How many there may be."""
        return len(self.number)

    @property
    def used(self) -> int:
        """How many there are."""
        return self.pool.used

    @property
    def nbytes(self) -> int:
        """Bytes of state."""
        return sum(column.nbytes for column in self)

    def larger(self) -> "OpenWindows":
        """The same windows, with room for as many more."""
        capacity = 2 * self.capacity
        return OpenWindows(
            grown(self.number, capacity),
            grown(self.nth, capacity),
            grown(self.first, capacity),
            grown(self.last, capacity),
            grown(self.serial, capacity, NONE),
            self.pool.of_size(capacity),
            self.opened,
        )

    def slots(self) -> NDArray[np.int32]:
        """The slots of all, in the order in which they were opened."""
        return by_serial(self.serial)

    def take(self, count: int) -> NDArray[np.int32]:
        """Slots for new windows, of which there are as many free."""
        slots, opened = self.pool.take(count), int(self.opened[0])
        self.serial[slots] = np.arange(opened, opened + count)
        self.opened[0] = opened + count
        return slots

    def give_back(self, slots: NDArray[np.int32]) -> None:
        """Free slots whose windows are over."""
        self.pool.give_back(slots)


class Folded(NamedTuple):
    """Which rows went into which windows, and the windows that came to their end on the way."""

    rows: NDArray[np.int64]
    slots: NDArray[np.int32]
    made: NDArray[np.int64]
    """How many pairs of row and slot there are, as an array of one."""
    closed: NDArray[np.int32]
    done: NDArray[np.int64]
    """How many windows were closed, as an array of one."""
    opened: NDArray[np.int32]
    begun: NDArray[np.int64]
    """How many windows were opened, as an array of one."""

    @classmethod
    def of_capacity(cls, rows: int, overlap: int) -> "Folded":
        """None, with room for rows that are each in so many windows."""
        return cls(
            np.empty(rows * overlap, np.int64),
            np.empty(rows * overlap, np.int32),
            np.array([0]),
            np.empty(rows * overlap, np.int32),
            np.array([0]),
            np.empty(rows, np.int32),
            np.array([0]),
        )


@inlined
def open_window(windows: Any, number: Any, nth: Any, start: Any) -> Any:
    """A slot for a new window; there is one that is free."""
    slot = take_place(windows.pool)
    windows.number[slot], windows.nth[slot] = number, nth
    windows.first[slot] = windows.last[slot] = start
    windows.serial[slot] = windows.opened[0]
    windows.opened[0] += 1
    return slot
