"""Panes: stretches of time in which a group has one slot of state.

A pane is a table from group numbers to slots: an array of all numbers where most have a slot, and else a
hash table. All tables are in one arena, all slots in one range of numbers; both are given back when a pane is
released.

Memory: a slot has its state, eight bytes for its number and its place among the free, and 11 to 32 bytes in
the table of its pane; a pane of its own 32 bytes.
"""

from bisect import bisect_left, insort
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from anabranch.model.compiled import compiled, inlined
from anabranch.model.pool import Pool, grown, take_place
from anabranch.model.slots import NONE

_LEAST = 16
_SLOT_BITS = 32
_SLOT = np.int64(0xFFFFFFFF)
_GOLDEN = np.int64(2654435769)
DENSE = -1


class Tables(NamedTuple):
    """State: the tables of all panes, and the slots that are free."""

    cells: NDArray[np.int64]
    """A number in the upper half, its slot in the lower; NONE: empty."""
    base: NDArray[np.int64]
    """Where the table of each pane begins."""
    size: NDArray[np.int64]
    """How many cells it has, a power of two."""
    used: NDArray[np.int64]
    """How many of them hold a slot."""
    shift: NDArray[np.int64]
    """How far the hash of a number is moved to be its home; DENSE: its home is the number."""
    number: NDArray[np.int32]
    """The group of each slot."""
    pool: Pool
    """The slots that are free."""


def _no_tables() -> Tables:
    nothing = np.zeros(0, np.int64)
    none = np.zeros(0, np.int32)
    return Tables(nothing, nothing, nothing, nothing, nothing, none, Pool.of_capacity(0))


@dataclass(slots=True)
class Panes:
    """State: panes by their number in time, and what slots they have."""

    tables: Tables = field(default_factory=_no_tables, repr=False)
    index: dict[int, int] = field(default_factory=dict)
    """Of each pane the place of its table."""
    order: list[int] = field(default_factory=list)
    """The panes, ascending."""
    vacant: list[int] = field(default_factory=list)
    """Places of tables that no pane has."""
    end: int = 0
    """How much of the arena is taken, or was."""
    usual: int = _LEAST
    """How large tables have become."""

    @property
    def slots(self) -> int:
        """How many slots are taken."""
        return self.tables.pool.used

    @property
    def capacity(self) -> int:
        """How many slots there may be."""
        return len(self.tables.number)

    @property
    def nbytes(self) -> int:
        """Bytes of state."""
        return sum(column.nbytes for column in self.tables)

    def places(self, panes: NDArray[np.int64], groups: int) -> NDArray[np.int32]:
        """The place of the table of each row's pane; panes that are new have one from here on."""
        found = np.empty(len(panes), np.int32)
        known, place = np.empty(_KNOWN, np.int64), np.full(_KNOWN, NONE, np.int64)
        row = 0
        while row < len(panes):
            row = place_panes(panes, known, place, row, found)
            if row < len(panes):
                pane = int(panes[row])
                known[pane % _KNOWN], place[pane % _KNOWN] = pane, self._place(pane, groups)
        return found

    def _place(self, pane: int, groups: int) -> int:
        if pane in self.index:
            return self.index[pane]
        if not self.vacant:
            count = len(self.tables.base)
            more = max(count, _LEAST)
            known = self.tables
            longer = [grown(one, count + more) for one in (known.base, known.size, known.used, known.shift)]
            self.tables = known._replace(base=longer[0], size=longer[1], used=longer[2], shift=longer[3])
            self.vacant = list(range(count + more - 1, count - 1, -1))
        place = self.index[pane] = self.vacant.pop()
        insort(self.order, pane)
        self._give(place, self.usual, groups)
        self.tables.used[place] = 0
        return place

    def _give(self, place: int, size: int, groups: int) -> None:
        """A new, empty table for a pane, which is an array where it has room for all groups."""
        if self.end + size > len(self.tables.cells):
            self._pack(size)
        self.tables.base[place], self.tables.size[place] = self.end, size
        self.tables.shift[place] = DENSE if size >= groups else _SLOT_BITS - (size.bit_length() - 1)
        self.tables.cells[self.end : self.end + size] = NONE
        self.end += size

    def _pack(self, more: int) -> None:
        """Move all tables to the beginning of an arena that has room for more."""
        tables = self.tables
        taken = sorted(self.index.values(), key=lambda place: int(tables.base[place]))
        taken = [place for place in taken if tables.size[place]]
        whole = sum(int(tables.size[place]) for place in taken) + more
        cells = np.empty(whole + whole // 4, np.int64)
        end = 0
        for place in taken:
            base, size = int(tables.base[place]), int(tables.size[place])
            cells[end : end + size] = tables.cells[base : base + size]
            tables.base[place] = end
            end += size
        self.tables, self.end = tables._replace(cells=cells), end

    def assign(
        self, places: NDArray[np.int32], numbers: NDArray[np.int32], references: NDArray[np.int32]
    ) -> NDArray[np.int32]:
        """The slot of each row; those that are new are taken from here on, and refer to their groups."""
        found = np.empty(len(places), np.int32)
        row = 0
        while True:
            row = assign_slots(self.tables, places, numbers, references, row, found)
            if row == len(places):
                return found
            if not len(self.tables.pool.free):
                self._more_slots(max(self.capacity // 2, 1024))
            else:
                self._grow(int(places[row]), len(references))

    def take(self, count: int) -> NDArray[np.int32]:
        """Slots that belong to no pane."""
        if count > len(self.tables.pool.free):
            self._more_slots(max(count, self.capacity // 2))
        return self.tables.pool.take(count)

    def give_back(self, slots: NDArray[np.int32]) -> None:
        """Free slots that belong to no pane."""
        self.tables.pool.give_back(slots)

    def _more_slots(self, more: int) -> None:
        capacity = self.capacity + more
        number = grown(self.tables.number, capacity)
        self.tables = self.tables._replace(number=number, pool=self.tables.pool.of_size(capacity))

    def _grow(self, place: int, groups: int) -> None:
        """Another table for a pane, with room for as many slots more as it has."""
        base, size = int(self.tables.base[place]), int(self.tables.size[place])
        old = self.tables.cells[base : base + size].copy()
        self.tables.size[place] = 0
        wanted = max(_LEAST, 1 << (2 * int(self.tables.used[place])).bit_length())
        self._give(place, min(wanted, max(groups, _LEAST)), groups)
        move_cells(old, self.tables, place)
        self.usual = max(self.usual, wanted // 2)

    def between(self, begin: int, end: int) -> list[int]:
        """The panes from one on and before another, ascending."""
        return self.order[bisect_left(self.order, begin) : bisect_left(self.order, end)]

    def slots_of_all(self, panes: Sequence[int]) -> NDArray[np.int32]:
        """The slots of some panes, one pane after the other."""
        if len(panes) == 1:
            return self.slots_of(panes[0])
        return np.concatenate([np.empty(0, np.int32), *map(self.slots_of, panes)])

    def slots_of(self, pane: int) -> NDArray[np.int32]:
        """The slots of a pane, in the order of its table."""
        place = self.index.get(pane)
        if place is None:
            return np.empty(0, np.int32)
        base, size = int(self.tables.base[place]), int(self.tables.size[place])
        cells = self.tables.cells[base : base + size]
        return (cells[cells >= 0] & _SLOT).astype(np.int32)

    def find(self, pane: int, numbers: NDArray[np.int32]) -> NDArray[np.int32]:
        """The slots of some groups in a pane; NONE where a group has none."""
        found = np.full(len(numbers), NONE, np.int32)
        place = self.index.get(pane)
        if place is not None:
            find_slots(self.tables, place, numbers, found)
        return found

    def release(
        self, count: int, slots: NDArray[np.int32], references: NDArray[np.int32]
    ) -> NDArray[np.int32]:
        """Give back the first panes with their slots; the groups that no slot is left of."""
        for pane in self.order[:count]:
            place = self.index.pop(pane)
            self.usual = max(_LEAST, self.usual // 2, int(self.tables.size[place]) // 2)
            self.tables.size[place] = 0
            self.vacant.append(place)
        del self.order[:count]
        left = np.empty(len(slots), np.int32)
        left = left[: unrefer(self.tables.number, slots, references, left)]
        self.give_back(slots)
        if not self.index:
            self.end = 0
        return left


_KNOWN = 64


@inlined
def _home(tables: Tables, place: Any, number: Any) -> Any:
    """Where in the table of a pane a number is looked for first."""
    shift = tables.shift[place]
    return number if shift == DENSE else ((number * _GOLDEN) & _SLOT) >> shift


@compiled
def place_panes(panes: Any, known: Any, place: Any, row: int, found: Any) -> int:
    """Write the place of each row's pane from a row on; the first row whose pane is not known."""
    mask = len(known) - 1
    for i in range(row, len(panes)):
        at = panes[i] & mask
        if place[at] == NONE or known[at] != panes[i]:
            return i
        found[i] = place[at]
    return len(panes)


@compiled
def assign_slots(tables: Tables, places: Any, numbers: Any, references: Any, row: int, found: Any) -> int:
    """Write the slot of each row from a row on; the first row for which there is no room."""
    cells = tables.cells
    for i in range(row, len(places)):
        place, number = np.int64(places[i]), np.int64(numbers[i])
        base, size = tables.base[place], tables.size[place]
        if tables.shift[place] == DENSE and number >= size:
            return i
        at = _home(tables, place, number)
        entry = cells[base + at]
        while entry >= 0 and entry >> _SLOT_BITS != number:
            at = (at + 1) & (size - 1)
            entry = cells[base + at]
        if entry >= 0:
            found[i] = entry & _SLOT
            continue
        if tables.shift[place] != DENSE and 4 * tables.used[place] >= 3 * size:
            return i
        if tables.pool.height[0] == 0:
            return i
        slot = take_place(tables.pool)
        cells[base + at] = (number << _SLOT_BITS) | slot
        tables.used[place] += 1
        tables.number[slot] = number
        references[number] += 1
        found[i] = slot
    return len(places)


@compiled
def find_slots(tables: Tables, place: int, numbers: Any, found: Any) -> None:
    """Write the slot of each group in a pane, where it has one."""
    base, size = tables.base[place], tables.size[place]
    for i in range(len(numbers)):
        number = np.int64(numbers[i])
        if tables.shift[place] == DENSE and number >= size:
            continue
        at = _home(tables, place, number)
        entry = tables.cells[base + at]
        while entry >= 0 and entry >> _SLOT_BITS != number:
            at = (at + 1) & (size - 1)
            entry = tables.cells[base + at]
        if entry >= 0:
            found[i] = entry & _SLOT


@compiled
def move_cells(old: Any, tables: Tables, place: int) -> None:
    """Put all that was in one table into the empty one of a pane."""
    base, mask = tables.base[place], tables.size[place] - 1
    for entry in old:
        if entry >= 0:
            at = _home(tables, place, entry >> _SLOT_BITS)
            while tables.cells[base + at] >= 0:
                at = (at + 1) & mask
            tables.cells[base + at] = entry


@compiled
def unrefer(number: Any, slots: Any, references: Any, left: Any) -> int:
    """Count references to groups that slots no longer have, and write down the groups that have none left."""
    count = 0
    for slot in slots:
        group = number[slot]
        references[group] -= 1
        if references[group] == 0:
            left[count] = group
            count += 1
    return count
