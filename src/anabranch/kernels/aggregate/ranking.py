"""The greatest values of a slot, each with columns of its row: top k, a row for each rank.

Values are counted with the number of the columns they carry, so that all can be taken away again. Equal
values are in the order of the identity of what they carry; rows that are equal in all have a rank each.

Memory: 40 to 56 bytes for each value of a slot with what it carries, and what is carried once.
"""

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anabranch.expressions.aggregates import Aggregate
from anabranch.expressions.evaluation import evaluate, type_of
from anabranch.kernels.aggregate.codes import Codes
from anabranch.kernels.aggregate.column import Column, Slots, Values
from anabranch.kernels.aggregate.counted import Counted
from anabranch.kernels.aggregate.groups import Groups
from anabranch.kernels.aggregate.part import Said
from anabranch.model.batch import Batch
from anabranch.model.identity import identities

_LEAST_WORTH = 1024


class Ranking:
    """State: how often each slot has each value with what it carries, and the rows that are carried."""

    def __init__(self, one: Aggregate, schema: pa.Schema) -> None:
        assert one.argument is not None, "a rank is by an expression"
        self.tree, self.k, self.carry = one.argument, int(one.option("k")), tuple(one.option("carry"))
        kind = type_of(self.tree, schema)
        self.codes = Codes(kind.value_type if pa.types.is_dictionary(kind) else kind)
        self.carried = Groups(pa.schema([schema.field(name) for name in self.carry]))
        self.counted = Counted(self._words)

    @property
    def nbytes(self) -> int:
        """Bytes of what is carried."""
        return self.codes.nbytes + self.carried.nbytes

    def read(self, batch: Batch) -> tuple[pa.Array, dict[int, str]]:
        """The value and the carried columns of each row."""
        found = evaluate(self.tree, batch.payload, batch.start, batch.end)
        values = found.values.dictionary_decode() if _is_dictionary(found.values) else found.values
        columns = [values, *(batch.payload.column(name) for name in self.carry)]
        rows = pa.StructArray.from_arrays(columns, names=[f"{n}" for n in range(len(columns))])
        return rows, dict(zip(found.failed.tolist(), found.why, strict=True))

    def add(self, slots: Slots, array: pa.Array, start: NDArray[np.int64], sign: int) -> None:
        """Count values that are not null, with what they carry."""
        there = array.field(0).is_valid()
        keep = there.to_numpy(zero_copy_only=False)
        if not keep.all():
            slots, array, start = slots[keep], array.filter(there), start[keep]
        self.counted.add(Values(slots, array, start), sign)

    def all(self) -> list[Column]:
        """What is counted."""
        return [self.counted]

    def compact(self) -> None:
        """Forget what is carried, and values that were numbered, where no slot has them."""
        used = self.counted.used
        if self.carry and self.carried.numbers.used > 4 * used + _LEAST_WORTH:
            live = np.zeros(self.carried.numbers.capacity, np.bool_)
            live[self.counted.codes(high=True)] = True
            dead = np.flatnonzero((self.carried.references > 0) & ~live).astype(np.int32)
            self.carried.references[dead] = 0
            self.carried.forget(dead)
        if self.codes.numbered and self.codes.crowded(used):
            self.counted.recode(self.codes.keep(self.counted.codes(high=False)), high=False)

    def ranks(self, slots: Slots) -> NDArray[np.int64]:
        """How many ranks each slot has."""
        place, _, _, count = self.counted.listed(slots)
        found = np.zeros(len(slots), np.int64)
        np.add.at(found, place, count)
        return np.minimum(found, self.k)

    def there(self, slots: Slots) -> NDArray[np.bool_]:
        """Which of rows, each of which is a rank of its slot, there are."""
        return self._chosen(slots)[0]

    def finishes(self) -> list[Callable[[Slots], Said]]:
        """What is said of slots, each there once for each of its ranks: value, carried columns, rank."""
        carried = [self._carried(n) for n in range(len(self.carry))]
        return [self._values, *carried, lambda slots: Said(pa.array(_ranked(slots)[1] + 1))]

    def _values(self, slots: Slots) -> Said:
        there, code, _ = self._chosen(slots)
        return Said(self.codes.back(code, ~there))

    def _carried(self, n: int) -> Callable[[Slots], Said]:
        def found(slots: Slots) -> Said:
            there, _, number = self._chosen(slots)
            column = self.carried.at(number[there])[n]
            places = np.cumsum(there) - 1
            return Said(column.take(pa.array(places, mask=~there)))

        return found

    def _chosen(self, slots: Slots) -> tuple[NDArray[np.bool_], NDArray[np.int64], NDArray[np.int32]]:
        """Of each rank of each slot whether it is there, the code of its value, and what it carries."""
        first, rank, of = _ranked(slots)
        place, code, number, count = self.counted.listed(slots[first])
        order = np.lexsort((*self._ties(number), ~self._in_order(code), place))
        rows = np.repeat(order, count[order])
        begins = np.searchsorted(place[rows], np.arange(len(first) + 1))
        wanted = begins[of] + rank
        there = wanted < begins[of + 1]
        taken = rows[np.where(there, wanted, 0)] if len(rows) else np.empty(0, np.int64)
        if not len(rows):
            return there, np.zeros(len(slots), np.int64), np.zeros(len(slots), np.int32)
        return there, code[taken], number[taken].astype(np.int32)

    def _in_order(self, code: NDArray[np.int64]) -> NDArray[np.int64]:
        return self.codes.ranks()[code] if self.codes.numbered else code

    def _ties(self, number: NDArray[np.int64]) -> tuple[NDArray[np.uint64], ...]:
        """By what equal values are told apart, the last first."""
        if not self.carry or not len(number):
            return ()
        columns = self.carried.at(number.astype(np.int32))
        words = identities(pa.RecordBatch.from_arrays(columns, names=list(self.carry)))
        return words[:, 1], words[:, 0]

    def _words(self, values: Values) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The code of each value, and the number of what it carries."""
        columns = values.array.flatten()
        code = self.codes.of(columns[0])
        if not self.carry:
            return code, np.zeros_like(code)
        payload = pa.RecordBatch.from_arrays(columns[1:], schema=self.carried.schema)
        numbers = self.carried.number(_rows(payload))
        self.carried.references[numbers] = 1
        return code, numbers.astype(np.int64)

    def saved(self, slots: Slots) -> list[pa.RecordBatch]:
        """The values that are numbered, what is carried, and what is counted."""
        values = pa.RecordBatch.from_arrays([pa.array(self.codes.values, self.codes.kind)], names=["value"])
        numbers = np.flatnonzero(self.carried.references).astype(np.int32)
        counted = self.counted.saved(slots)
        if not self.carry:
            return [values, counted]
        place = np.zeros(self.carried.numbers.capacity, np.int64)
        place[numbers] = np.arange(len(numbers))
        high = pa.array(place[counted.column("high").to_numpy()])
        return [values, counted.set_column(2, "high", high), self.carried.saved(numbers)]

    def load(self, slots: Slots, batches: Iterator[pa.RecordBatch]) -> None:
        """What was saved."""
        values, counted = next(batches), next(batches)
        if self.codes.numbered:
            self.codes.of(values.column("value"))
        if self.carry:
            numbers = self.carried.load(next(batches))
            self.carried.references[numbers] = 1
            high = numbers.astype(np.int64)[counted.column("high").to_numpy()]
            counted = counted.set_column(2, "high", pa.array(high))
        self.counted.load(slots, counted)


def _ranked(slots: Slots) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Where each slot is first, and of each row its rank from 0 and which of these it is; equals adjoin."""
    new = np.diff(slots, prepend=-1) != 0
    first, of = np.flatnonzero(new), np.cumsum(new) - 1
    return first, np.arange(len(slots)) - first[of], of


def _rows(payload: pa.RecordBatch) -> Batch:
    none = np.zeros(payload.num_rows, np.int64)
    return Batch(none.astype(np.int8), none, none, none, payload)


def _is_dictionary(array: pa.Array) -> bool:
    return bool(pa.types.is_dictionary(array.type))
