"""What the state of an aggregate is: columns by slot, to which values are added and taken from again.

A slot that nothing was added to is neutral, so that slots may be merged in any order. All are exact: a value
that is taken away leaves what would have been without it, and no order of additions is seen in the result.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anabranch.kernels.aggregate.codes import Codes
from anabranch.model.compiled import compiled
from anabranch.model.identity import Words, identities
from anabranch.model.pool import grown

Slots = NDArray[np.int32]


@dataclass(frozen=True)
class Values:
    """Values that there are, none of them null, with the slot and the start of each."""

    slots: Slots
    array: pa.Array
    start: NDArray[np.int64]

    @cached_property
    def integers(self) -> NDArray[np.int64]:
        """The values as whole numbers."""
        return read_only(_buffer(self.array if self.array.type == pa.int64() else _widened(self.array)))

    @cached_property
    def floats(self) -> NDArray[np.float64]:
        """The values as floats, each the nearest one."""
        array = self.array
        if array.type != pa.float64():
            array = array.cast(pa.float64(), safe=False)
        return read_only(array.to_numpy(zero_copy_only=False))

    @cached_property
    def words(self) -> Words:
        """The identity of each value."""
        return identities(pa.RecordBatch.from_arrays([self.array], names=["value"]))

    def codes(self, codes: Codes) -> NDArray[np.int64]:
        """The values as numbers in the same order, or as numbers of values."""
        if codes.kind == pa.int64():
            return self.integers
        known = self.__dict__.get("coded")
        if known is None:
            known = self.__dict__["coded"] = read_only(codes.of(self.array))
        return known


class Column(Protocol):
    """State of one kind, by slot."""

    @property
    def nbytes(self) -> int:
        """Bytes of state."""
        ...

    def with_room(self, capacity: int) -> None:
        """Have this many slots."""
        ...

    def add(self, values: Values, sign: int) -> None:
        """Add values to their slots, or with a sign of -1 take them away."""
        ...

    @property
    def invertible(self) -> bool:
        """What was merged can be taken away again, exactly."""
        ...

    def merge(self, into: Slots, other: Slots, sign: int = 1) -> None:
        """Add what other slots have, each to the one beside it, in order; with a sign of -1 take it away."""
        ...

    def clear(self, slots: Slots) -> None:
        """Make slots neutral."""
        ...

    def saved(self, slots: Slots) -> pa.RecordBatch:
        """What some slots have."""
        ...

    def load(self, slots: Slots, rows: pa.RecordBatch) -> None:
        """Give slots, which are neutral, what was saved."""
        ...


class Counts:
    """How many values there are."""

    invertible: ClassVar[bool] = True

    def __init__(self) -> None:
        self.count = np.zeros(0, np.int64)

    @property
    def nbytes(self) -> int:
        """Bytes of state."""
        return self.count.nbytes

    def with_room(self, capacity: int) -> None:
        """Have this many slots."""
        self.count = grown(self.count, capacity)

    def add(self, values: Values, sign: int) -> None:
        """Count values."""
        self.tell(values.slots, sign)

    def tell(self, slots: Slots, sign: int) -> None:
        """Count rows by their slots."""
        add_counts(self.count, slots, np.int64(sign))

    def merge(self, into: Slots, other: Slots, sign: int = 1) -> None:
        """Add counts of other slots."""
        merge_counts(self.count, into, other, np.int64(sign))

    def clear(self, slots: Slots) -> None:
        """Nothing was counted."""
        self.count[slots] = 0

    def saved(self, slots: Slots) -> pa.RecordBatch:
        """The counts of some slots."""
        return pa.RecordBatch.from_pydict({"count": self.count[slots]})

    def load(self, slots: Slots, rows: pa.RecordBatch) -> None:
        """The counts as they were saved."""
        self.count[slots] = rows.column("count").to_numpy()


def read_only(column: NDArray[Any]) -> NDArray[Any]:
    """A column as compiled loops know columns of values."""
    column = column.view() if column.flags.c_contiguous else np.ascontiguousarray(column)
    column.flags.writeable = False
    return column


def _widened(array: pa.Array) -> pa.Array:
    kind = array.type
    if pa.types.is_duration(kind) or pa.types.is_uint64(kind):
        return array.view(pa.int64())
    return array.cast(pa.int64())


def _buffer(array: pa.Array) -> NDArray[np.int64]:
    return np.frombuffer(array.buffers()[1] or b"", np.int64, len(array), 8 * array.offset)


@compiled
def add_counts(count: Any, slots: Any, sign: Any) -> None:
    """Count rows by their slots."""
    for slot in slots:
        count[slot] += sign


@compiled
def merge_counts(count: Any, into: Any, other: Any, sign: Any) -> None:
    """Add the counts of slots to those beside them, or take them away."""
    for i in range(len(into)):
        count[into[i]] += sign * count[other[i]]
