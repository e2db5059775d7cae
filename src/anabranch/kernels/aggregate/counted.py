"""How often each slot has each value: what can be taken away again of least, first, distinct and the like.

A value is a word, its code or its bucket, or two: its identity, or a start and a code. The values of a slot
are a small table of their own, in a block that is as large as they need, so that a slot is looked at,
counted, merged and let go without a look at any other.

Memory: 16 bytes for a value of one word and 24 for one of two, in tables that are three eighths to three
quarters full; 13 bytes for each slot.
"""

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anabranch.kernels.aggregate.column import Slots, Values
from anabranch.kernels.store.ahead import ahead
from anabranch.kernels.store.blocks import Blocks, give_block, take_block
from anabranch.model.compiled import compiled, inlined, inner
from anabranch.model.murmur import mix
from anabranch.model.pool import grown
from anabranch.model.slots import NONE

Read = Callable[[Values], tuple[NDArray[np.int64], NDArray[np.int64]]]
"""The two words by which values are counted; the second is not looked at where values are one."""

_LEAST = 2
_AHEAD = 8
_SPREAD = np.uint64(0x9E3779B97F4A7C15)
_SCARCE = 1024


class Tables(NamedTuple):
    """State: the table of each slot."""

    base: NDArray[np.int64]
    """Where the table of each slot begins."""
    order: NDArray[np.int8]
    """How large it is: the least size doubled so often; NONE: the slot has none."""
    used: NDArray[np.int32]
    """How many values it has."""
    cells: NDArray[np.int64]
    """Of each value its words and how often it is there; an empty cell is there 0 times."""
    blocks: Blocks
    total: NDArray[np.int64]
    """How many values all have, as an array of one."""


class Counted:
    """How often each slot has each value."""

    invertible: ClassVar[bool] = True

    def __init__(self, read: Read, *, words: int) -> None:
        self.read, self.width = read, np.int64(words + 1)
        self.tables = _tables()

    @property
    def nbytes(self) -> int:
        """Bytes of state."""
        tables = self.tables
        return sum(one.nbytes for one in (tables.base, tables.order, tables.used, tables.cells))

    @property
    def used(self) -> int:
        """How many values all slots have."""
        return int(self.tables.total[0])

    def with_room(self, capacity: int) -> None:
        """Have this many slots."""
        tables = self.tables
        self.tables = tables._replace(
            base=grown(tables.base, capacity),
            order=grown(tables.order, capacity, NONE),
            used=grown(tables.used, capacity),
        )

    def add(self, values: Values, sign: int) -> None:
        """Count values."""
        low, high = self.read(values)
        self._count(values.slots, low, high, np.full(len(low), sign, np.int64))

    def merge(self, into: Slots, other: Slots, sign: int = 1) -> None:
        """Count what other slots have."""
        of, low, high, count = self.listed(other)
        self._count(into[of], low, high, sign * count)

    def _count(
        self, slots: Slots, low: NDArray[np.int64], high: NDArray[np.int64], count: NDArray[np.int64]
    ) -> None:
        low, high = (np.ascontiguousarray(one).view() for one in (low, high))
        low.flags.writeable = high.flags.writeable = False
        row = 0
        while True:
            row = count_values(self.tables, self.width, slots, low, high, count, row)
            if row == len(slots):
                return
            cells = self.tables.cells
            self.tables = self.tables._replace(cells=grown(cells, max(2 * len(cells), _SCARCE)))

    def clear(self, slots: Slots) -> None:
        """Nothing was counted."""
        clear_tables(self.tables, slots)

    def distinct(self, slots: Slots) -> NDArray[np.int64]:
        """How many values each slot has."""
        return self.tables.used[slots].astype(np.int64)

    def listed(
        self, slots: Slots
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """All that some slots have, slot by slot: the place among them, two words, and how often."""
        distinct = self.distinct(slots)
        of = np.repeat(np.arange(len(slots)), distinct)
        low, high, count = (np.zeros(len(of), np.int64) for _ in range(3))
        list_values(self.tables, self.width, slots, low, high, count)
        return of, low, high, count

    def recode(self, moved: NDArray[np.int64], *, high: bool) -> None:
        """Other codes for values that were numbered anew."""
        slots, low, upper, counts = self._all()
        low, upper = (low, moved[upper]) if high else (moved[low], upper)
        capacity = len(self.tables.base)
        self.tables = _tables()
        self.with_room(capacity)
        self._count(slots, low, upper, counts)

    def codes_in_use(self, *, high: bool) -> NDArray[np.int64]:
        """The codes that are in use."""
        _, low, upper, _ = self._all()
        return upper if high else low

    def _all(self) -> tuple[Slots, NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        slots = np.flatnonzero(self.tables.used).astype(np.int32)
        of, low, high, count = self.listed(slots)
        return slots[of], low, high, count

    def saved(self, slots: Slots) -> pa.RecordBatch:
        """What some slots have."""
        names = "slot", "low", "high", "count"
        return pa.RecordBatch.from_pydict(dict(zip(names, self.listed(slots), strict=True)))

    def load(self, slots: Slots, rows: pa.RecordBatch) -> None:
        """What slots had when it was saved."""
        of, low, high, count = (rows.column(name).to_numpy() for name in ("slot", "low", "high", "count"))
        self._count(slots[of], low, high, count.copy())


def _tables() -> Tables:
    base, order, used = np.zeros(0, np.int64), np.zeros(0, np.int8), np.zeros(0, np.int32)
    return Tables(base, order, used, np.zeros(0, np.int64), Blocks.none(), np.zeros(1, np.int64))


@inlined
def _hash(width: Any, low: Any, high: Any) -> Any:
    word = np.uint64(low)
    if width > 2:
        word ^= np.uint64(high) * _SPREAD
    return np.int64(mix(word) >> np.uint64(1))


@inlined
def _fits(used: Any, order: Any) -> Any:
    """A table of an order has room for so many values and is not too full."""
    size = np.int64(_LEAST) << order
    return used <= size - max(np.int64(1), size >> 2)


@inner
def _cell(cells: Any, base: Any, mask: Any, width: Any, low: Any, high: Any) -> Any:
    """The cell of a value, or the empty one where it would be."""
    at = _hash(width, low, high) & mask
    while True:
        cell = base + at * width
        if cells[cell + width - 1] == 0:
            return cell
        if cells[cell] == low and (width == 2 or cells[cell + 1] == high):
            return cell
        at = (at + 1) & mask


@inner
def _put(cells: Any, base: Any, mask: Any, width: Any, low: Any, high: Any, count: Any) -> None:
    """Write a value that a table does not have."""
    cell = _cell(cells, base, mask, width, low, high)
    cells[cell] = low
    if width > 2:
        cells[cell + 1] = high
    cells[cell + width - 1] = count


@inner
def _vacate(cells: Any, base: Any, mask: Any, width: Any, cell: Any) -> None:
    """Empty a cell and move up what it had pushed away, so that no probe meets a hole early."""
    hole = (cell - base) // width
    at = (hole + 1) & mask
    while cells[base + at * width + width - 1] != 0:
        other = base + at * width
        home = _hash(width, cells[other], cells[other + 1]) & mask
        if ((at - home) & mask) >= ((at - hole) & mask):
            for n in range(width):
                cells[base + hole * width + n] = cells[other + n]
            hole = at
        at = (at + 1) & mask
    cells[base + hole * width + width - 1] = 0


@inner
def _enlarge(tables: Tables, width: Any, slot: Any) -> bool:
    """Move the values of a slot to a table of the next order; whether there is room for one."""
    old = np.int64(tables.order[slot])
    order = old + 1
    size = np.int64(_LEAST) << order
    base = take_block(tables.blocks, tables.cells, order, size * width)
    if base < 0:
        return False
    cells = tables.cells
    for n in range(size * width):
        cells[base + n] = 0
    if old >= 0:
        before = tables.base[slot]
        for cell in range(before, before + (size // 2) * width, width):
            if cells[cell + width - 1] != 0:
                _put(cells, base, size - 1, width, cells[cell], cells[cell + 1], cells[cell + width - 1])
        give_block(tables.blocks, cells, old, before)
    tables.base[slot], tables.order[slot] = base, order
    return True


@compiled
def count_values(tables: Tables, width: Any, slots: Any, low: Any, high: Any, count: Any, row: int) -> int:
    """Count values from a row on; the first row for which there is no room."""
    cells = tables.cells
    for i in range(row, len(slots)):
        if i + 2 * _AHEAD < len(slots):
            ahead(tables.base, np.int64(slots[i + 2 * _AHEAD]))
            ahead(tables.order, np.int64(slots[i + 2 * _AHEAD]))
        if i + _AHEAD < len(slots):
            then = slots[i + _AHEAD]
            mask = (np.int64(_LEAST) << max(np.int64(tables.order[then]), np.int64(0))) - 1
            at = _hash(width, low[i + _AHEAD], high[i + _AHEAD]) & mask
            ahead(cells, tables.base[then] + at * width)
        slot = slots[i]
        if tables.order[slot] < 0 and not _enlarge(tables, width, slot):
            return i
        mask = (np.int64(_LEAST) << np.int64(tables.order[slot])) - 1
        cell = _cell(cells, tables.base[slot], mask, width, low[i], high[i])
        if cells[cell + width - 1] != 0:
            cells[cell + width - 1] += count[i]
            if cells[cell + width - 1] == 0:
                _vacate(cells, tables.base[slot], mask, width, cell)
                tables.used[slot] -= 1
                tables.total[0] -= 1
            continue
        if not _fits(tables.used[slot] + 1, np.int64(tables.order[slot])):
            if not _enlarge(tables, width, slot):
                return i
            mask = 2 * mask + 1
        _put(cells, tables.base[slot], mask, width, low[i], high[i], count[i])
        tables.used[slot] += 1
        tables.total[0] += 1
    return len(slots)


@compiled
def clear_tables(tables: Tables, slots: Any) -> None:
    """Free the tables of slots."""
    for slot in slots:
        if tables.order[slot] >= 0:
            give_block(tables.blocks, tables.cells, np.int64(tables.order[slot]), tables.base[slot])
        tables.total[0] -= tables.used[slot]
        tables.order[slot], tables.used[slot] = NONE, 0


@compiled
def list_values(tables: Tables, width: Any, slots: Any, low: Any, high: Any, count: Any) -> None:
    """Write down all that slots have."""
    cells = tables.cells
    row = 0
    for slot in slots:
        if tables.used[slot] == 0:
            continue
        end = tables.base[slot] + (np.int64(_LEAST) << np.int64(tables.order[slot])) * width
        for cell in range(tables.base[slot], end, width):
            if cells[cell + width - 1] != 0:
                low[row], count[row] = cells[cell], cells[cell + width - 1]
                if width > 2:
                    high[row] = cells[cell + 1]
                row += 1
