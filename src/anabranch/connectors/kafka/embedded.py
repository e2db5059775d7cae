"""Topics of Kafka as the source of a plan in this process.

A topic is a replica, or the only one; each of its partitions is a channel. Nothing is stable before every
partition that has records has spoken. A topic is read to where its partitions end when the run begins; a live
one is followed.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa

from anabranch.connectors.files.debezium import Debezium
from anabranch.connectors.files.values import Format
from anabranch.connectors.kafka.cluster import SECONDS, Cluster, Positions, Topic, TopicError, check_packages
from anabranch.connectors.kafka.descriptions import beginning, format_named, seconds, topics_named
from anabranch.connectors.kafka.formats import Arrow, Avro, Json, check_package
from anabranch.connectors.kafka.reading import ROWS_OF_RECORD, Reader, RecordRange, Records
from anabranch.engines.embedded.feeds import Extent, Feed, Mark, Positioned, Reading
from anabranch.engines.embedded.intake import Intake, read_intake
from anabranch.model.origin import Origin
from anabranch.plan.node import PlanError
from anabranch.plan.source import Source
from anabranch.rows.layout import SINGLE

ROWS, BYTES = 16_384, 16 << 20
"""Records, and bytes of them, that are taken in at a time."""
PAUSE = 0.5
"""Seconds between looks at where a live partition ends."""


@dataclass(frozen=True, slots=True)
class TopicFeeds:
    """Topics, as `run` takes them for a source."""

    topics: Mapping[str, Topic]
    format: Format = field(default_factory=Json)
    key: str | None = None
    timestamp: str | None = None
    start: str = "earliest"
    patience: float = SECONDS

    def feeds(self, source: Source, reading: Reading) -> list[Feed]:
        """A feed for each partition of each topic."""
        if source.layout is None or source.columns is None:
            error = PlanError(f"records are rows, and {source.name!r} is of elements")
            error.add_note("Say what the columns of the values mean: source(…, start=…).")
            raise error
        several = list(self.topics) != [SINGLE]
        if several and not source.replicated:
            error = PlanError(f"several topics are replicas, and {source.name!r} is not of replicas")
            error.add_note("Give the source replica=… and merge it, or give one topic.")
            raise error
        reader = Reader(
            self.topics,
            self.format,
            self._records(source, source.columns, several=several),
            source.reads,
            self.patience,
            several=isinstance(self.format, Arrow),
        )
        return [feed for name in self.topics for feed in self._partitions(source, name, reader, reading)]

    def _records(self, source: Source, columns: pa.Schema, *, several: bool) -> Records:
        assert source.layout is not None
        beside = {self.key, self.timestamp, source.layout.replica if several else None} - {None}
        for name in beside:
            if name not in columns.names:
                error = PlanError(f"column {name!r} is beside the values of records, and not of the source")
                error.add_note(f"Its columns are {', '.join(map(repr, columns.names))}.")
                raise error
        value = pa.schema([one for one in columns if one.name not in beside])
        return Records(value, self.key, self.timestamp, source.layout.replica if several else None)

    def _partitions(self, source: Source, name: str, reader: Reader, reading: Reading) -> Iterator[Feed]:
        cluster = Cluster(self.topics[name], self.patience)
        partitions = cluster.partitions()
        ends, begins = cluster.ends(partitions), self._begins(cluster, partitions)
        replica = "" if name == SINGLE else name
        # Where rows name their channels, or who sent them, a partition is no channel that is waited for.
        own = source.has_channels() or (source.replicated and not replica)
        joined = cluster.begins(partitions)
        identity = cluster.identity()
        for number in partitions:
            part = RecordRange(name, number, begins[number], ends[number])
            channel = "" if own else f"{self.topics[name].name}-{number}"
            label = f"{self.topics[name].name}[{number}]"
            extent = None if reading.live else Extent(max(part.end - part.begin, 0))
            records = _Partition(source, reader, cluster, part, label, identity, reading, extent)
            positioned = Positioned(
                "a partition of Kafka",
                records.again,
                records.place(part.begin, part.end),
                records.place(joined[number], part.end),
            )
            yield Feed(
                source.name,
                records.read(part.begin, part.end),
                replica,
                channel,
                extent,
                again=True,
                positioned=positioned,
                part=label if own else "",
            )

    def _begins(self, cluster: Cluster, partitions: list[int]) -> Positions:
        match self.start:
            case "earliest":
                return cluster.begins(partitions)
            case "latest":
                return cluster.ends(partitions)
            case text:
                return cluster.since(datetime.fromisoformat(text), partitions)


@dataclass(frozen=True, slots=True)
class _Partition:
    """A partition of a topic, which is followed where it is read live."""

    source: Source
    reader: Reader
    cluster: Cluster
    part: RecordRange
    label: str
    identity: str
    """Of the topic."""
    reading: Reading
    extent: Extent | None

    def place(self, begin: int, end: int) -> dict[str, str | int]:
        """A place: records from one offset to another are read together."""
        return {"topic": self.identity, "next": begin, "end": end}

    def again(self, place: Mapping[str, Any], used: int) -> Iterator[Intake | Mark]:
        """The records from a place on."""
        if place["topic"] != self.identity:
            error = TopicError(
                f"{self.label} was read up to {place['next']} in a topic that was deleted, and another has "
                "its name now: its offsets mean other records"
            )
            error.add_note("Begin without a state, or give the new topic as another input.")
            raise error
        if self.extent is not None:
            self.extent.done += max(place["next"] - self.part.begin, 0)
        return self.read(place["next"], place["end"] if used else self.part.end)

    def read(self, begin: int, end: int) -> Iterator[Intake | Mark]:
        """The records from one offset to another, then those after it: to the end, or to a stop."""
        last = None if self.reading.live else self.part.end
        while True:
            if end > begin:
                yield from self._range(begin, end)
                begin = end
            elif last is not None or self.reading.stop.wait(PAUSE):
                return
            number = self.part.partition
            end = self.cluster.ends([number])[number] if last is None else last

    def _range(self, begin: int, end: int) -> Iterator[Intake | Mark]:
        yield Mark(self.place(begin, end))
        part = replace(self.part, begin=begin, end=end)
        for read, after in self.reader.lots(part, ROWS, BYTES):
            offsets = read.sequence // ROWS_OF_RECORD if self.reader.several else read.sequence
            origin = Origin(offsets, None, (self.label,)) if self.source.reads.sequence is None else None
            taken = read_intake(self.source, read, origin)
            if self.extent is not None:
                self.extent.done += len(taken)
            yield taken
            yield Mark(self.place(after, end))
        yield Mark(self.place(end, end))


def kafka(
    topics: str | Topic | Iterable[str] | Mapping[str, str | Topic],
    *,
    servers: str | None = None,
    format: str | Avro | Debezium = "json",  # noqa: A002
    key: str | None = None,
    timestamp: str | None = None,
    start: str | datetime = "earliest",
    patience: int | timedelta | str = timedelta(seconds=SECONDS),
    config: Mapping[str, str] | None = None,
) -> TopicFeeds:
    """Topics of Kafka, for `run`; the columns of their values are those of the source.

    ``topics`` is one topic; or several, each a replica that has its name; or a mapping from names of replicas
    to topics. ``format`` is json, arrow, an `Avro` with its schema, or debezium: envelopes of rows, to which
    it adds ``op`` and ``time``. ``key`` and ``timestamp`` name the columns of the source for the key of a
    record and its time in Kafka; the names of replicas are in its column ``replica``. It is read from
    ``start``: earliest, latest, or the first records not older than a time. A cluster that does not answer is
    waited for ``patience`` long. ``config`` has settings of librdkafka for security and the network.
    """
    check_packages()
    form = format_named(format)
    if isinstance(form, Avro):
        check_package()
    named = topics_named(topics, servers, config)
    return TopicFeeds(named, form, key, timestamp, beginning(start), seconds(patience))
