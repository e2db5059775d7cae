"""Which records make a micro-batch, as a real broker has them, and what stops a query by name."""

import base64
from datetime import UTC, datetime
from itertools import pairwise

import msgspec
import pyarrow as pa
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from anabranch.connectors.kafka.cluster import BrokerError, Cluster, Topic, TopicError
from anabranch.connectors.kafka.source import Feeds, KafkaReader
from anabranch.engines.spark.query.failure import WorkerError, failure
from anabranch.engines.spark.transport import parcel
from anabranch.engines.spark.transport.packing import Packing
from anabranch.rows import refusal
from anabranch.rows.layout import Layout
from anabranch.testing.broker import Broker

COLUMNS = pa.schema([("v", pa.int64()), ("at", pa.int64())])


@pytest.fixture
def reader(broker):
    """A reader of topics, each a replica of its name."""

    def made(*topics, tasks=1, servers=broker.servers, columns=COLUMNS, patience=30.0, rows=1000, **options):
        packing = Packing(Layout("at", replica="replica", disorder=0), 1, 100, ordered=True)
        settings = {
            "format": "json",
            "schema": None,
            "schemas": {},
            "key": None,
            "timestamp": None,
            "replica": "replica",
            "start": "earliest",
        }
        feeds = Feeds(
            topics={name: (name, servers, {}) for name in topics},
            columns=base64.b64encode(columns.serialize()).decode(),
            rows=rows,
            patience=patience,
            **settings | options,
        )
        told = {"secret": feeds, "packing": packing, "shards": [0], "tasks": tasks}
        return KafkaReader({name: msgspec.json.encode(value).decode() for name, value in told.items()})

    return made


def row(v):
    return {"v": v, "at": 10 * v}


def said(source, start, end):
    """What tasks say: (channel, sequence, values) of each stretch, and what they refuse."""
    spoken, refused = [], []
    for task in source.partitions(start, end):
        for rows in source.read(task):
            body, no = rows.column(1)[0], rows.column(2)[0]
            if no.is_valid:
                refused += refusal.from_bytes(no.as_py())
                continue
            if not body.is_valid:
                continue
            one = parcel.from_bytes(body.as_py())
            for n, stretch in enumerate(one.stretches):
                mine = (one.stretch == n) & (one.kind == 0)
                payload = one.batch(mine.nonzero()[0]).payload.column("v").to_pylist()
                spoken.append((stretch.channel, stretch.sequence, payload))
    return sorted(spoken), refused


def everything(source):
    """The offsets of the micro-batches that read all there is."""
    offsets = [source.initialOffset()]
    while True:
        end = source.latestOffset(offsets[-1], source.getDefaultReadLimit())
        if end == offsets[-1]:
            return offsets
        offsets.append(end)


def next_of(offset):
    return {name: place["next"] for name, place in offset.items()}


def test_every_partition_is_a_channel_and_an_offset_a_place_in_it(topic, send, reader):
    name = topic(partitions=2)
    send(name, row(1), row(2), partition=0)
    send(name, row(3), partition=1)
    source = reader(name)
    start, end = everything(source)
    assert next_of(start) == {name: {"0": 0, "1": 0}}
    assert next_of(end) == {name: {"0": 2, "1": 1}}
    assert said(source, start, end) == ([(f"{name}-0", 0, [1, 2]), (f"{name}-1", 0, [3])], [])
    send(name, row(4), partition=0)
    later = source.latestOffset(end, ReadAllAvailable())
    assert said(source, end, later) == ([(f"{name}-0", 2, [4])], [])


def test_a_limit_is_shared_by_what_partitions_have_to_catch_up_with(topic, send, reader):
    name = topic(partitions=3)
    send(name, *map(row, range(90)), partition=0)
    send(name, *map(row, range(9)), partition=1)
    send(name, row(1), partition=2)
    source = reader(name)
    start = source.initialOffset()
    assert next_of(source.latestOffset(start, ReadMaxRows(10))) == {name: {"0": 9, "1": 1, "2": 1}}
    assert next_of(source.latestOffset(start, ReadAllAvailable())) == {name: {"0": 90, "1": 9, "2": 1}}


def test_small_micro_batches_read_all_and_nothing_twice(topic, send, reader):
    name = topic(partitions=2)
    for partition in (0, 1):
        send(name, *map(row, range(partition, 50, 2)), partition=partition)
    source = reader(name, rows=7, tasks=2)
    offsets = everything(source)
    assert len(offsets) > 5
    found = [
        v for start, end in pairwise(offsets) for _, _, values in said(source, start, end)[0] for v in values
    ]
    assert sorted(found) == list(range(50))


def test_few_partitions_are_cut_for_many_tasks(topic, send, reader):
    names = topic(), topic()
    for name in names:
        send(name, *map(row, range(40)))
    source = reader(*names, tasks=4)
    start, end = everything(source)
    tasks = source.partitions(start, end)
    assert len(tasks) == 4
    assert all({one.replica for one in group} == set(names) for task in tasks for group in task.groups)
    spoken, _ = said(source, start, end)
    for name in names:
        assert [v for channel, _, values in spoken if channel == f"{name}-0" for v in values] == list(
            range(40)
        )


def test_what_comes_after_the_start_of_a_run_over_what_is_there_waits_for_the_next(topic, send, reader):
    name = topic()
    send(name, row(1))
    source = reader(name)
    source.prepareForTriggerAvailableNow()
    send(name, row(2))
    assert next_of(everything(source)[-1]) == {name: {"0": 1}}


def test_a_new_checkpoint_begins_where_it_is_told(topic, send, reader):
    name = topic()
    send(name, row(1), timestamp=1_000_000)
    send(name, row(2), timestamp=2_000_000)
    assert next_of(reader(name).initialOffset()) == {name: {"0": 0}}
    assert next_of(reader(name, start="latest").initialOffset()) == {name: {"0": 2}}
    for seconds, offset in ((1000, 0), (1500, 1), (3000, 2)):
        begin = datetime.fromtimestamp(seconds, UTC).isoformat()
        assert next_of(reader(name, start=begin).initialOffset()) == {name: {"0": offset}}


def test_partitions_that_are_added_are_read_from_their_beginning(broker, topic, send, reader):
    name = topic()
    send(name, row(1))
    source = reader(name)
    first = everything(source)[-1]
    admin = AdminClient({"bootstrap.servers": broker.servers, "log_level": 0})
    admin.create_partitions([NewPartitions(name, 2)])[name].result(30)
    send(name, row(2), partition=1)
    later = source.latestOffset(first, ReadAllAvailable())
    assert said(source, first, later) == ([(f"{name}-1", 0, [2])], [])


def test_the_key_and_the_time_of_a_record_are_columns_where_they_are_named(topic, send, reader):
    name = topic()
    send(name, {"v": 1}, key="left", timestamp=1_700_000_000_123)
    source = reader(name, columns=COLUMNS.remove(1), key="side", timestamp="at")
    source.packing = Packing(Layout("at", replica="replica", disorder=0), 1, 100, ordered=True)
    start, end = everything(source)
    [task] = source.partitions(start, end)
    [rows] = source.read(task)
    one = parcel.from_bytes(rows.column(1)[0].as_py())
    assert one.payload.to_pylist() == [{"v": 1, "side": "left"}]
    assert one.start[0] == 1_700_000_000_123_000


def test_a_value_that_is_no_row_is_refused_with_its_topic_partition_and_offset(topic, send, reader):
    name = topic(partitions=2)
    send(name, row(1), b'{"v": ', row(2), None, partition=1)
    source = reader(name)
    spoken, refused = said(source, *everything(source))
    assert spoken == [(f"{name}-1", 0, [1, 2])]
    assert [(one.place, one.raw, one.replica) for one in refused] == [
        (f"{name}[1]@1", '{"v": ', name),
        (f"{name}[1]@3", "", name),
    ]


def settled(source, place):
    """The end of a transaction is noted in each partition a moment after the broker has promised it."""
    return any(next_of(source.reportLatestOffset()) == place for _ in range(1000))


def test_records_of_transactions_are_read_when_they_are_committed_and_never_when_aborted(
    broker, topic, send, reader
):
    name = topic()
    source = reader(name)
    producer = Producer({"bootstrap.servers": broker.servers, "transactional.id": name, "log_level": 0})
    producer.init_transactions(30)
    for number, end in enumerate((producer.commit_transaction, producer.abort_transaction)):
        producer.begin_transaction()
        producer.produce(name, msgspec.json.encode(row(number)))
        producer.flush(30)
        before = source.reportLatestOffset()
        end(30)
        assert next_of(before) == {name: {"0": 2 * number}}
        assert settled(source, {name: {"0": 2 * number + 2}})
    start, end = everything(source)
    assert next_of(end) == {name: {"0": 4}}
    assert said(source, start, end) == ([(f"{name}-0", 0, [0])], [])
    producer.begin_transaction()
    producer.produce(name, msgspec.json.encode(row(7)))
    producer.flush(30)
    send(name, row(8))
    assert source.latestOffset(end, ReadAllAvailable()) == end
    producer.abort_transaction(30)
    assert settled(source, {name: {"0": 7}})
    later = source.latestOffset(end, ReadAllAvailable())
    assert said(source, end, later) == ([(f"{name}-0", 5, [8])], [])


def test_records_that_were_deleted_before_they_were_read_stop_the_query_and_are_named(
    broker, topic, send, reader
):
    name = topic()
    send(name, *map(row, range(10)))
    source = reader(name)
    start, end = everything(source)
    admin = AdminClient({"bootstrap.servers": broker.servers, "log_level": 0})
    admin.delete_records([TopicPartition(name, 0, 5)])[TopicPartition(name, 0, 5)].result(30)
    with pytest.raises(WorkerError) as told:
        said(source, start, end)
    assert isinstance(failure(told.value), TopicError)
    assert f"{name}[0]@0 is no longer there" in str(told.value)


def test_a_topic_that_is_made_again_is_not_taken_for_the_old_one(broker, topic, send, reader):
    name = topic()
    send(name, row(1))
    source = reader(name)
    read = everything(source)[-1]
    broker.drop_topic(name)
    broker.make_topic(name)
    send(name, row(2), row(3))
    with pytest.raises(WorkerError, match="deleted and made again"):
        source.latestOffset(read, ReadAllAvailable())


def test_a_topic_that_is_not_there_is_named(reader, broker):
    with pytest.raises(WorkerError, match=f"no topic 'nowhere' at {broker.servers}") as told:
        reader("nowhere").initialOffset()
    assert isinstance(failure(told.value), TopicError)


def test_a_cluster_that_does_not_answer_is_named_and_no_secret_is_told(reader):
    topic = Topic("any", "127.0.0.1:1", {"sasl.password": "hunter2", "socket.timeout.ms": "1000"})
    with pytest.raises(BrokerError, match=r"127\.0\.0\.1:1 does not answer") as told:
        Cluster(topic, patience=0.5).partitions()
    assert "hunter2" not in str(told.value) + repr(topic) + "".join(told.value.__notes__)


def test_a_replica_that_is_no_longer_given_is_named(topic, send, reader):
    names = topic(), topic()
    read = reader(*names).initialOffset()
    with pytest.raises(WorkerError, match="has read a replica"):
        reader(names[0]).latestOffset(read, ReadAllAvailable())


def test_a_broker_that_is_killed_is_waited_for_and_nothing_is_lost(reader):
    with Broker() as own:
        own.make_topic("readings")
        producer = Producer({"bootstrap.servers": own.servers, "log_level": 0})
        for v in range(100):
            producer.produce("readings", msgspec.json.encode(row(v)))
        assert producer.flush(60) == 0
        source = reader("readings", servers=own.servers, rows=30)
        start = source.initialOffset()
        first = source.latestOffset(start, ReadMaxRows(30))
        assert said(source, start, first)[0] == [("readings-0", 0, list(range(30)))]
        own.kill()
        own.start()
        rest = source.latestOffset(first, ReadAllAvailable())
        assert said(source, first, rest)[0] == [("readings-0", 30, list(range(30, 100)))]


def test_readers_leave_no_consumer_group_behind(broker, topic, send, reader):
    name = topic()
    send(name, row(1))
    source = reader(name)
    said(source, *everything(source))
    group = Consumer({"bootstrap.servers": broker.servers, "group.id": "anabranch", "log_level": 0})
    [place] = group.committed([TopicPartition(name, 0)], 30)
    group.close()
    assert place.offset < 0
