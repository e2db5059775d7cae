"""A local time that comes into a column with a zone is an instant of that zone, on Spark as without it."""

from datetime import datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake
from pyspark.sql import types as t

import anabranch as ab
from anabranch import spark as sp
from anabranch.connectors.native import native_columns
from anabranch.engines.spark.planned_query import query_of_columns

LOCAL = [datetime(2026, 3, 1, 10), datetime(2026, 3, 29, 2, 30), datetime(2026, 10, 25, 2, 30)]
MICROS = [1772355600 * 10**6, 1774747800 * 10**6, 1792888200 * 10**6]
"""In Berlin; clocks leave out the second, and show the third twice."""
BERLIN = "timestamp[us, tz=Europe/Berlin]"
SOURCE = ab.source("s", {"at": BERLIN, "seen": f"list<{BERLIN}>", "n": "int64"}, start="at", disorder="1 day")
TABLE = pa.table(
    {
        "at": pa.array(LOCAL, pa.timestamp("us")),
        "seen": pa.array([[one] for one in LOCAL], pa.list_(pa.timestamp("us"))),
        "n": [1, 2, 3],
    }
)


@pytest.fixture
def new_york(spark):
    """A session whose zone is none of the plan."""
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    yield spark
    spark.conf.set("spark.sql.session.timeZone", before)


def frame(spark, tmp_path):
    local = t.TimestampNTZType()
    columns = t.StructType(
        [
            t.StructField("at", local),
            t.StructField("seen", t.ArrayType(local)),
            t.StructField("n", t.LongType()),
        ]
    )
    return spark.createDataFrame([(at, [at], n) for n, at in enumerate(LOCAL, 1)], columns)


def folder(spark, tmp_path):
    (tmp_path / "in").mkdir()
    pq.write_table(TABLE, tmp_path / "in" / "1.parquet")
    return tmp_path / "in"


def folder_of_its_own_columns(spark, tmp_path):
    return sp.folder(spark, folder(spark, tmp_path))


def found(spark, given, tmp_path):
    rows = sp.frame(SOURCE, {"s": given})
    if rows.isStreaming:
        sp.wait(sp.write_folder(rows, tmp_path / "out", checkpoint=tmp_path / "c", available_now=True))
        rows = spark.read.parquet(str(tmp_path / "out"))
    events = rows.where("kind = 'insert'").selectExpr("unix_micros(start) as a", "unix_micros(seen[0]) as b")
    return sorted((row.a, row.b) for row in events.collect())


@pytest.mark.parametrize("door", [frame, folder, folder_of_its_own_columns])
def test_a_local_time_is_in_the_zone_of_its_column_through_every_door(door, new_york, tmp_path):
    given = door(new_york, tmp_path)
    assert found(new_york, given, tmp_path) == list(zip(MICROS, MICROS, strict=True))


CHANGES = ab.source(
    "s",
    {"at": BERLIN, "n": "int64", "op": "string", "time": "timestamp[us, tz=UTC]"},
    start="time",
)


def table(path):
    write_deltalake(path, TABLE.select(["at", "n"]), configuration={"delta.enableChangeDataFeed": "true"})
    return ab.delta_changes(path)


def test_local_times_of_a_table_are_in_the_zone_of_the_plan_in_this_process(tmp_path):
    events = [one for batch in ab.run(CHANGES, {"s": table(tmp_path / "t")}) for one in batch.elements()]
    moments = [int(one.payload["at"].timestamp()) * 10**6 for one in events if isinstance(one, ab.Insert)]
    assert sorted(moments) == MICROS


def test_local_times_of_a_table_are_checked_as_instants_of_the_plan_before_a_run(tmp_path):
    known = native_columns(CHANGES.node, table(tmp_path / "t"), "America/New_York")
    query = query_of_columns(CHANGES.lasting("1 day"), {"s": known})
    assert query.schema()["at"].dataType == t.TimestampType()
