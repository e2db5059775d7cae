"""Rows between the levels of a query: slices of parcels, refusals, what shards say of themselves."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from anabranch.engines.spark.transport.slices import sliced

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

LEVEL_SCHEMA = pa.schema(
    [
        ("level", pa.int32()),
        ("shard", pa.int32()),
        ("body", pa.binary()),
        ("refused", pa.binary()),
        ("parcel", pa.int64()),
        ("slice", pa.int32()),
        ("status", pa.string()),
    ]
)


def level_columns() -> "StructType":
    """The columns as Spark knows them."""
    from pyspark.sql.types import BinaryType, IntegerType, LongType, StringType, StructType

    columns = StructType().add("level", IntegerType()).add("shard", IntegerType())
    columns = columns.add("body", BinaryType()).add("refused", BinaryType())
    return columns.add("parcel", LongType()).add("slice", IntegerType()).add("status", StringType())


def parcel_slices(level: int, shard: int, body: pa.Buffer) -> pa.RecordBatch:
    """A parcel for a shard of a level, in slices."""
    values, names, numbers = sliced(body)
    count = len(values)
    columns = [
        pa.repeat(pa.scalar(level, pa.int32()), count),
        pa.repeat(pa.scalar(shard, pa.int32()), count),
        values,
        pa.nulls(count, pa.binary()),
        names,
        numbers,
        pa.nulls(count, pa.string()),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=LEVEL_SCHEMA)


DECIDED = 1
"""The number of the parcel of rows that tell what was refused, where it is decided that it is told."""


def refused_row(level: int, shard: int, refused: bytes) -> pa.RecordBatch:
    """What was refused, for a shard of the last level to tell."""
    return _row(level, shard, refused, None, DECIDED)


def status_row(level: int, shard: int, status: str) -> pa.RecordBatch:
    """What a shard says of itself."""
    return _row(level, shard, None, status)


def calling_row(level: int, shard: int, before: int) -> pa.RecordBatch:
    """A row that calls a shard of the next level, as it is called wherever the shard before it is.

    ``before`` is the micro-batch whose state that one goes on from, -1 for none.
    """
    return _row(level, shard, None, None, before + _CALLS)


def called_by(row: Any) -> int | None:
    """What `calling_row` says; None for other rows, also for those by which a source calls a shard."""
    calls = row.body is None and row.refused is None and row.parcel
    return row.parcel - _CALLS if calls else None


_CALLS = 2
"""What is added to a number that is -1 or more, so that it is not 0, which is what a source says."""


def passed_on(rows: Sequence[Any]) -> pa.RecordBatch:
    """Rows for later levels, as they came."""
    return pa.RecordBatch.from_arrays(
        [pa.array([getattr(row, one.name, None) for row in rows], one.type) for one in LEVEL_SCHEMA],
        schema=LEVEL_SCHEMA,
    )


def _row(
    level: int, shard: int, refused: bytes | None, status: str | None, parcel: int = 0
) -> pa.RecordBatch:
    values = [level, shard, None, refused, parcel, 0, status]  # a null among numbers makes pandas make floats
    columns = [pa.array([value], one.type) for value, one in zip(values, LEVEL_SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=LEVEL_SCHEMA)
