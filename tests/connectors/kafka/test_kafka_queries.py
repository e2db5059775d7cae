"""Real queries between topics: what comes out is what the replicas mean, once, through restarts."""

import json
from pathlib import Path
from random import Random

import duckdb
import pyarrow as pa
import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from element_rows import ELEMENTS, element_rows, meant_by, named, pieces, relation_of

from anabranch import FOREVER, Case, Drop, Relation, difference
from anabranch import spark as ab
from anabranch.engines.spark.query.watch import status_in
from anabranch.model.batch import Batch
from anabranch.testing.broker import Broker
from anabranch.testing.presentations import replicas
from anabranch.testing.references import Shape

ELEMENT_SCHEMA = "kind string, start long, end long, old_end long, value string"


@pytest.fixture
def copies():
    _, made = replicas(Random(5), 2, case=Case.R3, shape=Shape(events=60, payloads=20, horizon=80))
    return dict(zip(("east", "west"), named(made), strict=True))


def records(elements):
    return element_rows(elements).to_pylist()


def in_topic(broker, topic, partitions=1):
    """The committed records of a topic, partition by partition."""
    settings = {"bootstrap.servers": broker.servers, "group.id": "test", "enable.partition.eof": True}
    settings |= {"log_level": 0, "auto.offset.reset": "earliest", "isolation.level": "read_committed"}
    settings |= broker.config
    consumer = Consumer(settings)
    found = []
    for partition in range(partitions):
        consumer.assign([TopicPartition(topic, partition, 0)])
        mine = []
        while True:
            message = consumer.poll(30)
            assert message is not None
            if message.error() is not None:
                assert message.error().code() == KafkaError._PARTITION_EOF
                break
            mine.append((message.key(), json.loads(message.value())))
        found.append(mine)
    consumer.close()
    return found


def _time(value):
    return FOREVER if value is None else value


def meaning(rows) -> Relation:
    relation = Relation()
    relation.apply(Batch.from_arrow(_table(rows)))
    return relation


def _table(rows):
    times = [(name, pa.int64()) for name in ("start", "end", "old_end")]
    return pa.Table.from_pylist(rows, pa.schema([("kind", pa.string()), *times, ("value", pa.string())]))


def test_topics_with_disorder_and_revisions_are_merged_through_restarts(
    spark, broker, topic, send, tmp_path, copies
):
    topics = {name: topic() for name in copies}
    random = Random(3)
    cut = {name: pieces(random, copy, 3) for name, copy in copies.items()}
    for number in range(3):
        for name, parts in cut.items():
            send(topics[name], *records(parts[number]))
        feeds = ab.kafka(spark, topics, servers=broker.servers, schema=ELEMENT_SCHEMA)
        merged = ab.merge(feeds, **ELEMENTS, case="R3")
        ab.wait(ab.write_folder(merged, tmp_path / "out", checkpoint=tmp_path / "cp", available_now=True))
    assert not list((tmp_path / "out" / "_quarantine").glob("*"))
    found, meant = relation_of(tmp_path / "out"), meant_by(copies["east"])
    assert difference(found, meant) is None
    assert found.frontier == meant.frontier


@pytest.mark.slow
def test_partitions_with_holes_are_merged_to_all_that_any_replica_has(spark, broker, topic, send, tmp_path):
    topics = {name: topic(partitions=2) for name in ("east", "west")}
    for number in range(300):
        row = {"sensor": f"s{number % 5}", "at": 1_000_000 + number, "v": number}
        if not 100 <= number < 130:
            send(topics["east"], row, partition=number % 2)
        if number % 7:
            send(topics["west"], row, partition=number % 2)
    feeds = ab.kafka(
        spark,
        topics,
        servers=broker.servers,
        schema="sensor string, at long, v long",
        rows_per_trigger=300,
    )
    merged = ab.merge(feeds, start="at", replica="replica", disorder=50, lossy=True)
    told = []
    listener = ab.watch(spark, lambda status, progress: told.append(status))
    query = ab.write_folder(merged, tmp_path / "out", checkpoint=tmp_path / "cp", available_now=True)
    ab.wait(query)
    spark.streams.removeListener(listener)
    unread = [status_in(progress).unread for progress in query.recentProgress if progress["numInputRows"]]
    assert unread[-1] == {"east": 0, "west": 0}
    assert [sum(one.values()) for one in unread] == sorted(
        (sum(one.values()) for one in unread), reverse=True
    )
    assert 270 + 257 - 300 <= sum(unread[0].values()) < 270 + 257
    assert [status.unread for status in told] == unread[: len(told)]
    files = str(tmp_path / "out" / "*.parquet")
    found = duckdb.sql(f"select v from '{files}' where kind = 'insert' order by v").fetchall()
    missing = {number for number in range(100, 130) if number % 7 == 0}
    assert [v for (v,) in found] == [number for number in range(300) if number not in missing]


def test_a_cluster_that_wants_a_password_is_given_it_and_nobody_else_is(spark, tmp_path):
    with Broker(password="hunter2") as broker:
        for name in ("in", "out"):
            broker.make_topic(name)
        producer = Producer({"bootstrap.servers": broker.servers, **broker.config})
        producer.produce("in", json.dumps({"at": 1, "v": 1}))
        assert producer.flush(60) == 0
        feeds = ab.kafka(spark, "in", servers=broker.servers, schema="at long, v long", config=broker.config)
        merged = ab.merge(feeds, start="at", disorder=0)
        query = ab.write_kafka(
            merged,
            "out",
            servers=broker.servers,
            checkpoint=tmp_path / "cp",
            available_now=True,
            exactly_once=True,
            config=broker.config,
        )
        ab.wait(query)
        [found] = in_topic(broker, "out")
    assert [row["v"] for _, row in found if row["kind"] == "insert"] == [1]
    plans = query._jsq.streamingQuery().lastExecution().toString()
    said = plans + str(query.recentProgress)
    written = "".join(
        file.read_text(errors="replace") for file in (tmp_path / "cp").rglob("*") if file.is_file()
    )
    assert "hunter2" not in said + repr(feeds) + written


def test_a_record_of_ten_megabytes_goes_through(spark, broker, topic, send, tmp_path):
    wide, out = (topic(**{"max.message.bytes": str(32 << 20)}) for _ in range(2))
    text = "".join(Random(1).choices("0123456789abcdef", k=10 << 20))
    send_wide(broker, wide, {"at": 1, "v": text}, {"at": 2, "v": "small"})
    feeds = ab.kafka(spark, wide, servers=broker.servers, schema="at long, v string")
    merged = ab.merge(feeds, start="at", disorder=0)
    config = {"message.max.bytes": str(32 << 20)}
    ab.wait(
        ab.write_kafka(
            merged,
            out,
            servers=broker.servers,
            checkpoint=tmp_path / "cp",
            available_now=True,
            config=config,
        )
    )
    [found] = in_topic(broker, out)
    assert {row["v"] for _, row in found if row["kind"] == "insert"} == {text, "small"}


def send_wide(broker, topic, *rows):
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": broker.servers, "message.max.bytes": 32 << 20, "log_level": 0})
    for row in rows:
        producer.produce(topic, json.dumps(row))
    assert producer.flush(60) == 0


@pytest.mark.slow
@pytest.mark.parametrize("exactly_once", [False, True], ids=["at least once", "exactly once"])
def test_a_topic_has_the_events_in_partitions_and_each_stable_in_all_of_them_after_what_it_covers(
    spark, broker, topic, send, tmp_path, copies, exactly_once
):
    topics, out = {name: topic() for name in copies}, topic(partitions=3)
    for name, copy in copies.items():
        send(topics[name], *records(copy))
    feeds = ab.kafka(spark, topics, servers=broker.servers, schema=ELEMENT_SCHEMA, rows_per_trigger=40)
    merged = ab.merge(feeds, **ELEMENTS, case="R3")
    query = ab.write_kafka(
        merged,
        out,
        servers=broker.servers,
        key="value",
        checkpoint=tmp_path / "cp",
        exactly_once=exactly_once,
        available_now=True,
    )
    ab.wait(query)
    found = in_topic(broker, out, 3)
    assert sum(bool(part) for part in found) == 3
    stables = [[_time(row["start"]) for _, row in part if row["kind"] == "stable"] for part in found]
    assert stables[0] == stables[1] == stables[2]
    assert stables[0] == sorted(set(stables[0]))
    assert len(stables[0]) > 1
    for part in found:
        assert all(key.decode() == row["value"] for key, row in part if row["kind"] != "stable")
        meaning([row for _, row in part])  # raises where a row breaks a stable before it
    events = [row for part in found for _, row in part if row["kind"] != "stable"]
    assert stables[0][-1] == FOREVER
    assert difference(meaning(events), meant_by(copies["east"])) is None


def run_again_without_the_last_commit(checkpoint: Path) -> None:
    """What a driver leaves that is killed when all was sent and before Spark notes it."""
    last = max(
        (file for file in (checkpoint / "commits").iterdir() if file.name.isdecimal()),
        key=lambda f: int(f.name),
    )
    last.unlink()
    (checkpoint / "commits" / f".{last.name}.crc").unlink(missing_ok=True)


@pytest.mark.parametrize(
    "exactly_once",
    [pytest.param(False, id="at least once"), pytest.param(True, marks=pytest.mark.slow, id="exactly once")],
)
def test_a_micro_batch_that_is_sent_again_is_repeated_or_not_and_a_merge_removes_repeats(
    spark, broker, topic, send, tmp_path, exactly_once
):
    source, out = topic(), topic(partitions=2)
    expected = []
    for number in range(2):
        rows = [{"at": 100 * number + n, "v": n} for n in range(20)]
        expected += [row["v"] + row["at"] * 1000 for row in rows]
        send(source, *rows)
        for repeat in (False, True):
            if repeat:
                run_again_without_the_last_commit(tmp_path / "cp")
            feeds = ab.kafka(spark, source, servers=broker.servers, schema="at long, v long")
            merged = ab.merge(feeds, start="at", disorder=10)
            query = ab.write_kafka(
                merged,
                out,
                servers=broker.servers,
                checkpoint=tmp_path / "cp",
                exactly_once=exactly_once,
                available_now=True,
            )
            ab.wait(query)
    found = [row for part in in_topic(broker, out, 2) for _, row in part if row["kind"] == "insert"]
    assert len(found) == (40 if exactly_once else 80)

    feeds = ab.kafka(
        spark, out, servers=broker.servers, schema="kind string, start long, end long, old_end long, v long"
    )
    again = ab.merge(
        feeds,
        kind="kind",
        start="start",
        end="end",
        old_end="old_end",
        properties="keyed",
        on_broken=Drop(),
        on_invalid=Drop(),
    )
    ab.wait(ab.write_folder(again, tmp_path / "read", checkpoint=tmp_path / "cp2", available_now=True))
    files = str(tmp_path / "read" / "*.parquet")
    kept = duckdb.sql(f"select v + start * 1000 from '{files}' where kind = 'insert'").fetchall()
    assert sorted(v for (v,) in kept) == sorted(expected)
    assert not duckdb.sql(f"select * from '{files}' where kind = 'adjust'").fetchall()
