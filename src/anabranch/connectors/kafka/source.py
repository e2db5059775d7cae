"""Records of topics as a source of parcels: read, checked, hashed and packed where the executors are.

A topic is a replica, or the only one; each of its partitions is a channel and an offset is a place in it.
Partition k of all replicas is read by one task, so that copies of an event meet early where producers agree
on partitions.

Offsets are, for each replica, the identity of its topic and the next offset of every partition. A topic that
was deleted and made again has another identity, and is not taken for the old one.
"""

import base64
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import pairwise, zip_longest
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from anabranch.connectors.files.debezium import Debezium
from anabranch.connectors.files.values import Format
from anabranch.connectors.kafka.cluster import Cluster, Positions, Topic, TopicError
from anabranch.connectors.kafka.formats import Arrow, Avro, Json
from anabranch.connectors.kafka.reading import Reader, RecordRange, Records
from anabranch.engines.spark.parcel_rows import parcel_columns, parcel_rows
from anabranch.engines.spark.query.failure import errors_to_driver
from anabranch.engines.spark.transport.packing import BYTES, Packing

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

NAME = "anabranch-kafka"

Offset = Mapping[str, Any]


class Feeds(msgspec.Struct):
    """What a source is told, as options of Spark's are text."""

    topics: dict[str, tuple[str, str, dict[str, str]]]
    """Of each replica the name of its topic, the servers, and settings."""
    columns: str
    """Of the values: an Arrow schema in base 64."""
    format: str
    schema: str | None
    schemas: dict[int, str]
    key: str | None
    timestamp: str | None
    replica: str | None
    start: str
    rows: int
    patience: float

    def form(self) -> Format:
        """How values are read."""
        match self.format:
            case "json":
                return Json()
            case "arrow":
                return Arrow()
            case "debezium":
                *_, op, time = self.records().value.names
                return Debezium(op, time)
            case _:
                return Avro(self.schema, self.schemas)

    def records(self) -> Records:
        """The columns of records."""
        columns = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(self.columns)))
        return Records(columns, self.key, self.timestamp, self.replica)


class KafkaSource(DataSource):
    """The records of topics as parcels."""

    @classmethod
    def name(cls) -> str:
        """What the format is called."""
        return NAME

    def schema(self) -> "StructType":
        """Rows of parcels."""
        return parcel_columns()

    def streamReader(self, schema: Any) -> "KafkaReader":  # noqa: N802
        """A reader of the topics."""
        return KafkaReader(self.options)


class RecordsPartition(InputPartition):
    """Ranges of records that one task reads, each group by itself."""

    def __init__(self, groups: list[list[RecordRange]]) -> None:
        self.groups = groups


class KafkaReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans what is read on the driver, and reads it on the executors."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self.feeds = msgspec.json.decode(options["secret"], type=Feeds)
        self.packing = msgspec.json.decode(options["packing"], type=Packing)
        self.ids = msgspec.json.decode(options["shards"], type=tuple[int, ...])
        self.tasks = int(options.get("tasks", 1))
        self.topics = {name: Topic(*rest) for name, rest in self.feeds.topics.items()}
        self.target: dict[str, Any] | None = None
        self.clusters: dict[str, Cluster] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "clusters": {}}

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        """Where a new checkpoint begins."""
        with errors_to_driver():
            return {name: self._place(name, self._begins) for name in self.topics}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """So many records."""
        return ReadMaxRows(self.feeds.rows)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Remember what is there now."""
        self.target = self.reportLatestOffset()

    def reportLatestOffset(self) -> dict[str, Any]:  # noqa: N802
        """The end of what is there."""
        with errors_to_driver():
            return {name: self._place(name, lambda cluster, ps: cluster.ends(ps)) for name in self.topics}

    def latestOffset(self, start: Offset, limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        """The end of what is read next: some of every partition, as much as it has to catch up with."""
        there = self.target if self.target is not None else self.reportLatestOffset()
        with errors_to_driver():
            self._check(start, there)
            most = limit.max_rows if isinstance(limit, ReadMaxRows) else self.feeds.rows
            whole = isinstance(limit, ReadAllAvailable)
            behind = {
                (name, p): end - start.get(name, _NOTHING)["next"].get(p, 0)
                for name, place in there.items()
                for p, end in place["next"].items()
            }
            share = 1.0 if whole else min(1.0, most / max(sum(behind.values()), 1))
            return {
                name: {
                    "topic": place["topic"],
                    "next": {
                        p: end - behind[name, p] + max(int(behind[name, p] * share), min(behind[name, p], 1))
                        for p, end in place["next"].items()
                    },
                }
                for name, place in there.items()
            }

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """Tasks: partition k of all replicas together, in pieces where there are few partitions."""
        numbers = sorted({int(p) for place in end.values() for p in place["next"]})
        pieces = -(-self.tasks // max(len(numbers), 1))
        groups = []
        for number in numbers:
            ranges = [
                _pieces(name, number, start.get(name, _NOTHING)["next"].get(str(number), 0), to, pieces)
                for name, place in end.items()
                if (to := place["next"].get(str(number))) is not None
            ]
            groups += [[one for one in turn if one is not None] for turn in zip_longest(*ranges)]
        groups = [group for group in groups if group]
        return [
            RecordsPartition(groups[n :: self.tasks]) for n in range(max(1, min(self.tasks, len(groups))))
        ]

    def read(self, partition: RecordsPartition) -> Iterator[pa.RecordBatch]:  # type: ignore[override]
        """What a task reads, as rows of parcels."""
        feeds, packing = self.feeds, self.packing
        with errors_to_driver():
            reader = Reader(
                self.topics,
                feeds.form(),
                feeds.records(),
                packing.layout,
                feeds.patience,
                several=feeds.format == "arrow",
            )
            rows, size = packing.rows * packing.shards, BYTES * packing.shards
            for group in partition.groups or [[]]:
                heard = reader.reads(group, rows, size) if group else []
                yield from parcel_rows(heard, packing, self.ids)

    def _begins(self, cluster: Cluster, partitions: list[int]) -> Positions:
        match self.feeds.start:
            case "earliest":
                return cluster.begins(partitions)
            case "latest":
                return cluster.ends(partitions)
            case text:
                return cluster.since(datetime.fromisoformat(text), partitions)

    def _place(self, name: str, ask: Callable[[Cluster, list[int]], Positions]) -> dict[str, Any]:
        cluster = self.clusters.setdefault(name, Cluster(self.topics[name], self.feeds.patience))
        positions = ask(cluster, cluster.partitions())
        return {"topic": cluster.identity(), "next": {str(p): at for p, at in sorted(positions.items())}}

    def _check(self, start: Offset, there: Offset) -> None:
        """Raise where what was read before is not what is there now."""
        for name, place in start.items():
            topic = self.topics.get(name)
            if topic is None:
                error = TopicError(f"the checkpoint has read a replica {name!r}, and it is not given now")
                error.add_note("Give it again; a replica leaves by a record that detaches it.")
                raise error
            if there[name]["topic"] != place["topic"]:
                error = TopicError(f"topic {topic.name!r} was deleted and made again since it was read")
                error.add_note("Begin a new checkpoint, or give the new topic as another replica.")
                raise error
            for partition, at in place["next"].items():
                if there[name]["next"].get(partition, -1) < at:
                    error = TopicError(
                        f"{topic.name}[{partition}] was read up to {at}, and ends at "
                        f"{there[name]['next'].get(partition)}: the cluster has lost records"
                    )
                    error.add_note("Let the cluster recover them, or begin a new checkpoint.")
                    raise error


_NOTHING: Mapping[str, Any] = {"next": {}}


def _pieces(name: str, number: int, begin: int, end: int, pieces: int) -> list[RecordRange]:
    cuts = sorted({begin + (end - begin) * n // pieces for n in range(pieces + 1)})
    return [RecordRange(name, number, a, b) for a, b in pairwise(cuts)]
