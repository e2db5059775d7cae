"""Rows as parcels: what is read is packed where it is, and shards are given it as rows of Spark's."""

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

import pyarrow as pa

from anabranch.engines.spark.order import TASK_ROWS
from anabranch.engines.spark.query.failure import errors_to_driver
from anabranch.engines.spark.transport import parcel
from anabranch.engines.spark.transport.packing import Packing
from anabranch.engines.spark.transport.slices import sliced
from anabranch.model.zones import cast
from anabranch.rows import refusal
from anabranch.rows.reading import Place, Read, read_rows
from anabranch.rows.refusal import Refusal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

PARCEL_SCHEMA = pa.schema(
    [
        ("shard", pa.int32()),
        ("body", pa.binary()),
        ("refused", pa.binary()),
        ("parcel", pa.int64()),
        ("slice", pa.int32()),
    ]
)


def parcel_columns() -> "StructType":
    """The columns of parcels as Spark knows them.

    Frames are told their columns, with ``to``, wherever Spark Connect would ask the server for them: while a
    pipeline is defined it must not be asked, nor be given types as text to parse.
    """
    from pyspark.sql.types import BinaryType, IntegerType, LongType, StructType

    columns = StructType().add("shard", IntegerType()).add("body", BinaryType()).add("refused", BinaryType())
    return columns.add("parcel", LongType()).add("slice", IntegerType())


def packed(
    rows: "DataFrame", packing: Packing, ids: tuple[int, ...], instants: Mapping[str, pa.DataType]
) -> "DataFrame":
    """Rows as parcels, on the executors that have them; local times in some columns are ``instants``."""
    types = dict(instants)

    def pack(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        task = context.partitionId() if context else 0
        own = (_with_instants(batch.rename_columns(names), types) for batch in batches)
        with errors_to_driver():
            yield from parcel_rows(_reads(own, packing, task), packing, ids)

    from pyspark.sql.types import StructField, StructType

    # mapInArrow looks columns up by name, and takes the dot in a name for a field of a struct.
    names = rows.columns
    plain = StructType([StructField(f"c{n}", field.dataType) for n, field in enumerate(rows.schema)])
    return rows.toDF(*plain.names).to(plain).mapInArrow(pack, parcel_columns())


def _with_instants(rows: pa.RecordBatch, instants: Mapping[str, pa.DataType]) -> pa.RecordBatch:
    for name, dtype in instants.items():
        place = rows.schema.get_field_index(name)
        rows = rows.set_column(place, name, cast(rows.column(place), dtype))
    return rows


def _reads(batches: Iterable[pa.RecordBatch], packing: Packing, task: int) -> Iterator[list[Read]]:
    rows = 0
    for batch in batches:
        yield [read_rows(packing.layout, batch, Place(f"task {task}", rows, task * TASK_ROWS + rows))]
        rows += batch.num_rows


def parcel_rows(
    groups: Iterable[list[Read]], packing: Packing, ids: tuple[int, ...]
) -> Iterator[pa.RecordBatch]:
    """What was read as rows of parcels; what was refused goes to the first shard.

    Where there is no parcel, each shard is called all the same: its state is then of every micro-batch.
    """
    refused: list[Refusal] = []

    def noted() -> Iterator[list[Read]]:
        for group in groups:
            for read in group:
                refused.extend(read.refused)
            yield group

    told = False
    for number, part in packing.parcels(noted(), refused):
        told = True
        yield _slices(ids[number], parcel.to_bytes(part))
    if refused:
        yield _row(ids[0], refusal.to_bytes(refused))
    if not told:
        yield from (_row(shard, None) for shard in ids)


def _row(shard: int, refused: bytes | None) -> pa.RecordBatch:
    values = [shard, None, refused, 0, 0]  # where a number is null, pandas makes floats of the others
    columns = [pa.array([value], field.type) for value, field in zip(values, PARCEL_SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=PARCEL_SCHEMA)


def _slices(shard: int, body: pa.Buffer) -> pa.RecordBatch:
    values, names, numbers = sliced(body)
    shards = pa.repeat(pa.scalar(shard, pa.int32()), len(values))
    columns = [shards, values, pa.nulls(len(values), pa.binary()), names, numbers]
    return pa.RecordBatch.from_arrays(columns, schema=PARCEL_SCHEMA)
