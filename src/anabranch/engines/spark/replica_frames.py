"""Frames by the names of their replicas, as one frame whose rows say whose they are."""

from collections.abc import Iterable, Mapping
from functools import reduce
from typing import TYPE_CHECKING, Any

from anabranch.engines.spark.native_source import NativeSource
from anabranch.rows.replica_names import check_replicas, named_in

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

REPLICA = "replica"
"""What the column is called that holds the names, unless it is called otherwise."""


def in_one_frame(
    rows: "DataFrame | NativeSource | Mapping[str, DataFrame]", replica: str | None, replicas: Iterable[str]
) -> tuple["DataFrame | NativeSource", str | None, Iterable[str]]:
    """What is merged, the column that says whose a row is, and who is awaited.

    The frames of a mapping have the same columns, in any order; the names are known, so they are awaited.
    """
    if not isinstance(rows, Mapping):
        return rows, replica, replicas
    from pyspark.sql import DataFrame
    from pyspark.sql import functions as f

    column = replica or REPLICA
    given: Mapping[str, Any] = rows
    if not given:
        raise ValueError("there is at least one replica, and none is given")
    for name, frame in given.items():
        if not isinstance(frame, DataFrame):
            error = TypeError(f"replicas are given as DataFrames by name, {name!r} is {frame!r:.200}")
            error.add_note("A source such as ab.folder or ab.kafka has all replicas in it: give it alone.")
            raise error
        if column in frame.columns:
            taken = ValueError(
                f"column {column!r} is added to say whose a row is, and {name!r} has one of that name"
            )
            taken.add_note("Call the added one something else: replica='…'.")
            raise taken
    if replicas:
        names = tuple(map(str, given))
        check_replicas(named_in(replicas=replicas), names, "the mapping", "Give its frame, or leave it out.")
    named = [frame.withColumn(column, f.lit(str(name))) for name, frame in given.items()]
    return reduce(DataFrame.unionByName, named), column, replicas or tuple(map(str, given))
