"""Topics of Kafka as the source of a plan in this process.

A topic is a replica, or the only one; each of its partitions is a channel. Nothing is stable before every
partition that has records has spoken. A topic is read to where its partitions end when the run begins; a live
one is followed.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import pyarrow as pa

from anabranch.connectors.files.debezium import Debezium
from anabranch.connectors.files.values import Format
from anabranch.connectors.kafka.cluster import SECONDS, Cluster, Positions, Topic, check_packages
from anabranch.connectors.kafka.descriptions import beginning, format_named, seconds, topics_named
from anabranch.connectors.kafka.formats import Arrow, Avro, Json, check_package
from anabranch.connectors.kafka.reading import ROWS_OF_RECORD, Reader, RecordRange, Records
from anabranch.engines.embedded.feeds import Extent, Feed, Reading
from anabranch.engines.embedded.intake import Intake, read_intake
from anabranch.engines.embedded.stopping import Stop
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
        for number in partitions:
            part = RecordRange(name, number, begins[number], ends[number])
            channel = "" if own else f"{self.topics[name].name}-{number}"
            label = f"{self.topics[name].name}[{number}]"
            part_label = label if own else ""
            if reading.live:
                items = self._followed(source, reader, cluster, part, label, reading.stop)
                yield Feed(source.name, items, replica, channel, again=True, part=part_label)
            else:
                extent = Extent(max(part.end - part.begin, 0))
                items = _intakes(source, reader, part, label, extent)
                yield Feed(source.name, items, replica, channel, extent, again=True, part=part_label)

    def _begins(self, cluster: Cluster, partitions: list[int]) -> Positions:
        match self.start:
            case "earliest":
                return cluster.begins(partitions)
            case "latest":
                return cluster.ends(partitions)
            case text:
                return cluster.since(datetime.fromisoformat(text), partitions)

    def _followed(
        self, source: Source, reader: Reader, cluster: Cluster, first: RecordRange, label: str, stop: Stop
    ) -> Iterator[Intake]:
        """The records of a partition, and those that come, until a stop."""
        begin, end = first.begin, first.end
        while True:
            if end > begin:
                yield from _intakes(
                    source, reader, RecordRange(first.replica, first.partition, begin, end), label
                )
                begin = end
            elif stop.wait(PAUSE):
                return
            end = cluster.ends([first.partition])[first.partition]


def _intakes(
    source: Source, reader: Reader, part: RecordRange, label: str, extent: Extent | None = None
) -> Iterator[Intake]:
    if part.end <= part.begin:
        return
    for turn in reader.reads([part], ROWS, BYTES):
        for read in turn:
            offsets = read.sequence // ROWS_OF_RECORD if reader.several else read.sequence
            origin = Origin(offsets, None, (label,)) if source.reads.sequence is None else None
            taken = read_intake(source, read, origin)
            if extent is not None:
                extent.done += len(taken)
            yield taken


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
