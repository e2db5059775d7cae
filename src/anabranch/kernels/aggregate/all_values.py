"""All values of a slot with what they carry, so that any can be taken away again and the k greatest be found.

Values are counted with the number of the columns they carry. Equal values are in the order of the identity of
what they carry; rows that are equal in all are as many as there are.

Memory: that of values of two words (`Counted`) for each value of a slot with what it carries, and what is
carried once.
"""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anabranch.kernels.aggregate.codes import Codes
from anabranch.kernels.aggregate.column import Slots, Values
from anabranch.kernels.aggregate.counted import Counted
from anabranch.kernels.aggregate.groups import Groups
from anabranch.model.batch import Batch
from anabranch.model.identity import identities

_LEAST_WORTH = 1024


class AllValues(Counted):
    """State: how often each slot has each value with what it carries, and the rows that are carried."""

    def __init__(self, k: int, codes: Codes, carried: pa.Schema) -> None:
        super().__init__(self._words, words=2)
        self.k, self.codes = k, codes
        self.carried = Groups(carried)

    @property
    def nbytes(self) -> int:
        """Bytes of state."""
        return super().nbytes + self.carried.nbytes

    def compact(self) -> None:
        """Forget what is carried, and values that were numbered, where no slot has them."""
        used = self.used
        if len(self.carried.schema) and self.carried.numbers.used > 4 * used + _LEAST_WORTH:
            live = np.zeros(self.carried.numbers.capacity, np.bool_)
            live[self.codes_in_use(high=True)] = True
            dead = np.flatnonzero((self.carried.references > 0) & ~live).astype(np.int32)
            self.carried.references[dead] = 0
            self.carried.forget(dead)
        if self.codes.numbered and self.codes.crowded(used):
            self.recode(self.codes.keep(self.codes_in_use(high=False)), high=False)

    def lengths(self, slots: Slots) -> NDArray[np.int64]:
        """How many ranks each slot has."""
        place, _, _, count = self.listed(slots)
        found = np.zeros(len(slots), np.int64)
        np.add.at(found, place, count)
        return np.minimum(found, self.k)

    def ordered(self, slots: Slots) -> tuple[NDArray[np.int64], NDArray[np.int64], list[pa.Array]]:
        """How many ranks each slot has, and the code of each with what it carries, best first."""
        place, code, number, count = self.listed(slots)
        order = np.lexsort((*self._ties(number), ~self._in_order(code), place))
        rows = np.repeat(order, np.minimum(count[order], self.k))
        begins = np.searchsorted(place[rows], np.arange(len(slots) + 1))
        rows = rows[np.arange(len(rows)) - begins[place[rows]] < self.k]
        lengths = np.minimum(np.diff(begins), self.k)
        return lengths, code[rows], self.carried.at(number[rows].astype(np.int32))

    def saved(self, slots: Slots) -> pa.RecordBatch:
        """What slots have, with what it carries."""
        rows = super().saved(slots)
        carried = self.carried.at(rows.column("high").to_numpy().astype(np.int32))
        names = ["slot", "code", "count", *(f"carried {name}" for name in self.carried.schema.names)]
        columns = [*(rows.column(name) for name in ("slot", "low", "count")), *carried]
        return pa.RecordBatch.from_arrays(columns, names=names)

    def load(self, slots: Slots, rows: pa.RecordBatch) -> None:
        """What slots had when it was saved."""
        place, code, count, *carried = rows.columns
        number = self._numbers(carried, len(rows))
        self._count(slots[place.to_numpy()], code.to_numpy(), number, count.to_numpy().copy())

    def _in_order(self, code: NDArray[np.int64]) -> NDArray[np.int64]:
        return self.codes.ranks()[code] if self.codes.numbered else code

    def _ties(self, number: NDArray[np.int64]) -> tuple[NDArray[np.uint64], ...]:
        """By what equal values are told apart, the last first."""
        if not len(self.carried.schema) or not len(number):
            return ()
        columns = self.carried.at(number.astype(np.int32))
        words = identities(pa.RecordBatch.from_arrays(columns, names=self.carried.schema.names))
        return words[:, 1], words[:, 0]

    def _words(self, values: Values) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The code of each value, and the number of what it carries."""
        columns = values.array.flatten()
        return self.codes.of(columns[0]), self._numbers(columns[1:], len(values.array))

    def _numbers(self, carried: list[pa.Array], count: int) -> NDArray[np.int64]:
        if not carried:
            return np.zeros(count, np.int64)
        payload = pa.RecordBatch.from_arrays(carried, names=self.carried.schema.names)
        numbers = self.carried.number(_rows(payload))
        self.carried.references[numbers] = 1
        return numbers.astype(np.int64)


def _rows(payload: pa.RecordBatch) -> Batch:
    none = np.zeros(payload.num_rows, np.int64)
    return Batch(none.astype(np.int8), none, none, none, payload)
