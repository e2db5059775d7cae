"""One value of a slot, where nothing is ever taken away: the first or the last in an order, and no others.

The order is by start and then by value, or by value alone. Values that are numbers or times are compared by
their codes; texts, bytes and decimals, which have none in their order, as they are: of the rows that come
together the best of each slot is found first, decimals by their ranks, and only that is compared with what
the slot has.

Memory: 16 bytes for each slot; of texts, bytes and decimals 21, and the value.
"""

from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from anabranch.kernels.aggregate.codes import Codes
from anabranch.kernels.aggregate.column import Slots, Values, read_only
from anabranch.kernels.store.slot_columns import SlotColumns
from anabranch.model.compiled import compiled, inner
from anabranch.model.pool import grown
from anabranch.model.slots import NONE

_NEUTRAL = {1: np.int64(2**63 - 1), -1: np.int64(-(2**63))}


class CodeByStart:
    """The code of the earliest start, of several the least; with ``way`` -1 of the latest, the greatest."""

    invertible: ClassVar[bool] = False

    def __init__(self, codes: Codes, way: int) -> None:
        assert not codes.numbered, "the order of numbered values is not that of their codes"
        self.codes, self.way = codes, way
        self.start, self.code = np.zeros(0, np.int64), np.zeros(0, np.int64)

    @property
    def nbytes(self) -> int:
        """Bytes of state."""
        return self.start.nbytes + self.code.nbytes

    def with_room(self, capacity: int) -> None:
        """Have this many slots."""
        neutral = _NEUTRAL[self.way]
        self.start, self.code = (grown(one, capacity, neutral) for one in (self.start, self.code))

    def add(self, values: Values, sign: int) -> None:
        """Look at values."""
        assert sign > 0, "nothing is taken from one value"
        self._look(values.slots, read_only(values.start), values.codes(self.codes))

    def _look(self, slots: Slots, start: NDArray[np.int64], code: NDArray[np.int64]) -> None:
        keep_one(self.start, self.code, slots, start, code, np.int64(self.way))

    def merge(self, into: Slots, other: Slots, sign: int = 1) -> None:
        """Look at what other slots have."""
        assert sign > 0, "nothing is taken from one value"
        self._look(into, read_only(self.start[other]), read_only(self.code[other]))

    def clear(self, slots: Slots) -> None:
        """Nothing was looked at."""
        self.start[slots] = self.code[slots] = _NEUTRAL[self.way]

    def found(self, slots: Slots, null: NDArray[np.bool_]) -> pa.Array:
        """The values of slots."""
        return self.codes.back(self.code[slots], null)

    def saved(self, slots: Slots) -> pa.RecordBatch:
        """The starts and codes of some slots."""
        return pa.RecordBatch.from_pydict({"start": self.start[slots], "code": self.code[slots]})

    def load(self, slots: Slots, rows: pa.RecordBatch) -> None:
        """The starts and codes as they were saved."""
        self.start[slots], self.code[slots] = (rows.column(name).to_numpy() for name in ("start", "code"))


class OneText:
    """The text, the bytes or the decimal that is first in order, or with ``way`` -1 last."""

    invertible: ClassVar[bool] = False

    def __init__(self, kind: pa.DataType, way: int, *, by_start: bool) -> None:
        self.way, self.by_start = way, by_start
        self.columns = SlotColumns(pa.schema([("value", kind)]))
        self.start = np.zeros(0, np.int64)
        self.there = np.zeros(0, np.bool_)
        self.row = np.zeros(0, np.int32)
        """The best row of each slot among those that come together; NONE between them."""

    @property
    def nbytes(self) -> int:
        """Bytes of state."""
        return self.start.nbytes + self.there.nbytes + self.row.nbytes + self.columns.nbytes

    def with_room(self, capacity: int) -> None:
        """Have this many slots."""
        self.start, self.there = grown(self.start, capacity), grown(self.there, capacity)
        self.row = grown(self.row, capacity, NONE)
        self.columns.grow(capacity)

    def add(self, values: Values, sign: int) -> None:
        """Look at values."""
        assert sign > 0, "nothing is taken from one value"
        start = read_only(values.start if self.by_start else np.zeros_like(values.start))
        rows = self._best(values.slots, start, values.array)
        slots, start, texts = values.slots[rows], start[rows], values.array.take(pa.array(rows))
        there = self.there[slots]
        before = start < self.start[slots] if self.way > 0 else start > self.start[slots]
        better = ~there | before
        equal = np.flatnonzero(there & (start == self.start[slots]))
        if len(equal):
            one, other = texts.take(pa.array(equal)), self._at(slots[equal])
            less = pc.less(one, other) if self.way > 0 else pc.greater(one, other)
            better[equal] = less.to_numpy(zero_copy_only=False)
        stay = np.flatnonzero(better)
        self._put(slots[stay], start[stay], texts.take(pa.array(stay)))

    def merge(self, into: Slots, other: Slots, sign: int = 1) -> None:
        """Look at what other slots have."""
        there = self.there[other]
        into, other = into[there], other[there]
        self.add(Values(into, self._at(other), self.start[other]), sign)

    def clear(self, slots: Slots) -> None:
        """Nothing was looked at."""
        self.there[slots] = False
        if self.columns.payloads.crowded(0):
            self.columns.forget_unused(np.flatnonzero(~self.there).astype(np.int32))

    def found(self, slots: Slots, null: NDArray[np.bool_]) -> pa.Array:
        """The values of slots."""
        if not null.any():
            return self._at(slots)
        places = pa.array(np.cumsum(~null) - 1, mask=null)
        return self._at(slots[~null]).take(places)

    def saved(self, slots: Slots) -> pa.RecordBatch:
        """Which of slots have values, and these with their starts."""
        places = np.flatnonzero(self.there[slots])
        columns = [pa.array(places), pa.array(self.start[slots[places]]), self._at(slots[places])]
        return pa.RecordBatch.from_arrays(columns, names=["slot", "start", "value"])

    def load(self, slots: Slots, rows: pa.RecordBatch) -> None:
        """The values as they were saved."""
        place, start, values = rows.columns
        self._put(slots[place.to_numpy()], start.to_numpy(), values)

    def _best(self, slots: Slots, start: NDArray[np.int64], array: pa.Array) -> NDArray[np.int64]:
        """Of each slot the row that is first; decimals are ranked only where starts do not decide."""
        found, way = np.empty(len(slots), np.int64), np.int64(self.way)
        bounds, data = _bytes(array)
        count = best_rows(self.row, slots, start, _NO_RANKS, bounds, data, way, found)
        if count == NONE:
            encoded = array.dictionary_encode()
            order = pc.sort_indices(encoded.dictionary).to_numpy()
            ranks = np.empty(len(order), np.int64)
            ranks[order] = np.arange(len(order))
            ranks = read_only(ranks[encoded.indices.to_numpy()])
            count = best_rows(self.row, slots, start, ranks, bounds, data, way, found)
        return found[:count]

    def _at(self, slots: Slots) -> pa.Array:
        return self.columns.at(slots.astype(np.int64)).column(0)

    def _put(self, slots: Slots, start: NDArray[np.int64], values: pa.Array) -> None:
        if len(slots):
            self.start[slots], self.there[slots] = start, True
            rows = pa.RecordBatch.from_arrays([values.cast(self.columns.schema.types[0])], names=["value"])
            self.columns.put(slots.astype(np.int64), rows)


_NO_RANKS = read_only(np.zeros(0, np.int64))


def _bytes(array: pa.Array) -> tuple[NDArray[Any], NDArray[np.uint8]]:
    """Where the bytes of each text begin, and all bytes; none of values that are not bytes."""
    large = pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type)
    if not len(array) or pa.types.is_decimal(array.type):
        return np.frombuffer(b"", np.int32), np.frombuffer(b"", np.uint8)
    _, offsets, data = array.buffers()
    bounds = np.frombuffer(offsets, np.int64 if large else np.int32)
    return bounds[array.offset :], np.frombuffer(b"" if data is None else data, np.uint8)


@compiled
def keep_one(starts: Any, codes: Any, slots: Any, start: Any, code: Any, way: Any) -> None:
    """Keep of each slot the start and the code that are first, or last."""
    for i in range(len(slots)):
        slot = slots[i]
        if way > 0:
            better = start[i] < starts[slot] or (start[i] == starts[slot] and code[i] < codes[slot])
        else:
            better = start[i] > starts[slot] or (start[i] == starts[slot] and code[i] > codes[slot])
        if better:
            starts[slot], codes[slot] = start[i], code[i]


@inner
def _is_less(rank: Any, bounds: Any, data: Any, one: Any, other: Any) -> Any:
    """The value of a row is less than that of another: by rank, where there are ranks, else byte by byte."""
    if len(rank):
        return rank[one] < rank[other]
    begin, beside = np.int64(bounds[one]), np.int64(bounds[other])
    length, long = np.int64(bounds[one + 1]) - begin, np.int64(bounds[other + 1]) - beside
    for n in range(min(length, long)):
        if data[begin + n] != data[beside + n]:
            return data[begin + n] < data[beside + n]
    return length < long


@compiled
def best_rows(
    best: Any, slots: Any, start: Any, rank: Any, bounds: Any, data: Any, way: Any, found: Any
) -> int:
    """Write down of each slot the row that is first, or last; NONE where ranks decide and are not given."""
    count, tied = 0, False
    for i in range(len(slots)):
        old = np.int64(best[slots[i]])
        if old < 0:
            best[slots[i]] = i
            found[count] = i
            count += 1
            continue
        better = start[i] < start[old] if way > 0 else start[i] > start[old]
        if start[i] == start[old]:
            if len(rank) == 0 and len(bounds) == 0:
                tied = True
                break
            one, other = (i, old) if way > 0 else (old, i)
            better = _is_less(rank, bounds, data, one, other)
        if better:
            best[slots[i]] = i
    for n in range(count):
        slot = slots[found[n]]
        found[n] = best[slot]
        best[slot] = NONE
    return NONE if tied else count
