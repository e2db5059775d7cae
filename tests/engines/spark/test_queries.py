"""Real queries: what comes out of Spark is what the replicas mean, through restarts and with nothing lost."""

import json
from concurrent.futures import ThreadPoolExecutor
from random import Random
from threading import Event

import pytest
from element_rows import ELEMENTS, meant_by, named, pieces, put, relation_of

from anabranch import FOREVER, Case, Insert, Stable, difference
from anabranch import spark as ab
from anabranch.kernels.store.saved import StateFormatError
from anabranch.testing.presentations import replicas
from anabranch.testing.references import Shape


@pytest.fixture
def copies():
    _, made = replicas(Random(5), 3, case=Case.R3, shape=Shape(events=60, payloads=20, horizon=80))
    return dict(zip(("a", "b", "c"), named(made), strict=True))


@pytest.mark.parametrize("door", ["native", "generic"])
def test_a_query_that_is_restarted_after_every_micro_batch_gives_what_the_replicas_mean(
    spark, tmp_path, copies, door
):
    random = Random(3)
    cut = {name: pieces(random, copy, 3) for name, copy in copies.items()}
    for number in range(3):
        for name in copies:
            put(tmp_path / "in", name, number, cut[name][number])
        if door == "native":
            rows = ab.folder(spark, tmp_path / "in")
        else:
            schema = "kind string, start long, end long, old_end long, value string, replica string"
            rows = (
                spark.readStream.schema(schema)
                .option("basePath", str(tmp_path / "in"))
                .parquet(str(tmp_path / "in" / "*"))
            )
            rows = rows.selectExpr(
                "kind",
                "start",
                "end",
                "old_end",
                "value",
                "element_at(split(_metadata.file_path, '/'), -2) as replica",
                "cast(split(_metadata.file_name, '[.]')[0] as long) * 1000000 + _metadata.row_index as n",
            )
        order = {} if door == "native" else {"sequence": "n"}
        query = ab.write_folder(
            ab.merge(rows, **ELEMENTS, **order, case="R3"),
            tmp_path / "out",
            checkpoint=tmp_path / "checkpoint",
            available_now=True,
        )
        ab.wait(query)
    merged = relation_of(tmp_path / "out")
    assert difference(merged, meant_by(copies["a"])) is None
    assert not list((tmp_path / "out").glob("_quarantine/*"))
    assert ab.status(query).frontier == FOREVER


def test_one_shard_follows_the_replica_that_all_events_show(spark, tmp_path, copies):
    for name in copies:
        put(tmp_path / "in", name, 0, copies[name])
    merged = ab.merge(ab.folder(spark, tmp_path / "in"), **ELEMENTS, policy="leader=latest")
    ab.wait(ab.write_folder(merged, tmp_path / "out", checkpoint=tmp_path / "state", available_now=True))
    assert difference(relation_of(tmp_path / "out"), meant_by(copies["a"])) is None


def test_rows_that_do_not_fit_are_quarantined_and_the_others_are_merged(spark, tmp_path):
    put(tmp_path / "in", "a", 0, [Insert({"value": "x"}, 5, 9), Stable(7), Insert({"value": "late"}, 6, 8)])
    put(tmp_path / "in", "b", 0, [Insert({"value": "y"}, 8, 8), Insert({"value": "z"}, 8, 9)])
    rows = ab.folder(spark, tmp_path / "in")
    query = ab.write_folder(
        ab.merge(rows, **ELEMENTS), tmp_path / "out", checkpoint=tmp_path / "checkpoint", available_now=True
    )
    ab.wait(query)
    refused = [
        json.loads(line)
        for file in (tmp_path / "out" / "_quarantine").glob("*.jsonl")
        for line in file.read_text().splitlines()
    ]
    assert sorted((row["rule"], row["replica"]) for row in refused) == [
        ("empty-lifetime", "b"),
        ("insert-behind-stable", "a"),
    ]
    assert all("row" in row["place"] and "value" in row["raw"] for row in refused)
    assert {event.payload["value"] for event in relation_of(tmp_path / "out").events()} == {"x", "z"}
    assert ab.status(query).quarantined == 2


def test_an_error_of_a_worker_arrives_as_ours(spark, tmp_path):
    from anabranch import InvalidElementError, Raise

    put(tmp_path / "in", "a", 0, [Insert({"value": "x"}, 5, 9), Stable(7), Insert({"value": "late"}, 6, 8)])
    rows = ab.merge(ab.folder(spark, tmp_path / "in"), **ELEMENTS, on_invalid=Raise())
    query = ab.write_folder(rows, tmp_path / "out", checkpoint=tmp_path / "checkpoint", available_now=True)
    with pytest.raises(InvalidElementError, match=r"insert-behind-stable.*starts at 6") as caught:
        ab.wait(query)
    assert "Py4J" not in str(caught.value)
    assert caught.value.__notes__


def test_a_checkpoint_is_of_rows_that_are_read_in_one_way_and_refusals_show_their_times(spark, tmp_path):
    def merge(lines, columns="at timestamp, seen timestamp, v string", **roles):
        file = tmp_path / "in" / f"{len(list((tmp_path / 'in').iterdir()))}.json"
        file.write_text("\n".join(map(json.dumps, lines)))
        rows = spark.readStream.schema(columns).json(str(tmp_path / "in"))
        merged = ab.merge(rows, **{"start": "at", "payload": "v", "disorder": "1 hour"} | roles)
        out, checkpoint = tmp_path / "out", tmp_path / "checkpoint"
        ab.wait(ab.write_folder(merged, out, checkpoint=checkpoint, available_now=True))

    def row(hour, v="x"):
        return {"at": f"2026-03-01T{hour:02}:00:00Z", "seen": "2026-03-02T00:00:00Z", "v": v}

    (tmp_path / "in").mkdir()
    merge([row(10), row(12)])
    merge([row(9, "late")], "at timestamp, seen timestamp, v string, more long")
    [refused] = [
        json.loads(line)
        for file in (tmp_path / "out" / "_quarantine").glob("*.jsonl")
        for line in file.read_text().splitlines()
    ]
    assert (refused["rule"], refused["replica"]) == ("insert-behind-stable", "stream")
    assert json.loads(refused["raw"])["at"] == "2026-03-01T09:00:00Z"
    assert "starts at 2026-03-01 09:00:00+00:00, the last stable is 2026-03-01 11:00:00" in refused["reason"]
    with pytest.raises(
        StateFormatError, match=r"begun with source rows: start 'at' .*, this query has 'seen' "
    ) as caught:
        merge([row(13)], start="seen")
    assert caught.value.__notes__ == ["Go on as before, or begin a new checkpoint."]


def test_types_names_and_nulls_of_a_payload_survive_exactly(spark):
    import datetime as dt
    from decimal import Decimal

    from pyspark.sql import types as t

    inner = t.StructType([t.StructField("n", t.ShortType()), t.StructField("my text", t.StringType())])
    schema = t.StructType(
        [
            t.StructField("who", t.StringType()),
            t.StructField("at", t.TimestampType()),
            t.StructField("my col", t.IntegerType(), False),
            t.StructField("_x", t.DecimalType(38, 10)),
            t.StructField("class", t.ArrayType(inner)),
            t.StructField("a.b", t.MapType(t.StringType(), t.DoubleType())),
            t.StructField("day", t.DateType()),
            t.StructField("local", t.TimestampNTZType()),
            t.StructField("raw", t.BinaryType()),
            t.StructField("nothing", t.StringType()),
            t.StructField("flag", t.BooleanType()),
            t.StructField("`tick`", t.FloatType()),
        ]
    )
    noon = dt.datetime(2026, 3, 1, 12, tzinfo=dt.UTC)
    payload = (
        7,
        Decimal("12345678901234567890.0123456789"),
        [(3, "x"), (None, None)],
        {"k": 1.5, "z": None},
        dt.date(2020, 2, 29),
        dt.datetime(2026, 3, 1, 12, 0, 0, 1),
        b"\x00\xff",
        None,
        True,
        0.5,
    )
    rows = [("a", noon, *payload), ("b", noon, *payload)]
    frame = spark.createDataFrame(rows, schema)
    out = ab.merge(frame, start="at", replica="who", disorder="1 second", lossy=True).where("kind = 'insert'")
    for field in schema.fields[2:]:
        assert out.schema[field.name].dataType == field.dataType
    names = [f"`{name.replace('`', '``')}`" for name in schema.names[2:]]
    assert out.select(*names).collect() == frame.where("who = 'a'").select(*names).collect()
    [moment] = out.select("start").collect()
    assert moment.start == frame.first().at


def test_a_payload_column_with_the_name_of_another_column_is_kept_in_a_struct(spark):
    frame = spark.createDataFrame([("a", 5, "own"), ("b", 5, "own")], "who string, at long, kind string")
    [row] = ab.merge(frame, start="at", replica="who", lossy=True).where("kind = 'insert'").collect()
    assert row.payload.kind == "own"


def test_a_frame_without_the_columns_that_are_named_is_refused_at_once(spark):
    frame = spark.createDataFrame([("a", 5)], "who string, at long")
    with pytest.raises(TypeError, match="replica is column 'gateway', and there is none"):
        ab.merge(frame, start="at", replica="gateway", lossy=True)


def test_each_micro_batch_is_told_to_who_watches(spark, tmp_path, copies):
    for name, copy in copies.items():
        for number, part in enumerate(pieces(Random(1), copy, 2)):
            put(tmp_path / "in", name, number, part)
    seen, over = [], Event()

    def told(status, progress):
        seen.append((status, progress.batchId))
        if status.frontier == FOREVER:
            over.set()

    listener = ab.watch(spark, told)
    rows = ab.folder(spark, tmp_path / "in", files_per_trigger=3)
    query = ab.write_folder(
        ab.merge(rows, **ELEMENTS, case="R3"),
        tmp_path / "out",
        checkpoint=tmp_path / "checkpoint",
        available_now=True,
    )
    ab.wait(query)
    assert over.wait(60), "Spark tells listeners a little later"
    spark.streams.removeListener(listener)
    statuses = [status for status, _ in seen]
    assert [status.batch for status in statuses] == [batch for _, batch in seen] == [0, 1]
    inserts = sum(isinstance(e, Insert) for copy in copies.values() for e in copy)
    assert sum(status.received["insert"] for status in statuses) == inserts
    assert set(statuses[-1].replicas) == {"a", "b", "c"}
    assert statuses[-1].frontier == FOREVER
    assert {one.lag for one in statuses[-1].replicas.values()} == {0}


def test_a_query_may_be_started_by_a_thread_that_did_not_make_the_session(spark, tmp_path):
    put(tmp_path / "in", "a", 0, [Insert({"value": "x"}, 1, 5), Stable(FOREVER)])

    def run():
        merged = ab.merge(ab.folder(spark, tmp_path / "in"), **ELEMENTS)
        query = ab.write_folder(merged, tmp_path / "out", checkpoint=tmp_path / "cp", available_now=True)
        return ab.wait(query, 120)

    with ThreadPoolExecutor() as pool:
        assert pool.submit(run).result()
    assert [event.payload["value"] for event in relation_of(tmp_path / "out").events()] == ["x"]


def test_a_query_that_goes_on_reads_what_comes(spark, tmp_path, copies):
    cut = {name: pieces(Random(8), copy, 2) for name, copy in copies.items()}
    for name in copies:
        put(tmp_path / "in", name, 0, cut[name][0])
    merged = ab.merge(ab.folder(spark, tmp_path / "in"), **ELEMENTS, case="R3")
    query = ab.write_folder(merged, tmp_path / "out", checkpoint=tmp_path / "checkpoint", format="jsonl")
    query.processAllAvailable()
    before = len(list((tmp_path / "out").glob("*.jsonl")))
    for name in copies:
        put(tmp_path / "in", name, 1, cut[name][1])
    query.processAllAvailable()
    query.stop()
    files = sorted((tmp_path / "out").glob("*.jsonl"))
    assert 0 < before < len(files)
    rows = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    events = {}
    for row in rows:
        if row["kind"] != "stable":
            key = row["value"], row["start"]
            events[key, row["end"]] = events.get((key, row["end"]), 0) + 1
        if row["kind"] == "adjust":
            events[key, row["old_end"]] -= 1
    there = sorted(
        (value, start, end)
        for ((value, start), end), n in events.items()
        for _ in range(n)
        if end is None or end > start
    )
    meant = meant_by(copies["a"]).events()
    assert there == sorted((e.payload["value"], e.start, None if e.end == FOREVER else e.end) for e in meant)
