"""What element rows denote, as a table of Spark's."""

from typing import TYPE_CHECKING

from anabranch.engines.spark.unpacking import REFUSED, TIMES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def table(rows: "DataFrame") -> "DataFrame":
    """The events that element rows denote, one row each: the payload, then start and end (null: infinite).

    An adjust takes one event with the old end away and adds one with the new end; an event that ends where it
    starts is none. The rows may be in any order, but all of them must be there: what `merge` wrote so far.
    """
    from pyspark.sql import functions as f

    if rows.isStreaming:
        error = ValueError("the events of a stream that goes on are not known, and this frame is streaming")
        error.add_note("Write it to a folder, then: table(spark.read.parquet(folder)).")
        raise error
    payload = [name for name in rows.columns if name not in ("kind", *TIMES, REFUSED)]
    added = f.struct(f.col("end").alias("end"), f.lit(1).alias("copies"))
    removed = f.struct(f.col("old_end").alias("end"), f.lit(-1).alias("copies"))
    steps = f.when(f.col("kind") == "adjust", f.array(added, removed)).otherwise(f.array(added))
    quoted = [f"`{name.replace('`', '``')}`" for name in payload]
    return (
        rows.where(f.col("kind").isin("insert", "adjust"))
        .select(*quoted, "start", f.explode(steps).alias("step"))
        .select(*quoted, "start", "step.end", "step.copies")
        .groupBy(*quoted, "start", "end")
        .agg(f.sum("copies").alias("copies"))
        .where((f.col("copies") > 0) & (f.col("end").isNull() | (f.col("end") > f.col("start"))))
        .select(*quoted, "start", "end", f.explode(f.sequence(f.lit(1), f.col("copies"))).alias("copy"))
        .drop("copy")
    )
