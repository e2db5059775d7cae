"""A job file and the folders it names: what is read, what is written, and from where it would go on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from anabranch.cli.doctor.finding import Finding, Request, failed, note, ok, trouble

if TYPE_CHECKING:
    from anabranch.jobs.ends import SourceSection
    from anabranch.jobs.job import Job


def read(path: str) -> tuple[Job | None, Finding]:
    """The job in a file, or why it is none."""
    try:
        from anabranch.jobs.job_file import read_job

        return read_job(path), ok("job", f"{path} says what to do")
    except Exception as error:
        return None, failed("job", error)


def source(asked: Request) -> Iterator[Finding]:
    """What is read is there, as far as that can be seen without Spark."""
    job = asked.job
    if job is None:
        return
    from anabranch.jobs.ends import SourceSection
    from anabranch.jobs.source_checks import check_source, reading

    for name, given in job.ends.items():
        if not job.merges:
            try:
                check_source(job, job.sources[name], asks=False)
                yield ok("source", f"{name}: {reading(job, name)}")
            except (ValueError, TypeError, OSError, ImportError) as error:
                yield failed("source", error)
        elif not isinstance(given, SourceSection):
            yield note("source", f"rows() of {job.file.name}; anabranch run {job.file.name} --check calls it")
        elif given.format is not None:
            yield note("source", f"{given.format} of Spark's; anabranch run {job.file.name} --check asks it")
        elif given.kafka is None and given.delta is None:
            yield _folder(job.place(given.path or ""), given)


def _folder(place: Path, source: SourceSection) -> Finding:
    from anabranch.connectors.files.csv_header import header_names
    from anabranch.connectors.files.formats import Format, format_of
    from anabranch.connectors.files.local_path import path_meant
    from anabranch.connectors.folder.listing import listing
    from anabranch.connectors.folder.reading import file_schema

    if not place.is_dir():
        way_out = "Give the folder that holds the files, or a sub-folder for each replica, in [source] path."
        return trouble("source", f"{place} is not a folder that is there{path_meant(place)}", way_out)
    try:
        found = listing(place)
    except ValueError as error:
        return failed("source", error)
    there = found.files
    files = [file for some in there.values() for file in some.values()]
    typed = [file for file in files if format_of(file.name) is not Format.JSON_LINES]
    if source.schema is None and not typed:
        what = "only JSON lines, which do not say their types" if files else "no files"
        return trouble(
            "source",
            f"{place} has {what}, and [source] has no schema",
            "Write schema = 'room string, at timestamp, …' in [source].",
        )
    for file in files:
        try:
            if source.schema is not None and format_of(file.name) is Format.CSV:
                header_names(str(file))
            elif file in typed:
                file_schema(str(file))
            else:
                file.open().close()
        except Exception as reason:
            words = str(reason).split("\n")[0]
            return trouble("source", f"{file} cannot be read: {words}", "Mend the file, or move it away.")
    if found.empty and source.by_replica is None:
        way_out = "Write by_replica = true in [source] if each replica will have a folder, false if none."
        return trouble("source", f"{place} is empty, and nothing says whose its files will be", way_out)
    if not files:
        return note("source", f"{place} has no files yet; a query waits for them")
    counts = ", ".join(f"{name} {len(some)}" if name else str(len(some)) for name, some in there.items())
    return ok("source", f"{len(files)} files in {place}: {counts}")


def merge(asked: Request) -> Iterator[Finding]:
    """The columns are there that the merge names, and the checkpoint was begun with the same settings."""
    if asked.job is None:
        return
    from anabranch.jobs.beforehand import check_begun, foreseen
    from anabranch.jobs.opened_sources import known_columns

    try:
        columns = known_columns(asked.job)
    except Exception:
        columns = {}  # which is told of the source
    try:
        found = foreseen(asked.job, columns)
        check_begun(asked.job, found)
    except Exception as error:
        yield failed("merge", error)
        return
    if found.columns is None:
        yield note("merge", "its columns are known when Spark reads the source")
    else:
        yield ok("merge", f"gives the columns {', '.join(found.columns.names)}")


def sink(asked: Request) -> Iterator[Finding]:
    """What is in the folder of the merged stream is of this query, and in its format."""
    job = asked.job
    if job is None:
        return
    from anabranch.connectors.folder.sink import check_folder
    from anabranch.engines.spark.query.start import check_trigger

    try:
        check_trigger(available_now=job.sink.available_now, trigger=job.sink.trigger)
        if job.folder is not None:
            check_folder(job.folder, job.checkpoint, job.sink.format)
    except (ValueError, OSError) as error:
        yield failed("sink", error)
        return
    if job.folder is not None and job.folder.is_dir():
        files = [file for file in job.folder.iterdir() if file.is_file() and file.name[0] != "."]
        yield ok("sink", f"{len(files)} files of this query in {job.out}")


def checkpoint(asked: Request) -> Iterator[Finding]:
    """What a run would go on from can be read."""
    from anabranch.engines.spark.query.checkpoint import begun, completed

    if asked.job is None:
        return
    place = asked.job.checkpoint
    if begun(place) < 0 and completed(place) < 0:
        yield ok("checkpoint", f"{place} is new: the next run begins")
        return
    way_out = (
        "Restore the whole folder from a copy. To begin anew, give the job a new sink and checkpoint",
        "in [sink]; all that the source still has is then read again.",
    )
    if completed(place) > begun(place):
        found = (
            f"micro-batch {completed(place)} is complete and {begun(place)} was begun last: files are gone"
        )
        yield trouble("checkpoint", f"{place}: {found}", *way_out)
        return
    torn = next((file for file in _notes(place) if not _is_whole(file)), None)
    if torn is not None:
        yield trouble("checkpoint", f"{torn} is not what Spark writes there", *way_out)
    else:
        yield ok("checkpoint", f"the next run goes on after micro-batch {completed(place)} of {place}")


def _notes(place: Path) -> Iterator[Path]:
    """The files that Spark reads first: whose checkpoint it is, and the last micro-batch."""
    from anabranch.engines.spark.query.checkpoint import begun, completed

    yield place / "metadata"
    yield place / "offsets" / str(begun(place))
    if completed(place) >= 0:
        yield place / "commits" / str(completed(place))


def _is_whole(file: Path) -> bool:
    """A note of Spark's has the version of its form, but for ``metadata``, and an object.

    In ``offsets`` what each source said follows, which is an object or any other text.
    """
    try:
        lines = file.read_text().splitlines()
        if file.name != "metadata":
            version, *lines = lines
            if not version.startswith("v"):
                return False
        objects = [json.loads(line) for n, line in enumerate(lines) if n == 0 or line.startswith("{")]
    except (OSError, ValueError):
        return False
    return bool(objects) and (file.parent.name != "offsets" or len(lines) > 1)
