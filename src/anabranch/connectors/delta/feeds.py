"""Delta tables as `merge_changes` takes them: what changed in each, version by version."""

import base64
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa

from anabranch.connectors.delta.changed_columns import REPLICA, described_columns
from anabranch.connectors.delta.descriptions import EARLIEST, check_package, check_start, tables_named
from anabranch.connectors.delta.source import NAME, ChangesSource, Feeds
from anabranch.engines.spark.query.provenance import Provenance
from anabranch.engines.spark.session.row_types import in_types
from anabranch.engines.spark.session.session import tasks_of
from anabranch.engines.spark.transport.packing import Packing
from anabranch.rows.layout import Layout

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

VERSIONS_PER_TRIGGER = 100


@dataclass(frozen=True)
class DeltaChanges:
    """The changes of Delta tables, as `merge_changes` takes them in place of a frame."""

    sparkSession: "SparkSession"  # noqa: N815
    schema: "StructType"
    feeds: Feeds

    @property
    def replica(self) -> str | None:
        """The column in which it says who sent a row, if it adds one."""
        return self.feeds.names.get(REPLICA)

    @property
    def op(self) -> str:
        """The column in which it says what was done to a row."""
        return self.feeds.names["op"]

    @property
    def replicas(self) -> tuple[str, ...]:
        """The names of the tables, where there are several."""
        return () if self.replica is None else tuple(self.feeds.tables)

    @property
    def channels(self) -> bool:
        """No: the versions of a table are in order."""
        return False

    def in_zone(self, zone: str | None, instants: Mapping[str, pa.DataType]) -> "DeltaChanges":
        """The same, with instants in columns of local times."""
        if not instants:
            return self
        known = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(self.feeds.columns)))
        columns = pa.schema([field.with_type(instants.get(field.name, field.type)) for field in known])
        encoded = base64.b64encode(columns.serialize()).decode()
        feeds = msgspec.structs.replace(self.feeds, columns=encoded)
        return replace(self, schema=in_types(self.schema, instants), feeds=feeds)

    def provenance(self, layout: Layout) -> Provenance:
        """The folders of the tables, whose rows are not numbered by files."""
        return Provenance(tuple(self.feeds.tables.values()))

    def parcels(self, packing: Packing, ids: tuple[int, ...]) -> "DataFrame":
        """The changes as parcels."""
        return (
            self.sparkSession.readStream.format(NAME)
            .option("feeds", msgspec.json.encode(self.feeds).decode())
            .option("packing", msgspec.json.encode(packing).decode())
            .option("shards", msgspec.json.encode(ids).decode())
            .option("tasks", str(tasks_of(self.sparkSession)))
            .load()
        )


def delta_changes(
    spark: "SparkSession",
    tables: str | Path | Iterable[str | Path] | Mapping[str, str | Path],
    *,
    op: str = "op",
    time: str | None = "time",
    version: str | None = None,
    start: str | int = EARLIEST,
    versions_per_trigger: int = VERSIONS_PER_TRIGGER,
) -> DeltaChanges:
    """What changes in Delta tables, for `merge_changes`.

    ``tables`` is one table; or several, each a replica that has the name of its folder; or a mapping from
    names of replicas to tables. Their change data feeds are on (``delta.enableChangeDataFeed``). A row has
    the columns of the table, what happened to it in ``op``, the time of the commit in ``time`` and, if that
    is named, the version of the table in ``version``; None leaves ``time`` out. Where there are replicas, the
    column ``replica`` has their names. An update is a delete of the row before it and an insert of the row
    after it, at one time.

    A new checkpoint begins at ``start``: earliest (version 0), latest (what changes from now on), snapshot
    (the rows that are there now, then what changes), or a version. At most ``versions_per_trigger`` versions
    of each table are read per micro-batch.
    """
    from pyspark.sql.pandas.types import from_arrow_schema

    check_package()
    named = tables_named(tables)
    if versions_per_trigger < 1:
        raise ValueError(f"versions_per_trigger is 1 or more, not {versions_per_trigger}")
    check_start(start)
    columns, names = described_columns(named, op, time, version)
    struct = from_arrow_schema(columns)
    feeds = Feeds(named, _encoded(spark, struct), names, start, versions_per_trigger)
    spark.dataSource.register(ChangesSource)
    return DeltaChanges(spark, struct, feeds)


def _encoded(spark: "SparkSession", struct: "StructType") -> str:
    from pyspark.sql.pandas.types import to_arrow_schema

    zone = spark.conf.get("spark.sql.session.timeZone")
    return base64.b64encode(to_arrow_schema(struct, timezone=zone).serialize()).decode()
