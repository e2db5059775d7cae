"""Expressions that are ready to run: calls of Arrow, with all that is decided once decided.

**Quickly or carefully.** `run` computes all rows at once and raises where one of them fails. `careful` gives
the same values and lets no row fail but those that do: a call that fails is halved until the failing rows
stand alone; these become null there and are noted. Each costs about two calls of one function, not of the
whole expression.

**A choice guards.** Where the quick way computes all branches of a choice for all rows, the careful one
computes each only for the rows that take it, so a row never fails by a branch that it does not take.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

Failed: TypeAlias = dict[int, str]
"""Rows that failed, each with the first reason."""

FAILURES = (pa.ArrowInvalid, pa.ArrowIndexError)
"""What Arrow raises because of a value; all else is not the row's fault."""

_FALSE = pa.scalar(False)
_coalesce, _if_else = pc.get_function("coalesce").call, pc.get_function("if_else").call


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of a batch with their lifetimes: all of them, or those at some places."""

    batch: pa.RecordBatch
    start: NDArray[np.int64] | None = None
    end: NDArray[np.int64] | None = None
    places: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return self.batch.num_rows if self.places is None else len(self.places)

    def number(self, row: int) -> int:
        """Which row of the batch a row is."""
        return row if self.places is None else int(self.places[row])

    def take(self, rows: NDArray[np.int64]) -> "Rows":
        """Some of these rows."""
        places = rows if self.places is None else self.places[rows]
        return Rows(self.batch, self.start, self.end, places)

    def of(self, column: pa.Array) -> pa.Array:
        """The values that a column of the whole batch has in these rows."""
        return column if self.places is None else column.take(pa.array(self.places))


class Node(Protocol):
    """A part of an expression that is ready to run."""

    @property
    def type(self) -> pa.DataType:
        """The type of its values."""
        ...

    def run(self, rows: Rows) -> pa.Array | pa.Scalar:
        """Its values, or the one of all rows; raises where a row fails."""
        ...

    def careful(self, rows: Rows, failed: Failed) -> pa.Array | pa.Scalar:
        """The same, null where a row fails, which is noted."""
        ...


@dataclass(frozen=True, slots=True)
class Reading:
    """A payload column, by its place."""

    index: int
    type: pa.DataType

    def run(self, rows: Rows) -> pa.Array:
        """The column."""
        return rows.of(rows.batch.column(self.index))

    def careful(self, rows: Rows, failed: Failed) -> pa.Array:
        """The column; reading never fails."""
        return self.run(rows)


@dataclass(frozen=True, slots=True)
class Lifetime:
    """Starts or ends."""

    side: str

    @property
    def type(self) -> pa.DataType:
        """Ticks."""
        return pa.int64()

    def run(self, rows: Rows) -> pa.Array:
        """The times."""
        times = rows.start if self.side == "start" else rows.end
        assert times is not None, f"an expression of {self.side}() is evaluated with the {self.side} of rows"
        return rows.of(pa.array(times))

    def careful(self, rows: Rows, failed: Failed) -> pa.Array:
        """The times; reading never fails."""
        return self.run(rows)


@dataclass(frozen=True, slots=True)
class Constant:
    """One value for all rows."""

    scalar: pa.Scalar

    @property
    def type(self) -> pa.DataType:
        """The type of the value."""
        return self.scalar.type

    def run(self, rows: Rows) -> pa.Scalar:
        """The value."""
        return self.scalar

    def careful(self, rows: Rows, failed: Failed) -> pa.Scalar:
        """The value."""
        return self.scalar


@dataclass(frozen=True, slots=True)
class Applied:
    """A function of rows, at least one argument of which is no constant."""

    call: Callable[[Sequence[Any], Any], Any]
    args: tuple[Node, ...]
    options: Any
    type: pa.DataType
    lenient: bool = False
    """A row that fails is null, and nothing more."""

    def run(self, rows: Rows) -> pa.Array:
        """What the function gives."""
        return self.call([arg.run(rows) for arg in self.args], self.options)

    def careful(self, rows: Rows, failed: Failed) -> pa.Array:
        """What the function gives where it gives something."""
        args = [arg.careful(rows, failed) for arg in self.args]
        found: list[pa.Array] = []
        parts = [(0, len(rows))]
        while parts:
            begin, count = parts.pop()
            some = [arg.slice(begin, count) if isinstance(arg, pa.Array) else arg for arg in args]
            try:
                found.append(self.call(some, self.options))
            except FAILURES as reason:
                if count > 1:
                    half = count // 2
                    parts += [(begin + half, count - half), (begin, half)]
                    continue
                found.append(pa.nulls(1, self.type))
                if not self.lenient:
                    failed.setdefault(rows.number(begin), str(reason))
        return found[0] if len(found) == 1 else pa.concat_arrays(found)


@dataclass(frozen=True, slots=True)
class Chosen:
    """The value of the first branch whose condition is true, else that of the last, which has none."""

    conditions: tuple[Node, ...]
    branches: tuple[Node, ...]

    @property
    def type(self) -> pa.DataType:
        """The type of all branches."""
        return self.branches[-1].type

    def run(self, rows: Rows) -> pa.Array | pa.Scalar:
        """The chosen values; every branch is computed."""
        found = self.branches[-1].run(rows)
        for condition, branch in zip(self.conditions[::-1], self.branches[-2::-1], strict=True):
            sure = _coalesce([condition.run(rows), _FALSE])
            found = _if_else([sure, branch.run(rows), found])
        return found

    def careful(self, rows: Rows, failed: Failed) -> pa.Array:
        """The chosen values; every branch is computed where it is taken."""
        left = np.arange(len(rows))
        taken, found = [], []
        for condition, branch in zip(self.conditions, self.branches, strict=False):
            true = _is_true(condition.careful(rows.take(left), failed), len(left))
            taken.append(left[true])
            found.append(as_array(branch.careful(rows.take(left[true]), failed), true.sum()))
            left = left[~true]
        taken.append(left)
        found.append(as_array(self.branches[-1].careful(rows.take(left), failed), len(left)))
        return pa.concat_arrays(found).take(pa.array(np.argsort(np.concatenate(taken))))


def _is_true(found: pa.Array | pa.Scalar, count: int) -> NDArray[np.bool_]:
    sure = pc.fill_null(as_array(found, count), False)
    return sure.to_numpy(zero_copy_only=False)


def as_array(found: pa.Array | pa.Scalar, count: int) -> pa.Array:
    """Values of so many rows."""
    return found if isinstance(found, pa.Array) else pa.repeat(found, int(count))
