"""Elements in columns, in arrival order.

A batch is what operators take and give: int8 kinds, int64 times, and the payload as an Arrow record batch
with one row per element (the row of a stable is null). ``start`` holds the time of a stable and the guarantee
of an attach. A batch of one element is legal; an empty one too. Batches share buffers with the Arrow data
they came from wherever types allow.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from enum import IntEnum
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anabranch.model.elements import Adjust, Attach, Control, Detach, Element, Insert, Stable, Tagged
from anabranch.model.identity import Words, identities


class Kind(IntEnum):
    """What an element is, as a number in a column."""

    INSERT = 0
    ADJUST = 1
    STABLE = 2
    ATTACH = 3
    DETACH = 4


KINDS = tuple(kind.name.lower() for kind in Kind)


class SchemaError(TypeError):
    """Arrow data is not in the shape of a batch."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.add_note("A batch has the columns kind, start, end, old_end and those of the payload.")


@dataclass(frozen=True)
class Batch:
    """Elements in arrival order; equal length columns."""

    kind: NDArray[np.int8]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    old_end: NDArray[np.int64]
    payload: pa.RecordBatch
    input: NDArray[np.int32] | None = None
    inputs: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
        lengths = {len(self.kind), len(self.start), len(self.end), len(self.old_end), self.payload.num_rows}
        assert len(lengths) == 1, f"columns of one batch have one length, not {sorted(lengths)}"
        assert self.input is None or len(self.input) == len(self.kind), (
            "every element has an input or none has"
        )

    def __len__(self) -> int:
        return len(self.kind)

    @cached_property
    def identities(self) -> Words:
        """The identity of each row's payload."""
        return identities(self.payload)

    def __getitem__(self, rows: slice) -> "Batch":
        """Some of the elements, sharing the columns."""
        begin, stop, step = rows.indices(len(self))
        if step != 1:
            return self.take(np.arange(begin, stop, step))
        part = Batch(
            self.kind[rows],
            self.start[rows],
            self.end[rows],
            self.old_end[rows],
            self.payload.slice(begin, max(stop - begin, 0)),
            None if self.input is None else self.input[rows],
            self.inputs,
        )
        if "identities" in self.__dict__:
            part.__dict__["identities"] = self.identities[rows]
        return part

    def take(self, rows: NDArray[Any]) -> "Batch":
        """The elements at these places (or where a mask is true), in that order."""
        if rows.dtype == np.bool_:
            rows = np.flatnonzero(rows)
        part = Batch(
            self.kind[rows],
            self.start[rows],
            self.end[rows],
            self.old_end[rows],
            take_rows(self.payload, rows),
            None if self.input is None else self.input[rows],
            self.inputs,
        )
        if "identities" in self.__dict__:
            part.__dict__["identities"] = self.identities[rows]
        return part

    def split(self) -> dict[str, "Batch"]:
        """What each input said, in order."""
        if self.input is None:
            return {}
        return {
            name: self.take(np.flatnonzero(self.input == code))
            for code, name in enumerate(self.inputs)
            if (self.input == code).any()
        }

    def element(self, row: int) -> Element | Control:
        """One element as an object."""
        return next(iter(self[row : row + 1]._objects()))

    def elements(self) -> Iterator[Element]:
        """The elements as objects, without their inputs; attach and detach are not elements."""
        for item in self._objects():
            assert not isinstance(item, Attach | Detach), "a batch of one input has no attach or detach"
            yield item

    def tagged(self) -> Iterator[Tagged]:
        """The elements as objects with the inputs that sent them."""
        assert self.input is not None, "elements of a single input are not tagged"
        for code, item in zip(self.input.tolist(), self._objects(), strict=True):
            yield Tagged(self.inputs[code], item)

    def _objects(self) -> Iterator[Element | Control]:
        rows = self.payload.to_pylist() if self.payload.num_columns else [{}] * len(self)
        columns = zip(
            self.kind.tolist(),
            self.start.tolist(),
            self.end.tolist(),
            self.old_end.tolist(),
            rows,
            strict=True,
        )
        for kind, start, end, old_end, row in columns:
            payload = {name: value for name, value in row.items() if value is not None}
            match kind:
                case Kind.INSERT:
                    yield Insert(payload, start, end)
                case Kind.ADJUST:
                    yield Adjust(payload, start, old_end, end)
                case Kind.STABLE:
                    yield Stable(start)
                case Kind.ATTACH:
                    yield Attach(start)
                case _:
                    yield Detach()

    @classmethod
    def of(cls, items: Iterable[Element | Tagged], *, schema: pa.Schema | None = None) -> "Batch":
        """A batch of element objects, tagged or not; payload types are inferred where no schema is given.

        >>> batch = Batch.of([Insert({"sensor": "a", "level": 3}, 5, 9), Stable(5)])
        >>> batch.payload.schema.names, list(batch.elements())[1]
        (['sensor', 'level'], Stable(time=5))
        """
        rows = list(items)
        tagged = [row for row in rows if isinstance(row, Tagged)]
        if tagged and len(tagged) != len(rows):
            raise SchemaError("either every element of a batch is tagged with its input or none is")
        names = {name: code for code, name in enumerate(dict.fromkeys(row.input for row in tagged))}
        elements = [row.element if isinstance(row, Tagged) else row for row in rows]
        times = np.array([_times(element) for element in elements], np.int64).reshape(-1, 4)
        kind, start, end, old_end = np.ascontiguousarray(times.T)
        return cls(
            kind.astype(np.int8),
            start,
            end,
            old_end,
            _payload_rows(elements, schema),
            np.array([names[row.input] for row in tagged], np.int32) if tagged else None,
            tuple(names),
        )

    @classmethod
    def from_arrow(cls, data: Any) -> "Batch":
        """One batch from anything with the Arrow stream or array interface (see `model.arrow`)."""
        from anabranch.model.arrow import batches

        return concat(list(batches(data)))

    def to_arrow(self, *, unit: pa.DataType | None = None) -> pa.RecordBatch:
        """The batch as Arrow data; ``unit`` may be a timestamp type where ticks are microseconds."""
        from anabranch.model.arrow import record_batch

        return record_batch(self, unit=unit)

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]:
        """The batch through Arrow's array interface, for libraries that read it."""
        return self.to_arrow().__arrow_c_array__(requested_schema)


def concat(parts: Sequence[Batch]) -> Batch:
    """One batch after the other; payload columns that only some have are null in the others."""
    if len(parts) == 1:
        return parts[0]
    names = {name: code for code, name in enumerate(dict.fromkeys(n for part in parts for n in part.inputs))}
    tagged = [part for part in parts if part.input is not None]
    assert not tagged or len(tagged) == len(parts), "either every part is tagged or none is"
    codes = [np.array([names[n] for n in part.inputs], np.int32)[part.input] for part in tagged]
    tables = [pa.Table.from_batches([part.payload]) for part in parts]
    payload = pa.concat_tables(tables, promote_options="permissive")
    return Batch(
        np.concatenate([part.kind for part in parts]),
        np.concatenate([part.start for part in parts]),
        np.concatenate([part.end for part in parts]),
        np.concatenate([part.old_end for part in parts]),
        one_record_batch(payload) if payload.num_columns else rows_without_columns(sum(map(len, parts))),
        np.concatenate(codes) if tagged else None,
        tuple(names),
    )


def take_rows(rows: pa.RecordBatch, places: NDArray[Any]) -> pa.RecordBatch:
    """Some rows of a record batch; one without columns has rows all the same."""
    return rows.take(pa.array(places)) if rows.num_columns else rows_without_columns(len(places))


def rows_without_columns(count: int) -> pa.RecordBatch:
    """A record batch of rows that hold nothing."""
    return pa.RecordBatch.from_struct_array(pa.array([{}] * count, pa.struct([])))


def one_record_batch(table: pa.Table) -> pa.RecordBatch:
    """A table in one piece."""
    if not table.num_columns:
        return rows_without_columns(table.num_rows)
    columns = [column.combine_chunks() for column in table.columns]
    return pa.RecordBatch.from_arrays(columns, schema=table.schema)


def _times(element: Element | Control) -> tuple[int, int, int, int]:
    match element:
        case Insert(start=start, end=end):
            return Kind.INSERT, start, end, 0
        case Adjust(start=start, old_end=old_end, end=end):
            return Kind.ADJUST, start, end, old_end
        case Stable(time=time):
            return Kind.STABLE, time, 0, 0
        case Attach(guarantee=guarantee):
            return Kind.ATTACH, guarantee, 0, 0
        case Detach():
            return Kind.DETACH, 0, 0, 0


def _payload_rows(elements: list[Element | Control], schema: pa.Schema | None) -> pa.RecordBatch:
    rows = [dict(e.payload) if isinstance(e, Insert | Adjust) else {} for e in elements]
    names = list(dict.fromkeys(name for row in rows for name in row)) if schema is None else schema.names
    if not names:
        return rows_without_columns(len(rows))
    columns = []
    for name in names:
        values = [row.get(name) for row in rows]
        try:
            kind = None if schema is None else schema.field(name).type
            _check_one_sort(values)
            columns.append(pa.array(values, kind))
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError) as reason:
            error = SchemaError(f"no one Arrow type holds all of payload column {name!r}: {reason}")
            error.add_note("One column has one type in every element; give the odd ones another column.")
            raise error from None
    return pa.RecordBatch.from_arrays(columns, names=names)


def _check_one_sort(values: list[Any]) -> None:
    """Arrow would make 1.0 of True, bytes of text and timestamps of numbers where they meet in one column."""
    types = set(map(type, values)) - {type(None)}
    if len(types) <= 1 and types.isdisjoint((datetime, list, tuple, dict)):
        return
    there = [value for value in values if value is not None]
    sorts = {_sort(value): value for value in there}
    if len(sorts) > 1:
        one, other, *_ = sorts.values()
        raise pa.ArrowTypeError(f"{one!r} and {other!r} are values of different sorts")
    if list in sorts:
        _check_one_sort([item for value in there for item in value])
    elif dict in sorts:
        for name in dict.fromkeys(name for value in there for name in value):
            _check_one_sort([value.get(name) for value in there])


def _sort(value: Any) -> Any:
    match value:
        case bool():
            return bool
        case int() | float() | Decimal() | np.integer() | np.floating():
            return float
        case datetime():
            return datetime, value.tzinfo is None
        case list() | tuple() | np.ndarray():
            return list
        case Mapping():
            return dict
        case _:
            return type(value)
