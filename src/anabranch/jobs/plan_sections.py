"""``[sources.NAME]`` and ``[plan]``: where the streams of a plan come from, and what is done to them.

    [sources.readings]
    path = "feeds"
    columns = { sensor = "string", level = "float64", at = "timestamp[us, tz=UTC]" }
    start = "at"
    disorder = "10 minutes"

    [plan]
    from = "readings"
    steps = [
      { filter = "level > 3" },
      { with_columns = { excess = "level - 3" } },
      { tumble = "1 minute" },
    ]

Steps are methods of `Stream` by their names, in their order, and expressions and aggregates are texts
(`parsing.py`): ``{ window = "1 minute" }, { group_by = "room" }, { agg = { most = "level.max()" } }``. Where
several streams meet, each is a section of its own, ``[plan.NAME]``, which is ``from`` a source or another of
them, or is their ``merge`` or ``union``, or has a step ``join`` with another; the one that no other reads is
what comes out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import field

from anabranch.jobs.delta_sections import DeltaSourceSection
from anabranch.jobs.ends import SourceSection
from anabranch.jobs.kafka_sections import KafkaSourceSection
from anabranch.jobs.merge_sections import answer_named, check_lossy_words, policy_of
from anabranch.jobs.sections import Names, Section, one_of
from anabranch.jobs.step_sections import Span, step_section
from anabranch.model.output_policy import Pace
from anabranch.model.spelling import nearest

_ENDS = ("path", "kafka", "delta", "by_replica", "values")


class PlanSourceSection(Section):
    """``[sources.NAME]``: what is read, its columns, and the arguments of `anabranch.source`."""

    path: str | None = None
    """A file, or a folder with a sub-folder for each replica."""
    kafka: KafkaSourceSection | None = None
    delta: DeltaSourceSection | None = None
    by_replica: bool | None = None
    values: str | None = None
    """What lines of JSON in a folder are: envelopes of Debezium's; None: rows."""
    columns: dict[str, str] | None = None
    start: str | None = None
    end: str | None = None
    old_end: str | None = None
    duration: Span | None = None
    kind: str | None = None
    channel: str | None = None
    sequence: str | None = None
    payload: Names | None = None
    key: Names | None = None
    op: str | None = None
    ops: dict[str, str] | None = None
    by_time: bool = False
    disorder: Span | None = None
    properties: Names | None = None
    replica: str | None = None
    replicas: Names = field(default_factory=list)
    idle: Names = field(default_factory=list)
    lossy: bool | Names | None = None
    on_invalid: str | None = None
    on_late: str | None = None

    def check(self, name: str) -> None:
        """Raise where it is not said what is read, or keys do not go together."""
        given = [key for key in ("path", "kafka", "delta") if getattr(self, key) is not None]
        if len(given) != 1:
            found = " and ".join(given) or "none of them"
            error = ValueError(f"[sources.{name}] has one of path, kafka and delta, and this has {found}")
            error.add_note('Write path = "feeds" for a file, or a folder with a sub-folder for each replica,')
            error.add_note('or kafka = { topics = "readings", servers = "localhost:9092" },')
            error.add_note('or delta = { tables = "lake/stock" }.')
            raise error
        for key in ("by_replica", "values"):
            if self.path is None and getattr(self, key) is not None:
                error = ValueError(f"[sources.{name}] {key} is for folders, and this is none")
                error.add_note("Leave it out, or give a path.")
                raise error
        if self.values is not None:
            one_of(f"[sources.{name}] values", self.values, dict.fromkeys(("debezium",)))
        for end in (self.kafka, self.delta):
            if end is not None:
                end.check()
        if self.kafka is not None and self.kafka.zone is not None:
            error = ValueError(f"[sources.{name}.kafka] zone is that of the type of a column in a plan")
            error.add_note(f'Write at = "timestamp[us, tz={self.kafka.zone}]" in columns, and leave it out.')
            raise error
        check_lossy_words(self.lossy)

    def arguments(self) -> dict[str, Any]:
        """What `anabranch.source` is called with, by name."""
        given = {name: getattr(self, name) for name in self.__struct_fields__ if name not in _ENDS}
        given["schema"] = given.pop("columns")
        of_folders = self.path is not None and self.by_replica is not False
        if of_folders and self.replica and self.columns and nearest(self.replica, self.columns) is None:
            given["schema"] = {self.replica: "string"} | self.columns
        for name in ("on_invalid", "on_late"):
            given[name] = _own_answer(name, given[name])
        return {name: value for name, value in given.items() if value is not None}

    def ends(self) -> SourceSection:
        """What is read, apart from what it means."""
        return SourceSection(**{name: getattr(self, name) for name in _ENDS})


class MergeStepSection(Section):
    """How replicas or streams become one: the arguments of ``merge``, and ``of`` which streams."""

    of: list[str] | dict[str, str] | None = None
    case: str | None = None
    policy: Any = None
    pace: str | None = None
    identity: Names | None = None
    remember: int | None = None
    on_broken: str | None = None
    on_late: str | None = None

    def arguments(self) -> dict[str, Any]:
        """What a merge is called with, by name."""
        given = {name: getattr(self, name) for name in self.__struct_fields__ if name != "of"}
        given["policy"] = policy_of(self.policy)
        given["pace"] = one_of("pace", self.pace, {pace.value: pace for pace in Pace})
        for name in ("on_broken", "on_late"):
            given[name] = _own_answer(name, given[name])
        return {name: value for name, value in given.items() if value is not None}


StepSection = step_section(bool | MergeStepSection)
"""A step: the one operator that it has as a key, and its arguments."""


class StreamSection(Section):
    """``[plan]`` or ``[plan.NAME]``: a stream, what it is made of, and the steps after that."""

    origin: str | None = field(name="from", default=None)
    merge: list[str] | MergeStepSection | None = None
    union: list[str] | None = None
    steps: list[str | dict[str, Any]] = field(default_factory=list)

    def reads(self) -> list[str]:
        """The names of the sources and streams that it is made of or joined with."""
        joins = [step.get("join") for step in self.steps if isinstance(step, Mapping)]
        joined = [one.get("right") for one in joins if isinstance(one, Mapping)]
        return [*self.begins(), *(name for name in joined if isinstance(name, str))]

    def begins(self) -> list[str]:
        """The names of the sources and streams that its first step is of."""
        if self.origin is not None:
            return [self.origin]
        if self.union is not None:
            return self.union
        of = self.merge.of if isinstance(self.merge, MergeStepSection) else self.merge
        return list(of.values() if isinstance(of, Mapping) else of or ())


def _own_answer(name: str, value: str | None) -> Any:
    """What is done with rows by a word; quarantine is what a job does by itself."""
    return None if value == "quarantine" else answer_named(name, value)
