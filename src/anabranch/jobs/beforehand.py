"""What can be known of a job before it runs: that it would, or why it would not.

Packages, the sources as far as they are of this machine, whether their columns are those that the plan names,
where the result goes, and whether the checkpoint goes with all of it. What only Spark or a cluster knows is
left to them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from anabranch.connectors.files.formats import STANDARD
from anabranch.engines.spark.one_row import SEVERAL, check_one_row
from anabranch.extras import SPARK, check_spark
from anabranch.jobs.ends import SourceSection
from anabranch.jobs.job import Job
from anabranch.jobs.opened_sources import known_columns
from anabranch.jobs.sections import PARTITIONS
from anabranch.jobs.source_checks import check_embedded, check_source
from anabranch.jobs.writable import check_writable, nearest
from anabranch.plan.stream import Stream
from anabranch.rows.layout import names_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

    from anabranch.engines.spark.columns import Columns


@dataclass(frozen=True, slots=True)
class Foreseen:
    """What a job would do, as far as it is known."""

    settings: dict[str, str] | None
    """What its state depends on; None where its columns are not known."""
    columns: StructType | None
    """The columns that it gives."""


def check_job(job: Job, *, embedded: bool = False, asks: bool = False) -> None:
    """Raise the first reason why a job would not run; ``asks``: clusters are asked for their topics."""
    try:
        for check in needed_packages(job, embedded=embedded).values():
            check()
        check_engine(job, embedded=embedded)
        if embedded or not job.merges or known_columns(job):
            _check_sources(job, asks=asks)
        if embedded:
            _check_output(job)
            return
        found = foreseen(job, known_columns(job))
        check_checkpoint(job, found)
        check_sink(job, found)
    except (ValueError, TypeError, OSError, ImportError) as error:
        error.add_note(f"In {job.file}.")
        raise


def needed_packages(job: Job, *, embedded: bool) -> dict[str, Callable[[], None]]:
    """The packages that a job needs, and what raises where one is not installed."""
    sources = [one for one in job.ends.values() if isinstance(one, SourceSection)]
    topics = [one.kafka for one in sources if one.kafka is not None]
    needed: dict[str, Callable[[], None]] = {}
    if not embedded:
        needed |= dict.fromkeys(SPARK, check_spark)
    if topics or job.sink.kafka is not None:
        from anabranch.connectors.kafka.cluster import check_packages

        needed["confluent-kafka"] = check_packages
    if any(one.values == "avro" for one in topics):
        from anabranch.connectors.kafka.formats import check_package as check_avro

        needed["fastavro"] = check_avro
    if job.sink.table is not None and job.sink.table.format == "delta":
        from anabranch.connectors.tables.sink import check_package as check_sink_package

        needed["deltalake"] = check_sink_package
    if any(one.delta is not None for one in sources):
        from anabranch.connectors.delta.descriptions import check_package as check_source_package

        needed["deltalake"] = check_source_package
    return needed


def check_engine(job: Job, *, embedded: bool) -> None:
    """Raise where an end of a job is one that the engine has not; the error names it."""
    if embedded:
        if job.sink.needs_spark is not None:
            error = ValueError(
                f"[sink.{job.sink.needs_spark}] is written by Spark, and the engine is embedded"
            )
            error.add_note('Leave --engine out, or write path = "out" or file = "out.parquet" in [sink].')
            raise error
        check_embedded(job)
        return
    if job.out_file is not None:
        error = ValueError(f"Spark writes to folders, topics and tables, and the sink is {job.out}")
        error.add_note('Add --engine embedded, or write path = "out" in [sink].')
        raise error
    if job.folder is not None and job.sink.format == "arrow":
        error = ValueError("[sink] format is parquet or jsonl on Spark, and it is 'arrow'")
        error.add_note("Add --engine embedded, or leave format out.")
        raise error


def foreseen(job: Job, columns: Mapping[str, Columns]) -> Foreseen:
    """What a job would do over rows of these columns; raises where Spark would refuse it.

    Of sources that have no columns here nothing is known before Spark reads them.
    """
    import pyarrow as pa

    from anabranch.engines.spark.columns import Columns
    from anabranch.engines.spark.plan_sources import check_progress
    from anabranch.engines.spark.planned_query import query_of_columns

    if columns.keys() == job.ends.keys():
        query = query_of_columns(job.stream_over(columns), columns, **job.answers())
        return Foreseen(query.settings(), query.schema())
    if not isinstance(job.plan, Stream):
        check_progress(Columns(pa.schema([]), "UTC", is_native=False), job.plan.checked().layout)
    return Foreseen(None, None)


def _check_sources(job: Job, *, asks: bool) -> None:
    """Raise where what is read is not there."""
    for name, source in job.sources.items():
        try:
            check_source(job, source, asks=asks)
        except (ValueError, TypeError, OSError, ImportError) as error:
            error.add_note(f"It is what is read for source {name!r}.")
            raise


def check_sink(job: Job, found: Foreseen) -> None:
    """Raise where Spark cannot write the result, or not beside what is there."""
    from anabranch.connectors.folder.sink import check_folder
    from anabranch.connectors.tables.sink import check_table, element_columns, kept_for
    from anabranch.engines.spark.query.start import check_trigger

    check_trigger(available_now=job.sink.available_now, trigger=job.sink.trigger)
    for what, place in job.written().items():
        check_writable(nearest(place), f"{what} ({place})")
    if job.folder is not None:
        check_folder(job.folder, job.checkpoint, job.sink.format)
    table = job.sink.table
    if table is not None:
        kept_for(table.format, table.keep, table.compact_every)
    if table is not None and found.columns is not None:
        if table.kind == "history":
            check_one_row(found.columns["kind"].metadata.get(SEVERAL))
        check_table(job.place(table.path), job.checkpoint, table.shape(), element_columns(found.columns))
    elif job.sink.kafka is not None and found.columns is not None:
        from anabranch.connectors.kafka.sink import check_records

        check_records(found.columns, job.sink.kafka.values, names_of(job.sink.kafka.key))


def _check_output(job: Job) -> None:
    """Raise where this process cannot write the result."""
    from anabranch.connectors.files.output import FileOutput, FolderOutput

    if job.out_file is not None:
        FileOutput(job.out_file).check(job.stream.schema)
        if job.out_file != STANDARD:
            FileOutput(job.out_file).check()
            check_writable(nearest(Path(job.out_file).parent), f"sink ({job.out_file})")
    if job.folder is not None:
        check_writable(nearest(job.folder), f"sink ({job.folder})")
        FolderOutput(job.folder, job.sink.format).check(job.stream.schema)


def check_checkpoint(job: Job, found: Foreseen) -> None:
    """Raise where the checkpoint is damaged, or was begun with something else than the job has now."""
    from anabranch.engines.spark.query.check import check_sound

    check_sound(job.checkpoint)
    check_begun(job, found)


def check_begun(job: Job, found: Foreseen) -> None:
    """Raise where the checkpoint was begun with something else than the job has now."""
    from anabranch.engines.spark.query.begun_with import BegunWith, check_begun_with

    check_begun_with(job.checkpoint, BegunWith(job.sink.fixed(), found.settings, _shards(job)))


def _shards(job: Job) -> int | None:
    """How many shards a job has; None where only Spark knows."""
    settings = job.spark.settings()
    if job.spark.shards is not None:
        return job.spark.shards
    if PARTITIONS in settings:
        return int(settings[PARTITIONS])
    cores = re.fullmatch(r"local\[(\d+)\]", job.spark.master)
    return int(cores[1]) if cores and "spark.default.parallelism" not in settings else None


def check_started(job: Job, frame: DataFrame) -> None:
    """Raise where a query of this frame would be refused; nothing is made."""
    from anabranch.engines.spark.query.begun_with import begun_with, check_begun_with
    from anabranch.engines.spark.query.start import check_streaming, every

    check_streaming(frame)
    if job.sink.trigger is not None:
        every(frame.writeStream, job.sink.trigger)
    check_begun_with(job.checkpoint, begun_with(frame, job.sink.fixed()))
    check_sink(job, Foreseen(None, frame.schema))
