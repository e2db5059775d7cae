"""What can be known of the sources of a job before it runs: that they exist, with the columns it reads."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anabranch.connectors.files.csv_header import header_names
from anabranch.connectors.files.formats import ROW_ENDINGS, Format, format_of
from anabranch.connectors.files.local_path import path_meant
from anabranch.connectors.folder.listing import listing
from anabranch.connectors.folder.reading import file_schema
from anabranch.jobs.ends import SourceSection
from anabranch.jobs.opened_sources import embedded_input, known_columns, places_of
from anabranch.model.schema import SchemaError
from anabranch.model.spelling import did_you_mean
from anabranch.plan.source import Source
from anabranch.rows.layout import SINGLE
from anabranch.rows.replica_names import check_replicas, named_in

if TYPE_CHECKING:
    from anabranch.connectors.delta.embedded import DeltaFeeds
    from anabranch.jobs.job import Job


def check_source(job: Job, source: Source, *, asks: bool) -> None:
    """Raise where what is read for a source is not there; ``asks``: clusters are asked for their topics."""
    given = job.ends[source.name]
    if isinstance(given, SourceSection) and given.kafka is not None:
        from anabranch.connectors.kafka.cluster import Cluster

        topics = given.kafka.feeds(job)
        for topic in topics.topics.values() if asks else ():
            Cluster(topic, topics.patience).partitions()
    check_replica_names(job, source)
    if isinstance(given, SourceSection) and given.delta is not None:
        _check_tables(given.delta.feeds(job), source)
    path = path_of(job, given)
    if path is None:
        return
    if not path.exists():
        error = FileNotFoundError(f"{path} is not there{path_meant(path)}")
        error.add_note("Paths are relative to the file of the job.")
        raise error
    if path.is_dir() and isinstance(given, SourceSection) and given.by_replica is not None:
        listing(path).in_form(path, by_replica=given.by_replica)
    if source.layout is None:
        return
    for file in _files(path):
        _check_columns(source, file)


def path_of(job: Job, given: Any) -> Path | None:
    """The file or folder that is read, if it is one."""
    if isinstance(given, SourceSection) and given.path is None:
        return None
    return next(iter(places_of(job, given)), None)


def check_replica_names(job: Job, source: Source) -> None:
    """Raise where settings name a replica that is none of those that are there, as far as these are known."""
    there = _replicas_there(job, job.ends[source.name]) if source.replicated else ()
    if there:
        named = named_in(source.lossy, source.silent, source.awaited)
        check_replicas(
            named,
            there,
            f"what is read for {source.name!r}",
            "One that sends nothing yet has its folder, topic or table all the same.",
        )


def _replicas_there(job: Job, given: Any) -> Collection[str]:
    """The replicas that are known by name before anything is read."""
    described = given
    if isinstance(given, SourceSection) and (given.kafka or given.delta):
        described = (given.kafka or given.delta).feeds(job)  # type: ignore[union-attr]
    several = getattr(described, "topics", None) or getattr(described, "tables", None) or {}
    if several and list(several) != [SINGLE]:
        return list(several)
    path = path_of(job, given)
    if path is None or not path.is_dir():
        return ()
    found = listing(path)
    return list(found.files) if found.by_replica else ()


def _check_tables(changes: DeltaFeeds, source: Source) -> None:
    from anabranch.connectors.delta.reading import opened

    replica = None if source.layout is None else source.layout.replica
    added = (changes.op, changes.time, changes.version, replica)
    for path in changes.tables.values():
        _check_names(source, path, opened(path).columns.names, added)


def _files(path: Path) -> list[Path]:
    """The first files of a folder that have columns, one of each replica; a file by itself."""
    if path.is_file():
        if path.suffix.lower() not in ROW_ENDINGS:
            error = ValueError(f"the ending of {path} names no format of rows, so it cannot be read")
            error.add_note(f"Known are {' '.join(ROW_ENDINGS)}.")
            raise error
        return [path]
    replicas = listing(path).files.values()
    return [next(iter(files.values())) for files in replicas if files]


def _check_columns(source: Source, file: Path) -> None:
    form = format_of(file.name)
    if form is Format.JSON_LINES:
        return
    names = header_names(str(file)) if form is Format.CSV else file_schema(str(file)).names
    if names is None:
        return
    of_folder = None if source.layout is None else source.layout.replica
    _check_names(source, str(file), names, (of_folder,))


def _check_names(source: Source, place: str, there: Sequence[str], added: Collection[str | None]) -> None:
    """Raise where rows have not the columns of a source, but for those that are added to them."""
    assert source.columns is not None, "rows have columns"
    for name in source.columns.names:
        if name not in there and name not in added:
            error = SchemaError(
                f"{place} has no column {name!r}, and source {source.name!r} has{did_you_mean(name, there)}"
            )
            error.add_note(f"Its columns are {', '.join(map(repr, there))}.")
            raise error


def reading(job: Job, name: str) -> str:
    """What is read for a source, for people."""
    given = job.ends[name]
    path = path_of(job, given)
    if path is not None and path.is_dir() and not (isinstance(given, SourceSection) and given.format):
        counts = [
            f"{replica} {len(files)} file{'s' if len(files) != 1 else ''}".lstrip()
            for replica, files in listing(path).files.items()
        ]
        return f"{path}: {', '.join(counts)}"
    if not isinstance(given, SourceSection):
        if callable(given):
            return f"rows() of {job.file.name}" if job.merges else f"a function of {job.file.name}"
        return str(path) if path is not None else type(given).__name__
    if given.format is not None:
        return f"{given.format} of Spark's"
    if given.delta is not None:
        tables = given.delta.feeds(job).tables
        named = [path if replica == SINGLE else f"{replica} {path}" for replica, path in tables.items()]
        return f"Delta table{'s' if len(tables) != 1 else ''}: {', '.join(named)}"
    return str(given.kafka or path or "standard input")


def check_embedded(job: Job) -> None:
    """Raise where what a source reads needs Spark, or only Spark reads it so."""
    for name in job.ends:
        embedded_input(job, name)
    if not job.merges:
        return
    (source,) = job.sources.values()
    columns = known_columns(job).get(source.name)
    named = None if source.layout is None else source.layout.replica
    if columns is not None and columns.replica is not None and named not in (None, columns.replica):
        error = ValueError(
            f"without Spark replicas are named by what they are read from, in column {columns.replica!r}, "
            f"and replica is {named!r}"
        )
        error.add_note(f"Write replica = {columns.replica!r}, or leave --engine out.")
        raise error
