"""What people use in place of a merge, on the same rows: leader election, and de-duplication on Spark.

Both let rows through or not, and know nothing of what a row means. So their reader keeps a table: an insert
adds a row, a correction changes the rows it is about, whatever end they had, and nothing if there are none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from anabranch.cli.demo.feed import SCHEMA, seconds
from anabranch.cli.demo.readings import Reading
from anabranch.cli.demo.replicas import Row
from anabranch.testing.leader_election import leader_election as followed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WATERMARK = 60
"""Seconds for which a row is remembered at least."""
TOLD_APART_BY = ("kind", "sensor", "value", "start")
"""The first insert and the first correction of each reading are let through. Of the choices one has, this
does best: without the kind no correction gets through, and with the end in it every first guess does."""


def leader_election(said: Mapping[str, Sequence[Row]]) -> list[Row]:
    """The rows of one replica, until it is silent for too long; then of the other."""
    return followed({name: [(row.said, row) for row in rows] for name, rows in said.items()})


def deduplicated(spark: SparkSession, folder: Path) -> list[Row]:
    """The rows that ``dropDuplicatesWithinWatermark`` lets through, read from the same files."""
    name = "deduplicated"
    rows = (
        spark.readStream.schema(SCHEMA)
        .option("maxFilesPerTrigger", len(list(folder.iterdir())))
        .parquet(f"{folder}/*")
    )
    query = (
        rows.where("kind in ('insert', 'adjust')")
        .withWatermark("said", f"{WATERMARK} seconds")
        .dropDuplicatesWithinWatermark(list(TOLD_APART_BY))
        .writeStream.format("memory")
        .queryName(name)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    times = [f"unix_micros({column}) as {column}" for column in ("said", "start", "end", "old_end")]
    found = spark.table(name).selectExpr("kind", "sensor", "value", *times).collect()
    return [
        Row(
            seconds(one["said"]),
            one["kind"],
            seconds(one["start"]),
            one["sensor"],
            one["value"],
            seconds(one["end"]),
            seconds(one["old_end"]) if one["kind"] == "adjust" else None,
        )
        for one in sorted(found, key=lambda one: (one["said"], one["kind"] != "insert"))
    ]


def table(rows: Sequence[Row]) -> list[Reading]:
    """What a reader of these rows has in the end."""
    ends: dict[tuple[str | None, float | None, int], list[int]] = {}
    for row in rows:
        assert row.end is not None or row.kind in ("stable", "detach", "attach")
        if row.kind == "insert" and row.end is not None:
            ends.setdefault(row.key, []).append(row.end)
        elif row.kind == "adjust" and row.end is not None and row.key in ends:
            ends[row.key] = [row.end] * len(ends[row.key])
    return [
        Reading(start, str(sensor), float(value or 0), end)
        for (sensor, value, start), all_ends in ends.items()
        for end in all_ends
    ]
