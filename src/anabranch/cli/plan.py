"""What a job would do, before it does anything: which case and why, and what each column is."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from anabranch.engines.embedded.merger import Merger
from anabranch.engines.spark.columns import columns_of
from anabranch.engines.spark.plan_sources import read_of
from anabranch.engines.spark.query.checkpoint import begun, completed
from anabranch.jobs.merge_sections import ChangesSection, MergeSection
from anabranch.model.output_policy import Pace
from anabranch.model.span import span, span_text
from anabranch.plan.source import Source
from anabranch.rows.layout import SINGLE, names_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from anabranch.engines.spark.native_source import NativeSource
    from anabranch.jobs.job import Job

ROLES = {
    "start": "the start of the lifetime",
    "end": "its end; null is never",
    "old_end": "the end that an adjust changes",
    "kind": "insert (or null), adjust, stable, attach or detach",
    "time": "when it was committed",
    "op": "what happened: insert, update, delete, upsert, stable, attach or detach",
    "replica": "who says it",
    "channel": "the channel it comes by",
    "sequence": "its place in the channel",
}


@dataclass(frozen=True, slots=True)
class Plan:
    """What a job would do."""

    case: str
    reason: str
    explanation: list[str]
    columns: dict[str, str]
    """What each column of the rows is."""
    time: str
    """How it is known how far a replica has come."""
    replicas: list[str]
    """Who vouches for what is there, who is awaited, and who is not while silent."""
    output: dict[str, str]
    source: str
    sink: str
    checkpoint: str

    def fields(self) -> dict[str, Any]:
        """The plan as JSON fields."""
        return {name: getattr(self, name) for name in self.__slots__}

    def __str__(self) -> str:
        wide = max(map(len, self.columns))
        parts = [
            ("merge", self.explanation),
            ("source", [self.source]),
            ("columns", [f"{name:<{wide}}  {what}" for name, what in self.columns.items()]),
            ("time", [self.time]),
            *([("replicas", self.replicas)] if self.replicas else []),
            ("output", [", ".join(f"{name} {kind}" for name, kind in self.output.items())]),
            ("sink", [self.sink, self.checkpoint]),
        ]
        return "\n".join(
            f"{name if n == 0 else '':<9}{line}" for name, lines in parts for n, line in enumerate(lines)
        )


def plan(job: Job, rows: DataFrame | NativeSource, merged: DataFrame) -> Plan:
    """What a job would do with these rows."""
    merger = _merger(job.merge, rows)
    status = merger.status()
    done = completed(job.checkpoint)
    after = f"after micro-batch {done}" if done >= 0 else "anew"
    if begun(job.checkpoint) > done:
        after += f", with micro-batch {begun(job.checkpoint)}, which was begun"
    return Plan(
        status.case,
        status.reason,
        merger.explain().split("\n"),
        _columns(job.merge, rows),
        _time_of_changes(job.merge, rows) if isinstance(job.merge, ChangesSection) else _time(job.merge),
        _replicas(job.merge, rows),
        {field.name: field.dataType.simpleString() for field in merged.schema.fields},
        source_of(job, rows),
        f"{job.out}{_as(job)}; refused rows in {job.quarantine}",
        f"checkpoint {job.checkpoint}: begins {after}",
    )


def _as(job: Job) -> str:
    return f", as {job.sink.format}" if job.folder else ""


def _merger(table: MergeSection | ChangesSection, rows: DataFrame | NativeSource) -> Merger:
    """A merge with the replicas that are known, and one that stands for all others."""
    given = table.arguments()
    source = _source(table, rows)
    merger = Merger(
        given.get("case"),
        given.get("policy"),
        pace=given.get("pace", Pace.SLOWEST),
        identity=names_of(given.get("identity")),
    )
    lossy = given.get("lossy", False)
    some = () if isinstance(lossy, bool) else names_of(lossy) or ()
    known = source.awaited
    named = list(dict.fromkeys([*known, *some]))
    for name in [*named, f"every {'other ' if named else ''}replica"]:
        complete = not lossy if isinstance(lossy, bool) else name not in some
        merger.attach(name, properties=source.of_events, complete=complete)
    return merger


def _source(table: MergeSection | ChangesSection, rows: DataFrame | NativeSource) -> Source:
    """The source of the merge, as it is read."""
    columns = columns_of(rows)
    (source,) = table.checked().plan(columns).node.inputs
    assert isinstance(source, Source), "nothing is made of rows before they are merged"
    return read_of(source, columns).source


def _replicas(table: MergeSection | ChangesSection, rows: DataFrame | NativeSource) -> list[str]:
    vouching = table.vouching()
    if vouching is None:
        return []
    awaited = _source(table, rows).awaited
    told = [vouching, f"awaited from the beginning: {', '.join(awaited)}" if awaited else ""]
    told.append(f"idle while they are silent: {', '.join(names_of(table.idle) or ())}" if table.idle else "")
    return [words for words in told if words]


def _columns(table: MergeSection | ChangesSection, rows: DataFrame | NativeSource) -> dict[str, str]:
    roles: dict[str, list[str]] = {}
    for role, words in ROLES.items():
        name = getattr(table, role, None)
        if name is not None:
            roles.setdefault(name, []).append(words)
    payload = names_of(table.payload)
    found = {}
    for field in rows.schema.fields:
        name = field.name
        if name in roles:
            what = ", ".join(roles[name])
        elif payload is not None and name not in payload:
            what = "not used"
        else:
            what = _payload(table, name)
        found[name] = f"{field.dataType.simpleString()}: {what}"
    return found


def _payload(table: MergeSection | ChangesSection, name: str) -> str:
    if isinstance(table, ChangesSection):
        return "payload, names the row" if name in (names_of(table.key) or ()) else "payload"
    identity = names_of(table.identity)
    return "payload, tells events apart" if identity is None or name in identity else "payload, carried along"


def _time(table: MergeSection) -> str:
    return f"{_lasting(table)}; {_reached(table)}"


def _lasting(table: MergeSection) -> str:
    if table.end is not None:
        return f"an event lasts until its {table.end}"
    if table.duration is None:
        return "an event is a point, one tick long"
    return f"an event lasts {_length(table.duration, 'duration')}"


def _reached(table: MergeSection) -> str:
    if table.disorder is not None:
        return f"a row comes at most {_length(table.disorder, 'disorder')} after rows that start later"
    if table.kind is not None:
        return f"rows whose {table.kind} is stable say how far a replica has come"
    return "nothing says how far a replica has come: give kind or disorder, or nothing is ever final"


def _length(value: Any, what: str) -> str:
    found = span(value, what)
    return span_text(found) if isinstance(found, timedelta) else f"{found} ticks"


def _time_of_changes(table: ChangesSection, rows: DataFrame | NativeSource) -> str:
    from pyspark.sql import DataFrame

    if table.disorder is None:
        known = f"rows whose {table.op} is stable say how far a replica has come"
    else:
        latest = _length(table.disorder, "disorder")
        known = f"a change comes at most {latest} after changes that were committed later"
    if not table.by_time and table.sequence is not None:
        order = f"in the order of {table.sequence}"
    elif not table.by_time and not isinstance(rows, DataFrame):
        order = "in the order in which they are read"
    else:
        order = "by commit time"
    return f"{known}; those of a key count {order}"


def source_of(job: Job, rows: DataFrame | NativeSource) -> str:
    """What is read, for people."""
    from pathlib import Path

    from anabranch.connectors.delta.feeds import DeltaChanges
    from anabranch.connectors.folder.source import Folder, listed
    from anabranch.connectors.kafka.topics import Kafka
    from anabranch.jobs.ends import SourceSection

    if isinstance(rows, Folder):
        there = listed(Path(rows.path))
        counts = {name: f"{len(files)} file{'s' if len(files) != 1 else ''}" for name, files in there.items()}
        return f"{rows.path}: " + ", ".join(f"{name} {count}" for name, count in counts.items())
    if isinstance(rows, Kafka):
        return str(rows)
    if isinstance(rows, DeltaChanges):
        tables = rows.feeds.tables
        named = [path if name == SINGLE else f"{name} {path}" for name, path in tables.items()]
        return f"Delta table{'s' if len(tables) != 1 else ''}: {', '.join(named)}"
    if isinstance(job.source, SourceSection):
        return f"{job.source.format} of Spark's"
    return f"rows() of {job.file.name}"
