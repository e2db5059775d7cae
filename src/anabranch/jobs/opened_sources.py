"""What a job reads, opened: for this process, for Spark, or only asked for its columns.

A source of a plan names its columns; that of a merge has those of what is read.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anabranch.connectors.files.formats import STANDARD
from anabranch.jobs.ends import SourceSection
from anabranch.jobs.program import in_program
from anabranch.jobs.sections import ZONE

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from anabranch.engines.spark.columns import Columns
    from anabranch.engines.spark.native_source import NativeSource
    from anabranch.jobs.job import Job
    from anabranch.plan.source import Source


def embedded_input(job: Job, name: str) -> Any:
    """What `anabranch.run` reads for a source of a job."""
    return _opened(job, name, job.ends[name])


def _opened(job: Job, name: str, given: Any) -> Any:
    """What is described for a source, as it is read in this process."""
    if isinstance(given, str | Path):
        given = SourceSection(path=str(given))
    if callable(given) or (isinstance(given, SourceSection) and given.format is not None):
        what = "a function of Spark's session" if callable(given) else f"format {given.format!r} of Spark"
        error = ValueError(f"source {name!r} is read by {what}, and the engine is embedded")
        error.add_note("Run it on Spark: leave --engine out. Or give a path, a folder, topics or tables.")
        raise error
    if not isinstance(given, SourceSection):
        return given
    if given.kafka is not None:
        return given.kafka.feeds(job)
    if given.delta is not None:
        return given.delta.feeds(job)
    assert given.path is not None, "checked"
    if given.path == STANDARD:
        return given.path
    place = job.place(given.path)
    if given.by_replica is None and given.values is None:
        return place
    from anabranch.connectors.folder.embedded import folder

    return folder(place, by_replica=given.by_replica, format=given.values)


def spark_rows(job: Job, name: str, spark: SparkSession) -> DataFrame | NativeSource | Any:
    """What `anabranch.spark.frame` reads for a source of a job."""
    given = job.ends[name]
    if callable(given):
        with in_program(job.file):
            given = given(spark)
        if job.merges:
            _check_rows(given)
    if isinstance(given, str | Path):
        given = SourceSection(path=str(given))
    if not isinstance(given, SourceSection):
        return given
    return _read(job, given, spark) if job.merges else _declared(job, given, spark, job.sources[name])


def _check_rows(given: Any) -> None:
    """Raise where what a function of a program returns is nothing that streams."""
    from pyspark.sql import DataFrame

    from anabranch import spark as ab

    native = ab.Folder | ab.Kafka | ab.DeltaChanges
    if isinstance(given, str | Path | native) or (isinstance(given, DataFrame) and given.isStreaming):
        return
    what = "a frame that is not streaming" if isinstance(given, DataFrame) else type(given).__name__
    error = TypeError(f"rows(spark) gives a streaming frame, a folder, topics or tables, and it gave {what}")
    error.add_note("Read with spark.readStream, or give the path of a folder,")
    error.add_note("anabranch.spark.folder(…), kafka(…) or delta_changes(…).")
    raise error


def _declared(job: Job, given: SourceSection, spark: SparkSession, source: Source) -> Any:
    """What is read for a source that names its columns."""
    from anabranch.connectors.native import changed_by, columns_in, native, replica_of

    if given.delta is not None:
        return given.delta.rows(job, spark)
    if given.kafka is not None:
        several = not isinstance(given.kafka.topics, str)
        beside = [given.kafka.key, given.kafka.timestamp, replica_of(source) if several else None]
        if given.kafka.values == "debezium":
            beside += changed_by(source)
        return given.kafka.rows(job, spark, columns_in(source, beside), None)
    return native(spark, source, _opened(job, source.name, given))


def _read(job: Job, source: SourceSection, spark: SparkSession) -> DataFrame | NativeSource:
    """What is read where the rows themselves have the columns."""
    from anabranch import spark as ab

    if source.kafka is not None:
        assert source.schema is not None, "checked"
        return source.kafka.rows(job, spark, source.schema, source.rows_per_trigger)
    if source.delta is not None:
        return source.delta.rows(job, spark)
    if source.format is None:
        assert source.path is not None, "checked"
        return ab.folder(
            spark,
            job.place(source.path),
            schema=source.schema,
            by_replica=source.by_replica,
            format=source.values,
            zone=source.zone,
            files_per_trigger=source.files_per_trigger,
            bytes_per_trigger=source.bytes_per_trigger,
            rows_per_trigger=source.rows_per_trigger,
        )
    from anabranch.connectors.files.local_path import is_address

    reader = spark.readStream.format(source.format).options(**source.options)
    if source.schema is not None:
        reader = reader.schema(source.schema)
    path = source.path
    rows = reader.load(str(job.place(path)) if path and not is_address(path) else path)
    return rows.selectExpr(*source.select) if source.select else rows


def known_columns(job: Job) -> dict[str, Columns]:
    """The columns of what is read, of each source of which they are known without Spark."""
    zone = job.spark.settings().get(ZONE, "UTC")
    found = {name: columns_read(job, name, zone) for name in job.ends}
    return {name: columns for name, columns in found.items() if columns is not None}


def columns_read(job: Job, name: str, zone: str) -> Columns | None:
    """The columns of what is read for a source; None: only Spark knows them. What is missing is an error."""
    given = job.ends[name]
    if job.merges:
        return _columns_of_rows(job, given, zone) if isinstance(given, SourceSection) else None
    from anabranch.connectors.native import DESCRIPTIONS, native_columns

    described = None if callable(given) else _opened(job, name, given)
    return native_columns(job.sources[name], described, zone) if isinstance(described, DESCRIPTIONS) else None


def _columns_of_rows(job: Job, source: SourceSection, zone: str) -> Columns | None:
    """The columns of what is read for a merge."""
    from anabranch.engines.spark.columns import Columns

    if source.format is not None:
        return None
    if source.delta is not None:
        return source.delta.columns(job, zone)
    columns = None if source.schema is None else _declared_columns(job, source.schema, zone)
    if source.kafka is not None:
        return None if columns is None else source.kafka.columns(job, columns, zone)
    from anabranch.connectors.files.debezium import Debezium
    from anabranch.connectors.folder.columns import folder_columns
    from anabranch.connectors.folder.reading import REPLICA
    from anabranch.engines.spark.session.row_types import in_spark_form

    assert source.path is not None, "checked"
    if source.schema is not None and columns is None:
        return None
    form = None if source.values is None else Debezium()
    of_file = partial(in_spark_form, zone=zone)
    found = folder_columns(job.place(source.path), columns, source.by_replica, form, of_file, zone)
    return Columns(
        found.schema,
        zone,
        is_native=True,
        replica=REPLICA if found.adds_replica else None,
        replicas=found.replicas,
        op=None if form is None else form.op,
    )


def _declared_columns(job: Job, schema: str, zone: str) -> pa.Schema | None:
    from anabranch.engines.spark.session.ddl import columns_of_ddl

    return None if "spark.sql.timestampType" in job.spark.settings() else columns_of_ddl(schema, zone)


def zone_of_texts(job: Job, given: Any) -> str:
    """The time zone of texts of times that name none: that of a source, or of the session."""
    named = None
    if isinstance(given, SourceSection):
        named = given.zone if given.kafka is None else given.kafka.zone
    return named or job.spark.settings().get(ZONE, "UTC")


def places_of(job: Job, given: Any) -> list[Path]:
    """The files and folders of this machine that are read; Spark's own sources may read anywhere."""
    from anabranch.connectors.files.local_path import is_address

    if isinstance(given, str | Path):
        given = SourceSection(path=str(given))
    if not isinstance(given, SourceSection):
        return []
    if given.delta is not None:
        return given.delta.places(job)
    if given.path in (None, STANDARD) or (given.format is not None and is_address(str(given.path))):
        return []
    return [job.place(str(given.path))]
