"""Sums of decimals, and of their squares, as whole numbers of any length, by slot."""

from decimal import Context
from typing import Any, ClassVar

import pyarrow as pa

from anabranch.kernels.aggregate.column import Slots, Values

WIDE = Context(prec=100)
"""Wide enough for every decimal of Arrow's, so that nothing is rounded."""


class DecimalSums:
    """Exact sums of decimals, or of their squares, in units of the last place."""

    invertible: ClassVar[bool] = True

    def __init__(self, scale: int, *, squares: bool = False) -> None:
        self.scale, self.squares = scale, squares
        self.sums: dict[int, int] = {}

    @property
    def nbytes(self) -> int:
        """About the bytes of state."""
        return 150 * len(self.sums)

    def with_room(self, capacity: int) -> None:
        """There is always room."""

    def add(self, values: Values, sign: int) -> None:
        """Add values, or their squares."""
        for slot, value in zip(values.slots.tolist(), values.array.to_pylist(), strict=True):
            whole = int(value.scaleb(self.scale, WIDE))
            self.sums[slot] = self.sums.get(slot, 0) + sign * (whole * whole if self.squares else whole)

    def merge(self, into: Slots, other: Slots, sign: int = 1) -> None:
        """Add sums of other slots."""
        for target, source in zip(into.tolist(), other.tolist(), strict=True):
            self.sums[target] = self.sums.get(target, 0) + sign * self.sums.get(source, 0)

    def clear(self, slots: Slots) -> None:
        """Nothing was added."""
        for slot in slots.tolist():
            self.sums.pop(slot, None)

    def exact(self, slots: Slots) -> list[int]:
        """The sums of slots."""
        return [self.sums.get(slot, 0) for slot in slots.tolist()]

    def saved(self, slots: Slots) -> pa.RecordBatch:
        """The sums of some slots, as texts."""
        return pa.RecordBatch.from_pydict({"sum": pa.array(map(str, self.exact(slots)), pa.string())})

    def load(self, slots: Slots, rows: pa.RecordBatch) -> None:
        """The sums as they were saved."""
        said: list[Any] = rows.column("sum").to_pylist()
        self.sums.update(zip(slots.tolist(), map(int, said), strict=True))
