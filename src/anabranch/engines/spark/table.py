"""What element rows denote, as a table of Spark's."""

from typing import TYPE_CHECKING

from anabranch.rows.element_columns import REFUSED, TIMES

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType, StructType

_BY_BYTES = "UTF8_BINARY"


def table(rows: "DataFrame", *, schema: "StructType | None" = None) -> "DataFrame":
    """The events that element rows denote, one row each: the payload, then start and end (null: infinite).

    An adjust takes one event with the old end away and adds one with the new end; an event that ends where it
    starts is none. The rows may be in any order, but all of them must be there: what `merge` wrote so far.
    ``schema`` has their columns; where it is given, as it must be in a pipeline, the frame is asked nothing.
    """
    from pyspark.sql import functions as f

    if schema is None and rows.isStreaming:
        error = ValueError("the events of a stream that goes on are not known, and this frame is streaming")
        error.add_note("Write it to a folder, then: table(spark.read.parquet(folder)).")
        raise error
    columns = rows.schema if schema is None else schema
    absent = [name for name in ("kind", *TIMES) if name not in columns.names]
    if absent:
        misfit = ValueError(
            f"a table is of the rows that a merge gives, and these have no column {absent[0]!r}"
        )
        misfit.add_note("Pass what ab.merge or ab.merge_changes gives, or what was written of it.")
        raise misfit
    payload = [name for name in columns.names if name not in ("kind", *TIMES, REFUSED)]
    own = {f"p{n}": f"`{name.replace('`', '``')}`" for n, name in enumerate(payload)}
    groups = {own: _group(f.col(own), columns[name].dataType) for own, name in zip(own, payload, strict=True)}
    kept = [f.first(name).alias(name) for name, group in groups.items() if group is not None]
    added = f.struct(f.col("end").alias("end"), f.lit(1).alias("copies"))
    removed = f.struct(f.col("old_end").alias("end"), f.lit(-1).alias("copies"))
    steps = f.when(f.col("kind") == "adjust", f.array(added, removed)).otherwise(f.array(added))
    return (
        rows.where(f.col("kind").isin("insert", "adjust"))
        .select(*(f.col(quoted).alias(name) for name, quoted in own.items()), "start", f.inline(steps))
        .groupBy(*(f.col(n) if g is None else g.alias(f"by_{n}") for n, g in groups.items()), "start", "end")
        .agg(f.sum("copies").alias("copies"), *kept)
        .where((f.col("copies") > 0) & (f.col("end").isNull() | (f.col("end") > f.col("start"))))
        .select(*own, "start", "end", f.explode(f.sequence(f.lit(1), f.col("copies"))).alias("copy"))
        .select(*(f.col(n).alias(name) for n, name in zip(own, payload, strict=True)), "start", "end")
    )


def _group(value: "Column", kind: "DataType") -> "Column | None":
    """What a value is grouped by instead of itself; None: by itself.

    Grouping by a map, Spark 4.3 makes zeros of the nulls in it, so a map is its entries in the order of their
    keys. Text is compared by its bytes, as merges do, whatever its collation; a variant by its JSON.
    """
    from pyspark.sql import functions as f
    from pyspark.sql import types as t

    def within(part: "Column", kind: "DataType") -> "Column":
        group = _group(part, kind)
        return part if group is None else group

    match kind:
        case t.MapType():

            def entry(part: "Column") -> "Column":
                key, item = within(part["key"], kind.keyType), within(part["value"], kind.valueType)
                return f.struct(key.alias("key"), item.alias("value"))

            return f.array_sort(f.transform(f.map_entries(value), entry))
        case t.ArrayType() if _group(value, kind.elementType) is not None:
            return f.transform(value, lambda part: within(part, kind.elementType))
        case t.StructType() if any(_group(value, field.dataType) is not None for field in kind):
            parts = [within(value.getField(x.name), x.dataType).alias(f"f{n}") for n, x in enumerate(kind)]
            return f.when(value.isNotNull(), f.struct(*parts))
        case t.VariantType():
            return f.to_json(value)
        case t.StringType() if kind.collation != _BY_BYTES:
            return f.collate(value, _BY_BYTES)
    return None
