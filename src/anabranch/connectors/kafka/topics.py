"""Topics of Kafka as `merge` takes them, and what is told to the source that reads them."""

import base64
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa

from anabranch.connectors.files.debezium import Debezium
from anabranch.connectors.files.envelope_columns import with_change
from anabranch.connectors.kafka.added_columns import REPLICA, check_apart, with_extra
from anabranch.connectors.kafka.cluster import SECONDS, Topic, check_packages
from anabranch.connectors.kafka.descriptions import (
    beginning,
    format_named,
    seconds,
    topics_named,
)
from anabranch.connectors.kafka.formats import Avro, check_package
from anabranch.connectors.kafka.reading import Records
from anabranch.connectors.kafka.source import NAME, Feeds, KafkaSource
from anabranch.engines.spark.query.provenance import Provenance
from anabranch.engines.spark.session.row_types import in_types
from anabranch.engines.spark.session.schema_argument import struct_of
from anabranch.engines.spark.session.session import tasks_of
from anabranch.engines.spark.transport.packing import Packing
from anabranch.model.zones import in_zones, zone_named
from anabranch.rows.layout import SINGLE, Layout

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

ROWS_PER_TRIGGER = 500_000


@dataclass(frozen=True)
class Kafka:
    """Topics, as `merge` takes them in place of a frame."""

    sparkSession: "SparkSession"  # noqa: N815
    schema: "StructType"
    feeds: Feeds
    zone: str | None = None
    """The zone of times that name none, if one was asked for; else it is that of the session."""

    def __repr__(self) -> str:
        names = ", ".join(name for name, _, _ in self.feeds.topics.values())
        return f"Kafka({names})"

    @property
    def replica(self) -> str | None:
        """The column in which it says who sent a row, if it adds one."""
        return self.feeds.replica

    @property
    def op(self) -> str | None:
        """The column in which it says what was done to a row, where records are envelopes."""
        form = self.feeds.form()
        return form.op if isinstance(form, Debezium) else None

    @property
    def replicas(self) -> tuple[str, ...]:
        """The names of the topics, where there are several."""
        return () if self.feeds.replica is None else tuple(self.feeds.topics)

    @property
    def channels(self) -> bool:
        """Yes: each partition of a topic is one, and there may be more of them at any time."""
        return True

    def in_zone(self, zone: str | None, instants: Mapping[str, pa.DataType]) -> "Kafka":
        """The same, with times that name no zone in this one, unless another was asked for, and instants
        in columns of local times."""
        named = self.zone or zone
        if named is None:
            return self
        known = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(self.feeds.columns)))
        columns = pa.schema(
            [
                field.with_type(in_zones(instants.get(field.name, field.type), lambda _: named))
                for field in known
            ]
        )
        encoded = base64.b64encode(columns.serialize()).decode()
        feeds = msgspec.structs.replace(self.feeds, columns=encoded)
        return replace(self, schema=in_types(self.schema, instants), feeds=feeds)

    def provenance(self, layout: Layout) -> Provenance:
        """Nothing: a sink need not know which topics were read."""
        return Provenance()

    def parcels(self, packing: Packing, ids: tuple[int, ...]) -> "DataFrame":
        """The records of the topics as parcels."""
        return (
            self.sparkSession.readStream.format(NAME)
            # Spark keeps options whose names say that they are secret out of plans and logs.
            .option("secret", msgspec.json.encode(self.feeds).decode())
            .option("packing", msgspec.json.encode(packing).decode())
            .option("shards", msgspec.json.encode(ids).decode())
            .option("tasks", str(tasks_of(self.sparkSession)))
            .load()
        )


def kafka(
    spark: "SparkSession",
    topics: str | Topic | Iterable[str] | Mapping[str, str | Topic],
    *,
    schema: "StructType | str",
    servers: str | None = None,
    format: str | Avro | Debezium = "json",  # noqa: A002
    key: str | None = None,
    timestamp: str | None = None,
    zone: str | None = None,
    start: str | datetime = "earliest",
    rows_per_trigger: int = ROWS_PER_TRIGGER,
    patience: int | timedelta | str = timedelta(seconds=SECONDS),
    config: Mapping[str, str] | None = None,
) -> Kafka:
    """Topics of Kafka, for `merge`.

    ``topics`` is one topic; or several, each a replica that has its name; or a mapping from names of replicas
    to topics, each a name or a `Topic` with servers and settings of its own. ``servers`` are where the others
    are. ``schema`` has the columns of the values, in Spark's types; ``format`` is json, arrow, an `Avro` with
    its schema, or debezium: envelopes of rows with these columns, to which it adds ``op`` and ``time``, for
    `merge_changes`. ``key`` and ``timestamp`` name columns for the key of a record, as text, and for its time
    in Kafka; where there are replicas, the column ``replica`` has their names. ``zone`` is the time zone of
    times that name none; None is that of the Spark session. A value that does not fit is refused
    alone.

    A new checkpoint begins at ``start``: earliest, latest, or the first records not older than a time. At
    most ``rows_per_trigger`` records are read per micro-batch, at least one of each partition. A cluster
    that does not answer is waited for ``patience`` long. ``config`` has settings of librdkafka for security
    and the network, and is not logged.
    """
    check_packages()
    named = topics_named(topics, servers, config)
    if rows_per_trigger < 1:
        raise ValueError(f"rows_per_trigger is 1 or more, not {rows_per_trigger}")
    whole = {name: (one.name, str(one.servers), dict(one.config)) for name, one in named.items()}
    form = format_named(format)
    if isinstance(form, Avro):
        check_package()
    struct = struct_of(schema)
    if isinstance(form, Debezium):
        struct = with_change(struct, form)
    one = list(named) == [SINGLE]
    extra = {"key": key, "timestamp": timestamp, "replica": None if one else REPLICA}
    columns = _columns(spark, struct, extra, zone)
    feeds = Feeds(
        whole,
        base64.b64encode(columns.value.serialize()).decode(),
        format if isinstance(format, str) else type(form).__name__.lower(),
        form.schema if isinstance(form, Avro) else None,
        dict(form.schemas) if isinstance(form, Avro) else {},
        columns.key,
        columns.timestamp,
        columns.replica,
        beginning(start),
        rows_per_trigger,
        seconds(patience),
    )
    spark.dataSource.register(KafkaSource)
    return Kafka(spark, with_extra(struct, extra), feeds, zone)


def _columns(
    spark: "SparkSession", struct: "StructType", extra: Mapping[str, str | None], zone: str | None
) -> Records:
    from pyspark.sql.pandas.types import to_arrow_schema

    check_apart(struct, extra)
    if zone is not None:
        zone_named(zone)
    named = zone or spark.conf.get("spark.sql.session.timeZone")
    return Records(to_arrow_schema(struct, timezone=named), **extra)
