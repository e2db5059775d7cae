"""What a job file says: where rows come from, how they are merged, where they go, and the Spark for it.

A TOML file has a section for each; a Python file has a function ``rows(spark)`` and the dicts ``MERGE`` or
``CHANGES``, ``SINK`` and ``SPARK`` with the same keys. A job that has a plan is another (`plan_job.py`).
Paths are relative to the file, so that a job is the same wherever it is started from.
"""

from __future__ import annotations

import re
import runpy
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from traceback import extract_tb
from typing import TYPE_CHECKING, Any

from anabranch.jobs.ends import SECTIONS, SinkSection, SourceSection, check_table, check_together
from anabranch.jobs.merge_sections import ChangesSection, MergeSection
from anabranch.jobs.sections import SparkSection, keys, section, unknown

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from anabranch.engines.spark.native_source import NativeSource
    from anabranch.jobs.plan_job import PlanJob


@dataclass(frozen=True, slots=True)
class Job:
    """A job, checked as far as that goes without Spark."""

    file: Path
    source: SourceSection | Callable[[Any], Any]
    merge: MergeSection | ChangesSection
    sink: SinkSection
    spark: SparkSection

    def place(self, path: str) -> Path:
        """A path that the file names; addresses of other stores are refused."""
        from anabranch.connectors.files.local_path import local_path

        return local_path(path, self.file.parent)

    @property
    def folder(self) -> Path | None:
        """The folder of the merged stream, if it goes to one."""
        return None if self.sink.path is None else self.place(self.sink.path)

    @property
    def out(self) -> str:
        """Where the merged stream goes, for people."""
        if self.sink.table is not None:
            return f"table {self.place(self.sink.table.path)}"
        return str(self.folder or self.sink.kafka)

    @property
    def checkpoint(self) -> Path:
        """The folder from which a restart goes on."""
        if self.sink.checkpoint:
            return self.place(self.sink.checkpoint)
        return self.folder / "_checkpoint" if self.folder else self.place(f"{self.file.stem}-checkpoint")

    @property
    def quarantine(self) -> Path:
        """Where refused rows go."""
        if self.sink.quarantine:
            return self.place(self.sink.quarantine)
        return self.folder / "_quarantine" if self.folder else self.checkpoint / "quarantine"

    def written(self) -> dict[str, Path]:
        """The folders that a job writes to."""
        table = None if self.sink.table is None else self.place(self.sink.table.path)
        sink = self.folder or table
        return {
            **({} if sink is None else {"sink": sink}),
            "checkpoint": self.checkpoint,
            "quarantine": self.quarantine,
        }

    def write(self, merged: DataFrame, *, once: bool) -> StreamingQuery:
        """Start the query."""
        from anabranch.jobs.writing import started

        return started(self, merged, once=once)

    def rows(self, spark: SparkSession) -> DataFrame | NativeSource:
        """What is merged."""
        if isinstance(self.source, SourceSection):
            return _rows(self, self.source, spark)
        from pyspark.sql import DataFrame

        from anabranch import spark as ab

        with _in_program(self.file):
            found = self.source(spark)
        if isinstance(found, str | Path):
            return ab.folder(spark, self.place(str(found)))
        native = ab.Folder | ab.Kafka | ab.DeltaChanges
        if isinstance(found, native) or (isinstance(found, DataFrame) and found.isStreaming):
            return found
        what = "a frame that is not streaming" if isinstance(found, DataFrame) else type(found).__name__
        error = TypeError(
            f"rows(spark) gives a streaming frame, a folder, topics or tables, and it gave {what}"
        )
        error.add_note("Read with spark.readStream, or give the path of a folder,")
        error.add_note("anabranch.spark.folder(…), kafka(…) or delta_changes(…).")
        raise error


def _rows(job: Job, source: SourceSection, spark: SparkSession) -> DataFrame | NativeSource:
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


def read_job(path: str) -> Job | PlanJob:
    """The job in a file: a merge, or a plan."""
    file = Path(path).absolute()
    try:
        match file.suffix:
            case ".toml":
                sections = _sections(file.read_text(encoding="utf-8"))
                if "plan" in sections or "sources" in sections:
                    return _plan_of_sections(file, sections)
                return _from_sections(file, sections)
            case ".py":
                return _from_program(file)
    except (ValueError, TypeError) as reason:
        reason.add_note(f"In {path}.")
        raise
    error = ValueError(f"a job is a .toml or a .py file, {path} is neither")
    error.add_note("anabranch run --help shows what is in one.")
    raise error


def _sections(text: str) -> dict[str, Any]:
    """What a text of TOML says; a quote that is not closed is told as that."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as reason:
        said = str(reason)
        found = re.search(r"Illegal character '\\n' \(at line (\d+)", said)
        if found is None and not re.match(r"Unterminated string|Expected \"'\"", said):
            raise
        number = int(found[1]) if found else _unclosed(text)
        error = ValueError(f"a quote is not closed in line {number}: {text.splitlines()[number - 1].strip()}")
        error.add_note("A text begins and ends with the same quote, in one line.")
        raise error from None


def _unclosed(text: str) -> int:
    """The first line with a single quote that has no partner."""
    lines = enumerate(text.splitlines(), 1)
    return next((n for n, line in lines if line.count("'") % 2), len(text.splitlines()))


def _from_sections(file: Path, sections: Mapping[str, Any]) -> Job:
    for name in sections:
        if name not in SECTIONS:
            raise unknown(f"[{name}] is no table of a job", name, SECTIONS, "Its tables are")
    for name in ("source", "sink"):
        if name not in sections:
            error = ValueError(f"a job has a table [{name}], and there is none")
            error.add_note(f"Add [{name}] with its keys: {', '.join(keys(SECTIONS[name]))}.")
            raise error
    source = section(SourceSection, sections["source"], "[source]")
    source.check()
    return _checked(
        Job(
            file,
            source,
            _merging(sections, "[{}]".format),
            section(SinkSection, sections["sink"], "[sink]"),
            section(SparkSection, sections.get("spark", {}), "[spark]"),
        )
    )


def _merging(sections: Mapping[str, Any], spelled: Callable[[str], str]) -> MergeSection | ChangesSection:
    """What rows say: the one of two sections that a job has."""
    match [name for name in ("merge", "changes") if name in sections]:
        case ["merge"]:
            return section(MergeSection, sections["merge"], spelled("merge"))
        case ["changes"]:
            return section(ChangesSection, sections["changes"], spelled("changes"))
        case given:
            merge, changes = spelled("merge"), spelled("changes")
            found = "both" if given else "neither"
            error = ValueError(f"a job has one of {merge} and {changes}, and this has {found}")
            error.add_note(f"{merge} is for rows that are events, and has a start at least;")
            error.add_note(
                f"{changes} is for rows that say what happened to a row of a table, and has key and time."
            )
            raise error


def _plan_of_sections(file: Path, sections: Mapping[str, Any]) -> PlanJob:
    from anabranch.jobs.plan_job import job_of_sections

    if "plan" not in sections:
        error = ValueError("a job with [sources.NAME] has a table [plan], and there is none")
        error.add_note("Add [plan] with its steps; for a merge alone, write [source] and [merge].")
        raise error
    return job_of_sections(file, sections)


def _from_program(file: Path) -> Job | PlanJob:
    file.open().close()  # so that a file that is not there is named as everywhere
    sys.path.insert(0, str(file.parent))  # it may import what is beside it, as a program may
    with _in_program(file):
        names = runpy.run_path(str(file), run_name="__anabranch__")
    if "stream" in names or ("plan" in names and "rows" not in names):
        from anabranch.jobs.plan_job import job_of_program

        return job_of_program(file, names, _caller(file))
    if not callable(names.get("rows")):
        error = ValueError("a job in Python has a function rows(spark), and there is none")
        error.add_note(
            "It gives a streaming frame, or the path of a folder. A plan has a stream in its place."
        )
        raise error
    if "SINK" not in names:
        error = ValueError("a job in Python has a dict SINK, and there is none")
        error.add_note(f"Its keys are {', '.join(keys(SinkSection))}.")
        raise error
    return _checked(
        Job(
            file,
            names["rows"],
            _merging({name.lower(): value for name, value in names.items() if name.isupper()}, str.upper),
            section(SinkSection, names["SINK"], "SINK"),
            section(SparkSection, names.get("SPARK", {}), "SPARK"),
        )
    )


def _caller(file: Path) -> Callable[[Callable[[], Any]], Any]:
    """What calls a function of a program, with errors as its lines."""

    def called(function: Callable[[], Any]) -> Any:
        with _in_program(file):
            return function()

    return called


@contextmanager
def _in_program(file: Path) -> Iterator[None]:
    """What goes wrong inside is said with its line of the user's file."""
    try:
        yield
    except Exception as reason:
        lines = [one.lineno for one in extract_tb(reason.__traceback__) if one.filename == str(file)]
        line = reason.lineno if isinstance(reason, SyntaxError) else lines[-1] if lines else None
        words = (str(reason).strip() or "no message").split("\n")[0]
        error = ValueError(f"{file.name}, line {line}: {type(reason).__name__}: {words}")
        for note in getattr(reason, "__notes__", []):
            error.add_note(note)
        raise error from reason


def _checked(job: Job) -> Job:
    from anabranch.engines.spark.query.provenance import check_apart

    job.merge.arguments()
    job.sink.check()
    check_table(job.merge, job.sink)
    written = job.written()
    if job.spark.log is not None and job.spark.log != "-":
        job.place(job.spark.log)
    if not isinstance(job.source, SourceSection):
        return job
    check_together(job.source, job.merge)
    for place in _read(job, job.source):
        check_apart(place, written.get("sink"), job.checkpoint, job.quarantine)
    return job


def _read(job: Job, source: SourceSection) -> list[Path]:
    """The folders of this machine that a job reads; Spark's own sources may read anywhere."""
    from anabranch.connectors.files.local_path import is_address

    if source.delta is not None:
        return source.delta.places(job)
    if source.path is None or (source.format is not None and is_address(source.path)):
        return []
    return [job.place(source.path)]
