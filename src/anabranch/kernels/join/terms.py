"""What a join is told: which pairs there are, and which columns come of one."""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anabranch.expressions.tree import Tree, columns_of
from anabranch.kernels.join.band import At, Band
from anabranch.model.clock_columns import times

How: TypeAlias = Literal["inner", "left", "semi", "anti"]


@dataclass(frozen=True)
class Terms:
    """Events of the left and the right with equal keys and near starts, of which a condition is true."""

    left: pa.Schema
    right: pa.Schema
    on: tuple[tuple[str, str], ...]
    """Columns of the left and of the right that are equal; a null is equal to nothing."""
    band: Band
    how: How = "inner"
    at: At = "later"
    where: Tree | None = None
    names: tuple[tuple[str, str], ...] = ()
    """Columns of the right that a pair has, and what they are called there."""
    starts: tuple[str | None, str | None] = (None, None)
    """What the columns are called that have the starts of the left and the right, if any have."""
    clock: pa.DataType | None = None

    @cached_property
    def pair(self) -> pa.Schema:
        """The columns of a pair, which a condition may look at."""
        right = [self.right.field(name).with_name(called) for name, called in self.names]
        starts = [pa.field(name, self._clock) for name in self.starts if name is not None]
        return pa.schema([*self.left, *right, *starts])

    @property
    def output(self) -> pa.Schema:
        """The columns that come out: of a pair, or of the left alone."""
        return self.left if self.how in ("semi", "anti") else self.pair

    @property
    def judged(self) -> tuple[str, ...]:
        """The columns of a pair that the condition looks at."""
        return () if self.where is None else columns_of(self.where)

    @property
    def counts(self) -> bool:
        """How many matches an event of the left has is of interest."""
        return self.how != "inner"

    @property
    def awaits(self) -> bool:
        """That an event of the left has no match is said, once it is known."""
        return self.how in ("left", "anti")

    def frontier(self, left: int, right: int) -> int:
        """The least time at which anything may still be said, or taken back."""
        at: At = "left" if self.how in ("semi", "anti") else self.at
        found = self.band.frontier(at, left, right)
        return min(found, self.band.frontier("left", left, right)) if self.how == "left" else found

    def time(self, left: NDArray[np.int64], right: NDArray[np.int64]) -> NDArray[np.int64]:
        """Where pairs of starts stand."""
        match self.at:
            case "left":
                return left
            case "right":
                return right
            case "later":
                return np.maximum(left, right)
            case "earlier":
                return np.minimum(left, right)

    def start_column(self, ticks: NDArray[np.int64]) -> pa.Array:
        """Starts as a column has them."""
        return times(ticks, np.zeros(len(ticks), np.bool_), self._clock)

    @property
    def _clock(self) -> pa.DataType:
        """The type of a column of starts."""
        if self.clock is None or pa.types.is_integer(self.clock):
            return pa.int64()
        return pa.date32() if pa.types.is_date(self.clock) else pa.timestamp("us", self.clock.tz)
