"""Columns of integers in as few bytes as their values need: offsets from the least of them.

A column of one value is only that value. What travels between stages is mostly times that are near each other
and places that count up, so three quarters of the bytes of the elements go away.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

_WIDTHS = (np.uint8, np.uint16, np.uint32)


def narrowed(column: NDArray[Any]) -> tuple[int, NDArray[Any] | None]:
    """The least value, and the offsets from it if they are not all nothing.

    >>> narrowed(np.array([1_000_007, 1_000_000]))
    (1000000, array([7, 0], dtype=uint8))
    >>> narrowed(np.array([5, 5, 5]))
    (5, None)
    """
    if not len(column):
        return 0, None
    least, most = int(column.min()), int(column.max())
    if least == most:
        return least, None
    for width in _WIDTHS:
        if most - least <= np.iinfo(width).max:
            return least, (column - least).astype(width)
    return 0, column.astype(np.int64)


def widened(least: int, offsets: NDArray[Any] | None, count: int, kind: Any) -> NDArray[Any]:
    """The column of so many values."""
    if offsets is None:
        return np.full(count, least, kind)
    return offsets.astype(kind) + kind(least) if least else offsets.astype(kind)


def steps(row: NDArray[np.int64], first: NDArray[np.int64]) -> NDArray[np.int64]:
    """How far each row is from the one before it in its stretch; stretches begin at these places."""
    apart = np.diff(row, prepend=0)
    apart[first] = row[first]
    return apart


def rows_of_steps(apart: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """The rows that steps lead to, in stretches of so many."""
    total = np.concatenate([[0], np.cumsum(apart)])
    return total[1:] - np.repeat(total[np.cumsum(counts) - counts], counts)
