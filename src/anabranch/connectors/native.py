"""What a plan reads, as it is described for any engine, as a native source of Spark's."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anabranch.connectors.delta.embedded import DeltaFeeds
from anabranch.connectors.files.debezium import Debezium
from anabranch.connectors.files.local_path import local_path
from anabranch.connectors.folder.embedded import FolderFeeds
from anabranch.connectors.folder.listing import listing
from anabranch.connectors.folder.reading import REPLICA
from anabranch.connectors.kafka.embedded import TopicFeeds
from anabranch.connectors.kafka.formats import Arrow, Json
from anabranch.engines.spark.columns import Columns
from anabranch.engines.spark.plan_sources import element_columns
from anabranch.engines.spark.session.row_types import arrow_schema, in_spark_form
from anabranch.plan.node import PlanError
from anabranch.plan.source import Source
from anabranch.rows.layout import SINGLE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

    from anabranch.engines.spark.native_source import NativeSource

DESCRIPTIONS = (FolderFeeds, TopicFeeds, DeltaFeeds, str, Path)
"""What `native` takes; a path is that of a folder."""


def native(spark: "SparkSession", source: Source, described: Any) -> "NativeSource":
    """What is described for a source of a plan, as it is read on Spark."""
    match described:
        case str() | Path():
            return _folder(spark, source, FolderFeeds(local_path(described)))
        case FolderFeeds():
            return _folder(spark, source, described)
        case TopicFeeds():
            return _topics(spark, source, described)
    from anabranch.connectors.delta.feeds import delta_changes

    tables = _one_or_all(described.tables)
    words = {name: getattr(described, name) for name in ("op", "time", "version", "start")}
    return delta_changes(spark, tables, **words)


def native_columns(source: Source, described: Any, zone: str) -> Columns:
    """The columns that `native` reads for a source, without Spark; ``zone`` is that of its session."""
    match described:
        case str() | Path():
            return _folder_columns(source, FolderFeeds(local_path(described)), zone)
        case FolderFeeds():
            return _folder_columns(source, described, zone)
        case TopicFeeds():
            from anabranch.connectors.kafka.added_columns import topic_columns

            form = "debezium" if isinstance(described.format, Debezium) else ""
            topics = _one_or_all(described.topics)
            schema = arrow_schema(_topic_schema(source, described), zone)
            return topic_columns(schema, topics, form, described.key, described.timestamp, zone)
    from anabranch.connectors.delta.changed_columns import change_columns

    tables = _one_or_all(described.tables)
    return change_columns(tables, described.op, described.time, described.version, zone)


def _folder(spark: "SparkSession", source: Source, described: FolderFeeds) -> "NativeSource":
    from anabranch.connectors.folder.source import folder

    schema, by_replica = _folder_schema(source, described)
    return folder(spark, described.path, schema=schema, by_replica=by_replica, format=described.format)


def _folder_columns(source: Source, described: FolderFeeds, zone: str) -> Columns:
    from anabranch.connectors.folder.columns import folder_columns

    schema, by_replica = _folder_schema(source, described)
    columns = arrow_schema(schema, zone)
    form = described.format
    found = folder_columns(described.path, columns, by_replica, form, partial(in_spark_form, zone=zone), zone)
    return Columns(
        found.schema,
        zone,
        is_native=True,
        replica=REPLICA if found.adds_replica else None,
        replicas=found.replicas,
        op=None if form is None else form.op,
    )


def _folder_schema(source: Source, described: FolderFeeds) -> "tuple[StructType, bool]":
    """The columns of the files of a folder, and whether there is a folder for each replica."""
    place = described.path
    if not place.is_dir():
        error = ValueError(f"Spark reads folders, topics and tables, and {place} is no folder")
        error.add_note("Give the folder of the file, or run the plan in this process: anabranch.run(…).")
        raise error
    by_replica = listing(place).by_replica if described.by_replica is None else described.by_replica
    beside = [replica_of(source)] if by_replica else []
    if described.format is not None:
        beside += changed_by(source)
    return columns_in(source, beside), by_replica


def _topics(spark: "SparkSession", source: Source, described: TopicFeeds) -> "NativeSource":
    from anabranch.connectors.kafka.topics import kafka

    words = {Json: "json", Arrow: "arrow"}
    form: Any = described.format
    start: str | datetime = described.start
    if start not in ("earliest", "latest"):
        start = datetime.fromisoformat(described.start)
    return kafka(
        spark,
        _one_or_all(described.topics),
        schema=_topic_schema(source, described),
        format=words.get(type(form), form),
        key=described.key,
        timestamp=described.timestamp,
        start=start,
        patience=timedelta(seconds=described.patience),
    )


def _topic_schema(source: Source, described: TopicFeeds) -> "StructType":
    """The columns of the values of records."""
    several = list(described.topics) != [SINGLE]
    beside = [described.key, described.timestamp, replica_of(source) if several else None]
    if isinstance(described.format, Debezium):
        beside += changed_by(source)
    return columns_in(source, beside)


def _one_or_all(named: Any) -> Any:
    return named[SINGLE] if list(named) == [SINGLE] else named


def replica_of(source: Source) -> str | None:
    """The column of who sent a row, which sources of Spark's call as they do."""
    name = None if source.layout is None else source.layout.replica
    if name not in (None, REPLICA):
        error = PlanError(f"on Spark the names of replicas are in the column {REPLICA!r}, not {name!r}")
        error.add_note(f"Write replica={REPLICA!r} for source {source.name!r}, and call its column so.")
        raise error
    return name


def changed_by(source: Source) -> list[str | None]:
    """The columns that envelopes add to those of a table."""
    return [] if source.layout is None else [source.layout.kind, source.layout.start]


def columns_in(source: Source, beside: Iterable[str | None]) -> "StructType":
    """The columns of a source in types of Spark's, but for those that are not in its rows themselves."""
    from pyspark.sql.types import StructType

    from anabranch.engines.spark.session.row_types import spark_type

    apart, found = set(beside), StructType()
    for one in element_columns(source):
        if one.name in apart:
            continue
        dtype = spark_type(one.type, f"column {one.name!r} of source {source.name!r}")
        found.add(one.name, dtype, one.nullable)
    return found
