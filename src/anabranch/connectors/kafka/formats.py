"""What the values of records are: JSON, Avro or Arrow, as rows of an Arrow schema.

A value is one row; in Arrow it is a stream of record batches, and may be many. A value that is no row is
refused with the reason, and the others are used.
"""

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from anabranch.connectors.files.json_rows import json_rows
from anabranch.connectors.files.time_texts import ticks_of
from anabranch.connectors.files.values import Values
from anabranch.extras import check_installed
from anabranch.model.zones import cast, zoned_value

WIRE = b"\x00"
"""What a value begins with that names its schema by a registry's number, before the number in four bytes."""


@dataclass(frozen=True, slots=True)
class Json:
    """An object per value."""

    def read(self, values: Sequence[bytes | None], columns: pa.Schema) -> Values:
        """The rows that values stand for."""
        found = json_rows([value or b"" for value in values], columns)
        origin = range(len(values)) if found.origin is None else found.origin
        refused = [(n, _NULL if values[n] is None else reason) for n, reason in found.refused]
        return Values(found.rows, np.array(origin, np.int64), refused)


@dataclass(frozen=True, slots=True)
class Arrow:
    """A stream of record batches per value."""

    def read(self, values: Sequence[bytes | None], columns: pa.Schema) -> Values:
        """The rows that values stand for."""
        found, origin, refused = [], [], []
        for n, value in enumerate(values):
            try:
                rows = _arrow_rows(value, columns)
            except (ValueError, TypeError, OSError) as reason:
                refused.append((n, str(reason)))
                continue
            found.append(rows)
            origin.append(np.full(rows.num_rows, n, np.int64))
        rows = pa.Table.from_batches(found, columns).combine_chunks()
        batches = rows.to_batches() or [pa.RecordBatch.from_pylist([], columns)]
        return Values(batches[0], np.concatenate(origin or [np.zeros(0, np.int64)]), refused)


@dataclass(frozen=True, slots=True)
class Avro:
    """A record per value, as its schema writes it, after the number of the schema where there are several."""

    schema: str | None = None
    """The schema of all values, as JSON."""
    schemas: Mapping[int, str] = field(default_factory=dict)
    """The schemas by the numbers that a registry gave them; values then begin with such a number."""

    def __post_init__(self) -> None:
        if (self.schema is None) == (not self.schemas):
            error = ValueError("values in Avro have one schema, or several by their numbers in a registry")
            error.add_note("Give schema='{…}', or schemas={17: '{…}'} where values begin with a number.")
            raise error

    def read(self, values: Sequence[bytes | None], columns: pa.Schema) -> Values:
        """The rows that values stand for."""
        reading = _AvroReading(self)
        found, origin, refused = [], [], []
        for n, value in enumerate(values):
            try:
                record = reading.record(value)
                found.append(
                    {
                        field.name: zoned_value(record.get(field.name), field.type, ticks_of)
                        for field in columns
                    }
                )
                origin.append(n)
            except Exception as reason:  # fastavro raises anything where bytes are no record
                refused.append((n, f"no record of its schema: {type(reason).__name__}: {reason}"))
        try:
            return Values(pa.RecordBatch.from_pylist(found, columns), np.array(origin, np.int64), refused)
        except (pa.ArrowException, OverflowError, TypeError, ValueError):
            return _one_by_one(found, origin, refused, columns)


_NULL = "a record has a value, this one has none"


def _arrow_rows(value: bytes | None, columns: pa.Schema) -> pa.RecordBatch:
    if value is None:
        raise ValueError(_NULL)
    table = pa.ipc.open_stream(value).read_all()
    table.validate(full=True)
    missing = [name for name in columns.names if name not in table.column_names]
    if missing:
        raise ValueError(f"there is no column {missing[0]!r}")
    batches = table.select(columns.names).combine_chunks().to_batches()
    if not batches:
        return pa.RecordBatch.from_pylist([], columns)
    pairs = zip(batches[0].columns, columns, strict=True)
    return pa.RecordBatch.from_arrays([cast(column, field.type) for column, field in pairs], schema=columns)


def check_package() -> None:
    """Raise where what Avro is read through is not installed."""
    check_installed("fastavro", "fastavro", "kafka", "Avro is read through")


class _AvroReading:
    """The schemas of an `Avro`, parsed once."""

    def __init__(self, form: Avro) -> None:
        from fastavro import parse_schema

        self.form = form
        self.schema = None if form.schema is None else parse_schema(msgspec.json.decode(form.schema))
        self.schemas = {n: parse_schema(msgspec.json.decode(text)) for n, text in form.schemas.items()}

    def record(self, value: bytes | None) -> dict[str, Any]:
        from fastavro import schemaless_reader

        if value is None:
            raise ValueError(_NULL)
        schema: Any = self.schema
        begin = 0
        if self.schemas:
            number = int.from_bytes(value[1:5], "big")
            if value[:1] != WIRE or len(value) < 5:
                raise ValueError("it does not begin with the number of a schema")
            if number not in self.schemas:
                raise ValueError(f"schema {number} is none of those given")
            schema, begin = self.schemas[number], 5
        data = io.BytesIO(value)
        data.seek(begin)
        found = schemaless_reader(data, schema, None)
        if data.tell() != len(value):
            raise ValueError(f"it goes on after the record, at byte {data.tell()} of {len(value)}")
        if not isinstance(found, dict):
            raise ValueError("it is no record")
        return found


def _one_by_one(
    found: list[dict[str, Any]], origin: list[int], refused: list[tuple[int, str]], columns: pa.Schema
) -> Values:
    rows, numbers = [], []
    for record, n in zip(found, origin, strict=True):
        try:
            rows.append(pa.RecordBatch.from_pylist([record], columns))
            numbers.append(n)
        except (pa.ArrowException, OverflowError, TypeError, ValueError) as reason:
            refused.append((n, str(reason)))
    table = pa.Table.from_batches(rows, columns).combine_chunks()
    batches = table.to_batches() or [pa.RecordBatch.from_pylist([], columns)]
    return Values(batches[0], np.array(numbers, np.int64), sorted(refused))
