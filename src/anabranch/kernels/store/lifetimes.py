"""Events of a number by start and end: which of them are alive during a time, compiled.

An event is a number, a lifetime and an identity of two words. Its place is where its payload and all else
that is known of it stand in columns beside; equal events have one place, and how many copies there are. The
events of a number are points of a tree (`Leaves`) by start, identity and end, with the end as the measure:
so an event is found by all that it is, and a walk over those that are alive during a time leaves out what
starts after it, and each node below which all end before it.

An event without length is alive at no time, and is not kept.

Memory: 56 bytes for each event in a leaf that is full, 4 for its place. Cost: keeping, adjusting and removing
an event, and a probe that finds nothing of its number, look at a node of each level; a probe that finds
something, besides, at the nodes where something is found.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from anabranch.kernels.store.leaves import (
    BREADTH,
    Leaves,
    descend,
    first,
    following,
    has_key,
    has_room,
    insert_key,
    join_neighbours,
    remove_at,
    seek_key,
)
from anabranch.model.compiled import compiled, inner
from anabranch.model.identity import Words
from anabranch.model.pool import Pool, give_place, take_place
from anabranch.model.slots import NONE

START, LOW, HIGH, END, PLACE, COPIES = range(6)
"""The cells of an event; its words are kept as int64. PLACE is the child in nodes above leaves."""
_KEYS, _WIDTH = 4, 6


class Lifetimes(NamedTuple):
    """State: events by number, and the places that are free."""

    leaves: Leaves
    places: Pool
    touched: NDArray[np.int64]
    """How many events and nodes probes have looked at, as an array of one."""

    @classmethod
    def of_capacity(cls, capacity: int) -> "Lifetimes":
        """No events, with room for this many (a power of two)."""
        leaves = Leaves.of_capacity(64, keys=_KEYS, width=_WIDTH, measure=END)
        return cls(leaves, Pool.of_capacity(capacity), np.zeros(1, np.int64))

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self.leaves.nbytes + self.places.nbytes

    def with_numbers(self, numbers: int) -> "Lifetimes":
        """The same events, with room for so many numbers."""
        return self._replace(leaves=self.leaves.with_numbers(numbers))

    def with_room(self, events: int = 1) -> "Lifetimes":
        """The same events, with room for some more, each of which may need a node or several."""
        leaves = self.leaves.with_room(events // (BREADTH // 2) + 1)
        return self._replace(leaves=leaves, places=self.places.with_room(events))

    def keep(
        self, number: NDArray[np.int32], start: NDArray[np.int64], end: NDArray[np.int64], words: Words
    ) -> tuple["Lifetimes", NDArray[np.int64]]:
        """Keep events; the place of each, NONE for those without length."""
        lifetimes, places, done = self, np.empty(len(number), np.int64), 0
        while (done := keep_all(lifetimes, number, start, end, words, places, done)) < len(number):
            lifetimes = lifetimes.with_room(len(number) - done)
        return lifetimes, places

    def adjust(
        self,
        number: NDArray[np.int32],
        start: NDArray[np.int64],
        old_end: NDArray[np.int64],
        end: NDArray[np.int64],
        words: Words,
    ) -> tuple["Lifetimes", NDArray[np.int64], NDArray[np.int64]]:
        """Give one copy of each event another end, its start to remove it.

        Returns the place that each had, NONE where there is no such event, and the place that it has, NONE
        where it is removed. They are the same unless there are, or were, other copies.
        """
        lifetimes, done = self, 0
        had, has = np.empty(len(number), np.int64), np.empty(len(number), np.int64)
        while (done := adjust_all(lifetimes, number, start, old_end, end, words, had, has, done)) < len(
            number
        ):
            lifetimes = lifetimes.with_room(len(number) - done)
        return lifetimes, had, has

    def probe(
        self, number: NDArray[np.int32], start: NDArray[np.int64], end: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Pairs of a row and an event of its number that is alive when it is, in the order of rows.

        Returns the row, the row of cells of the event (as long as nothing is kept or removed), its place, and
        how many copies of it there are.
        """
        rows, found = np.empty(len(number) + 64, np.int64), np.empty(len(number) + 64, np.int64)
        done = count = 0
        while True:
            done, count = probe_all(self, number, start, end, rows, found, done, count)
            if done == len(number):
                break
            rows = np.concatenate([rows, np.empty_like(rows)])
            found = np.concatenate([found, np.empty_like(found)])
        found = found[:count]
        cells = self.leaves.cells
        return rows[:count], found, cells[found, PLACE], cells[found, COPIES]

    def purge(self, time: int) -> NDArray[np.int64]:
        """Forget the events that end at a time or before; the places that they had."""
        gone = np.empty(self.places.used, np.int64)
        return gone[: purge_all(self, time, gone)]


@inner
def find(lifetimes: Lifetimes, number: Any, start: int, low: Any, high: Any, end: int) -> Any:
    """The row of an event, or NONE; it is what is looked for from then on."""
    sought = lifetimes.leaves.sought
    sought[0, START], sought[0, END] = start, end
    sought[0, LOW], sought[0, HIGH] = np.int64(low), np.int64(high)
    row = seek_key(lifetimes.leaves, number)
    return row if has_key(lifetimes.leaves, row) else np.int64(NONE)


@inner
def keep(lifetimes: Lifetimes, number: Any, start: int, low: Any, high: Any, end: int) -> Any:
    """Keep one more copy of an event; its place. The caller has made room."""
    leaves = lifetimes.leaves
    row = find(lifetimes, number, start, low, high, end)
    if row == NONE:
        row = insert_key(leaves, number, end)
        leaves.cells[row, PLACE] = take_place(lifetimes.places)
    leaves.cells[row, COPIES] += 1
    return leaves.cells[row, PLACE]


@inner
def forget(lifetimes: Lifetimes, number: Any, row: int) -> None:
    """Forget the event that was found last; its place is not given back."""
    leaves = lifetimes.leaves
    remove_at(leaves, number, descend(leaves, number), row, np.int64(row + 1))
    join_neighbours(leaves, number)


@inner
def adjust(
    lifetimes: Lifetimes, number: Any, start: int, low: Any, high: Any, old_end: int, end: int
) -> tuple[Any, Any]:
    """Give one copy of an event another end; the place that it had, and the one that it has."""
    leaves = lifetimes.leaves
    row = find(lifetimes, number, start, low, high, old_end)
    if row == NONE:
        return np.int64(NONE), np.int64(NONE)
    had = leaves.cells[row, PLACE]
    if old_end == end:
        return had, had
    leaves.cells[row, COPIES] -= 1
    if leaves.cells[row, COPIES] > 0:
        return had, keep(lifetimes, number, start, low, high, end) if end > start else np.int64(NONE)
    forget(lifetimes, number, row)
    give_place(lifetimes.places, had)
    return had, keep(lifetimes, number, start, low, high, end) if end > start else np.int64(NONE)


@compiled
def keep_all(
    lifetimes: Lifetimes, number: Any, start: Any, end: Any, words: Any, places: Any, begin: int
) -> int:
    """Keep events from a row on; how many are done when room runs out."""
    for i in range(begin, len(number)):
        places[i] = NONE
        if end[i] <= start[i]:
            continue
        if not has_room(lifetimes.leaves) or lifetimes.places.height[0] == 0:
            return i
        places[i] = keep(lifetimes, np.int64(number[i]), start[i], words[i, 0], words[i, 1], end[i])
    return len(number)


@compiled
def adjust_all(
    lifetimes: Lifetimes,
    number: Any,
    start: Any,
    old_end: Any,
    end: Any,
    words: Any,
    had: Any,
    has: Any,
    begin: int,
) -> int:
    """Adjust events from a row on; how many are done when room runs out."""
    for i in range(begin, len(number)):
        if not has_room(lifetimes.leaves) or lifetimes.places.height[0] == 0:
            return i
        low, high = words[i, 0], words[i, 1]
        had[i], has[i] = adjust(lifetimes, np.int64(number[i]), start[i], low, high, old_end[i], end[i])
    return len(number)


@inner
def _probe(
    lifetimes: Lifetimes, number: Any, start: int, end: int, row: int, rows: Any, found: Any, count: Any
) -> Any:
    """Write the events of a number that are alive during a time; how many pairs there are, NONE: no room.

    No event that starts at the end or later is alive before it, nor are those after it in the order; and no
    event below a node is alive from the start on if the greatest end there is not after it.
    """
    leaves = lifetimes.leaves
    root, levels = np.int64(leaves.root[number]), np.int64(leaves.levels[number])
    if root == NONE or end <= start:
        return count
    level = np.int64(0)
    leaves.path[0, 0], leaves.path[0, 1] = root, 0
    while level >= 0:
        node, nth = leaves.path[level, 0], leaves.path[level, 1]
        lifetimes.touched[0] += 1
        if level == levels:
            for one in range(node * BREADTH, node * BREADTH + leaves.size[node]):
                if leaves.cells[one, START] >= end:
                    return count
                if leaves.cells[one, END] > start:
                    if count == len(rows):
                        return np.int64(NONE)
                    rows[count], found[count] = row, one
                    count += 1
            level -= 1
        elif nth == leaves.size[node]:
            level -= 1
        else:
            one = node * BREADTH + nth
            if nth > 0 and leaves.cells[one, START] >= end:
                return count
            leaves.path[level, 1] = nth + 1
            child = leaves.cells[one, PLACE]
            if leaves.most[child] > start:
                level += 1
                leaves.path[level, 0], leaves.path[level, 1] = child, 0
    return count


@compiled
def probe_all(
    lifetimes: Lifetimes, number: Any, start: Any, end: Any, rows: Any, found: Any, begin: int, count: int
) -> tuple[int, int]:
    """Probe with rows from one on; how many are done when room runs out, and how many pairs there are."""
    for i in range(begin, len(number)):
        more = _probe(lifetimes, np.int64(number[i]), start[i], end[i], i, rows, found, count)
        if more == NONE:
            return i, count
        count = more
    return len(number), count


@compiled
def purge_all(lifetimes: Lifetimes, time: int, gone: Any) -> int:
    """Forget the events that end at a time or before; writes the places that they had, how many there are.

    There are no more places than are taken. Leaves are looked at from the first on, each as it is after the
    one before it was joined with it or given back.
    """
    leaves = lifetimes.leaves
    count = 0
    for number in range(len(leaves.root)):
        row = first(leaves, number)
        while row >= 0:
            if leaves.cells[row, END] > time:
                row = following(leaves, row)
                continue
            for column in range(_KEYS):
                leaves.sought[0, column] = leaves.cells[row, column]
            gone[count] = leaves.cells[row, PLACE]
            give_place(lifetimes.places, gone[count])
            count += 1
            forget(lifetimes, number, row)
            row = seek_key(leaves, number)
    return count
