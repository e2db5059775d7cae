"""The least or the greatest value, where nothing is ever taken away: one code by slot."""

from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anabranch.kernels.aggregate.codes import Codes
from anabranch.kernels.aggregate.column import Slots, Values
from anabranch.model.compiled import compiled
from anabranch.model.pool import grown

_NEUTRAL = {1: np.int64(2**63 - 1), -1: np.int64(-(2**63))}


class Extremes:
    """The least codes of values, or with ``way`` -1 the greatest."""

    invertible: ClassVar[bool] = False

    def __init__(self, codes: Codes, way: int) -> None:
        assert not codes.numbered, "the order of numbered values is not that of their codes"
        self.codes, self.way = codes, way
        self.code = np.zeros(0, np.int64)

    @property
    def nbytes(self) -> int:
        """Bytes of state."""
        return self.code.nbytes

    def with_room(self, capacity: int) -> None:
        """Have this many slots."""
        self.code = grown(self.code, capacity, _NEUTRAL[self.way])

    def add(self, values: Values, sign: int) -> None:
        """Look at values."""
        assert sign > 0, "nothing is taken from an extreme"
        loop = least_codes if self.way > 0 else greatest_codes
        loop(self.code, values.slots, values.codes(self.codes))

    def merge(self, into: Slots, other: Slots, sign: int = 1) -> None:
        """Look at what other slots have."""
        assert sign > 0, "nothing is taken from an extreme"
        merge_extremes(self.code, into, other, np.int64(self.way))

    def clear(self, slots: Slots) -> None:
        """Nothing was looked at."""
        self.code[slots] = _NEUTRAL[self.way]

    def found(self, slots: Slots) -> NDArray[np.int64]:
        """The codes of slots."""
        return self.code[slots]

    def saved(self, slots: Slots) -> pa.RecordBatch:
        """The codes of some slots."""
        return pa.RecordBatch.from_pydict({"code": self.code[slots]})

    def load(self, slots: Slots, rows: pa.RecordBatch) -> None:
        """The codes as they were saved."""
        self.code[slots] = rows.column("code").to_numpy()


@compiled
def least_codes(code: Any, slots: Any, values: Any) -> None:
    """Keep the least code of each slot."""
    for i in range(len(slots)):
        code[slots[i]] = min(code[slots[i]], values[i])


@compiled
def greatest_codes(code: Any, slots: Any, values: Any) -> None:
    """Keep the greatest code of each slot."""
    for i in range(len(slots)):
        code[slots[i]] = max(code[slots[i]], values[i])


@compiled
def merge_extremes(code: Any, into: Any, other: Any, way: Any) -> None:
    """Keep the least code, or the greatest, of slots and those beside them."""
    for i in range(len(into)):
        one, two = code[into[i]], code[other[i]]
        code[into[i]] = min(one, two) if way > 0 else max(one, two)
