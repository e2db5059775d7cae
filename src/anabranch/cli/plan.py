"""What a job would do, before it does anything: its plan and why, what each column is, where it begins."""

from __future__ import annotations

import argparse
import json
import tempfile
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anabranch.cli.run_spark import session_of, vouching_of
from anabranch.jobs.source_checks import reading
from anabranch.model.span import span_text
from anabranch.plan.source import Source

if TYPE_CHECKING:
    from anabranch.jobs.job import Job
    from anabranch.plan.stream import Stream
    from anabranch.rows.layout import Layout

ROLES = {
    "start": "the start of the lifetime",
    "end": "its end; null is never",
    "old_end": "the end that an adjust changes",
    "kind": "insert (or null), adjust, stable, attach or detach",
    "time": "when it was committed",
    "op": "what happened: insert, update, delete, upsert, stable, attach or detach",
    "replica": "the replica that sends it",
    "channel": "the channel it comes by",
    "sequence": "its place in the channel",
}


@dataclass(frozen=True, slots=True)
class SourceFound:
    """A source as a job would read it."""

    read: str
    columns: dict[str, str]
    """What each column of the rows is."""
    time: str | None
    """How it is known how far a replica has come; of elements it is in the elements."""
    replicas: list[str]
    """Which replicas decide what is there, which are awaited, and which are not while they are idle."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a job would do."""

    plan: list[str]
    sources: dict[str, SourceFound]
    columns: dict[str, str]
    """Those of the result."""
    sink: str
    checkpoint: str | None
    """Where the query begins; None: the job runs without Spark, and has no checkpoint."""

    def fields(self) -> dict[str, Any]:
        """The plan as JSON fields."""
        sources = {
            name: {part: getattr(one, part) for part in one.__slots__} for name, one in self.sources.items()
        }
        return {name: getattr(self, name) for name in self.__slots__} | {"sources": sources}

    def __str__(self) -> str:
        parts = [("plan", self.plan)]
        for name, one in self.sources.items():
            wide = max(map(len, one.columns), default=0)
            parts += [
                ("source", [f"{name}: {one.read}"]),
                ("columns", [f"{column:<{wide}}  {what}" for column, what in one.columns.items()]),
                ("time", [] if one.time is None else [one.time]),
                ("replicas", one.replicas),
            ]
        parts += [
            ("output", [", ".join(f"{name} {kind}" for name, kind in self.columns.items())]),
            ("sink", [self.sink, *([] if self.checkpoint is None else [self.checkpoint])]),
        ]
        return "\n".join(
            f"{name if n == 0 else '':<9}{line}" for name, lines in parts for n, line in enumerate(lines)
        )


def run_check(job: Job, options: argparse.Namespace) -> int:
    """Say what a job would do; the exit status. Spark starts where only Spark knows what is read."""
    from anabranch.jobs.beforehand import check_started
    from anabranch.jobs.opened_sources import known_columns

    embedded = options.engine == "embedded"
    if embedded or not job.merges or known_columns(job):
        found = plan(job, job.stream, job.explained, embedded=embedded)
    else:
        with tempfile.TemporaryDirectory() as folder, session_of(job, Path(folder, "spark.log")) as spark:
            stream, frame = job.frame(spark)
            check_started(job, frame)
            found = plan(job, stream, stream, embedded=False)
    print(json.dumps(found.fields(), ensure_ascii=False) if options.json else found)
    return 0


def plan(job: Job, stream: Stream, read: Stream, *, embedded: bool) -> Plan:
    """What a job would do; ``read``: its plan with what is known of its sources when they are read."""
    from anabranch.jobs.job import sources_of

    found = sources_of(read)

    form = f", as {job.sink.format}" if job.folder else ""
    return Plan(
        read.explain().split("\n"),
        {name: _source(job, one, found[name]) for name, one in sources_of(stream).items()},
        {field.name: str(field.type) for field in stream.schema},
        f"{job.out}{form}; refused rows in {job.quarantine}",
        None if embedded else _checkpoint(job),
    )


def _checkpoint(job: Job) -> str:
    from anabranch.engines.spark.query.checkpoint import begun, completed

    done = completed(job.checkpoint)
    after = f"after micro-batch {done}" if done >= 0 else "anew"
    if begun(job.checkpoint) > done:
        after += f", with micro-batch {begun(job.checkpoint)}, which was begun"
    return f"checkpoint {job.checkpoint}: begins {after}"


def _source(job: Job, source: Source, read: Source) -> SourceFound:
    columns = {field.name: str(field.type) for field in source.columns or ()}
    if source.layout is None:
        return SourceFound(reading(job, source.name), columns, None, _replicas(read))
    words = _columns(source, source.layout)
    columns = {name: f"{kind}: {words[name]}" for name, kind in columns.items()}
    return SourceFound(reading(job, source.name), columns, _time(read, source.layout), _replicas(read))


def _replicas(source: Source) -> list[str]:
    found = vouching_of([source])
    found += [f"awaited from the beginning: {', '.join(source.awaited)}"] if source.awaited else []
    found += [f"not awaited while they are idle: {', '.join(source.silent)}"] if source.silent else []
    return found


def _columns(source: Source, layout: Layout) -> dict[str, str]:
    roles: dict[str, list[str]] = {}
    for role, name in layout.roles().items():
        roles.setdefault(name, []).append(ROLES[role])
    named = layout.key if source.of_changes else layout.identity
    what = "names the row" if source.of_changes else "tells events apart"
    found = {}
    for name in source.columns.names if source.columns is not None else ():
        if name in roles:
            found[name] = ", ".join(roles[name])
        elif name not in source.schema.names:
            found[name] = "not used"
        elif named is None or name in named:
            found[name] = f"payload, {what}" if source.replicated or named else "payload"
        else:
            found[name] = "payload" if source.of_changes else "payload, carried along"
    return found


def _time(source: Source, layout: Layout) -> str:
    if source.of_changes:
        return time_of_changes(layout, by_time=source.by_time)
    return time_of_events(layout)


def time_of_changes(layout: Layout, *, by_time: bool) -> str:
    """How it is known how far a replica has come, and which change of a row counts."""
    if layout.disorder is None:
        known = f"rows whose {layout.kind} is stable say how far a replica has come"
    else:
        late = _length(layout.disorder)
        known = f"a change comes at most {late} after changes that were committed later"
    if by_time:
        order = "by commit time"
    elif layout.sequence is not None:
        order = f"in the order of {layout.sequence}"
    else:
        order = "in the order in which they are read"
    return f"{known}; those of a key count {order}"


def time_of_events(layout: Layout) -> str:
    """How long events last, and how it is known how far a replica has come."""
    return f"{_lasting(layout)}; {_reached(layout)}"


def _lasting(layout: Layout) -> str:
    if layout.end is not None:
        return f"an event lasts until its {layout.end}"
    if layout.duration is None:
        return "an event is a point, one tick long"
    return f"an event lasts {_length(layout.duration)}"


def _reached(layout: Layout) -> str:
    if layout.disorder is not None:
        return f"a row comes at most {_length(layout.disorder)} after rows that start later"
    if layout.kind is not None:
        return f"rows whose {layout.kind} is stable say how far a replica has come"
    return "nothing says how far a replica has come: give kind or disorder, or nothing is ever final"


def _length(length: int | timedelta) -> str:
    return span_text(length) if isinstance(length, timedelta) else f"{length} ticks"
