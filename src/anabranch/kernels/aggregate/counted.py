"""How often each slot has each value: what can be taken away again of least, first, distinct and the like.

A value is two words: its identity, its code, its bucket, or a start and a code. The values of a slot are a
chain of entries, found by hash. An entry whose count has come to nothing stays until its slot is cleared, or
until as much was taken away by merging as there are entries.

Memory: 40 to 56 bytes for each value of a slot.
"""

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anabranch.kernels.aggregate.column import Slots, Values
from anabranch.model.compiled import compiled, inlined
from anabranch.model.murmur import mix
from anabranch.model.pool import Pool, give_place, grown, take_place
from anabranch.model.slots import (
    NONE,
    TAG_MASK,
    empty_slots,
    more_slots,
    node_in,
    slot_of,
    tag_in,
    vacate_slot,
)

Read = Callable[[Values], tuple[NDArray[np.int64], NDArray[np.int64]]]
"""The two words by which values are counted."""


class Entries(NamedTuple):
    """State: entries by slot and value."""

    cells: NDArray[np.int64]
    low: NDArray[np.int64]
    high: NDArray[np.int64]
    copies: NDArray[np.int64]
    slot: NDArray[np.int32]
    following: NDArray[np.int32]
    """The next entry of the slot."""
    pool: Pool

    @classmethod
    def of_capacity(cls, capacity: int) -> "Entries":
        """None, with room for this many (a power of two)."""
        return cls(
            empty_slots(capacity),
            np.zeros(capacity, np.int64),
            np.zeros(capacity, np.int64),
            np.zeros(capacity, np.int64),
            np.zeros(capacity, np.int32),
            np.zeros(capacity, np.int32),
            Pool.of_capacity(capacity),
        )

    def larger(self) -> "Entries":
        """The same entries, with room for as many more."""
        capacity = 2 * len(self.low)
        return Entries(
            more_slots(self.cells, capacity),
            grown(self.low, capacity),
            grown(self.high, capacity),
            grown(self.copies, capacity),
            grown(self.slot, capacity),
            grown(self.following, capacity),
            self.pool.of_size(capacity),
        )


class Counted:
    """How often each slot has each value."""

    invertible: ClassVar[bool] = True

    def __init__(self, read: Read) -> None:
        self.read = read
        self.taken = 0
        """How many counts were taken away by merging since entries without copies were dropped."""
        self.entries = Entries.of_capacity(16)
        self.head = np.zeros(0, np.int32)

    @property
    def nbytes(self) -> int:
        """Bytes of state."""
        return sum(column.nbytes for column in self.entries) + self.head.nbytes

    @property
    def used(self) -> int:
        """How many entries there are."""
        return self.entries.pool.used

    def with_room(self, capacity: int) -> None:
        """Have this many slots."""
        self.head = grown(self.head, capacity, NONE)

    def add(self, values: Values, sign: int) -> None:
        """Count values."""
        low, high = self.read(values)
        self._count(values.slots, low, high, np.full(len(low), sign, np.int64))

    def merge(self, into: Slots, other: Slots, sign: int = 1) -> None:
        """Count what other slots have."""
        of, low, high, count = self.listed(other)
        self._count(into[of], low, high, sign * count)
        if sign < 0:
            self.taken += len(of)
            if self.taken > max(self.used // 2, len(self.head) // 16):
                self.taken = 0
                drop_empty(self.entries, self.head)

    def _count(
        self, slots: Slots, low: NDArray[np.int64], high: NDArray[np.int64], count: NDArray[np.int64]
    ) -> None:
        low, high = (np.ascontiguousarray(one).view() for one in (low, high))
        low.flags.writeable = high.flags.writeable = False
        row = 0
        while True:
            row = count_values(self.entries, self.head, slots, low, high, count, row)
            if row == len(slots):
                return
            self.entries = self.entries.larger()

    def clear(self, slots: Slots) -> None:
        """Nothing was counted."""
        clear_chains(self.entries, self.head, slots)

    def distinct(self, slots: Slots) -> NDArray[np.int64]:
        """How many values each slot has."""
        found = np.zeros(len(slots), np.int64)
        length_of_chains(self.entries, self.head, slots, found)
        return found

    def listed(
        self, slots: Slots
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """All that some slots have: the place of the slot among them, two words, and how often."""
        total = int(self.distinct(slots).sum())
        of, low, high, count = (np.empty(total, np.int64) for _ in range(4))
        list_chains(self.entries, self.head, slots, of, low, high, count)
        return of, low, high, count

    def recode(self, moved: NDArray[np.int64], *, high: bool) -> None:
        """Other codes for values that were numbered anew."""
        live = self._live()
        slots, counts = self.entries.slot[live].copy(), self.entries.copies[live].copy()
        low, upper = self.entries.low[live], self.entries.high[live]
        low, upper = (low, moved[upper]) if high else (moved[low], upper)
        self.entries, self.head[:] = Entries.of_capacity(16), NONE
        self._count(slots, low, upper, counts)

    def codes_in_use(self, *, high: bool) -> NDArray[np.int64]:
        """The codes that are in use."""
        return (self.entries.high if high else self.entries.low)[self._live()]

    def _live(self) -> NDArray[np.int64]:
        return np.flatnonzero(self.entries.copies)

    def saved(self, slots: Slots) -> pa.RecordBatch:
        """What some slots have."""
        names = "slot", "low", "high", "count"
        return pa.RecordBatch.from_pydict(dict(zip(names, self.listed(slots), strict=True)))

    def load(self, slots: Slots, rows: pa.RecordBatch) -> None:
        """What slots had when it was saved."""
        of, low, high, count = (rows.column(name).to_numpy() for name in ("slot", "low", "high", "count"))
        self._count(slots[of], low, high, count.copy())


@inlined
def _tag(slot: Any, low: Any, high: Any) -> Any:
    word = mix(np.uint64(low) ^ mix(np.uint64(high) + np.uint64(slot) * np.uint64(0x9E3779B97F4A7C15)))
    return np.int64(word & TAG_MASK)


@inlined
def _cell(entries: Entries, tag: Any, slot: Any, low: Any, high: Any) -> Any:
    """The cell of a value of a slot, or the empty one where it would be."""
    mask = len(entries.cells) - 1
    cell = tag & mask
    while entries.cells[cell] >= 0:
        if tag_in(entries.cells[cell]) == tag:
            node = node_in(entries.cells[cell])
            if entries.low[node] == low and entries.high[node] == high and entries.slot[node] == slot:
                break
        cell = (cell + 1) & mask
    return cell


@compiled
def count_values(entries: Entries, head: Any, slots: Any, low: Any, high: Any, count: Any, row: int) -> int:
    """Count values from a row on; the first row for which there is no room."""
    for i in range(row, len(slots)):
        tag = _tag(slots[i], low[i], high[i])
        cell = _cell(entries, tag, slots[i], low[i], high[i])
        entry = entries.cells[cell]
        if entry >= 0:
            entries.copies[node_in(entry)] += count[i]
            continue
        if entries.pool.height[0] == 0:
            return i
        node = take_place(entries.pool)
        entries.cells[cell] = slot_of(tag, node)
        entries.low[node], entries.high[node] = low[i], high[i]
        entries.copies[node], entries.slot[node] = count[i], slots[i]
        entries.following[node] = head[slots[i]]
        head[slots[i]] = node
    return len(slots)


@compiled
def clear_chains(entries: Entries, head: Any, slots: Any) -> None:
    """Free all entries of slots."""
    for slot in slots:
        node = np.int64(head[slot])
        while node >= 0:
            low, high = entries.low[node], entries.high[node]
            vacate_slot(entries.cells, _cell(entries, _tag(slot, low, high), slot, low, high))
            entries.copies[node] = 0
            give_place(entries.pool, node)
            node = np.int64(entries.following[node])
        head[slot] = NONE


@compiled
def drop_empty(entries: Entries, head: Any) -> None:
    """Free the entries of all slots that have no copies."""
    for slot in range(len(head)):
        before = np.int64(NONE)
        node = np.int64(head[slot])
        while node >= 0:
            after = np.int64(entries.following[node])
            if entries.copies[node] != 0:
                before = node
            else:
                low, high = entries.low[node], entries.high[node]
                vacate_slot(entries.cells, _cell(entries, _tag(slot, low, high), slot, low, high))
                give_place(entries.pool, node)
                if before < 0:
                    head[slot] = after
                else:
                    entries.following[before] = after
            node = after


@compiled
def length_of_chains(entries: Entries, head: Any, slots: Any, found: Any) -> None:
    """How many values each slot has."""
    for i in range(len(slots)):
        node = head[slots[i]]
        while node >= 0:
            found[i] += entries.copies[node] != 0
            node = entries.following[node]


@compiled
def list_chains(entries: Entries, head: Any, slots: Any, of: Any, low: Any, high: Any, count: Any) -> None:
    """Write down all that slots have."""
    row = 0
    for i in range(len(slots)):
        node = head[slots[i]]
        while node >= 0:
            if entries.copies[node] != 0:
                of[row], low[row], high[row] = i, entries.low[node], entries.high[node]
                count[row] = entries.copies[node]
                row += 1
            node = entries.following[node]
