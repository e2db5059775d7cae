"""Payload rows by slot: a slot is written when an event is kept, and written over when it is no longer.

Columns whose values have one width are arrays by slot, from which values are gathered without a look at any
others. Texts and whatever else has no one width stand in a `PayloadStore`, and slots know their places there.

Memory: as many slots as there were at once, to the next power of two; of texts at most about twice those that
are referred to.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anabranch.model.payloads import PayloadStore
from anabranch.model.pool import grown
from anabranch.model.rows import rows_without_columns, take_rows

_WIDTHS = (8, 16, 32, 64)


@dataclass(slots=True)
class _Column:
    """State: the values of one column by slot, and where there are any."""

    type: pa.DataType
    values: NDArray[Any]
    valid: NDArray[np.bool_] | None = None

    @classmethod
    def of(cls, kind: pa.DataType, capacity: int) -> "_Column":
        width = 8 if pa.types.is_boolean(kind) else kind.bit_width
        return cls(kind, np.zeros(capacity, f"u{width // 8}"))

    def grown(self, capacity: int) -> None:
        self.values = grown(self.values, capacity)
        if self.valid is not None:
            self.valid = grown(self.valid, capacity)

    def put(self, slots: NDArray[np.int64], column: pa.Array) -> None:
        self.values[slots] = _numbers(column, self.values.dtype)
        if column.null_count and self.valid is None:
            self.valid = np.ones(len(self.values), np.bool_)
        if self.valid is not None:
            self.valid[slots] = column.is_valid().to_numpy(zero_copy_only=False)

    def at(self, slots: NDArray[np.int64]) -> pa.Array:
        values, bits = self.values.take(slots), None
        if self.valid is not None:
            valid = self.valid.take(slots)
            if not valid.all():
                bits = pa.py_buffer(np.packbits(valid, bitorder="little"))
        if pa.types.is_boolean(self.type):
            values = np.packbits(values.view(np.bool_), bitorder="little")
        return pa.Array.from_buffers(self.type, len(slots), [bits, pa.py_buffer(values)])

    @property
    def nbytes(self) -> int:
        return self.values.nbytes + (0 if self.valid is None else self.valid.nbytes)


@dataclass(slots=True)
class SlotColumns:
    """State: columns by slot, and the places of what has no one width.

    >>> columns = SlotColumns(pa.schema({"n": pa.int64(), "text": pa.string()}))
    >>> columns.grow(4)
    >>> columns.put(np.array([3, 1]), pa.record_batch({"n": [7, None], "text": ["a", "b"]}))
    >>> columns.at(np.array([1, 3, 1])).to_pydict()
    {'n': [None, 7, None], 'text': ['b', 'a', 'b']}
    """

    schema: pa.Schema
    fixed: dict[str, _Column] = field(init=False)
    others: list[str] = field(init=False)
    payloads: PayloadStore = field(init=False)
    place: NDArray[np.int64] = field(init=False)

    def __post_init__(self) -> None:
        self.fixed = {one.name: _Column.of(one.type, 0) for one in self.schema if _has_width(one.type)}
        self.others = [name for name in self.schema.names if name not in self.fixed]
        self.payloads = PayloadStore()
        if self.others:
            fields = [self.schema.field(name) for name in self.others]
            self.payloads.admit(pa.RecordBatch.from_pylist([], pa.schema(fields)))
        self.place = np.empty(0, np.int64)

    def grow(self, capacity: int) -> None:
        """Have so many slots."""
        for column in self.fixed.values():
            column.grown(capacity)
        if self.others:
            self.place = grown(self.place, capacity)

    def put(self, slots: NDArray[np.int64], rows: pa.RecordBatch) -> None:
        """Let slots hold rows; where one is named twice, the last."""
        for name, column in self.fixed.items():
            column.put(slots, rows.column(name))
        if self.others:
            others = self.payloads.admit(rows.select(self.others))
            self.place[slots] = self.payloads.next_place + np.arange(len(slots))
            self.payloads.add(others)

    def at(self, slots: NDArray[np.int64], names: list[str] | None = None) -> pa.RecordBatch:
        """The rows of slots, or some of their columns."""
        names = self.schema.names if names is None else names
        if not names:
            return rows_without_columns(len(slots))
        wanted = [name for name in names if name not in self.fixed]
        found = {name: self.fixed[name].at(slots) for name in names if name in self.fixed}
        if wanted:
            others = self.payloads.at(self.place[slots])
            found |= {name: _typed(others.column(name), self.schema.field(name).type) for name in wanted}
        return pa.RecordBatch.from_arrays(
            [found[name] for name in names], schema=pa.schema([self.schema.field(name) for name in names])
        )

    def forget_unused(self, free: NDArray[np.int32]) -> None:
        """Let go of what no slot refers to but those that are free, once that is most of it."""
        used = len(self.place) - len(free)
        if self.others and self.payloads.crowded(used):
            mask = np.ones(len(self.place), np.bool_)
            mask[free] = False
            self.payloads.compact(self.place, np.flatnonzero(mask))

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        fixed = sum(column.nbytes for column in self.fixed.values())
        return fixed + self.place.nbytes + self.payloads.nbytes


def only(rows: pa.RecordBatch, mask: NDArray[np.bool_]) -> pa.RecordBatch:
    """The rows where a mask is true."""
    return rows if mask.all() else take_rows(rows, np.flatnonzero(mask))


def _has_width(kind: pa.DataType) -> bool:
    return bool(pa.types.is_boolean(kind) or (pa.types.is_primitive(kind) and kind.bit_width in _WIDTHS))


def _numbers(column: pa.Array, dtype: np.dtype[Any]) -> NDArray[Any]:
    """The values of a column as numbers of their width; where there is none, any number."""
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.uint8())
    if not len(column):  # the format allows no values to have no buffer
        return np.empty(0, dtype)
    return np.frombuffer(column.buffers()[1], dtype, len(column), column.offset * dtype.itemsize)


def _typed(column: pa.Array, kind: pa.DataType) -> pa.Array:
    return column if column.type == kind else column.cast(kind)
