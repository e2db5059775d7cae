"""A plan with its ends as a job: what is read for each of its sources, and where it goes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anabranch.jobs.delta_sections import DeltaSourceSection
from anabranch.jobs.kafka_sections import KafkaSourceSection
from anabranch.jobs.plan_building import built, stream_sections
from anabranch.jobs.plan_sections import PlanSourceSection
from anabranch.jobs.plan_sink import STANDARD, PlanSinkSection
from anabranch.jobs.sections import SparkSection, keys, section, unknown
from anabranch.plan.graph import Graph
from anabranch.plan.source import Source
from anabranch.plan.stream import Stream

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

SECTIONS = {"sources": PlanSourceSection, "plan": None, "sink": PlanSinkSection, "spark": SparkSection}


@dataclass(frozen=True, slots=True)
class Ends:
    """What is read for a source of a plan, as a file says it."""

    path: str | None = None
    kafka: KafkaSourceSection | None = None
    delta: DeltaSourceSection | None = None
    by_replica: bool | None = None
    values: str | None = None

    def door(self, job: PlanJob) -> Any:
        """What `anabranch.run` reads."""
        if self.kafka is not None:
            return self.kafka.door(job)
        if self.delta is not None:
            return self.delta.door(job)
        assert self.path is not None, "checked"
        if self.path == STANDARD:
            return self.path
        place = job.place(self.path)
        if self.by_replica is None and self.values is None:
            return place
        from anabranch.connectors.folder.embedded import folder

        return folder(place, by_replica=self.by_replica, format=self.values)

    def rows(self, job: PlanJob, spark: SparkSession, source: Source) -> Any:
        """What `anabranch.spark.frame` reads."""
        from anabranch.connectors.native import changed_by, columns_in, native, replica_of

        if self.delta is not None:
            return self.delta.rows(job, spark)
        if self.kafka is not None:
            several = not isinstance(self.kafka.topics, str)
            beside = [self.kafka.key, self.kafka.timestamp, replica_of(source) if several else None]
            if self.kafka.values == "debezium":
                beside += changed_by(source)
            return self.kafka.rows(job, spark, columns_in(source, beside), None)
        return native(spark, source, self.door(job))


@dataclass(frozen=True, slots=True)
class PlanJob:
    """A plan, what is read for its sources, where it goes, and the Spark for it."""

    file: Path
    stream: Stream
    ends: Mapping[str, Any]
    """Of each source `Ends`; in a program, whatever `anabranch.run` or `anabranch.spark.frame` takes."""
    sink: PlanSinkSection
    spark: SparkSection

    def place(self, path: str) -> Path:
        """A path that the file names; addresses of other stores are refused."""
        from anabranch.connectors.files.local_path import local_path

        return local_path(path, self.file.parent)

    @property
    def sources(self) -> dict[str, Source]:
        """The sources of the plan."""
        return {node.name: node for node in Graph([self.stream.node]).nodes if isinstance(node, Source)}

    @property
    def folder(self) -> Path | None:
        """The folder of what comes out, if it goes to one."""
        return None if self.sink.path is None else self.place(self.sink.path)

    @property
    def out_file(self) -> str | None:
        """The file of what comes out, if it goes to one; ``-`` is standard output."""
        if self.sink.file is None or self.sink.file == STANDARD:
            return STANDARD if self.folder is None and self.sink.needs_spark is None else None
        return str(self.place(self.sink.file))

    @property
    def out(self) -> str:
        """Where it goes, for people."""
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
        return self.folder / "_quarantine" if self.folder else self.place(f"{self.file.stem}-quarantine")

    def written(self) -> dict[str, Path]:
        """The folders that it writes to on Spark."""
        sink = self.folder if self.sink.table is None else self.place(self.sink.table.path)
        own = {} if sink is None else {"sink": sink}
        return {**own, "checkpoint": self.checkpoint, "quarantine": self.quarantine}

    def rows(self, spark: SparkSession) -> dict[str, Any]:
        """What `anabranch.spark.frame` reads for each source."""
        return {name: self._rows(spark, self.sources[name], given) for name, given in self.ends.items()}

    def _rows(self, spark: SparkSession, source: Source, given: Any) -> Any:
        if isinstance(given, Ends):
            return given.rows(self, spark, source)
        if isinstance(given, str | Path):
            return Ends(str(given)).rows(self, spark, source)
        return given(spark) if callable(given) else given

    def write(self, frame: DataFrame, *, once: bool) -> StreamingQuery:
        """Start the query."""
        from anabranch.jobs.writing import started

        return started(self, frame, once=once)

    def inputs(self) -> dict[str, Any]:
        """What `anabranch.run` reads for each source."""
        return {name: self._input(name, given) for name, given in self.ends.items()}

    def _input(self, name: str, given: Any) -> Any:
        if isinstance(given, Ends):
            return given.door(self)
        if callable(given):
            error = ValueError(f"source {name!r} is read by a function of Spark's session, and there is none")
            error.add_note("Run it on Spark: leave --engine out. Or give a path, a folder, topics or tables.")
            raise error
        return self.place(str(given)) if isinstance(given, str | Path) and str(given) != STANDARD else given


def job_of_sections(file: Path, sections: Mapping[str, Any]) -> PlanJob:
    """The job in a TOML file that has a plan."""
    for name in sections:
        if name not in SECTIONS:
            error = unknown(
                f"[{name}] is no table of a job that has a plan", name, SECTIONS, "Its tables are"
            )
            if name in ("source", "merge", "changes"):
                error.add_note("A plan has [sources.NAME], and its merges are steps or streams of [plan].")
            raise error
    given = sections.get("sources")
    if not isinstance(given, Mapping) or not given:
        error = ValueError("a plan has a table [sources.NAME] for each of its sources, and there is none")
        error.add_note(f"Add [sources.NAME] with its keys: {', '.join(keys(PlanSourceSection))}.")
        raise error
    sources = {name: section(PlanSourceSection, one, f"[sources.{name}]") for name, one in given.items()}
    for name, one in sources.items():
        one.check(name)
    stream = built(file, sources, stream_sections(sections["plan"]))
    return _checked(
        PlanJob(
            file,
            stream,
            {name: one.ends() for name, one in sources.items()},
            _sink(sections.get("sink", {}), "[sink]"),
            section(SparkSection, sections.get("spark", {}), "[spark]"),
        )
    )


def job_of_program(
    file: Path, names: Mapping[str, Any], called: Callable[[Callable[[], Any]], Any]
) -> PlanJob:
    """The job in a Python file that has a ``stream`` or a function ``plan()``; ``called`` calls it."""
    stream = names["stream"] if "stream" in names else called(names["plan"])
    if not isinstance(stream, Stream):
        what = "stream" if "stream" in names else "what plan() gives"
        error = ValueError(f"{what} is a stream of anabranch, and it is {type(stream).__name__}")
        error.add_note("Make one with anabranch.source(…); replicas are merged by .merge().")
        raise error
    ends = names.get("SOURCES")
    if not isinstance(ends, Mapping):
        error = ValueError("a plan in Python has a dict SOURCES, and there is none")
        error.add_note("It has for each source what is read: a path, anabranch.folder(…), kafka(…), …")
        raise error
    job = PlanJob(
        file,
        stream,
        dict(ends),
        _sink(names.get("SINK", {}), "SINK"),
        section(SparkSection, names.get("SPARK", {}), "SPARK"),
    )
    for name in job.sources:
        if name not in ends:
            error = ValueError(f"SOURCES has what is read for each source, and nothing for {name!r}")
            error.add_note(f"It has {', '.join(map(repr, ends)) or 'nothing'}.")
            raise error
    for name in ends:
        if name not in job.sources:
            raise unknown(
                f"SOURCES has {name!r}, and the plan has no such source", name, job.sources, "It has"
            )
    return _checked(job)


def _sink(values: Any, name: str) -> PlanSinkSection:
    """The sink of a plan, whose format, if one is written, is that of its file."""
    sink = section(PlanSinkSection, values, name)
    sink.check()
    sink.check_format(values.get("format"))
    return sink


def _checked(job: PlanJob) -> PlanJob:
    from anabranch.engines.spark.query.provenance import check_apart

    job.sink.check()
    for given in job.ends.values():
        path = given.path if isinstance(given, Ends) else given
        if not isinstance(path, str | Path) or str(path) == STANDARD:
            continue
        place = job.place(str(path))
        alone = [Path(job.out_file)] if job.out_file not in (None, STANDARD) else []
        check_apart(place, job.folder, job.checkpoint, job.quarantine, *alone)
    return job
