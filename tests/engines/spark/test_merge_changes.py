"""A real query over change rows: two replicas of a table, merged, with what does not fit set aside."""

import json
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from anabranch import FOREVER, Adjust, Batch, Insert, Relation, Stable, difference
from anabranch import spark as ab
from anabranch.model.dialects import change_rows
from anabranch.model.dialects.change_rows import Change, Progress
from anabranch.model.schema import SchemaError

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
SCHEMA = pa.schema(
    [
        ("op", pa.string()),
        ("committed", pa.timestamp("us", "UTC")),
        ("site", pa.string()),
        ("lsn", pa.int64()),
        ("id", pa.int64()),
        ("level", pa.float64()),
    ]
)
COLUMNS = "op string, committed timestamp, site string, lsn long, id long, level double"


def at(seconds: int) -> datetime:
    return NOON + timedelta(seconds=seconds)


def written(path, rows) -> None:
    columns = [
        pa.array(column, field.type) for column, field in zip(zip(*rows, strict=True), SCHEMA, strict=True)
    ]
    pq.write_table(pa.Table.from_arrays(columns, schema=SCHEMA), path)


def meant() -> Relation:
    """The table as the dialect reads it from those of the changes that fit."""
    log = [
        Change("insert", 0, after={"id": 1, "level": 0.5}),
        Change("insert", 1, after={"id": 2, "level": 2.5}),
        Change("update", 4, after={"id": 1, "level": 1.5}),
        Change("delete", 6, before={"id": 2}),
        Change("update", 9, after={"id": 1, "level": 3.5}),
        Progress(FOREVER),
    ]
    relation = Relation()
    relation.apply(Batch.of(change_rows.read(log, key="id", ordered=False)))
    return relation


def seconds(time: datetime | None) -> int:
    return FOREVER if time is None else int((time.astimezone(UTC) - NOON).total_seconds())


def shown(rows) -> Relation:
    """What the rows of a sink say in the end, in whatever order they are read."""
    relation, adjusts = Relation(), []
    for row in rows:
        payload, start, end = (
            {"id": row["id"], "level": row["level"]},
            seconds(row["start"]),
            seconds(row["end"]),
        )
        match row["kind"]:
            case "insert":
                relation.apply(Insert(payload, start, end))
            case "adjust":
                adjusts.append(Adjust(payload, start, seconds(row["old_end"]), end))
    while adjusts:
        there = {(event.payload["id"], event.start, event.end) for event in relation.events()}
        ready = [one for one in adjusts if (one.payload["id"], one.start, one.old_end) in there]
        assert ready, f"{adjusts} are of events that are not there"
        relation.apply(ready[0])
        adjusts.remove(ready[0])
    relation.apply(Stable(FOREVER))
    return relation


def test_changes_of_two_replicas_come_out_as_the_rows_of_one_table_with_their_lifetimes(spark, tmp_path):
    source, out = tmp_path / "in", tmp_path / "out"
    source.mkdir()
    written(
        source / "1.parquet",
        [
            ("c", at(0), "east", 1, 1, 0.5),
            ("c", at(1), "east", 2, 2, 2.5),
            ("+I", at(1), "west", 1, 2, 2.5),
            ("r", at(0), "west", 2, 1, 0.5),
            ("-U", at(4), "west", 3, 1, 0.5),
            ("+U", at(4), "west", 4, 1, 1.5),
            ("insert", at(5), "west", 5, 1, 7.5),
        ],
    )
    written(
        source / "2.parquet",
        [
            ("D", at(6), "east", 4, 2, None),
            ("u", at(4), "east", 3, 1, 1.5),
            ("progress", at(7), "east", 5, None, None),
            ("truncate", at(7), "west", 6, 1, None),
            ("delete", at(7), "west", 7, 9, None),
            ("upsert", at(9), "east", 6, 1, 3.5),
            ("stable", None, "east", 7, None, None),
            ("-D", at(6), "west", 8, 2, None),
            ("upsert", at(9), "west", 9, 1, 3.5),
            ("stable", None, "west", 10, None, None),
        ],
    )
    changes = spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 1).parquet(str(source))
    merged = ab.merge_changes(changes, key="id", time="committed", replica="site", sequence="lsn")
    assert merged.columns == ["kind", "start", "end", "old_end", "id", "level", "refused"]
    query = (
        merged.writeStream.format("parquet")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(out))
    )
    assert ab.wait(query, 120)
    told = spark.read.parquet(str(out)).toArrow().to_pylist()
    refused = {(row["refused"]["rule"], row["refused"]["replica"]) for row in told if row["refused"]}
    [there] = [row["refused"] for row in told if row["refused"] and row["refused"]["rule"] == "row-is-there"]
    assert f"has been there since {at(4):%Y-%m-%d %H:%M:%S}" in there["reason"]
    assert refused == {("row-is-there", "west"), ("malformed", "west"), ("no-such-row", "west")}
    assert "{" in next(row["refused"]["raw"] for row in told if row["refused"])
    assert difference(shown(told), meant()) is None
    status = ab.status(query)
    assert (status.frontier, status.replicas["east"].refused) == (FOREVER, 0)


def test_changes_that_come_in_an_earlier_micro_batch_than_those_they_follow_are_used(spark, tmp_path):
    source, out = tmp_path / "in", tmp_path / "out"
    source.mkdir()
    written(source / "1.parquet", [("u", at(9), "east", None, 1, 3.5), ("d", at(6), "east", None, 2, None)])
    written(source / "2.parquet", [("c", at(1), "east", None, 2, 2.5), ("u", at(4), "east", None, 1, 1.5)])
    written(source / "3.parquet", [("c", at(0), "east", None, 1, 0.5), ("d", at(8), "east", None, 2, None)])
    written(source / "4.parquet", [("stable", None, "east", None, None, None)])
    changes = spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 1).parquet(str(source))
    merged = ab.merge_changes(changes, key="id", time="committed", replica="site", payload=("id", "level"))
    query = ab.write_folder(merged, out, checkpoint=tmp_path / "checkpoint", available_now=True)
    assert ab.wait(query, 120)
    told = spark.read.parquet(str(out)).toArrow().to_pylist()
    assert difference(shown(told), meant()) is None
    [refused] = [
        json.loads(line) for file in out.glob("_quarantine/*") for line in file.read_text().splitlines()
    ]
    assert refused["rule"] == "no-such-row"
    assert json.loads(refused["raw"])["committed"].startswith("2026-03-01T12:00:08")


def test_settings_that_do_not_fit_are_refused_before_a_query_runs(spark):
    frame = spark.createDataFrame([], COLUMNS)
    with pytest.raises(ValueError, match="key is empty"):
        ab.merge_changes(frame, key=(), time="committed")
    with pytest.raises(ValueError, match="'gone' is not known"):
        ab.merge_changes(frame, key="id", time="committed", ops={"x": "gone"})
    with pytest.raises(SchemaError, match="op is column 'what', and there is none"):
        ab.merge_changes(frame, key="id", time="committed", op="what")
    with pytest.raises(SchemaError, match="the key of a row is part of it, and column 'site' is no payload"):
        ab.merge_changes(frame, key=("site", "id"), time="committed", replica="site")
