"""The levels of a query, functions from frames to frames."""

from typing import TYPE_CHECKING, Any

from anabranch.engines.spark.assignment import Assignment
from anabranch.engines.spark.parcel_rows import parcel_columns
from anabranch.engines.spark.transport.level_rows import level_columns
from anabranch.engines.spark.transport.unpacking import Unpacking

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

OBSERVED = "anabranch"
"""The name under which Spark's progress carries what the shards say."""


def level_parcels(parcels: "DataFrame", level: int) -> "DataFrame":
    """Parcels of a source for a level, as rows that say so."""
    from pyspark.sql import functions as f
    from pyspark.sql.types import IntegerType, StringType

    number, nothing = f.lit(level).cast(IntegerType()), f.lit(None).cast(StringType())
    columns: list[Any] = [number.alias("level"), *parcel_columns().names, nothing.alias("status")]
    return parcels.to(parcel_columns()).select(*columns).to(level_columns())


def run_level(
    parcels: "DataFrame",
    assignment: Assignment,
    ids: tuple[int, ...],
    name: str,
    unpacking: Unpacking | None,
    schema: "StructType | None",
    *,
    several: bool = False,
    always: bool = False,
) -> "DataFrame":
    """What the shards of a level say: rows for later levels, or those that come out of the query.

    What they say of themselves is observed under a name. ``several``: there are several levels.
    """
    from pyspark.sql import functions as f
    from pyspark.sql.types import StringType, StructType

    from anabranch.engines.spark.processor import ShardProcessor

    if unpacking is None or schema is None:
        status, columns, out = "status", level_columns(), level_columns()
    else:
        status, out = unpacking.status, schema
        columns = StructType([*schema.fields]).add(status, StringType())
    known = level_columns() if several else parcel_columns()
    said = (
        parcels.to(known)
        .groupBy("shard")
        .transformWithStateInPandas(
            statefulProcessor=ShardProcessor(assignment, ids, name, unpacking, always=always),
            outputStructType=columns,
            outputMode="Append",
            timeMode="None",
        )
    )
    told = said.observe(name, f.collect_list(status).alias("shards")).where(f.col(status).isNull())
    return told.to(out) if unpacking is None else told.drop(status).to(out)
