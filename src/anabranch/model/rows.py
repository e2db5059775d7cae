"""Payload rows as Arrow record batches."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anabranch.model.elements import Payload
from anabranch.model.exact import exact_column
from anabranch.model.schema import SchemaError, columns_of, conformed
from anabranch.model.zones import zoned_values


def take_rows(rows: pa.RecordBatch, places: NDArray[Any]) -> pa.RecordBatch:
    """Some rows of a record batch; one without columns has rows all the same."""
    return rows.take(pa.array(places)) if rows.num_columns else rows_without_columns(len(places))


_LONG = 32
_NOTHING = pa.array([{}] * 65_536, pa.struct([]))
"""Rows without columns, of which parts are given out: to make one of so many takes 2 ms."""


def rows_in_runs(rows: pa.RecordBatch, places: NDArray[np.int64]) -> pa.RecordBatch:
    """Rows that mostly stand together: one run of them is a slice, a few long ones are copied whole."""
    if len(places) == 1:
        return rows if rows.num_rows == 1 else rows.slice(int(places[0]), 1)
    cuts = np.flatnonzero(np.diff(places) != 1) + 1
    if _LONG * len(cuts) > len(places):
        return take_rows(rows, places)
    if not len(places):
        return rows[:0]
    if not len(cuts):
        return rows.slice(int(places[0]), len(places))
    bounds = zip([0, *cuts.tolist()], [*cuts.tolist(), len(places)], strict=True)
    return stacked([rows.slice(int(places[begin]), end - begin) for begin, end in bounds])


def rows_without_columns(count: int) -> pa.RecordBatch:
    """A record batch of rows that hold nothing."""
    if count <= len(_NOTHING):
        return pa.RecordBatch.from_struct_array(_NOTHING[:count])
    return pa.RecordBatch.from_struct_array(pa.array([{}] * count, pa.struct([])))


def nulls(count: int, schema: pa.Schema) -> pa.RecordBatch:
    """Rows of a schema in which every value is null."""
    if not schema.names:
        return rows_without_columns(count)
    return pa.RecordBatch.from_arrays([pa.nulls(count, kind) for kind in schema.types], schema=schema)


def stacked(parts: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """Rows of several record batches as one, with the columns of all."""
    first = parts[0].schema if parts else pa.schema([])
    alike = all(part.schema.equals(first, check_metadata=True) for part in parts)
    schema = first if alike else columns_of(parts).schema
    if not schema.names:
        return rows_without_columns(sum(part.num_rows for part in parts))
    table = pa.Table.from_batches([conformed(part, schema) for part in parts])
    columns = [column.combine_chunks() for column in table.columns]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def rows_of(payloads: Sequence[Payload], schema: pa.Schema | None = None) -> pa.RecordBatch:
    """Payload objects as rows; types are inferred where no schema is given."""
    names = list(dict.fromkeys(name for row in payloads for name in row)) if schema is None else schema.names
    if not names:
        return rows_without_columns(len(payloads))
    columns = []
    for name in names:
        values = [row.get(name) for row in payloads]
        try:
            kind = None if schema is None else schema.field(name).type
            values = values if kind is None else list(zoned_values(values, kind))
            _check_one_sort(values)
            columns.append(pa.array(values) if kind is None else exact_column(values, kind))
        except UnicodeEncodeError as reason:
            raise _half_a_character(name, reason) from None
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError) as reason:
            error = SchemaError(f"no one Arrow type holds all of payload column {name!r}: {reason}")
            error.add_note("One column has one type in every element; give the odd ones another column.")
            raise error from None
    try:
        if schema is not None:
            return pa.RecordBatch.from_arrays(columns, schema=schema)
        return pa.RecordBatch.from_arrays(columns, names=names)
    except UnicodeEncodeError as reason:
        raise _half_a_character(reason.object, reason) from None


def _half_a_character(name: str, reason: UnicodeEncodeError) -> SchemaError:
    """Python's texts may hold halves of pairs of UTF-16; UTF-8 has no bytes for them."""
    shown = ascii(reason.object[reason.start : reason.end])
    error = SchemaError(f"text is UTF-8, and in payload column {name!a} {shown} is half of a character")
    error.add_note("Mend the text where it is read: text.encode('utf-16', 'surrogatepass').decode('utf-16');")
    error.add_note("where the other half is lost, text.encode('utf-8', 'replace').decode().")
    return error


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
