"""Sums of whole numbers, and of their squares, that are never cut off: in words of 64 bits with carries."""

from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anabranch.kernels.aggregate.column import Slots, Values
from anabranch.model.compiled import compiled, inlined
from anabranch.model.pool import grown

_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)


class IntegerSums:
    """Sums of int64 values, or of uint64 values, in 128 bits."""

    invertible: ClassVar[bool] = True

    def __init__(self, *, unsigned: bool = False) -> None:
        self.unsigned = unsigned
        self.low, self.high = np.zeros(0, np.uint64), np.zeros(0, np.int64)

    @property
    def nbytes(self) -> int:
        """Bytes of state."""
        return self.low.nbytes + self.high.nbytes

    def with_room(self, capacity: int) -> None:
        """Have this many slots."""
        self.low, self.high = grown(self.low, capacity), grown(self.high, capacity)

    def add(self, values: Values, sign: int) -> None:
        """Add values."""
        add_integers(self.low, self.high, values.slots, values.integers, np.int64(sign), self.unsigned)

    def merge(self, into: Slots, other: Slots, sign: int = 1) -> None:
        """Add sums of other slots."""
        merge_integers(self.low, self.high, into, other, np.int64(sign))

    def clear(self, slots: Slots) -> None:
        """Nothing was added."""
        self.low[slots], self.high[slots] = 0, 0

    def words(self, slots: Slots) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """The sums of slots in 64 bits, and where they do not fit."""
        low, high = self.low[slots].view(np.int64), self.high[slots]
        return low, (high != 0 if self.unsigned else high != low >> 63)

    def exact(self, slots: Slots) -> list[int]:
        """The sums of slots as whole numbers."""
        pairs = zip(self.low[slots].tolist(), self.high[slots].tolist(), strict=True)
        return [(high << 64) + low for low, high in pairs]

    def saved(self, slots: Slots) -> pa.RecordBatch:
        """The words of some slots."""
        return pa.RecordBatch.from_pydict({"low": self.low[slots], "high": self.high[slots]})

    def load(self, slots: Slots, rows: pa.RecordBatch) -> None:
        """The words as they were saved."""
        self.low[slots] = rows.column("low").to_numpy()
        self.high[slots] = rows.column("high").to_numpy()


class IntegerSquares:
    """Sums of squares of int64 values, or of uint64 values, in 192 bits."""

    invertible: ClassVar[bool] = True

    def __init__(self, *, unsigned: bool = False) -> None:
        self.unsigned = unsigned
        self.low, self.middle = np.zeros(0, np.uint64), np.zeros(0, np.uint64)
        self.high = np.zeros(0, np.int64)

    @property
    def nbytes(self) -> int:
        """Bytes of state."""
        return self.low.nbytes + self.middle.nbytes + self.high.nbytes

    def with_room(self, capacity: int) -> None:
        """Have this many slots."""
        self.low, self.middle = grown(self.low, capacity), grown(self.middle, capacity)
        self.high = grown(self.high, capacity)

    def add(self, values: Values, sign: int) -> None:
        """Add the squares of values."""
        add_squares(
            self.low, self.middle, self.high, values.slots, values.integers, np.int64(sign), self.unsigned
        )

    def merge(self, into: Slots, other: Slots, sign: int = 1) -> None:
        """Add sums of other slots."""
        merge_squares(self.low, self.middle, self.high, into, other, np.int64(sign))

    def clear(self, slots: Slots) -> None:
        """Nothing was added."""
        self.low[slots], self.middle[slots], self.high[slots] = 0, 0, 0

    def exact(self, slots: Slots) -> list[int]:
        """The sums of slots as whole numbers."""
        words = (column[slots].tolist() for column in (self.low, self.middle, self.high))
        return [(high << 128) + (middle << 64) + low for low, middle, high in zip(*words, strict=True)]

    def saved(self, slots: Slots) -> pa.RecordBatch:
        """The words of some slots."""
        columns = {"low": self.low, "middle": self.middle, "high": self.high}
        return pa.RecordBatch.from_pydict({name: column[slots] for name, column in columns.items()})

    def load(self, slots: Slots, rows: pa.RecordBatch) -> None:
        """The words as they were saved."""
        for name in ("low", "middle", "high"):
            getattr(self, name)[slots] = rows.column(name).to_numpy()


@compiled
def add_integers(low: Any, high: Any, slots: Any, values: Any, sign: Any, unsigned: bool) -> None:
    """Add values, or take them away, with carries."""
    for i in range(len(slots)):
        slot, value = slots[i], values[i]
        word = np.uint64(value)
        upper = np.int64(0) if unsigned else value >> 63
        if sign > 0:
            summed = low[slot] + word
            high[slot] += upper + (summed < word)
        else:
            summed = low[slot] - word
            high[slot] -= upper + (summed > low[slot])
        low[slot] = summed


@compiled
def merge_integers(low: Any, high: Any, into: Any, other: Any, sign: Any) -> None:
    """Add the sums of slots to those beside them, or take them away."""
    for i in range(len(into)):
        one, two = into[i], other[i]
        if sign > 0:
            summed = low[one] + low[two]
            high[one] += high[two] + (summed < low[two])
        else:
            summed = low[one] - low[two]
            high[one] -= high[two] + (summed > low[one])
        low[one] = summed


@inlined
def _squared(value: Any) -> Any:
    """The square of a word, in two words."""
    upper, lower = value >> _HALF, value & _LOW
    cross = upper * lower
    low = lower * lower
    high = upper * upper + (cross >> (_HALF - np.uint64(1)))
    summed = low + (cross << (_HALF + np.uint64(1)))
    return summed, high + np.uint64(summed < low)


@inlined
def add_words(
    low: Any, middle: Any, high: Any, slot: Any, first: Any, second: Any, third: Any, sign: Any
) -> None:
    """Add three words to those of a slot, or take them away, with carries."""
    if sign > 0:
        summed = low[slot] + first
        carry = np.uint64(summed < first)
        above = middle[slot] + second
        carried = np.int64(above < second)
        above += carry
        high[slot] += third + carried + (above < carry)
    else:
        summed = low[slot] - first
        carry = np.uint64(summed > low[slot])
        above = middle[slot] - second
        carried = np.int64(above > middle[slot])
        high[slot] -= third + carried + (above < carry)
        above -= carry
    low[slot], middle[slot] = summed, above


@compiled
def add_squares(low: Any, middle: Any, high: Any, slots: Any, values: Any, sign: Any, unsigned: bool) -> None:
    """Add squares of values, or take them away, with carries."""
    for i in range(len(slots)):
        slot, value = slots[i], values[i]
        size = np.uint64(value) if unsigned or value >= 0 else np.uint64(0) - np.uint64(value)
        first, second = _squared(size)
        add_words(low, middle, high, slot, first, second, np.int64(0), sign)


@compiled
def merge_squares(low: Any, middle: Any, high: Any, into: Any, other: Any, sign: Any) -> None:
    """Add the sums of slots to those beside them, or take them away."""
    for i in range(len(into)):
        two = other[i]
        add_words(low, middle, high, into[i], low[two], middle[two], high[two], sign)
