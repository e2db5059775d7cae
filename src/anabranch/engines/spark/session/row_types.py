"""Which types Spark and Python have for columns of each other, and which can be merged."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

from anabranch.model.schema import SchemaError

PRECISION = 38
"""Digits that a decimal of Spark's has at most."""

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

Held = TypeVar("Held", pa.Schema, "StructType")
"""Columns in types of Arrow's or of Spark's."""


def in_spark_form(columns: pa.Schema, zone: str) -> pa.Schema:
    """The columns in the types in which Spark hands them to Python, known without Spark.

    ``zone`` is that of the session, in which Spark shows instants. A type that Spark has not stays as it is.

    >>> in_spark_form(pa.schema([("at", pa.timestamp("ns", "UTC")), ("n", pa.int8())]), "Asia/Tokyo").types
    [TimestampType(timestamp[us, tz=Asia/Tokyo]), DataType(int8)]
    """
    return pa.schema([pa.field(one.name, _spark_form(one.type, zone), one.nullable) for one in columns])


def _spark_form(dtype: pa.DataType, zone: str) -> pa.DataType:
    types = pa.types
    if types.is_dictionary(dtype):
        return _spark_form(dtype.value_type, zone)
    if types.is_large_string(dtype):
        return pa.string()
    if types.is_large_binary(dtype) or types.is_fixed_size_binary(dtype):
        return pa.binary()
    if types.is_timestamp(dtype):
        return pa.timestamp("us", None if dtype.tz is None else zone)
    if types.is_time64(dtype):
        return pa.time64("ns")
    if types.is_duration(dtype):
        return pa.duration("us")
    if types.is_decimal(dtype) and dtype.precision <= PRECISION:
        return pa.decimal128(dtype.precision, dtype.scale)
    if types.is_list(dtype) or types.is_large_list(dtype) or types.is_fixed_size_list(dtype):
        return list_of(_spark_form(dtype.value_type, zone), dtype.value_field.nullable)
    if types.is_map(dtype):
        key, value = _spark_form(dtype.key_type, zone), _spark_form(dtype.item_type, zone)
        return map_of(key, value, dtype.item_field.nullable)
    if types.is_struct(dtype):
        return pa.struct(list(in_spark_form(pa.schema(list(dtype)), zone)))
    return dtype


def list_of(values: pa.DataType, nullable: bool = True) -> pa.DataType:
    """A list of such values as Spark hands it to Python."""
    return pa.list_(pa.field("element", values, nullable))


def map_of(keys: pa.DataType, values: pa.DataType, nullable: bool = True) -> pa.DataType:
    """A map as Spark hands it to Python."""
    return pa.map_(pa.field("key", keys, False), pa.field("value", values, nullable))


def with_columns(columns: Held, added: Mapping[str, pa.DataType]) -> Held:
    """The columns and those that are added to them, in types of Arrow's or of Spark's as they are."""
    if isinstance(columns, pa.Schema):
        return pa.schema([*columns, *added.items()])
    from pyspark.sql.types import StructType

    struct = StructType(list(columns.fields))
    for name, dtype in added.items():
        struct = struct.add(name, spark_type(dtype, f"column {name!r}"))
    return struct


def arrow_schema(schema: "StructType", zone: str | None) -> pa.Schema:
    """The columns as Python is given them; a column that it is not given is named."""
    from pyspark.errors import PySparkTypeError
    from pyspark.sql.pandas.types import to_arrow_schema
    from pyspark.sql.types import StructType

    fields = []
    for field in schema:
        try:
            fields += list(to_arrow_schema(StructType([field]), timezone=zone))
        except (PySparkTypeError, ValueError):
            held = field.dataType.simpleString()
            error = SchemaError(f"column {field.name!r} holds {held}, which Spark does not hand to Python")
            error.add_note("Cast it, to text for example, or leave the column out of the rows.")
            raise error from None
    return pa.schema(fields)


def in_types(schema: "StructType", instants: Mapping[str, pa.DataType]) -> "StructType":
    """The columns, some of them in the types of Spark's for types of Arrow's."""
    from pyspark.sql.types import StructField, StructType

    if not instants:
        return schema
    types = {name: spark_type(dtype, f"column {name!r}") for name, dtype in instants.items()}
    return StructType(
        [
            StructField(one.name, types.get(one.name, one.dataType), one.nullable, one.metadata)
            for one in schema
        ]
    )


def check_forms(schema: "StructType", names: Iterable[str]) -> None:
    """Raise where a column that tells events apart can hold one value in several forms."""
    for name in names:
        if _has_variant(schema[name].dataType):
            held = schema[name].dataType.simpleString()
            error = SchemaError(
                f"what tells events apart has one form for each value, column {name!r} holds {held}, "
                "which has several; copies of an event would be taken for other events"
            )
            error.add_note(
                "Make text of it with to_json(), or name the columns that tell events apart in identity."
            )
            raise error


def _has_variant(kind: "DataType") -> bool:
    from pyspark.sql import types as t

    match kind:
        case t.VariantType():
            return True
        case t.ArrayType():
            return _has_variant(kind.elementType)
        case t.MapType():
            return _has_variant(kind.keyType) or _has_variant(kind.valueType)
        case t.StructType():
            return any(_has_variant(field.dataType) for field in kind)
    return False


def spark_type(dtype: pa.DataType, what: str) -> "DataType":
    """The type of Spark's for one of Arrow's; ``what`` has it, for people."""
    from pyspark.errors import PySparkException
    from pyspark.sql.pandas.types import from_arrow_type

    try:
        return from_arrow_type(dtype)
    except PySparkException:
        error = SchemaError(f"{what} is {dtype}, a type that Spark has not")
        error.add_note("Give it another type (int64 or decimal(20, 0) hold what uint64 does), or run")
        error.add_note("the plan without Spark: anabranch.run(…), or --engine embedded.")
        raise error from None
