"""Records between two offsets of a partition, as elements: what a task does.

Consumers are kept for the next micro-batch of the same worker, because connecting takes longer than reading.
"""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anabranch.connectors.files.values import Format
from anabranch.connectors.kafka.cluster import BrokerError, Topic, TopicError
from anabranch.model.validity import Rule
from anabranch.rows.layout import Layout
from anabranch.rows.reading import Place, Read, read_rows
from anabranch.rows.refusal import Refusal

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Message

TOGETHER = 1000
"""Records asked for at once."""
ROWS_OF_RECORD = 1 << 20
"""More rows than a record has: the sequence of a row is its record's offset and its own number."""
READ_AHEAD = {"queued_max_messages_kbytes": 16 << 10, "fetch_wait_max_ms": 50}


@dataclass(frozen=True, slots=True)
class Records:
    """The columns that records have: those of the value, and names for what stands beside it."""

    value: pa.Schema
    key: str | None = None
    timestamp: str | None = None
    replica: str | None = None

    def schema(self) -> pa.Schema:
        """All columns."""
        columns = list(self.value)
        if self.key is not None:
            columns.append(pa.field(self.key, pa.string()))
        if self.timestamp is not None:
            columns.append(pa.field(self.timestamp, pa.timestamp("us", "UTC")))
        if self.replica is not None:
            columns.append(pa.field(self.replica, pa.string()))
        return pa.schema(columns)


@dataclass(frozen=True, slots=True)
class RecordRange:
    """The records of a partition from one offset to before another."""

    replica: str
    partition: int
    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class _RecordPlace(Place):
    """Rows of records: their offsets, and which row of its record each is."""

    offsets: NDArray[np.int64] | None = None
    rows: NDArray[np.int64] | None = None

    def sequences(self, count: int) -> NDArray[np.int64]:
        assert self.offsets is not None, "rows of records have offsets"
        if self.rows is None:
            return self.offsets
        return self.offsets * ROWS_OF_RECORD + self.rows

    def of(self, row: int) -> str:
        assert self.offsets is not None, "rows of records have offsets"
        place = f"{self.source}@{self.offsets[row]}"
        return place if self.rows is None else f"{place} row {self.rows[row]}"


@dataclass(frozen=True)
class Reader:
    """How records become elements."""

    topics: Mapping[str, Topic]
    format: Format
    records: Records
    layout: Layout
    patience: float
    several: bool
    """A record may be several rows."""

    def reads(self, group: list[RecordRange], rows: int, size: int) -> Iterator[list[Read]]:
        """What several ranges say, a lot of each in turn, so that copies of an event are together.

        ``rows`` and ``size`` are how many records and bytes all together say in a turn, about.
        """
        each, bytes_each = max(rows // len(group), 1), max(size // len(group), 1)
        with _consumers([self.topics[part.replica] for part in group]) as consumers:
            said = (
                self._lots(part, consumer, each, bytes_each)
                for part, consumer in zip(group, consumers, strict=True)
            )
            for turn in zip_longest(*said):
                yield [lot[0] for lot in turn if lot is not None]

    def lots(self, part: RecordRange, rows: int, size: int) -> Iterator[tuple[Read, int]]:
        """What a range says, lot by lot, and the offset after each lot."""
        with _consumers([self.topics[part.replica]]) as consumers:
            yield from self._lots(part, consumers[0], rows, size)

    def _lots(
        self, part: RecordRange, consumer: "Consumer", rows: int, size: int
    ) -> Iterator[tuple[Read, int]]:
        waiting: list[Message] = []
        held = 0
        for message in self._messages(part, consumer):
            waiting.append(message)
            held += len(message.value() or b"")
            if len(waiting) >= rows or held >= size:
                yield self._read(part, waiting), _after(waiting)
                waiting, held = [], 0
        if waiting:
            yield self._read(part, waiting), _after(waiting)

    def _messages(self, part: RecordRange, consumer: "Consumer") -> "Iterator[Message]":
        """The records of a range; offsets without a record are passed over."""
        from confluent_kafka import KafkaError, TopicPartition

        topic = self.topics[part.replica]
        consumer.assign([TopicPartition(topic.name, part.partition, part.begin)])
        reached, heard = part.begin, time.monotonic()
        while reached < part.end:
            for message in consumer.consume(min(TOGETHER, part.end - reached), 1.0):
                error, offset = message.error(), message.offset() or 0
                if error is not None and error.code() != KafkaError._PARTITION_EOF:
                    raise _unreadable(topic, part, reached, error)
                if offset >= part.end:
                    return
                if error is None:
                    yield message
                    reached, heard = offset + 1, time.monotonic()
            if time.monotonic() - heard > self.patience:
                wanted = f"{topic.name}[{part.partition}]@{reached}"
                silent = BrokerError(f"{topic.servers} gave nothing of {wanted} for {self.patience:g} s")
                silent.add_note("Is the broker up? The query goes on from its checkpoint when it is.")
                raise silent

    def _read(self, part: RecordRange, messages: "list[Message]") -> Read:
        topic = self.topics[part.replica].name
        offsets = np.array([message.offset() for message in messages], np.int64)
        values = [message.value() for message in messages]
        found = self.format.read(values, self.records.value)
        numbers = _within(found.origin) if self.several else None
        source, channel = f"{topic}[{part.partition}]", f"{topic}-{part.partition}"
        place = _RecordPlace(source, channel=channel, offsets=offsets[found.origin], rows=numbers)
        read = read_rows(self.layout, self._with_rest(found.rows, found.origin, part, messages), place)
        for n, reason in found.refused:
            raw = (values[n] or b"").decode(errors="replace")
            where = f"{source}@{offsets[n]}"
            read.refused.append(Refusal(Rule.MALFORMED.value, reason, part.replica, where, raw))
        return read

    def _with_rest(
        self,
        rows: pa.RecordBatch,
        origin: NDArray[np.int64],
        part: RecordRange,
        messages: "list[Message]",
    ) -> pa.RecordBatch:
        """Rows with the columns that stand beside the value."""
        columns: list[Any] = rows.columns
        if self.records.key is not None:
            keys = [message.key() for message in messages]
            texts = [None if key is None else _text(key) for key in keys]
            columns.append(pa.array(texts, pa.string()).take(pa.array(origin)))
        if self.records.timestamp is not None:
            times = np.array([message.timestamp()[1] for message in messages], np.int64)[origin] * 1000
            columns.append(pa.array(times).cast(pa.timestamp("us", "UTC")))
        if self.records.replica is not None:
            codes = pa.repeat(pa.scalar(0, pa.int32()), rows.num_rows)
            columns.append(pa.DictionaryArray.from_arrays(codes, [part.replica]))
        return pa.RecordBatch.from_arrays(columns, names=self.records.schema().names)


def _after(messages: "list[Message]") -> int:
    """The offset after the last of some records."""
    return int(messages[-1].offset() or 0) + 1


def _within(origin: NDArray[np.int64]) -> NDArray[np.int64]:
    """Of each row its number among those of its record."""
    first = np.searchsorted(origin, origin)
    return np.arange(len(origin)) - first


def _text(key: bytes | str) -> str:
    return key if isinstance(key, str) else key.decode(errors="replace")


def _unreadable(topic: Topic, part: RecordRange, reached: int, error: Any) -> Exception:
    from confluent_kafka import KafkaError

    where = f"{topic.name}[{part.partition}]@{reached}"
    if error.code() in (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE):
        gone = TopicError(f"{where} is no longer there: records were deleted before they were read")
        gone.add_note("Keep records for longer (retention.ms, retention.bytes), and begin a new checkpoint.")
        return gone
    return BrokerError(f"{where} cannot be read from {topic.servers}: {error.str()}")


_resting: dict[Topic, list["Consumer"]] = {}


@contextmanager
def _consumers(topics: list[Topic]) -> "Iterator[list[Consumer]]":
    """A consumer for each; they rest where all went well, for whoever reads next."""
    from confluent_kafka import Consumer

    taken = []
    for topic in topics:
        resting = _resting.setdefault(topic, [])
        settings = topic.settings(
            group_id="anabranch",
            enable_auto_commit=False,
            enable_partition_eof=True,
            auto_offset_reset="error",
            isolation_level="read_committed",
            **READ_AHEAD,
        )
        taken.append(resting.pop() if resting else Consumer(settings))
    try:
        yield taken
    except BaseException:
        for consumer in taken:
            consumer.close()
        raise
    for topic, consumer in zip(topics, taken, strict=True):
        consumer.unassign()
        _resting[topic].append(consumer)
