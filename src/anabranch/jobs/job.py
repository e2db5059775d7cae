"""A job: a plan, what is read for each of its sources, where the result goes, and the Spark for it.

A file names its plan as [sources.NAME] and [plan], or as [source] with [merge] or [changes], which is short
for one source and one merge of what is read from it (`job_file.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anabranch.connectors.files.formats import STANDARD
from anabranch.engines.spark.rows_merge import ROWS_SOURCE
from anabranch.jobs.ends import SinkSection, SourceSection
from anabranch.jobs.merge_sections import ChangesSection, MergeSection
from anabranch.jobs.sections import SparkSection
from anabranch.plan.graph import Graph
from anabranch.plan.line import NO_LINE, told
from anabranch.plan.node import PlanError
from anabranch.plan.source import Source
from anabranch.plan.stream import Stream

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from anabranch.engines.spark.columns import Columns


@dataclass(frozen=True)
class Job:
    """A job, checked as far as that goes without Spark."""

    file: Path
    plan: Stream | MergeSection | ChangesSection
    """A merge is a plan once the columns of its rows are known."""
    ends: Mapping[str, Any]
    """What is read for each source: a `SourceSection`, or what a program gives."""
    sink: SinkSection
    spark: SparkSection

    @property
    def merges(self) -> bool:
        """It is one merge, whose rows have the columns of what is read."""
        return not isinstance(self.plan, Stream)

    @cached_property
    def stream(self) -> Stream:
        """The plan, as far as it is known without Spark."""
        return self.plan if isinstance(self.plan, Stream) else self.stream_over(self._columns)

    @cached_property
    def explained(self) -> Stream:
        """The plan with what is known of the sources of a merge when they are read: order and replicas."""
        return self.plan if isinstance(self.plan, Stream) else self.read_over(self._columns)

    @cached_property
    def _columns(self) -> dict[str, Columns]:
        from anabranch.jobs.opened_sources import columns_read, zone_of_texts

        given = self.ends[ROWS_SOURCE]
        columns = columns_read(self, ROWS_SOURCE, zone_of_texts(self, given))
        if columns is not None:
            return {ROWS_SOURCE: columns}
        what = "rows(spark)"
        if isinstance(given, SourceSection):
            what = "this schema" if given.format is None else f"format {given.format!r}"
        error = PlanError(f"the columns of {what} are known to Spark alone, and Spark is not started")
        error.add_note(f"anabranch run {self.file} --check starts Spark and says what the job would do.")
        error.add_note("Without Spark a job reads a folder, topics or Delta tables.")
        raise error

    def stream_over(self, columns: Mapping[str, Columns]) -> Stream:
        """The plan over rows of these columns."""
        if isinstance(self.plan, Stream):
            return self.plan
        with told(NO_LINE):
            return self.plan.checked().plan(columns[ROWS_SOURCE])

    def read_over(self, columns: Mapping[str, Columns]) -> Stream:
        """The plan over rows of these columns as they are read: in which order, and of which replicas."""
        from anabranch.engines.spark.plan_sources import read_of, with_sources

        stream = self.stream_over(columns)
        reads = {name: read_of(source, columns[name]) for name, source in sources_of(stream).items()}
        return Stream(with_sources(stream.node, reads))

    @property
    def sources(self) -> dict[str, Source]:
        """The sources of the plan."""
        return sources_of(self.stream)

    def place(self, path: str) -> Path:
        """A path that the file names; addresses of other stores are refused."""
        from anabranch.connectors.files.local_path import local_path

        return local_path(path, self.file.parent)

    @property
    def folder(self) -> Path | None:
        """The folder of the result, if it goes to one."""
        return None if self.sink.path is None else self.place(self.sink.path)

    @property
    def out_file(self) -> str | None:
        """The file of the result, if it goes to one; ``-`` is standard output."""
        if self.sink.file is None or self.sink.file == STANDARD:
            return STANDARD if self.folder is None and self.sink.needs_spark is None else None
        return str(self.place(self.sink.file))

    @property
    def out(self) -> str:
        """Where the result goes, for people."""
        if self.out_file == STANDARD:
            return "standard output"
        if self.sink.table is not None:
            return f"table {self.place(self.sink.table.path)}"
        return str(self.folder or self.out_file or self.sink.kafka)

    @property
    def checkpoint(self) -> Path:
        """The folder from which a restart on Spark goes on."""
        if self.sink.checkpoint:
            return self.place(self.sink.checkpoint)
        return self.folder / "_checkpoint" if self.folder else self.place(f"{self.file.stem}-checkpoint")

    @property
    def quarantine(self) -> Path:
        """The folder for refused rows."""
        if self.sink.quarantine:
            return self.place(self.sink.quarantine)
        if self.folder:
            return self.folder / "_quarantine"
        if self.sink.needs_spark:
            return self.checkpoint / "quarantine"
        return self.place(f"{self.file.stem}-quarantine")

    def written(self) -> dict[str, Path]:
        """The folders that a job writes to on Spark."""
        table = None if self.sink.table is None else self.place(self.sink.table.path)
        sink = self.folder or table
        return {
            **({} if sink is None else {"sink": sink}),
            "checkpoint": self.checkpoint,
            "quarantine": self.quarantine,
        }

    def inputs(self) -> dict[str, Any]:
        """What `anabranch.run` reads for each source."""
        from anabranch.jobs.opened_sources import embedded_input

        return {name: embedded_input(self, name) for name in self.ends}

    def answers(self) -> dict[str, Any]:
        """What the plan does with rows that are not used, where it says so for all of them."""
        return {} if isinstance(self.plan, Stream) else dict(self.plan.checked().on_refused)

    def rows(self, spark: SparkSession) -> dict[str, Any]:
        """What `anabranch.spark.frame` reads for each source."""
        from anabranch.jobs.opened_sources import spark_rows

        return {name: spark_rows(self, name, spark) for name in self.ends}

    def frame(self, spark: SparkSession) -> tuple[Stream, DataFrame]:
        """The plan over what Spark reads, as it is read, and its result."""
        from anabranch import spark as ab
        from anabranch.engines.spark.columns import columns_of

        try:
            rows = self.rows(spark)
            options = self.answers()
            if isinstance(self.plan, Stream):
                return self.plan, ab.frame(self.plan, rows)
            if self.plan.rows_per_parcel is not None:
                options["rows_per_parcel"] = self.plan.rows_per_parcel
            columns = {name: columns_of(one) for name, one in rows.items()}
            frame = ab.frame(self.stream_over(columns), rows, **options)
            return self.read_over(columns), frame
        except (ValueError, TypeError) as error:
            error.add_note(f"In {self.file}.")
            raise

    def write(self, frame: DataFrame, *, once: bool) -> StreamingQuery:
        """Start the query."""
        from anabranch.jobs.writing import started

        return started(self, frame, once=once)


def sources_of(stream: Stream) -> dict[str, Source]:
    """The sources of a plan."""
    return {node.name: node for node in Graph([stream.node]).nodes if isinstance(node, Source)}
