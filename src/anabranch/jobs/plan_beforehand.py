"""What can be known of a plan before it runs: that its sources are there with its columns, and its sink."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from anabranch.connectors.files.formats import STANDARD
from anabranch.connectors.folder.listing import listing
from anabranch.connectors.folder.reading import ENDINGS, file_schema, format_of
from anabranch.jobs.plan_job import Ends, PlanJob
from anabranch.jobs.writable import check_writable, nearest
from anabranch.model.schema import SchemaError
from anabranch.model.spelling import did_you_mean
from anabranch.plan.source import Source
from anabranch.rows.layout import SINGLE
from anabranch.rows.replica_names import check_replicas, named_in

if TYPE_CHECKING:
    from anabranch.connectors.delta.embedded import DeltaFeeds


def check_plan(job: PlanJob, *, embedded: bool, asks: bool = False) -> None:
    """Raise the first reason why a plan would not run; ``asks``: clusters are asked for their topics."""
    try:
        _check_sink(job, embedded=embedded)
        for name, source in job.sources.items():
            try:
                _check_source(job, source, asks=asks)
            except (ValueError, TypeError, OSError, ImportError) as error:
                error.add_note(f"It is what is read for source {name!r}.")
                raise
        if not embedded:
            _check_on_spark(job)
    except (ValueError, TypeError, OSError, ImportError) as error:
        error.add_note(f"In {job.file}.")
        raise


def _check_on_spark(job: PlanJob) -> None:
    """Raise where the plan, its checkpoint or its sink would be refused once Spark has started."""
    from anabranch.jobs.beforehand import check_checkpoint, check_sink
    from anabranch.jobs.foreseen_plan import foreseen

    found = foreseen(job)
    check_checkpoint(job, found)
    check_sink(job, found)


def readings(job: PlanJob) -> dict[str, str]:
    """What is read for each source, for people."""
    return {name: _reading(job, source) for name, source in job.sources.items()}


def _path(job: PlanJob, given: Any) -> Path | None:
    path = given.path if isinstance(given, Ends) else given
    if not isinstance(path, str | Path) or str(path) == STANDARD:
        return None
    return job.place(str(path))


def _check_source(job: PlanJob, source: Source, *, asks: bool) -> None:
    given = job.ends[source.name]
    if source.replicated:
        _check_replicas(source, _replicas_there(job, given))
    if isinstance(given, Ends) and given.kafka is not None:
        from anabranch.connectors.kafka.cluster import Cluster

        topics = given.kafka.door(job)
        for topic in topics.topics.values() if asks else ():
            Cluster(topic, topics.patience).partitions()
    if isinstance(given, Ends) and given.delta is not None:
        _check_tables(given.delta.door(job), source)
    path = _path(job, given)
    if path is None:
        return
    if not path.exists():
        error = FileNotFoundError(f"{path} is not there")
        error.add_note("Paths are relative to the file of the job.")
        raise error
    if source.layout is None:
        return
    for file in _files(path):
        _check_columns(source, file)


def _check_replicas(source: Source, there: Collection[str]) -> None:
    if there:
        named = named_in(source.lossy, source.silent, source.awaited)
        check_replicas(
            named,
            there,
            f"what is read for {source.name!r}",
            "One that sends nothing yet has its folder, topic or table all the same.",
        )


def _replicas_there(job: PlanJob, given: Any) -> Collection[str]:
    """The replicas that are known by name before anything is read."""
    described = given.door(job) if isinstance(given, Ends) and (given.kafka or given.delta) else given
    several = getattr(described, "topics", None) or getattr(described, "tables", None) or {}
    if several and list(several) != [SINGLE]:
        return list(several)
    path = _path(job, given)
    if path is None or not path.is_dir():
        return ()
    found = listing(path)
    return list(found.files) if found.by_replica else ()


def _check_tables(changes: DeltaFeeds, source: Source) -> None:
    from anabranch.connectors.delta.reading import opened

    replica = None if source.layout is None else source.layout.replica
    added = (changes.op, changes.time, changes.version, replica)
    for path in changes.tables.values():
        _check_names(source, path, opened(path).columns, added)


def _files(path: Path) -> list[Path]:
    """The first files of a folder that say their columns, one of each replica; a file by itself."""
    if path.is_file():
        if path.suffix.lower() not in ENDINGS:
            error = ValueError(f"the ending of {path} tells no format of rows, so it cannot be read")
            error.add_note(f"Known are {' '.join(ENDINGS)}.")
            raise error
        return [path]
    replicas = listing(path).files.values()
    return [next(iter(files.values())) for files in replicas if files]


def _check_columns(source: Source, file: Path) -> None:
    if format_of(file.name) == "jsonl":
        return
    of_folder = None if source.layout is None else source.layout.replica
    _check_names(source, str(file), file_schema(str(file)), (of_folder,))


def _check_names(source: Source, place: str, there: pa.Schema, added: Collection[str | None]) -> None:
    """Raise where rows have not the columns of a source, but for those that are added to them."""
    assert source.columns is not None, "rows have columns"
    for name in source.columns.names:
        if name not in there.names and name not in added:
            error = SchemaError(
                f"{place} has no column {name!r}, and source {source.name!r} has"
                f"{did_you_mean(name, there.names)}"
            )
            error.add_note(f"Its columns are {', '.join(map(repr, there.names))}.")
            raise error


def _check_sink(job: PlanJob, *, embedded: bool) -> None:
    from anabranch.connectors.files.output import FileOutput, FolderOutput

    if embedded and job.sink.needs_spark is not None:
        error = ValueError(f"[sink.{job.sink.needs_spark}] is written by Spark, and the engine is embedded")
        error.add_note('Leave --engine out, or write path = "out" or file = "out.parquet" in [sink].')
        raise error
    if not embedded and job.out_file is not None:
        error = ValueError(f"Spark writes to folders, topics and tables, and the sink is {job.out}")
        error.add_note('Add --engine embedded, or write path = "out" in [sink].')
        raise error
    if not embedded and job.folder is not None and job.sink.format == "arrow":
        error = ValueError("[sink] format is parquet or jsonl on Spark, and it is 'arrow'")
        error.add_note("Add --engine embedded, or leave format out.")
        raise error
    if embedded and job.out_file is not None:
        FileOutput(job.out_file).check(job.stream.schema)
    if job.out_file is not None and job.out_file != STANDARD:
        FileOutput(job.out_file).check()
        check_writable(nearest(Path(job.out_file).parent), f"sink ({job.out_file})")
    if job.folder is not None:
        check_writable(nearest(job.folder), f"sink ({job.folder})")
        if embedded:
            FolderOutput(job.folder).check()


def _reading(job: PlanJob, source: Source) -> str:
    given = job.ends[source.name]
    path = _path(job, given)
    if path is not None and path.is_dir() and source.layout is not None:
        there = listing(path).files
        counts = [
            f"{name} {len(files)} file{'s' if len(files) != 1 else ''}" for name, files in there.items()
        ]
        return f"{path}: {', '.join(counts)}"
    if path is not None:
        return str(path)
    if isinstance(given, Ends):
        return str(given.kafka or given.delta or "standard input")
    return type(given).__name__
