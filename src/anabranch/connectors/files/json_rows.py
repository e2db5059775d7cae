"""JSON texts as rows of an Arrow schema: all at once where they fit, one by one where some do not.

A text is one object. A field that is no column is left out; a column without a field is null. Times (see
`time_texts`) and dates are ISO 8601, binary is base 64, a map is an object, a decimal is a number or text.
The same rules hold in both ways, so whether a text is a row does not depend on its neighbours. NaN and
Infinity are floats, as many writers spell them.
"""

import base64
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, time
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.json

from anabranch.connectors.files.time_texts import length_of, ticks_of, times_of
from anabranch.model.zones import holds_times

_SPACE = b" \t\r\n"
_DEEPEST = 100
"""Levels of nesting: Arrow's reader goes down by calling itself, and has no limit of its own."""


@dataclass(frozen=True, slots=True)
class JsonRows:
    """Rows, the number of the text that each comes of (None: one of each, in order), and what did not fit."""

    rows: pa.RecordBatch
    origin: list[int] | None
    refused: list[tuple[int, str]]
    """The number of a text and why it is no row."""


def json_rows(texts: Sequence[bytes], columns: pa.Schema) -> JsonRows:
    """A row of each text that is one; the others are refused."""
    plain = pa.schema([field for field in columns if not _is_strange(field.type)])
    found = _plain_rows(texts, plain)
    return found if len(plain) == len(columns) else _with_strange(found, texts, columns)


def _plain_rows(texts: Sequence[bytes], columns: pa.Schema) -> JsonRows:
    if texts:
        try:
            for text in texts:
                _check(text)
            rows = _parsed(b"\n".join(map(_on_one_line, texts)), columns)
            # A text that begins an object is one row at least, so as many rows as texts are one of each.
            if rows.num_rows == len(texts):
                return JsonRows(rows, None, [])
        except ValueError:
            pass
    rows, origin, refused = [], [], []
    for n, text in enumerate(texts):
        try:
            _check(text)
            row = _parsed(_on_one_line(text), columns)
            if row.num_rows != 1:
                raise ValueError(f"a row is one object, this is {row.num_rows}")
        except ValueError as reason:
            # What Arrow calls row 0 is this text alone.
            refused.append((n, _misfit(text, columns) or re.sub(r" in row \d+$", "", str(reason))))
            continue
        rows.append(row)
        origin.append(n)
    return JsonRows(_stacked(rows, columns), origin, refused)


def _check(text: bytes) -> None:
    """Raise where a text begins no object, or is nested too deeply for a reader that calls itself."""
    if text[:1] != b"{" and text.lstrip(_SPACE)[:1] != b"{":
        raise ValueError("a row is an object, this is none")
    if text.count(b"[") + text.count(b"{") > _DEEPEST and _depth(text) > _DEEPEST:
        raise ValueError(f"a value is nested at most {_DEEPEST} deep, this is deeper")


def _depth(text: bytes) -> int:
    """How deeply a text is nested, at least; brackets inside strings do not count."""
    deepest = depth = 0
    quoted = escaped = False
    for byte in text:
        if quoted:
            quoted, escaped = escaped or byte != 0x22, not escaped and byte == 0x5C
        elif byte == 0x22:
            quoted = True
        elif byte in b"[{":
            depth += 1
            deepest = max(deepest, depth)
        elif byte in b"]}":
            depth -= 1
    return deepest


def _parsed(data: bytes, columns: pa.Schema) -> pa.RecordBatch:
    """Rows of lines. Arrow does not look whether text is UTF-8, so that is looked at here."""
    data.decode()
    spelled = pa.schema([pa.field(field.name, _spelled(field.type)) for field in columns])
    options = pa.json.ParseOptions(explicit_schema=spelled, unexpected_field_behavior="ignore")
    reading = pa.json.ReadOptions(use_threads=False, block_size=max(len(data) + 1, 1 << 20))
    table = pa.json.read_json(pa.BufferReader(data), read_options=reading, parse_options=options)
    if not len(columns):
        return pa.RecordBatch.from_struct_array(pa.array([{}] * table.num_rows, pa.struct([])))
    pairs = zip(table.columns, columns, strict=True)
    meant = [_meant(column.combine_chunks(), field.type) for column, field in pairs]
    return pa.RecordBatch.from_arrays(meant, schema=columns)


def _meant(column: Any, dtype: pa.DataType) -> Any:
    """What was read for a type as values of that type."""
    if pa.types.is_timestamp(dtype):
        return times_of(column, dtype)
    if not holds_times(dtype):
        return column.cast(dtype)
    if pa.types.is_struct(dtype):
        fields = [_meant(column.field(n), field.type) for n, field in enumerate(dtype)]
        return pa.StructArray.from_arrays(fields, fields=list(dtype), mask=column.is_null())
    values = _meant(column.values, dtype.value_type)
    return pa.ListArray.from_arrays(column.offsets, values, type=dtype, mask=column.is_null())


def _misfit(text: bytes, columns: pa.Schema) -> str | None:
    """Which column has a value of another sort than it holds, where that is what is wrong with a text."""
    try:
        said = msgspec.json.decode(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(said, dict):
        return None
    found = (_unlike(said.get(field.name), field.type, field.name) for field in columns)
    return next((reason for reason in found if reason is not None), None)


def _unlike(value: Any, dtype: pa.DataType, path: str) -> str | None:
    wanted = next((words for is_kind, words in _WORDS if is_kind(dtype)), None)
    if value is None or wanted is None:
        return None
    sort, words = wanted
    if not isinstance(value, sort) or (isinstance(value, bool) and sort is not bool):
        shown = msgspec.json.encode(value).decode()
        brief = shown if len(shown) <= 60 else f"{shown[:57]}..."
        return f"column {path!r} is {words}, and this row has {brief}"
    inner: list[str | None] = []
    if pa.types.is_struct(dtype):
        inner = [_unlike(value.get(field.name), field.type, f"{path}.{field.name}") for field in dtype]
    elif pa.types.is_list(dtype):
        inner = [_unlike(one, dtype.value_type, f"{path}[]") for one in value]
    return next((reason for reason in inner if reason is not None), None)


_WORDS: list[tuple[Any, tuple[Any, str]]] = [
    (pa.types.is_timestamp, (str, "a timestamp, which is ISO 8601 text")),
    (pa.types.is_date, (str, "a date, which is ISO 8601 text")),
    (pa.types.is_string, (str, "text")),
    (pa.types.is_large_string, (str, "text")),
    (pa.types.is_boolean, (bool, "true or false")),
    (pa.types.is_integer, (int, "an integer")),
    (pa.types.is_struct, (dict, "an object")),
    (pa.types.is_list, (list, "a list")),
]


def _spelled(dtype: pa.DataType) -> pa.DataType:
    """The type in which Arrow reads what is written for another."""
    if pa.types.is_date(dtype) or pa.types.is_timestamp(dtype):
        return pa.string()
    if pa.types.is_struct(dtype):
        return pa.struct([pa.field(field.name, _spelled(field.type)) for field in dtype])
    if pa.types.is_list(dtype):
        return pa.list_(_spelled(dtype.value_type))
    return dtype


def _on_one_line(text: bytes) -> bytes:
    """The same value: inside a string of JSON a line feed is written as an escape."""
    return text.replace(b"\n", b" ") if b"\n" in text else text


def _stacked(rows: list[pa.RecordBatch], columns: pa.Schema) -> pa.RecordBatch:
    if len(rows) == 1:
        return rows[0]
    whole = pa.Table.from_batches(rows, columns).combine_chunks().to_batches()
    return whole[0] if whole else pa.RecordBatch.from_pylist([], columns)


def _is_strange(dtype: pa.DataType) -> bool:
    """Whether Arrow does not read a type from JSON."""
    if pa.types.is_map(dtype) or pa.types.is_duration(dtype) or pa.types.is_time(dtype):
        return True
    if _is_bytes(dtype):
        return True
    return any(_is_strange(dtype.field(n).type) for n in range(dtype.num_fields))


def _with_strange(found: JsonRows, texts: Sequence[bytes], columns: pa.Schema) -> JsonRows:
    """The same rows with columns that Arrow does not read."""
    strange = pa.schema([field for field in columns if _is_strange(field.type)])
    origin = list(range(len(texts))) if found.origin is None else found.origin
    kept, rows, refused = [], [], list(found.refused)
    for place, n in enumerate(origin):
        try:
            said = msgspec.json.decode(texts[n])
            values = {field.name: _value(said.get(field.name), field.type) for field in strange}
            rows.append(pa.RecordBatch.from_pylist([values], strange))
            kept.append(place)
        except (ValueError, TypeError, OverflowError) as reason:
            refused.append((n, str(reason)))
    whole, rest = _stacked(rows, strange), found.rows.take(pa.array(kept, pa.int64()))
    named = dict(zip(rest.schema.names + whole.schema.names, rest.columns + whole.columns, strict=True))
    batch = pa.RecordBatch.from_arrays([named[name] for name in columns.names], schema=columns)
    return JsonRows(batch, [origin[place] for place in kept], sorted(refused))


def _value(said: Any, dtype: pa.DataType) -> Any:
    """What a value of JSON stands for in a type."""
    if said is None:
        return None
    if pa.types.is_nested(dtype) and not isinstance(said, list if pa.types.is_list(dtype) else dict):
        wanted = "a list" if pa.types.is_list(dtype) else "an object"
        raise ValueError(f"a value of type {dtype} is {wanted}, this is {said!r}")
    if pa.types.is_map(dtype):
        return [(_key(key, dtype.key_type), _value(value, dtype.item_type)) for key, value in said.items()]
    if pa.types.is_list(dtype):
        return [_value(one, dtype.value_type) for one in said]
    if pa.types.is_struct(dtype):
        return {field.name: _value(said.get(field.name), field.type) for field in dtype}
    if _is_bytes(dtype):
        if not isinstance(said, str):
            raise ValueError(f"a value of type {dtype} is text in base 64, this is {said!r}")
        return base64.b64decode(said, validate=True)
    read = next((read for is_kind, read in _SPELLED if is_kind(dtype)), None)
    if read is None:
        return said
    if not isinstance(said, str):
        raise ValueError(f"a value of type {dtype} is text, this is {said!r}")
    return read(said, dtype)


def as_written(column: Any, dtype: pa.DataType) -> Any:
    """A column of lines as the type that it was written from."""
    return pa.array([_value(said, dtype) for said in column.to_pylist()], dtype)


def differs_in_lines(dtype: pa.DataType) -> bool:
    """There are values in a type, however deep, that lines hold as another text: times and bytes."""
    if any(is_kind(dtype) for is_kind, _ in _SPELLED) or _is_bytes(dtype):
        return True
    return any(differs_in_lines(dtype.field(n).type) for n in range(dtype.num_fields))


def _is_bytes(dtype: pa.DataType) -> bool:
    """Lines hold values of a type in base 64."""
    return bool(
        pa.types.is_binary(dtype) or pa.types.is_large_binary(dtype) or pa.types.is_fixed_size_binary(dtype)
    )


def _key(said: str, dtype: pa.DataType) -> Any:
    """What the name of a field stands for as the key of a map."""
    return int(said) if pa.types.is_integer(dtype) else _value(said, dtype)


_SPELLED: list[tuple[Any, Any]] = [
    (pa.types.is_timestamp, ticks_of),
    (pa.types.is_date, lambda text, _: date.fromisoformat(text)),
    (pa.types.is_time, lambda text, _: time.fromisoformat(text)),
    (pa.types.is_duration, length_of),
]
