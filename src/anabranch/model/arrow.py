"""A batch as Arrow data, and back, without a copy where none is needed.

The record batch has the columns

| column | type | |
|---|---|---|
| ``kind`` | dictionary or string | insert, adjust, stable; with several inputs attach, detach |
| ``start`` | int64, timestamp or date | of the event; of a stable its time, of an attach its guarantee |
| ``end`` | int64, timestamp or date | of the event |
| ``old_end`` | int64, timestamp or date | of an adjust |
| ``input`` | dictionary or string | in recordings of several inputs |

and then either the payload columns, or, where one of those has a name from this table or is called
``payload``, all of them in one struct column ``payload``. A time that is null is infinite (for an attach:
from the beginning); the greatest int64 is read as infinite too. Timestamps are microsecond ticks, dates
are day ticks, and where one time column holds them all do. No two columns have one name.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anabranch.model.batch import KINDS, Batch, Kind
from anabranch.model.clock import Clock
from anabranch.model.clock_columns import clock_of, ticks_of, times
from anabranch.model.rows import rows_without_columns
from anabranch.model.schema import SchemaError, check_field_names, conformed
from anabranch.model.time import BEGINNING, FOREVER

_INSERT, _ADJUST, _STABLE, _ATTACH, _DETACH = map(int, Kind)
_KINDS = pa.array(KINDS)
_NO_NULLS = np.zeros(0, np.bool_)
_TEXTS = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
RESERVED = ("kind", "start", "end", "old_end", "input", "payload")


def batches(data: Any) -> Iterator[Batch]:
    """The batches of anything with the Arrow stream or array interface, one at a time."""
    try:
        yield from _batches(data)
    except SchemaError as error:
        error.add_note("A batch has the columns kind, start, end, old_end and those of the payload.")
        raise


def _batches(data: Any) -> Iterator[Batch]:
    if isinstance(data, pa.RecordBatch):
        yield _from_record_batch(data)
        return
    if hasattr(data, "__arrow_c_stream__"):
        reader = pa.RecordBatchReader.from_stream(data)
    elif hasattr(data, "__arrow_c_array__"):
        rows = pa.record_batch(data)
        reader = pa.RecordBatchReader.from_batches(rows.schema, [rows])
    else:
        raise SchemaError(f"a {type(data).__name__} is not Arrow data: it has no __arrow_c_stream__")
    empty = True
    for part in reader:
        if part.num_rows:  # Arrow 26 cannot concatenate every empty part that it reads from a C stream
            empty = False
            yield _from_record_batch(part)
    if empty:
        yield _from_record_batch(pa.RecordBatch.from_pylist([], schema=reader.schema))


def record_batch(batch: Batch, *, unit: pa.DataType | None = None, nested: bool = False) -> pa.RecordBatch:
    """The batch as Arrow data; where ``nested``, with its payload in one struct column whatever the names."""
    kind, start = batch.kind, batch.start
    no_start, no_end, no_old_end = _NO_NULLS, None, None
    if kind.any():
        no_start = (
            ((kind == _STABLE) & (start == FOREVER))
            | ((kind == _ATTACH) & (start == BEGINNING))
            | (kind == _DETACH)
        )
        no_end = (kind > _ADJUST) | (batch.end == FOREVER)
        no_old_end = (kind != _ADJUST) | (batch.old_end == FOREVER)
    columns = {
        "kind": pa.DictionaryArray.from_arrays(pa.array(kind), _KINDS),
        "start": times(start, no_start, unit),
        "end": times(batch.end, no_end, unit),
        "old_end": _nulls(len(kind), unit) if no_old_end is None else times(batch.old_end, no_old_end, unit),
    }
    if batch.input is not None:
        columns["input"] = pa.DictionaryArray.from_arrays(
            pa.array(batch.input), pa.array(batch.inputs, pa.string())
        )
    frame = pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))
    return _with_payload(frame, batch.payload, nested or is_nested(batch.payload.schema))


def _nulls(count: int, unit: pa.DataType | None) -> Any:
    """What `times` gives where all are null."""
    return pa.nulls(count, pa.int64() if unit is None or pa.types.is_integer(unit) else unit)


def is_nested(payload: pa.Schema) -> bool:
    """A payload column has the name of another column, so all of them are in one struct column."""
    return not set(payload.names).isdisjoint(RESERVED)


def laid_out(rows: pa.RecordBatch, payload: pa.Schema) -> pa.RecordBatch:
    """Nested rows in the one layout of a stream whose payloads have this schema."""
    frame, own = rows.drop_columns("payload"), pa.RecordBatch.from_struct_array(rows.column("payload"))
    return _with_payload(frame, conformed(own, payload), is_nested(payload)) if payload.names else frame


def _with_payload(frame: pa.RecordBatch, payload: pa.RecordBatch, nested: bool) -> pa.RecordBatch:
    if nested:
        return frame.append_column("payload", payload.to_struct_array())
    columns, names = frame.columns + payload.columns, frame.schema.names + payload.schema.names
    return pa.RecordBatch.from_arrays(columns, names=names)


def _from_record_batch(rows: pa.RecordBatch) -> Batch:
    # What pandas calls the index of a frame when it exports it: row numbers, no part of what is meant.
    rows = rows.drop_columns([name for name in rows.schema.names if name.startswith("__index_level_")])
    names = rows.schema.names
    _check_names(names, "columns")
    for name in ("kind", "start", "end"):
        if name not in names:
            way = (
                ""
                if name != "kind"
                else ": plain rows are read by ab.source('rows', ab.columns(rows), start='…')"
            )
            error = SchemaError(
                f"column {name!r} is missing; the columns are {', '.join(names) or 'none'}{way}"
            )
            if way:
                error.add_note("A row of a stream of elements says what it is: insert, adjust or stable.")
                error.add_note("Run the plan over plain rows: ab.run(source, {'rows': rows}).")
            raise error
    kind = _kinds(rows.column("kind"))
    if "input" not in names:
        _check_no_controls(kind)
    codes, inputs = _inputs(rows.column("input")) if "input" in names else (None, ())
    start, end, old_end = _starts(rows, kind), _ticks(rows, "end", missing=FOREVER), _old_ends(rows, kind)
    _check_one_clock(rows)
    return Batch(kind, start, end, old_end, _payload_columns(rows), codes, inputs)


def _check_names(names: list[str], what: str) -> None:
    if len(set(names)) < len(names):
        twice = ", ".join(repr(name) for name in dict.fromkeys(names) if names.count(name) > 1)
        error = SchemaError(f"two {what} are called {twice}")
        error.add_note("A name stands for one column; rename the others.")
        raise error


_STAMPS = (Clock.MOMENTS, Clock.LOCAL)


def _check_one_clock(rows: pa.RecordBatch) -> None:
    """Columns that hold only nulls say nothing about the clock."""
    clocks: dict[str, tuple[str, pa.DataType]] = {}
    for name in ("start", "end", "old_end"):
        if name in rows.schema.names:
            column = rows.column(name)
            if column.null_count < len(column):
                clock = clock_of(column.type, name)
                clocks.setdefault("times" if clock in _STAMPS else clock.value, (name, column.type))
    if len(clocks) > 1:
        (name, kind), (other, another), *_ = clocks.values()
        error = SchemaError(f"column {name!r} holds {kind} and column {other!r} holds {another}")
        error.add_note(
            "The times of a stream are on one clock; give all of them timestamps, dates or int64 ticks."
        )
        raise error


def _check_no_controls(kind: NDArray[np.int8]) -> None:
    controls = np.flatnonzero(kind >= Kind.ATTACH)
    if len(controls):
        row = int(controls[0])
        raise SchemaError(
            f"column 'input' is missing, and row {row + 1} is {_a(kind[row])}, which names its input"
        )


def _a(kind: int) -> str:
    return f"{'an' if KINDS[kind][0] in 'aei' else 'a'} {KINDS[kind]}"


def _kinds(column: Any) -> NDArray[np.int8]:
    codes, names = _names(column, "kind")
    unknown = [code for code, name in enumerate(names) if name not in KINDS]
    wrong = np.flatnonzero(np.isin(codes, unknown))
    if len(wrong):
        row = int(wrong[0])
        raise SchemaError(f"row {row + 1}: kind is one of {', '.join(KINDS)}, not {names[codes[row]]!r}")
    kinds = [KINDS.index(name) if name in KINDS else 0 for name in names]
    return np.array(kinds or [0], np.int8)[codes]


def _old_ends(rows: pa.RecordBatch, kind: NDArray[np.int8]) -> NDArray[np.int64]:
    """Null is infinite; without adjusts the column may be missing."""
    if "old_end" in rows.schema.names:
        return _ticks(rows, "old_end", missing=FOREVER)
    adjusts = np.flatnonzero(kind == Kind.ADJUST)
    if len(adjusts):
        raise SchemaError(f"column 'old_end' is missing, and row {adjusts[0] + 1} is an adjust")
    return np.zeros(rows.num_rows, np.int64)


def _starts(rows: pa.RecordBatch, kind: NDArray[np.int8]) -> NDArray[np.int64]:
    """Null is infinite in a stable, the beginning in an attach, and wrong in an insert or adjust."""
    column = rows.column("start")
    if not column.null_count:
        return _ticks(rows, "start", missing=FOREVER)
    absent = column.is_null().to_numpy(zero_copy_only=False)
    wrong = np.flatnonzero(absent & (kind <= Kind.ADJUST))
    if len(wrong):
        raise SchemaError(f"row {wrong[0] + 1}: {_a(kind[wrong[0]])} has a start, this one is null")
    return np.where(absent & (kind >= Kind.ATTACH), BEGINNING, _ticks(rows, "start", missing=FOREVER))


def _ticks(rows: pa.RecordBatch, name: str, *, missing: int) -> NDArray[np.int64]:
    column = rows.column(name)
    clock_of(column.type, name)
    try:
        column = ticks_of(column)
    except pa.ArrowInvalid as reason:
        if not pa.types.is_timestamp(column.type):
            raise SchemaError(f"column {name!r} holds int64 ticks: {reason}") from None
        unit = column.type.unit
        error = SchemaError(f"column {name!r} has timestamps in {unit} that no microsecond tick is")
        error.add_note(f"Cast it to int64 to use {unit} as ticks.")
        raise error from None
    if column.null_count:
        column = column.fill_null(missing)
    return np.asarray(column.to_numpy(zero_copy_only=False), np.int64)


def _inputs(column: Any) -> tuple[NDArray[np.int32], tuple[str, ...]]:
    codes, names = _names(column, "input")
    places = {name: place for place, name in enumerate(dict.fromkeys(names))}
    return np.array([places[name] for name in names] or [0], np.int32)[codes], tuple(places)


def _names(column: Any, what: str) -> tuple[NDArray[np.int64], list[str]]:
    """A column of text, encoded as a dictionary or not, as codes and what they stand for."""
    is_encoded = pa.types.is_dictionary(column.type)
    value_type = column.type.value_type if is_encoded else column.type
    if not any(is_text(value_type) for is_text in _TEXTS):
        raise SchemaError(f"column {what!r} holds text or a dictionary of text, not {column.type}")
    absent = np.flatnonzero(~column.is_valid().to_numpy(zero_copy_only=False))
    if len(absent):
        raise SchemaError(
            f"row {absent[0] + 1}: every element has a value in column {what!r}, this one is null"
        )
    encoded = column if is_encoded else column.dictionary_encode()
    return encoded.indices.to_numpy(zero_copy_only=False), encoded.dictionary.to_pylist()


def _payload_columns(rows: pa.RecordBatch) -> pa.RecordBatch:
    names = [name for name in rows.schema.names if name not in RESERVED[:-1]]
    if names == ["payload"] and pa.types.is_struct(rows.column("payload").type):
        nested = rows.column("payload")
        if not nested.type.num_fields:
            return rows_without_columns(rows.num_rows)
        _check_names([field.name for field in nested.type], "payload columns")
        return _without_views(nested.flatten(), list(nested.type))
    if not names:
        return rows_without_columns(rows.num_rows)
    rows = rows.select(names)
    return _without_views(rows.columns, list(rows.schema))


def _without_views(columns: list[Any], fields: list[Any]) -> pa.RecordBatch:
    """The columns with views of text and bytes made plain: Arrow 26 does not take rows of views."""
    for field in fields:
        check_field_names(field.type, f"payload column {field.name!r}")
    kinds = [plain_type(field.type) for field in fields]
    plain = [c if kind == c.type else c.cast(kind) for c, kind in zip(columns, kinds, strict=True)]
    schema = pa.schema([field.with_type(kind) for field, kind in zip(fields, kinds, strict=True)])
    return pa.RecordBatch.from_arrays(plain, schema=schema)


def plain_type(dtype: pa.DataType) -> pa.DataType:
    """The type of the same values without views, however deep."""
    if pa.types.is_string_view(dtype):
        return pa.large_string()
    if pa.types.is_binary_view(dtype):
        return pa.large_binary()
    if pa.types.is_struct(dtype):
        return pa.struct([field.with_type(plain_type(field.type)) for field in dtype])
    if pa.types.is_map(dtype):
        return pa.map_(plain_type(dtype.key_type), plain_type(dtype.item_type))
    if pa.types.is_fixed_size_list(dtype):
        return pa.list_(plain_type(dtype.value_type), dtype.list_size)
    if pa.types.is_list(dtype):
        return pa.list_(plain_type(dtype.value_type))
    return pa.large_list(plain_type(dtype.value_type)) if pa.types.is_large_list(dtype) else dtype
