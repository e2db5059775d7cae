"""Windows of rows: of each group so many in a row, and another every so many.

Window k of a group has its rows from number k * every on, counted from 0, as many as its size; it is full
with the last of them, and at the end of the stream is what it is.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from anabranch.kernels.aggregate.open_windows import Folded, OpenWindows, open_window
from anabranch.model.compiled import compiled
from anabranch.model.slots import NONE


@dataclass(frozen=True, slots=True)
class RowWindows:
    """How the rows of a group are cut into windows."""

    size: int
    every: int

    by_time: ClassVar[bool] = False

    @property
    def overlap(self) -> int:
        """How many windows of a group a row is in at most."""
        return -(-self.size // self.every)

    def ends(self, last: NDArray[np.int64]) -> NDArray[np.int64]:
        """When windows end, by the starts of their last rows: just after."""
        return last + np.int64(1)

    def like_new(self, count: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Where the next row of a group without open windows begins one, as its first row does."""
        return count % self.every == 0

    def fold(
        self,
        windows: OpenWindows,
        table: NDArray[np.int32],
        count: NDArray[np.int64],
        numbers: NDArray[np.int32],
        start: NDArray[np.int64],
        row: int,
        folded: Folded,
    ) -> int:
        """Put rows into windows from a row on; the first for which there is no room."""
        return fold_into_row_windows(
            windows, table, count, numbers, start, np.int64(self.size), np.int64(self.every), row, folded
        )


@compiled
def fold_into_row_windows(
    windows: OpenWindows,
    table: Any,
    count: Any,
    numbers: Any,
    start: Any,
    size: Any,
    every: Any,
    row: int,
    folded: Folded,
) -> int:
    """Put each row, in order, into the windows of its group that are not full, and into one it begins."""
    overlap = table.shape[1]
    for i in range(row, len(numbers)):
        number = numbers[i]
        before = count[number]
        nth = before // every
        if before % every == 0:
            if windows.pool.height[0] == 0:
                return i
            table[number, nth % overlap] = open_window(windows, number, nth, start[i])
        while nth >= 0 and before - nth * every < size:
            slot = table[number, nth % overlap]
            windows.last[slot] = start[i]
            folded.rows[folded.made[0]], folded.slots[folded.made[0]] = i, slot
            folded.made[0] += 1
            if before - nth * every == size - 1:
                folded.closed[folded.done[0]] = slot
                folded.done[0] += 1
                table[number, nth % overlap] = NONE
            nth -= 1
        count[number] = before + 1
    return len(numbers)
