"""Rows in a few sorted runs: added in bulk, taken from the front, looked up by key.

A row is a column of a two-dimensional array of int64, its key first; the arrays are contiguous by column of
the row, which ``np.take`` keeps and an index does not. A run is merged with the one before it
as soon as it is half as long, so that there are about as many runs as the logarithm of the rows, and a row is
merged as often. What is taken from the front is a piece of each run.

Rows that are counted say how often an event is there, more times or fewer; those that say opposite things of
the same event vanish where they meet in a merge.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anabranch.model.compiled import compiled

Rows = NDArray[np.int64]

KEY, LOW, HIGH, START, END, COUNT, PLACE = range(7)
"""The columns of rows that are counted: of an event, how often, and where its payload stands."""


@dataclass(slots=True)
class Runs:
    """State: the runs, each in order of its key, the longest first."""

    width: int
    joined: Callable[[Rows], Rows]
    """Rows of several runs as one run."""
    merged: Callable[[Rows, Rows], Rows] | None = None
    """Two runs as one, where that is less than to join them."""
    runs: list[Rows] = field(default_factory=list)

    def __len__(self) -> int:
        return sum(run.shape[1] for run in self.runs)

    @property
    def nbytes(self) -> int:
        """Bytes of all runs, what has been taken from them included."""
        return sum((run if run.base is None else run.base).nbytes for run in self.runs)

    def add(self, rows: Rows) -> None:
        """Keep some rows more."""
        run = self.joined(rows)
        while run.shape[1] and self.runs and self.runs[-1].shape[1] <= 2 * run.shape[1]:
            before = self.runs.pop()
            if self.merged is None:
                run = self.joined(np.concatenate([before, run], axis=1))
            else:
                run = self.merged(before, run)
        if run.shape[1]:
            self.runs.append(run)

    def all(self) -> Rows:
        """All rows."""
        return np.concatenate([np.empty((self.width, 0), np.int64), *self.runs], axis=1)

    def take_all(self) -> Rows:
        """All rows, which are gone then."""
        rows, self.runs = self.all(), []
        return rows

    def take_before(self, key: int) -> Rows:
        """The rows with a lesser key, which are gone then."""
        cuts = [int(np.searchsorted(run[KEY], key)) for run in self.runs]
        parts = [run[:, :cut] for run, cut in zip(self.runs, cuts, strict=True) if cut]
        if parts:
            left = [_shed(run, cut) for run, cut in zip(self.runs, cuts, strict=True)]
            self.runs = [run for run in left if run.shape[1]]
        return np.concatenate([np.empty((self.width, 0), np.int64), *parts], axis=1)

    def at(self, keys: NDArray[np.int64]) -> Rows:
        """The rows with one of these keys, each of which is given once."""
        parts = [np.empty((self.width, 0), np.int64)]
        for run in self.runs:
            first, last = np.searchsorted(run[KEY], keys), np.searchsorted(run[KEY], keys, "right")
            counts = last - first
            within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
            parts.append(np.take(run, np.repeat(first, counts) + within, axis=1))
        return np.concatenate(parts, axis=1)


def counted(key: NDArray[np.int64]) -> Rows:
    """Rows with these keys, whose other columns are to be filled."""
    rows = np.zeros((7, len(key)), np.int64)
    rows[KEY] = key
    return rows


def by_key(width: int) -> Runs:
    """Runs in the order of their keys, those of equal keys in any order."""
    return Runs(width, _quickly_by_key, merged_by_key)


def _quickly_by_key(rows: Rows) -> Rows:
    # NumPy's stable sort takes five times as long for keys in no order.
    return np.take(rows, np.argsort(rows[KEY]), axis=1) if rows.shape[1] > 1 else rows


def with_ties_by(
    order: NDArray[np.int64],
    key: NDArray[np.int64],
    then: Callable[[NDArray[np.int64]], Sequence[NDArray[Any]]],
) -> NDArray[np.int64]:
    """An order by a key, in which places of one key are in the order of other columns."""
    ascending = key[order]
    tied = np.zeros(len(order), np.bool_)
    equal = ascending[1:] == ascending[:-1]
    tied[1:] = equal
    tied[:-1] |= equal
    if tied.any():
        among = order[tied]
        order[tied] = among[np.lexsort((*reversed(then(among)), key[among]))]
    return order


def merged_by_key(one: Rows, other: Rows) -> Rows:
    """Two runs as one, in the order of their keys."""
    into = np.empty((len(one), one.shape[1] + other.shape[1]), np.int64)
    merge_runs(np.ascontiguousarray(one), np.ascontiguousarray(other), into)
    return into


@compiled
def merge_runs(one: Any, other: Any, into: Any) -> None:
    """Write the rows of two runs in the order of their keys."""
    i = j = 0
    for row in range(into.shape[1]):
        if j == other.shape[1] or (i < one.shape[1] and one[0, i] <= other[0, j]):
            for column in range(len(into)):
                into[column, row] = one[column, i]
            i += 1
        else:
            for column in range(len(into)):
                into[column, row] = other[column, j]
            j += 1


def sorted_by_key(rows: Rows) -> Rows:
    """The rows in the order of their keys, those of equal keys as they were."""
    return np.take(rows, np.argsort(rows[KEY], kind="stable"), axis=1)


def each_once(rows: Rows) -> Rows:
    """The rows in order, equal ones once."""
    rows = np.take(rows, np.lexsort(rows[::-1]), axis=1)
    return np.compress((np.diff(rows, axis=1, prepend=rows[:, :1] - 1) != 0).any(axis=0), rows, axis=1)


def netted(rows: Rows) -> Rows:
    """Counted rows in the order of their keys, those of equal events as one, but for rare accidents.

    Rows of one key and low word of an identity are equal in all else that names an event unless 64 bits of a
    hash collide; where they do, some rows may stay apart, which `net` puts right.
    """
    if (rows[COUNT] > 0).all():
        return sorted_by_key(rows)
    return _added(np.take(rows, np.lexsort((rows[END], rows[LOW], rows[KEY])), axis=1))


def net(rows: Rows) -> Rows:
    """Counted rows by identity, start and end, each event once, those that are there zero times left out."""
    words = rows[LOW].view(np.uint64), rows[HIGH].view(np.uint64)
    return _added(np.take(rows, np.lexsort((rows[END], rows[START], words[1], words[0])), axis=1))


def _added(rows: Rows) -> Rows:
    """Counts of neighbours that name the same event add up; the first payload stands for all."""
    if not rows.shape[1]:
        return rows
    names = rows[: END + 1]
    first = np.flatnonzero(np.concatenate([[True], (names[:, 1:] != names[:, :-1]).any(axis=0)]))
    counts = np.add.reduceat(rows[COUNT], first)
    found = np.take(rows, first, axis=1)
    found[COUNT] = counts
    return np.compress(counts != 0, found, axis=1)


def _shed(run: Rows, cut: int) -> Rows:
    """A run without its front, which is let go where it is most of what is held."""
    left = run[:, cut:]
    whole = run.shape[1] if run.base is None else run.base.shape[1]
    return left.copy() if 2 * left.shape[1] < whole else left
