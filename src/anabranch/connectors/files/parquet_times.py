"""Times of 96 bits in Parquet, as Spark writes them: they name no zone because all of them are of UTC."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq


def parquet_schema(source: Any) -> pa.Schema:
    """The columns of a Parquet file, with times of 96 bits as instants in microseconds."""
    with pq.ParquetFile(source) as file:
        return instants_in(file, "us")


def instants_in(file: Any, unit: str = "ns") -> pa.Schema:
    """The columns of an open Parquet file, with times of 96 bits as instants; Arrow reads nanoseconds."""
    known = file.schema_arrow.remove_metadata()
    are_long = iter([file.schema.column(n).physical_type == "INT96" for n in range(len(file.schema))])
    return pa.schema([field.with_type(_marked(field.type, are_long, unit)) for field in known])


def with_instants(rows: pa.RecordBatch, columns: pa.Schema) -> pa.RecordBatch:
    """Rows as Arrow reads them in the columns that `instants_in` found, or in some of them."""
    kinds = dict(zip(columns.names, columns.types, strict=True))
    wanted = pa.schema([field.with_type(kinds[field.name]) for field in rows.schema])
    # Arrow's cast takes times without a zone for those of UTC, which these are.
    return rows if rows.schema.equals(wanted) else rows.cast(wanted)


def _marked(dtype: pa.DataType, are_long: Iterator[bool], unit: str) -> pa.DataType:
    """A type whose values are in the next columns of a Parquet file, with times of 96 bits as instants."""
    types = pa.types
    if types.is_struct(dtype):
        return pa.struct([field.with_type(_marked(field.type, are_long, unit)) for field in dtype])
    if types.is_map(dtype):
        key = dtype.key_field.with_type(_marked(dtype.key_type, are_long, unit))
        return pa.map_(key, dtype.item_field.with_type(_marked(dtype.item_type, are_long, unit)))
    if types.is_list(dtype) or types.is_large_list(dtype) or types.is_fixed_size_list(dtype):
        items = dtype.value_field.with_type(_marked(dtype.value_type, are_long, unit))
        if types.is_fixed_size_list(dtype):
            return pa.list_(items, dtype.list_size)
        return pa.large_list(items) if types.is_large_list(dtype) else pa.list_(items)
    return pa.timestamp(unit, "UTC") if next(are_long) else dtype
