"""Sessions by a gap: rows that start less than a gap after the one before them in their group.

A session is [first start, last start + gap), so that no row can come into it once the stable is at its end.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from anabranch.kernels.aggregate.open_windows import Folded, OpenWindows, open_window
from anabranch.model.compiled import compiled
from anabranch.model.slots import NONE
from anabranch.model.time import FOREVER


@dataclass(frozen=True, slots=True)
class Sessions:
    """How the rows of a group are cut into sessions."""

    gap: int

    overlap: ClassVar[int] = 1
    by_time: ClassVar[bool] = True

    def ends(self, last: NDArray[np.int64]) -> NDArray[np.int64]:
        """When sessions end, by the starts of their last rows."""
        return np.where(last > FOREVER - self.gap, FOREVER, last + np.int64(self.gap))

    def like_new(self, count: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Always: a group without an open session begins anew."""
        return np.ones(len(count), np.bool_)

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
        """Put rows into sessions from a row on; the first for which there is no room."""
        return fold_into_sessions(windows, table, numbers, start, np.uint64(self.gap), row, folded)


@compiled
def fold_into_sessions(
    windows: OpenWindows, table: Any, numbers: Any, start: Any, gap: Any, row: int, folded: Folded
) -> int:
    """Put each row, in order, into the session of its group, or into a new one that follows it."""
    for i in range(row, len(numbers)):
        number = numbers[i]
        slot = table[number, 0]
        if slot >= 0 and np.uint64(start[i]) - np.uint64(windows.last[slot]) >= gap:
            folded.closed[folded.done[0]] = slot
            folded.done[0] += 1
            slot = table[number, 0] = NONE
        if slot < 0:
            if windows.pool.height[0] == 0:
                return i
            slot = table[number, 0] = open_window(windows, number, 0, start[i])
        windows.last[slot] = start[i]
        folded.rows[folded.made[0]], folded.slots[folded.made[0]] = i, slot
        folded.made[0] += 1
    return len(numbers)
