"""Element rows into a topic: events by partition, each stable after all it covers and in every partition.

Tasks send the events of a micro-batch, the driver its stable when all tasks are done. An event and what is
said of it later go to one partition, so their order is kept.

**At least once**: what was sent of a micro-batch that is cut short is sent again with it. **Exactly once**:
each task sends its part of a micro-batch in one transaction, which also commits the number of the
micro-batch as the offset of a consumer group of the task; who finds it there already sends nothing. A task
always has the same rows of a micro-batch, because a merge is deterministic. Readers have to read committed
records only, as ours do.

Refused rows go to a folder, as JSON lines: a file for each micro-batch and task, the last attempt's.
"""

import os
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import DataSource, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from anabranch.connectors.files.local_path import local_path
from anabranch.connectors.folder.file_places import FilePlaces
from anabranch.connectors.kafka.cluster import SECONDS, BrokerError, Cluster, Topic, check_packages
from anabranch.connectors.kafka.envelopes import envelopes
from anabranch.engines.spark.frame_metadata import POLICY
from anabranch.engines.spark.hidden_rows import whole
from anabranch.engines.spark.query.begun_with import begun_with, check_begun_with, topic_sink
from anabranch.engines.spark.query.check import went_back
from anabranch.engines.spark.query.checkpoint import query_id
from anabranch.engines.spark.query.failure import errors_to_driver
from anabranch.engines.spark.query.provenance import check_rows_apart, numbered_by
from anabranch.engines.spark.query.seal import seal
from anabranch.engines.spark.query.start import check_elements, check_streaming, check_trigger, started
from anabranch.engines.spark.transport.frontier_rows import Frontier, least, without_frontiers
from anabranch.model.identity import identities
from anabranch.model.spelling import did_you_mean
from anabranch.rows.element_columns import REFUSED, TIMES
from anabranch.rows.layout import names_of
from anabranch.rows.text import text_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

NAME = "anabranch-kafka-sink"
ENVELOPES = "debezium"
FORMATS = ("json", "arrow", ENVELOPES)
_BATCH = "streaming.sql.batchId"
_FIRST = 0
"""The partition in whose name the numbers of micro-batches are committed."""
_ABORTING = 5.0


def write_kafka(
    rows: "DataFrame",
    topic: str | Topic,
    *,
    checkpoint: str | Path,
    servers: str | None = None,
    key: str | Sequence[str] | None = None,
    format: str = "json",  # noqa: A002
    exactly_once: bool = False,
    quarantine: str | Path | None = None,
    available_now: bool = False,
    trigger: str | None = None,
    name: str | None = None,
    config: Mapping[str, str] | None = None,
) -> "StreamingQuery":
    """Start a query that writes what `merge` gives to a topic that is there.

    A record is an element: its value has the columns kind, start, end, old_end and the payload, as JSON or as
    an Arrow stream of one row. ``key`` names columns whose values are the key of the record, and choose its
    partition; without it the whole payload does. ``checkpoint`` is the folder from which the query goes on
    after a restart. Records arrive at least once, or, where ``exactly_once``, in transactions of the broker.
    Refused rows go to the folder ``quarantine`` (default: one in the checkpoint). ``config`` has settings of
    librdkafka, and is not logged.

    With the format debezium a record is a change of the row that ``key`` names, as an envelope, and its key
    is an object of those columns (`envelopes.py`): for what `merge_changes` gives by the same key under the
    policy `HalfFrozen`. Stables are not sent then.
    """
    check_packages()
    if format not in FORMATS:
        raise ValueError(f"values are one of {', '.join(FORMATS)}, {format!r} is none")
    check_trigger(available_now=available_now, trigger=trigger)
    check_elements(rows)
    given = topic if isinstance(topic, Topic) else Topic(topic)
    where = given.servers or servers
    if where is None:
        error = ValueError(f"a cluster is known by its servers, and topic {given.name!r} has none")
        error.add_note("Pass servers='host:9092', or a Topic with servers of its own.")
        raise error
    columns = names_of(key)
    if format == ENVELOPES and not columns:
        error = ValueError(f"an envelope is of the row that its key names, and key is {key!r}")
        error.add_note("Name the columns of the primary key of the table, as merge_changes(key=…) does.")
        raise error
    check_records(rows.schema, format, columns)
    check_streaming(rows)
    place = local_path(checkpoint)
    aside = local_path(quarantine) if quarantine is not None else place / "quarantine"
    check_rows_apart(rows, None, place, aside)
    begins = begun_with(rows, topic_sink(given.name, format, key))
    check_begun_with(place, begins)
    complete = Topic(given.name, where, {**(config or {}), **given.config})
    Cluster(complete).partitions()
    told = Sending(
        complete.name,
        where,
        dict(complete.config),
        columns,
        format,
        exactly_once,
        query_id(place),
        str(aside),
        str(place),
        numbered_by(rows),
    )
    rows.sparkSession.dataSource.register(KafkaSink)
    writer = whole(rows).writeStream.format(NAME).option("secret", msgspec.json.encode(told).decode())
    return started(writer, place, available_now=available_now, trigger=trigger, name=name, settings=begins)


class Sending(msgspec.Struct, frozen=True):
    """What a sink is told."""

    topic: str
    servers: str
    config: dict[str, str]
    key: tuple[str, ...] | None
    format: str
    exactly_once: bool
    query: str
    quarantine: str
    checkpoint: str
    numbered: dict[str, str] = {}
    """The folders whose files and lines number rows, by the names of their sources."""


class KafkaSink(DataSource):
    """A topic that element rows are written to."""

    @classmethod
    def name(cls) -> str:
        """What the format is called."""
        return NAME

    def streamWriter(self, schema: Any, overwrite: bool) -> "KafkaWriter":  # noqa: N802
        """A writer of the topic."""
        return KafkaWriter(self.options["secret"])


@dataclass
class Sent(WriterCommitMessage):
    """What one task leaves for the end: the value of the stable, if it was told one."""

    stables: list[bytes]
    frontiers: dict[Frontier, bytes]
    """Of shards that are at frontiers of their own, where they are, and the value of that stable."""


class KafkaWriter(DataSourceStreamArrowWriter):
    """Tasks send events; the driver sends the stable when all are sent."""

    def __init__(self, told: str) -> None:
        self.told = told

    @property
    def sending(self) -> Sending:
        """How records are sent."""
        return msgspec.json.decode(self.told, type=Sending)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Sent:
        """Send the rows of one task."""
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None, "a task knows which it is"
        task, batch = context.partitionId(), int(context.getLocalProperty(_BATCH) or 0)
        sending, stables, refused, changed = self.sending, [], [], []
        frontiers: dict[Frontier, bytes] = {}
        with errors_to_driver(), _sender(sending, f"{task}", batch) as send:
            for rows in iterator:
                elements, told, own, refusals = apart(rows)
                refused += refusals
                if sending.format == ENVELOPES:
                    changed.append(elements)
                    continue
                stables += _values(told, sending.format)
                for frontier, stable in own.items():
                    (frontiers[frontier],) = _values(stable, sending.format)
                if len(elements):
                    keys, partition_by = _keys(elements, sending.key)
                    for value, key, number in zip(
                        _values(elements, sending.format), keys, partition_by, strict=True
                    ):
                        send(value, key, number)
            for word, envelope in envelopes(changed, sending.key or (), sending.topic):
                send(envelope, word, None)
            if refused and sending.numbered:
                places = FilePlaces(sending.numbered, Path(sending.checkpoint), batch)
                refused = [places.placed(row) for row in refused]
            name = f"{sending.query}-{batch:09}-{task:04}.jsonl"
            _quarantine(Path(sending.quarantine), name, refused)
        return Sent(stables, frontiers)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Send the stable of a micro-batch to every partition."""
        sent = [one for one in messages if isinstance(one, Sent)]
        stables = [value for one in sent for value in one.stables]
        frontiers = {frontier: value for one in sent for frontier, value in one.frontiers.items()}
        if (behind := least(frontiers)) is not None:
            stables.append(frontiers[behind])
        assert len(stables) <= 1, "one shard says the stable"
        sending = self.sending
        with errors_to_driver():
            if stables:
                with _sender(sending, "stable", batchId) as send:
                    for partition in Cluster(_topic(sending)).partitions():
                        send(stables[0], None, partition)
            seal(Path(sending.checkpoint), batchId)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """What was sent stays; it is sent again, or was in a transaction that is not complete."""


def apart(
    rows: pa.RecordBatch,
) -> tuple[pa.RecordBatch, pa.RecordBatch, dict[Frontier, pa.RecordBatch], list[dict[str, Any]]]:
    """Events, stables, the frontiers of shards, and refused rows."""
    refused: list[dict[str, Any]] = []
    if REFUSED in rows.schema.names:
        column = rows.column(REFUSED)
        if column.null_count < len(rows):
            refused = rows.filter(column.is_valid()).column(REFUSED).to_pylist()
            rows = rows.filter(column.is_null())
        rows = rows.drop_columns([REFUSED])
    rows, frontiers = without_frontiers(rows)
    is_stable = pc.equal(rows.column("kind"), "stable")
    if not pc.any(is_stable).as_py():
        return rows, rows[:0], frontiers, refused
    return rows.filter(pc.invert(is_stable)), rows.filter(is_stable), frontiers, refused


def check_records(schema: StructType, form: str, key: Sequence[str] | None) -> None:
    """Raise where element rows of these columns have not the key of their records, or make no envelopes."""
    if form == ENVELOPES:
        _check_policy(schema)
    known = _row_columns(schema) if form == ENVELOPES else schema.names
    for column in key or ():
        if column not in known:
            error = ValueError(
                f"the key is column {column!r}, and there is none{did_you_mean(column, known)}"
            )
            error.add_note(f"The columns are {', '.join(map(repr, known))}.")
            raise error


def _check_policy(schema: StructType) -> None:
    """Raise where an end may come out later than the row that follows, and would read as its delete."""
    policy = schema["kind"].metadata.get(POLICY, "HalfFrozen")
    if policy not in ("HalfFrozen", "FollowLeader"):
        error = ValueError(f"envelopes need a row and the end of the one before at once, not {policy}")
        error.add_note("Merge with policy=HalfFrozen(), or send elements: format='json'.")
        if policy == "EveryChange":
            error.add_note("EveryChange() is what merge_changes takes where no policy is given.")
        raise error


def _row_columns(schema: StructType) -> list[str]:
    """The columns of the rows of the table, which are in one where a name means something else."""
    names = [name for name in schema.names if name not in ("kind", *TIMES, REFUSED)]
    nested = schema[names[0]].dataType if names == ["payload"] else None
    return nested.fieldNames() if isinstance(nested, StructType) else names


def _values(rows: pa.RecordBatch, form: str) -> list[bytes]:
    if form == "json":
        return [text_of(row).encode() for row in rows.to_pylist(maps_as_pydicts="strict")]
    return [_stream(rows[n : n + 1]) for n in range(len(rows))]


def _stream(row: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, row.schema) as writer:
        writer.write_batch(row)
    return sink.getvalue().to_pybytes()


def _keys(
    rows: pa.RecordBatch, key: tuple[str, ...] | None
) -> tuple[Sequence[bytes | None], Sequence[int | None]]:
    """The key of each record, or what chooses its partition where it has none."""
    if key is None:
        payload = rows.select([name for name in rows.schema.names if name not in ("kind", *TIMES)])
        return [None] * len(rows), (identities(payload)[:, 0] >> 1).tolist()
    if len(key) == 1:
        values = rows.column(key[0]).to_pylist()
        return [_key_text(value) for value in values], [None] * len(rows)
    return [text_of(row).encode() for row in rows.select(list(key)).to_pylist()], [None] * len(rows)


def _key_text(value: Any) -> bytes | None:
    if value is None or isinstance(value, bytes):
        return value
    return value.encode() if isinstance(value, str) else msgspec.json.encode(value, enc_hook=str)


Send = Callable[[bytes | None, bytes | None, int | None], None]


@contextmanager
def _sender(sending: Sending, part: str, batch: int) -> Iterator[Send]:
    """Sends records, all of which have arrived at the end; nothing, where they had arrived before."""
    from confluent_kafka import KafkaException, Producer

    topic = _topic(sending)
    ours: dict[str, Any] = {"enable_idempotence": True, "linger_ms": 20, "partitioner": "murmur2_random"}
    if sending.exactly_once:
        ours["transactional_id"] = f"anabranch-{sending.query}-{part}"
    producer = Producer(topic.settings(**ours))
    wrong: list[Any] = []

    def arrived(error: Any, _: Any) -> None:
        if error is not None:
            wrong.append(error)

    try:
        if sending.exactly_once:
            producer.init_transactions(SECONDS)
            done = _committed(sending, part)
            if done > batch + 1:
                proof = f"topic {topic.name!r} has records of micro-batch {done - 1}"
                raise went_back(Path(sending.checkpoint), batch, proof)
            if done > batch:
                yield lambda *_: None
                return
            producer.begin_transaction()
        count = len(Cluster(topic).partitions())

        def send(value: bytes | None, key: bytes | None, number: int | None) -> None:
            if wrong:
                raise _unsent(topic, wrong[0].str())
            place = {} if number is None else {"partition": number % count}
            while True:
                try:
                    producer.produce(topic.name, value, key, on_delivery=arrived, **place)
                    producer.poll(0)
                    return
                except BufferError:
                    producer.poll(0.1)

        yield send
        if sending.exactly_once:
            _commit(producer, sending, part, batch)
        elif producer.flush(SECONDS) and not wrong:
            raise _unsent(topic, f"no answer for {SECONDS:g} s")
        if wrong:
            raise _unsent(topic, wrong[0].str())
    except BaseException as raised:
        if sending.exactly_once:
            with suppress(KafkaException):
                producer.abort_transaction(_ABORTING)
        if isinstance(raised, KafkaException):
            raise _unsent(topic, raised.args[0].str()) from None
        raise


def _commit(producer: Any, sending: Sending, part: str, batch: int) -> None:
    from confluent_kafka import Consumer, TopicPartition

    group = Consumer(_topic(sending).settings(group_id=_group(sending, part)))
    try:
        place = TopicPartition(sending.topic, _FIRST, batch + 1)
        producer.send_offsets_to_transaction([place], group.consumer_group_metadata(), SECONDS)
        producer.commit_transaction(SECONDS)
    finally:
        group.close()


def _committed(sending: Sending, part: str) -> int:
    """The number of the micro-batch that a part would send next, as the broker knows it."""
    from confluent_kafka import Consumer, TopicPartition

    group = Consumer(_topic(sending).settings(group_id=_group(sending, part)))
    try:
        [place] = group.committed([TopicPartition(sending.topic, _FIRST)], SECONDS)
        return max(place.offset, 0)
    finally:
        group.close()


def _group(sending: Sending, part: str) -> str:
    return f"anabranch-{sending.query}-{part}"


def _topic(sending: Sending) -> Topic:
    return Topic(sending.topic, sending.servers, sending.config)


def _unsent(topic: Topic, words: str) -> BrokerError:
    error = BrokerError(f"topic {topic.name!r} at {topic.servers} does not take records: {words}")
    error.add_note("Mend it and start the query again: what was not sent is sent then.")
    return error


def _quarantine(place: Path, name: str, refused: list[dict[str, Any]]) -> None:
    file = place / name
    if not refused:
        file.unlink(missing_ok=True)
        return
    place.mkdir(parents=True, exist_ok=True)
    part = place / f".{uuid.uuid4().hex}"
    part.write_text("".join(f"{text_of(row)}\n" for row in refused), encoding="utf-8")
    os.replace(part, file)
