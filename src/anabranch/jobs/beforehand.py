"""What can be known of a job without Spark: that it would run, or why it would not.

Packages, the source as far as it is of this machine, whether its columns are those that the merge names,
where the stream goes, and whether the checkpoint goes with all of it. What only Spark or a cluster can tell
is left to them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from anabranch.engines.spark.one_row import SEVERAL, check_one_row
from anabranch.jobs.ends import SourceSection
from anabranch.rows.layout import names_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

    from anabranch.engines.spark.columns import Columns
    from anabranch.jobs.job import Job
    from anabranch.jobs.plan_job import PlanJob

ZONE, _PARTITIONS = "spark.sql.session.timeZone", "spark.sql.shuffle.partitions"


@dataclass(frozen=True, slots=True)
class Foreseen:
    """What a job would do, as far as it is known."""

    settings: dict[str, str] | None
    """What its state depends on; None where its columns are not known."""
    columns: StructType | None
    """The columns that it gives."""


def check_job(job: Job) -> None:
    """Raise the first reason why a job would not run."""
    try:
        for check in needed_packages(job).values():
            check()
        foreseen = check_merge(job, known_columns(job))
        check_checkpoint(job, foreseen)
        check_sink(job, foreseen)
    except (ValueError, TypeError, OSError, ImportError) as error:
        error.add_note(f"In {job.file}.")
        raise


def needed_packages(job: Job) -> dict[str, Callable[[], None]]:
    """The packages that the ends of a job need, and what raises where one is not installed."""
    from anabranch.connectors.delta.descriptions import check_package as check_delta_source
    from anabranch.connectors.kafka.cluster import check_packages as check_kafka
    from anabranch.connectors.kafka.formats import check_package as check_avro
    from anabranch.connectors.tables.sink import check_package as check_delta_sink

    source = job.source if isinstance(job.source, SourceSection) else None
    topics = None if source is None else source.kafka
    needed: dict[str, Callable[[], None]] = {}
    if topics is not None or job.sink.kafka is not None:
        needed["confluent-kafka"] = check_kafka
    if topics is not None and topics.values == "avro":
        needed["fastavro"] = check_avro
    if job.sink.table is not None and job.sink.table.format == "delta":
        needed["deltalake"] = check_delta_sink
    if source is not None and source.delta is not None:
        needed["deltalake"] = check_delta_source
    return needed


def known_columns(job: Job) -> Columns | None:
    """The columns of the rows of a job; None where only Spark knows them. What is not there is told."""
    from anabranch.engines.spark.columns import Columns

    source, zone = job.source, job.spark.settings().get(ZONE, "UTC")
    if not isinstance(source, SourceSection) or source.format is not None:
        return None
    if source.delta is not None:
        return source.delta.columns(job, zone)
    struct = None if source.schema is None else _struct(job, source.schema)
    if source.kafka is not None:
        return None if struct is None else source.kafka.columns(job, struct, zone)
    from anabranch.connectors.files.debezium import Debezium
    from anabranch.connectors.folder.columns import folder_columns

    assert source.path is not None, "checked"
    if source.schema is not None and struct is None:
        return None
    form = None if source.values is None else Debezium()
    found = folder_columns(job.place(source.path), struct, source.by_replica, form)
    return Columns(
        found.schema,
        zone,
        is_native=True,
        replica="replica" if found.adds_replica else None,
        replicas=found.replicas,
        op=None if form is None else form.op,
    )


def _struct(job: Job, schema: str) -> StructType | None:
    from anabranch.engines.spark.session.ddl import struct_of_ddl

    return None if "spark.sql.timestampType" in job.spark.settings() else struct_of_ddl(schema)


def check_merge(job: Job, columns: Columns | None) -> Foreseen:
    """Raise where a merge has settings that do not go together, or names columns that are not there."""
    from pyspark.sql.types import StructType

    from anabranch.engines.spark.columns import Columns
    from anabranch.engines.spark.plan_sources import check_progress
    from anabranch.engines.spark.planned_query import query_of_columns
    from anabranch.engines.spark.rows_merge import ROWS_SOURCE

    merge = job.merge.checked()
    if columns is None:
        check_progress(Columns(StructType(), "UTC", is_native=False), merge.layout)
        return Foreseen(None, None)
    query = query_of_columns(merge.plan(columns), {ROWS_SOURCE: columns}, **merge.on_refused)
    return Foreseen(query.settings(), query.schema())


def check_sink(job: Job | PlanJob, foreseen: Foreseen) -> None:
    """Raise where the merged stream cannot be written, or not beside what is there."""
    from anabranch.connectors.folder.sink import check_folder
    from anabranch.connectors.tables.sink import check_table, element_columns, kept_for
    from anabranch.engines.spark.query.start import check_trigger
    from anabranch.jobs.writable import check_writable, nearest

    check_trigger(available_now=job.sink.available_now, trigger=job.sink.trigger)
    for what, place in job.written().items():
        check_writable(nearest(place), f"{what} ({place})")
    if job.folder is not None:
        check_folder(job.folder, job.checkpoint, job.sink.format)
    if job.sink.table is not None:
        kept_for(job.sink.table.format, job.sink.table.keep, job.sink.table.compact_every)
    if job.sink.table is not None and foreseen.columns is not None:
        table = job.sink.table
        if table.kind == "history":
            check_one_row(foreseen.columns["kind"].metadata.get(SEVERAL))
        check_table(job.place(table.path), job.checkpoint, table.shape(), element_columns(foreseen.columns))
    elif job.sink.kafka is not None and foreseen.columns is not None:
        from anabranch.connectors.kafka.sink import check_records

        check_records(foreseen.columns, job.sink.kafka.values, names_of(job.sink.kafka.key))


def check_checkpoint(job: Job | PlanJob, foreseen: Foreseen) -> None:
    """Raise where the checkpoint is damaged, or was begun with something else than the job has now."""
    from anabranch.engines.spark.query.check import check_sound

    check_sound(job.checkpoint)
    check_begun(job, foreseen)


def check_begun(job: Job | PlanJob, foreseen: Foreseen) -> None:
    """Raise where the checkpoint was begun with something else than the job has now."""
    from anabranch.engines.spark.query.begun_with import BegunWith, check_begun_with

    check_begun_with(job.checkpoint, BegunWith(job.sink.fixed(), foreseen.settings, _shards(job)))


def _shards(job: Job | PlanJob) -> int | None:
    """How many shards a job has; None where only Spark knows."""
    settings = job.spark.settings()
    if job.spark.shards is not None:
        return job.spark.shards
    if _PARTITIONS in settings:
        return int(settings[_PARTITIONS])
    cores = re.fullmatch(r"local\[(\d+)\]", job.spark.master)
    return int(cores[1]) if cores and "spark.default.parallelism" not in settings else None


def check_started(job: Job, merged: DataFrame) -> None:
    """Raise where a query of what Spark has merged would be refused; nothing is made."""
    from anabranch.engines.spark.query.begun_with import begun_with, check_begun_with
    from anabranch.engines.spark.query.start import check_streaming, every

    check_streaming(merged)
    if job.sink.trigger is not None:
        every(merged.writeStream, job.sink.trigger)
    check_begun_with(job.checkpoint, begun_with(merged, job.sink.fixed()))
    check_sink(job, Foreseen(None, merged.schema))
