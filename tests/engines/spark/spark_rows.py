"""Random rows of every type that Spark hands to Python, under names that Python does not like."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa

from anabranch.model.rows import rows_without_columns

ODD_NAMES = ("my col", "_x", "class", "a.b", "kind", "é", "", "None", "1", "payload", "x`y", "Start")
FLAT = (
    pa.bool_(),
    pa.int8(),
    pa.int16(),
    pa.int32(),
    pa.int64(),
    pa.float32(),
    pa.float64(),
    pa.decimal128(10, 2),
    pa.decimal128(38, 18),
    pa.string(),
    pa.large_string(),
    pa.binary(),
    pa.date32(),
    pa.timestamp("us", "UTC"),
    pa.timestamp("us", "Europe/Berlin"),
    pa.timestamp("us"),
    pa.duration("us"),
)


def random_type(random: Random, depth: int = 2) -> pa.DataType:
    """One of the types of Spark's columns, nested at most so deep; parts that may not be null included."""
    if not depth or random.random() < 0.6:
        return random.choice(FLAT)
    inner = random_type(random, depth - 1)
    match random.randrange(3):
        case 0:
            return pa.list_(pa.field("element", inner, nullable=random.random() < 0.7))
        case 1:
            names = random.sample(ODD_NAMES, random.randint(1, 3))
            return pa.struct([pa.field(name, random_type(random, depth - 1)) for name in names])
        case _:
            return pa.map_(pa.string(), pa.field("value", inner, nullable=random.random() < 0.7))


def random_value(random: Random, dtype: pa.DataType, *, nullable: bool = True) -> Any:
    """A value of a type, mostly one that others have too."""
    types = pa.types
    if nullable and random.random() < 0.15:
        return None
    number = random.choice((0, 1, -1, 2, random.randint(-100, 100)))
    if types.is_boolean(dtype):
        return number > 0
    if types.is_integer(dtype) or types.is_floating(dtype):
        return number if types.is_integer(dtype) else random.choice((number, number + 0.5))
    if types.is_decimal(dtype):
        return Decimal(number).scaleb(-2)
    if types.is_string(dtype) or types.is_large_string(dtype):
        return random.choice(("", "a", "b", "é\n", str(number)))
    if types.is_binary(dtype):
        return bytes([number % 256]) * random.randint(0, 2)
    if types.is_date(dtype):
        return date(2026, 1, 1) + timedelta(days=number)
    if types.is_timestamp(dtype):
        moment = datetime(2026, 3, 29, 1, 30, tzinfo=UTC) + timedelta(minutes=number, microseconds=1)
        return moment if dtype.tz else moment.replace(tzinfo=None)
    if types.is_duration(dtype):
        return timedelta(microseconds=number)
    if types.is_map(dtype):
        items = {
            random.choice("abc"): random_value(random, dtype.item_type, nullable=dtype.item_field.nullable)
            for _ in range(random.randint(0, 2))
        }
        return list(items.items())
    if types.is_list(dtype):
        field = dtype.value_field
        return [
            random_value(random, field.type, nullable=field.nullable) for _ in range(random.randint(0, 3))
        ]
    return {field.name: random_value(random, field.type) for field in dtype}


def random_rows(random: Random, count: int, *, columns: int | None = None) -> pa.RecordBatch:
    """So many rows of a few random columns; no columns is a possibility."""
    width = random.randint(0, 4) if columns is None else columns
    if not width:
        return rows_without_columns(count)
    schema = pa.schema([pa.field(name, random_type(random)) for name in random.sample(ODD_NAMES, width)])
    arrays = [pa.array([random_value(random, f.type) for _ in range(count)], f.type) for f in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def same_rows(one: pa.RecordBatch, other: pa.RecordBatch) -> bool:
    """Equal columns, names, types and values; a NaN is itself."""
    return (
        one.schema.equals(other.schema, check_metadata=True)
        and one.num_rows == other.num_rows
        and str(one.to_pylist()) == str(other.to_pylist())
    )
