"""Real queries over change data capture: replicas of a table in two topics, one table as envelopes out."""

import json
from random import Random

import pytest
from confluent_kafka import Consumer, KafkaError, TopicPartition

from anabranch import HalfFrozen
from anabranch import spark as ab
from anabranch.connectors.files.debezium import Debezium

NOON = 1_772_366_400_000_000
SECOND = 1_000_000
TABLE = "id bigint not null, v string, price decimal(8, 2)"
PARTITIONS = 2
LAST = {"id": -1, "v": "last", "price": None}


def table_log(random, count):
    """Changes of a table in the order of time, and the rows that are left."""
    there, log, time = {}, [], NOON
    for number in range(count):
        key, time = random.randrange(8), time + random.choice([0, 1, SECOND])
        row = {"id": key, "v": f"v{number}", "price": f"{number}.25"}
        if key not in there:
            log.append((key, time, {"op": random.choice("cr"), "before": None, "after": row}))
        elif random.random() < 0.3:
            log.append((key, time, {"op": "d", "before": {"id": key}, "after": None}))
        else:
            log.append((key, time, {"op": "u", "before": there[key], "after": row}))
        there[key] = row
        if log[-1][2]["op"] == "d":
            del there[key]
    return log, there


def values(random, change, time, wrapped):
    """The records that a connector makes of a change, and what else it says now and then."""
    source = {"connector": "postgresql", "name": "shop", "ts_ms": time // 1000, "ts_us": time}
    envelope = {**change, "source": source, "ts_ms": time // 1000 + 700}
    said = [{"schema": {"type": "struct"}, "payload": envelope} if wrapped else envelope]
    if change["op"] == "d":
        said.append(None)
    if random.random() < 0.1:
        said.append(random.choice([{"ts_ms": time // 1000}, {"status": "END", "id": "7", "event_count": 1}]))
    return said


def sent(random, send, topic, log, wrapped):
    """A log in partitions by key; the last change of each lets the frontier pass the others."""
    parts = [[] for _ in range(PARTITIONS)]
    for key, time, change in log:
        parts[key % PARTITIONS] += values(random, change, time, wrapped)
    for number, part in enumerate(parts):
        last = {"op": "c", "before": None, "after": {**LAST, "id": -1 - number}}
        send(topic, *part, *values(random, last, NOON + 10_000 * SECOND, wrapped), partition=number)


def in_topic(broker, topic):
    """The committed records of a topic, partition by partition."""
    settings = {"bootstrap.servers": broker.servers, "group.id": "test", "enable.partition.eof": True}
    settings |= {"log_level": 0, "auto.offset.reset": "earliest", "isolation.level": "read_committed"}
    consumer = Consumer(settings)
    found = []
    for partition in range(PARTITIONS):
        consumer.assign([TopicPartition(topic, partition, 0)])
        mine = []
        while True:
            message = consumer.poll(30)
            assert message is not None
            if message.error() is not None:
                assert message.error().code() == KafkaError._PARTITION_EOF
                break
            mine.append((message.key(), message.value()))
        found.append(mine)
    consumer.close()
    return found


def applied(parts):
    """The table that a reader has; each change fits what was there before."""
    table = {}
    for part in parts:
        for key, value in part:
            if value is None:
                assert key not in table
                continue
            said = json.loads(value)
            assert table.get(key) == said["before"]
            if said["after"] is None:
                del table[key]
            else:
                table[key] = said["after"]
    return {json.loads(key)["id"]: row for key, row in table.items()}


@pytest.mark.slow
def test_replicas_of_a_table_come_out_as_envelopes_of_one_and_are_read_again(
    spark, broker, topic, send, tmp_path
):
    random = Random(7)
    log, left = table_log(random, 240)
    topics, out = {name: topic(partitions=PARTITIONS) for name in ("east", "west")}, topic(PARTITIONS)
    sent(random, send, topics["east"], log, False)
    sent(random, send, topics["west"], log, True)
    send(topics["west"], {"op": "t", "before": None, "after": None, "ts_ms": 5, "source": {}}, partition=1)

    def merged(feeds, **more):
        return ab.merge_changes(
            feeds, key="id", time="time", disorder="2 seconds", policy=HalfFrozen(), **more
        )

    feeds = ab.kafka(
        spark, topics, servers=broker.servers, schema=TABLE, format="debezium", rows_per_trigger=200
    )
    query = ab.write_kafka(
        merged(feeds, replica="replica"),
        out,
        servers=broker.servers,
        format="debezium",
        key="id",
        checkpoint=tmp_path / "cp",
        exactly_once=True,
        available_now=True,
    )
    ab.wait(query)
    assert len(query.recentProgress) > 2
    refused = [
        json.loads(line)
        for file in (tmp_path / "cp" / "quarantine").iterdir()
        for line in file.read_text().splitlines()
    ]
    assert [one["reason"] for one in refused] == [
        "a truncate ends rows that it does not name, so what is left is not known"
    ]
    records = in_topic(broker, out)
    assert all(records)
    assert applied(records) == left

    again = ab.kafka(spark, out, servers=broker.servers, schema=TABLE, format="debezium")
    ab.wait(
        ab.write_folder(merged(again), tmp_path / "out", checkpoint=tmp_path / "second", available_now=True)
    )
    assert not list((tmp_path / "out" / "_quarantine").glob("*"))
    events = ab.table(spark.read.parquet(str(tmp_path / "out"))).collect()
    assert {event.id for event in events} <= {key for key, _, _ in log}
    told = [[json.loads(value) for _, value in part if value is not None] for part in records]
    frontier = min(max(said["source"]["ts_us"] for said in part) for part in told) - 2 * SECOND
    starts = [said["source"]["ts_us"] for part in told for said in part if said["after"] is not None]
    assert len(events) == sum(start < frontier for start in starts)


def test_envelopes_need_a_key_that_is_of_the_table(spark):
    rows = spark.createDataFrame([], "kind string, start long, end long, old_end long, id long, v string")

    def written(key):
        ab.write_kafka(rows, "t", servers="nowhere:1", checkpoint="unused", format="debezium", key=key)

    with pytest.raises(ValueError, match="an envelope is of the row that its key names, and key is None"):
        written(None)
    with pytest.raises(ValueError, match="the key is column 'start', and there is none"):
        written("start")


def test_envelopes_of_a_merge_whose_ends_may_come_alone_are_refused(spark):
    rows = spark.createDataFrame([], "op string, time long, id long")
    merged = ab.merge_changes(rows, key="id", time="time")
    with pytest.raises(ValueError, match="not EveryChange") as told:
        ab.write_kafka(merged, "t", servers="nowhere:1", checkpoint="unused", format="debezium", key="id")
    assert "HalfFrozen()" in told.value.__notes__[0]


def test_envelopes_never_say_how_far_they_have_come(spark):
    feeds = ab.kafka(spark, "t", servers="nowhere:1", schema="id long", format="debezium")
    with pytest.raises(ValueError, match="its source never says stable, and disorder is not given"):
        ab.merge_changes(feeds, key="id", time="time")


def test_a_table_with_a_column_of_the_name_of_an_added_one_is_told_so(spark):
    def feeds(form):
        return ab.kafka(spark, "t", servers="nowhere:1", schema="id long, Time string", format=form)

    with pytest.raises(ValueError, match="add the columns 'op' and 'time', the table has 'Time'"):
        feeds("debezium")
    named = feeds(Debezium(op="_op", time="_time"))
    assert named.schema.names == ["id", "Time", "_op", "_time"]
    assert named.feeds.form() == Debezium("_op", "_time")
