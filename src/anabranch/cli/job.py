"""What a job file says: where rows come from, how they are merged, where they go, and the Spark for it.

A TOML file has a table for each; a Python file has a function ``rows(spark)`` and the dicts ``MERGE``,
``SINK`` and ``SPARK`` with the same keys. Paths are relative to the file, so that a job is the same wherever
it is started from.
"""

from __future__ import annotations

import runpy
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from traceback import extract_tb
from typing import TYPE_CHECKING, Any

from anabranch.cli.job_tables import (
    TABLES,
    MergeTable,
    SinkTable,
    SourceTable,
    SparkTable,
    one_of,
    table,
    unknown,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from anabranch.connectors.folder import Folder


@dataclass(frozen=True, slots=True)
class Job:
    """A job, checked as far as that goes without Spark."""

    file: Path
    source: SourceTable | Callable[[Any], Any]
    merge: MergeTable
    sink: SinkTable
    spark: SparkTable

    def place(self, path: str) -> Path:
        """A path that the file names."""
        return (self.file.parent / Path(path).expanduser()).absolute()

    @property
    def out(self) -> Path:
        """The folder of the merged stream."""
        return self.place(self.sink.path)

    @property
    def checkpoint(self) -> Path:
        """The folder from which a restart goes on."""
        return self.place(self.sink.checkpoint) if self.sink.checkpoint else self.out / "_checkpoint"

    @property
    def quarantine(self) -> Path | None:
        """Where refused rows go, if not to the default."""
        return self.place(self.sink.quarantine) if self.sink.quarantine else None

    def rows(self, spark: SparkSession) -> DataFrame | Folder:
        """What is merged."""
        if isinstance(self.source, SourceTable):
            return _rows(self, self.source, spark)
        from pyspark.sql import DataFrame

        from anabranch import spark as ab

        with _in_program(self.file):
            found = self.source(spark)
        if isinstance(found, str | Path):
            return ab.folder(spark, self.place(str(found)))
        if isinstance(found, ab.Folder) or (isinstance(found, DataFrame) and found.isStreaming):
            return found
        what = "a frame that is not streaming" if isinstance(found, DataFrame) else type(found).__name__
        error = TypeError(f"rows(spark) gives a streaming frame or a folder, and it gave {what}")
        error.add_note(
            "Read with spark.readStream, or give the path of a folder or anabranch.spark.folder(…)."
        )
        error.add_note(f"In {self.file}.")
        raise error


def _rows(job: Job, source: SourceTable, spark: SparkSession) -> DataFrame | Folder:
    from anabranch import spark as ab

    if source.format is None:
        assert source.path is not None, "checked"
        return ab.folder(
            spark,
            job.place(source.path),
            schema=source.schema,
            files_per_trigger=source.files_per_trigger,
            bytes_per_trigger=source.bytes_per_trigger,
            rows_per_trigger=source.rows_per_trigger,
        )
    reader = spark.readStream.format(source.format).options(**source.options)
    if source.schema is not None:
        reader = reader.schema(source.schema)
    path = source.path
    rows = reader.load(str(job.place(path)) if path and "://" not in path else path)
    return rows.selectExpr(*source.select) if source.select else rows


def read_job(path: str) -> Job:
    """The job in a file."""
    file = Path(path).absolute()
    try:
        match file.suffix:
            case ".toml":
                return _from_tables(file, tomllib.loads(file.read_text(encoding="utf-8")))
            case ".py":
                return _from_program(file)
    except ValueError as reason:
        reason.add_note(f"In {path}.")
        raise
    error = ValueError(f"a job is a .toml or a .py file, {path} is neither")
    error.add_note("anabranch run --help shows what is in one.")
    raise error


def _from_tables(file: Path, tables: Mapping[str, Any]) -> Job:
    for name in tables:
        if name not in TABLES:
            raise unknown(f"[{name}] is no table of a job", name, TABLES, "Its tables are")
    for name in ("source", "merge", "sink"):
        if name not in tables:
            error = ValueError(f"a job has a table [{name}], and there is none")
            error.add_note(f"Add [{name}] with its keys: {', '.join(TABLES[name].__struct_fields__)}.")
            raise error
    source = table(SourceTable, tables["source"], "[source]")
    source.check()
    return _checked(
        Job(
            file,
            source,
            table(MergeTable, tables["merge"], "[merge]"),
            table(SinkTable, tables["sink"], "[sink]"),
            table(SparkTable, tables.get("spark", {}), "[spark]"),
        )
    )


def _from_program(file: Path) -> Job:
    file.open().close()  # so that a file that is not there is named as everywhere
    sys.path.insert(0, str(file.parent))  # it may import what is beside it, as a program may
    with _in_program(file):
        names = runpy.run_path(str(file), run_name="__anabranch__")
    if not callable(names.get("rows")):
        error = ValueError("a job in Python has a function rows(spark), and there is none")
        error.add_note("It gives a streaming frame, or the path of a folder.")
        raise error
    for name in ("MERGE", "SINK"):
        if name not in names:
            error = ValueError(f"a job in Python has a dict {name}, and there is none")
            known = TABLES[name.lower()].__struct_fields__
            error.add_note(f"Its keys are {', '.join(known)}.")
            raise error
    return _checked(
        Job(
            file,
            names["rows"],
            table(MergeTable, names["MERGE"], "MERGE"),
            table(SinkTable, names["SINK"], "SINK"),
            table(SparkTable, names.get("SPARK", {}), "SPARK"),
        )
    )


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
    from anabranch.connectors.folder_sink import FORMATS

    job.merge.arguments()
    one_of("[sink] format", job.sink.format, dict.fromkeys(FORMATS))
    if job.sink.trigger is not None and job.sink.available_now:
        error = ValueError(f"[sink] reads what is there or every {job.sink.trigger}, not both")
        error.add_note("Leave out trigger or available_now.")
        raise error
    return job
