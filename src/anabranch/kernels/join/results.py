"""What comes of pairs, and of events without one: points, with the columns of both sides or of the left."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anabranch.expressions.evaluation import evaluate
from anabranch.kernels.failed import failed
from anabranch.kernels.join.band import LEFT
from anabranch.kernels.join.side import Heard, Side
from anabranch.kernels.join.terms import Terms
from anabranch.kernels.kernel import Refused
from anabranch.model.batch import Batch, Kind
from anabranch.model.rows import rows_without_columns, take_rows
from anabranch.model.time import FOREVER


class Pairs(NamedTuple):
    """Rows of what was heard with the nodes of the other side that match them."""

    row: NDArray[np.int64]
    node: NDArray[np.int64]

    def take(self, rows: NDArray[np.int64] | NDArray[np.bool_]) -> "Pairs":
        """Some of the pairs."""
        return Pairs(self.row[rows], self.node[rows])


class Meeting(NamedTuple):
    """Pairs, of whom: those that were heard of one side, and those that are kept of the other."""

    terms: Terms
    side: Side
    heard: Heard
    other: Side
    pairs: Pairs

    def starts(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The starts of the left and of the right of each pair."""
        mine, theirs = self.heard.start[self.pairs.row], self.other.starts(self.pairs.node)
        return (mine, theirs) if self.side.number == LEFT else (theirs, mine)

    def columns(self, wanted: Sequence[str] | None = None) -> pa.RecordBatch:
        """The columns of the pairs, or some of them."""
        terms = self.terms
        called = [{name: name for name in terms.left.names}, {new: name for name, new in terms.names}]
        names = terms.pair.names if wanted is None else list(wanted)
        found: dict[str, pa.Array] = {}
        for number, origin in enumerate(called):
            mine = [name for name in names if name in origin]
            if mine:
                rows = self._rows(number, [origin[name] for name in mine])
                found |= dict(zip(mine, rows.columns, strict=True))
        if any(name in names for name in terms.starts):
            for name, start in zip(terms.starts, self.starts(), strict=True):
                if name is not None:
                    found[name] = terms.start_column(start)
        if not names:
            return rows_without_columns(len(self.pairs.row))
        schema = pa.schema([terms.pair.field(name) for name in names])
        return pa.RecordBatch.from_arrays([found[name] for name in names], schema=schema)

    def points(self) -> Batch:
        """The pairs as events, or as removals of them where the row was one."""
        times = self.terms.time(*self.starts())
        return points(times, self.heard.removal[self.pairs.row], self.columns())

    def true(self) -> tuple["Meeting", tuple[Refused, ...]]:
        """The pairs that the condition is true of, and those for which it fails, refused where they come."""
        if self.terms.where is None or not len(self.pairs.row):
            return self, ()
        times = self.terms.time(*self.starts())
        values = evaluate(self.terms.where, self.columns(self.terms.judged), times, _after(times))
        truths = values.values.fill_null(False).to_numpy(zero_copy_only=False)
        refused: tuple[Refused, ...] = ()
        if len(values.failed):
            coming = ~self.heard.removal[self.pairs.row[values.failed]]
            rows = values.failed[coming]
            why = [reason for reason, new in zip(values.why, coming.tolist(), strict=True) if new]
            failing = self._replace(pairs=self.pairs.take(rows)).points()
            refused = failed(failing, np.arange(len(rows)), why)
        return (self if truths.all() else self._replace(pairs=self.pairs.take(truths))), refused

    def _rows(self, number: int, names: list[str]) -> pa.RecordBatch:
        if number != self.side.number:
            return self.other.payloads.at(self.pairs.node, names)
        return take_rows(self.heard.payload.select(names), self.pairs.row)


def alone(
    terms: Terms, payload: pa.RecordBatch, start: NDArray[np.int64], removal: NDArray[np.bool_]
) -> Batch:
    """Events of the left by themselves: what a pair has of the right is null."""
    if terms.how != "left":
        return points(start, removal, payload)
    own = dict(zip(payload.schema.names, payload.columns, strict=True))
    if terms.starts[0] is not None:
        own[terms.starts[0]] = terms.start_column(start)
    nulls = {one.name: pa.nulls(len(start), one.type) for one in terms.pair if one.name not in own}
    columns = [(own | nulls)[name] for name in terms.pair.names]
    return points(start, removal, pa.RecordBatch.from_arrays(columns, schema=terms.pair))


def points(start: NDArray[np.int64], removal: NDArray[np.bool_], payload: pa.RecordBatch) -> Batch:
    """Points that come, or go."""
    end = _after(start)
    if not removal.any():
        return Batch(np.zeros(len(start), np.int8), start, end, np.zeros(len(start), np.int64), payload)
    kind = np.where(removal, Kind.ADJUST, Kind.INSERT).astype(np.int8)
    return Batch(kind, start, np.where(removal, start, end), np.where(removal, end, 0), payload)


def _after(start: NDArray[np.int64]) -> NDArray[np.int64]:
    """The ends of points; no start is at the end of time."""
    assert not len(start) or start.max() < FOREVER, "no event starts at the end of time"
    return start + 1
