"""What aggregates are of: how rows are read, and the state that they come to, by slot."""

from collections.abc import Iterator
from typing import NamedTuple, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anabranch.kernels.aggregate.column import Column, Slots
from anabranch.model.batch import Batch


class Said(NamedTuple):
    """The values of an aggregate for some slots, and those for which it has none."""

    values: pa.Array
    failed: NDArray[np.bool_] | None = None
    why: str = ""
    whys: dict[int, str] | None = None
    """The reason by row, where they differ."""


class Part(Protocol):
    """One thing that aggregates are of."""

    @property
    def nbytes(self) -> int:
        """Bytes of state beside that of the columns."""
        ...

    def read(self, batch: Batch) -> tuple[pa.Array, dict[int, str]]:
        """What is added of each row, and the rows that have nothing, with the reason."""
        ...

    def add(self, slots: Slots, array: pa.Array, start: NDArray[np.int64], sign: int) -> None:
        """Add what was read of rows to their slots, or with a sign of -1 take it away."""
        ...

    def all(self) -> list[Column]:
        """The columns of state."""
        ...

    def compact(self) -> None:
        """Forget what no slot refers to."""
        ...

    def saved(self, slots: Slots) -> list[pa.RecordBatch]:
        """All that some slots have."""
        ...

    def load(self, slots: Slots, batches: Iterator[pa.RecordBatch]) -> None:
        """Give slots, which are neutral, what was saved."""
        ...
