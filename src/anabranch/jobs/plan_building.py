"""The stream that the sections of a plan describe; what is wrong names the step, its line and its text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

from anabranch.expressions.parsing import parsed, parsed_aggregate
from anabranch.jobs.plan_sections import (
    MergeStepSection,
    PlanSourceSection,
    StepSection,
    StreamSection,
)
from anabranch.jobs.sections import keys, section, unknown
from anabranch.jobs.step_sections import NOT_STEPS, OF_WINDOWS, called, words
from anabranch.model.spelling import did_you_mean
from anabranch.plan.build import merge, source, union
from anabranch.plan.line import Line, told
from anabranch.plan.node import PlanError
from anabranch.plan.replicas import Replicas
from anabranch.plan.replicas_of_changes import ReplicasOfChanges
from anabranch.plan.stream import Stream
from anabranch.plan.windowed import Windowed
from anabranch.rows.layout import names_of

Made: TypeAlias = Stream | Replicas | ReplicasOfChanges


def built(file: Path, sources: Mapping[str, PlanSourceSection], plan: Mapping[str, StreamSection]) -> Stream:
    """What comes out of a plan: the stream that no other reads. One without a name is alone."""
    return _Building(file, sources, plan).result()


def stream_sections(values: Any) -> dict[str, StreamSection]:
    """``[plan]``, or each ``[plan.NAME]``."""
    if not isinstance(values, Mapping):
        raise ValueError(f"[plan] has keys and values, it is {values!r}")
    own = keys(StreamSection)
    if not values or {*own} & {*values} or not all(isinstance(one, Mapping) for one in values.values()):
        return {"": section(StreamSection, values, "[plan]")}
    return {name: section(StreamSection, one, f"[plan.{name}]") for name, one in values.items()}


class _Building:
    """State: the streams that have been built, and those that are being built, each because of the last."""

    def __init__(
        self, file: Path, sources: Mapping[str, PlanSourceSection], plan: Mapping[str, StreamSection]
    ) -> None:
        self.text = file.read_text(encoding="utf-8")
        self.file, self.sources, self.plan = file, sources, plan
        self.made: dict[str, Made] = {}
        self.making: list[str] = []

    def result(self) -> Stream:
        for name in self.plan:
            if name in self.sources:
                error = PlanError(
                    f"a name stands for one stream, and {name!r} is a source and one of the plan"
                )
                error.add_note(f"Rename [plan.{name}].")
                raise error
        read = {one for section in self.plan.values() for one in section.reads()}
        ends = [name for name in self.plan if name not in read]
        for name in self.plan:
            self._stream(name)
        if len(ends) > 1:
            error = PlanError(f"a plan has one result, and no stream reads {', '.join(map(repr, ends))}")
            error.add_note("Merge them, make a union of them, or take out what is not used.")
            raise error
        (last,) = ends
        found = self.made[last]
        if not isinstance(found, Stream):
            error = PlanError(f"the result of a plan is one stream, and {found.node.words()} is of replicas")
            error.add_note('Add "merge" to the steps.')
            raise error
        unused = [name for name in self.sources if name not in read and name not in self._defaults()]
        if unused:
            error = PlanError(f"every source of a plan is read, and no stream reads {unused[0]!r}")
            error.add_note(f"Take [sources.{unused[0]}] out, or name it in from, merge or union.")
            raise error
        return found

    def _defaults(self) -> list[str]:
        """The source that a stream is from which names none: the only one."""
        alone = len(self.sources) == 1 and any(not one.begins() for one in self.plan.values())
        return list(self.sources) if alone else []

    def _stream(self, name: str) -> Made:
        if name in self.made:
            return self.made[name]
        if name in self.making:
            circle = [*self.making[self.making.index(name) :], name]
            error = PlanError(f"a stream is not made of itself, and {' is made of '.join(circle)}")
            error.add_note("Let one of them be from a source.")
            raise error
        self.making.append(name)
        if name in self.sources:
            with self._at(self._header(f"sources.{name}"), f"[sources.{name}]"):
                self.made[name] = source(name, **self.sources[name].arguments())
        elif name in self.plan:
            self.made[name] = self._steps(name, self.plan[name])
        else:
            known = [known for known in (*self.sources, *self.plan) if known]
            raise unknown(f"there is no source or stream {name!r}", name, known, "There are")
        self.making.pop()
        return self.made[name]

    def _steps(self, name: str, given: StreamSection) -> Made:
        where = f"[plan.{name}]" if name else "[plan]"
        place = self._header(f"plan.{name}" if name else "plan")
        with self._at(place, where):
            stream: Made | Windowed = self._begin(given, where)
        for number, step in enumerate(given.steps, 1):
            place = self._after(place, step)
            with self._at(place, f"step {number} of {where}"):
                stream = _applied(stream, *_step(step, where, number), self._joined)
        if isinstance(stream, Windowed):
            with self._at(place, where):
                error = PlanError("windows need the step agg, and the steps end before it")
                error.add_note('Add a step: { agg = { count = "count()" } }.')
                raise error
        return stream

    def _joined(self, name: str) -> Any:
        found = self._stream(name)
        if not isinstance(found, Stream):
            error = PlanError(f"a join is with one stream, and {found.node.words()} is of replicas")
            error.add_note(f'Make [plan.NAME] with from = "{name}" and the step "merge", and join that.')
            raise error
        return found

    def _begin(self, given: StreamSection, where: str) -> Made:
        said = [key for key, value in zip(("from", "merge", "union"), _made_of(given), strict=True) if value]
        if len(said) > 1:
            error = PlanError(f"{where} is from one stream or joins several, and it has {' and '.join(said)}")
            error.add_note("Give each its own [plan.NAME].")
            raise error
        if not said:
            if len(self.sources) != 1:
                error = PlanError(f"{where} does not say what it is from, and there is more than one source")
                error.add_note(f"Write from = {next(iter(self.sources), 'NAME')!r}.")
                raise error
            return self._stream(next(iter(self.sources)))
        if given.origin is not None:
            return self._stream(given.origin)
        if given.union is not None:
            parts: list[Any] = [self._stream(name) for name in given.union]
            return union(*parts)
        settings = given.merge if isinstance(given.merge, MergeStepSection) else MergeStepSection()
        named = settings.of if isinstance(settings.of, Mapping) else {name: name for name in given.begins()}
        streams: dict[str, Any] = {label: self._stream(name) for label, name in named.items()}
        return merge(streams, **settings.arguments())

    @contextmanager
    def _at(self, place: int, where: str) -> Iterator[None]:
        """What is made here is of a line of the file, and what goes wrong is told with it."""
        line = Line(str(self.file), self.text.count("\n", 0, place) + 1)
        try:
            with told(line), line.named():
                yield
        except (ValueError, TypeError) as error:
            if not any(note.startswith(("In step", "In [")) for note in _notes(error)):
                error.add_note(f"In {where}.")
            raise

    def _header(self, name: str) -> int:
        """Where a table begins."""
        wanted = rf"^[ \t]*(?:\[\s*{re.escape(name)}\s*\]|{re.escape(name)}\s*=)"
        found = re.search(wanted, self.text, re.MULTILINE)
        return found.end() if found else 0

    def _after(self, place: int, step: str | Mapping[str, Any]) -> int:
        """Where a step begins, which is after a place."""
        word = re.escape(step if isinstance(step, str) else next(iter(step), ""))
        wanted = rf"""["']{word}["']""" if isinstance(step, str) else rf"""[{{\s]["']?{word}["']?\s*=(?!=)"""
        found = re.compile(wanted).search(self.text, place)
        return found.end() if found else place


def _notes(error: BaseException) -> list[str]:
    return list(getattr(error, "__notes__", ()))


def _made_of(given: StreamSection) -> tuple[Any, Any, Any]:
    return given.origin, given.merge, given.union


def _step(given: str | Mapping[str, Any], where: str, number: int) -> tuple[str, Any]:
    """The operator of a step, and its arguments."""
    what = f"step {number} of {where}"
    operator = given if isinstance(given, str) else next(iter(given), "")
    if operator in NOT_STEPS:
        raise ValueError(f"{what} is {operator!r}, and {NOT_STEPS[operator]}")
    if isinstance(given, str):
        if given not in words():
            known = keys(StepSection)
            if given in known:
                error = ValueError(f"{what} is {given!r}, which needs arguments")
                error.add_note(f"Write {{ {given} = … }}.")
                raise error
            raise unknown(f"{what} is no operator: {given!r}", given, known, "Operators are")
        return given, True
    found = section(StepSection, given, what, is_filled=True)
    said = {name: getattr(found, name) for name in keys(StepSection)}
    named = [(name, value) for name, value in said.items() if value is not None]
    if len(named) != 1:
        error = ValueError(f"a step is one operator, {what} has {len(named) or 'none'}")
        error.add_note("Write one after the other: steps = [{ filter = … }, { select = … }].")
        raise error
    return named[0]


def _applied(stream: Made | Windowed, name: str, value: Any, streams: Callable[[str], Any]) -> Any:
    """What comes of a step; ``streams`` gives another stream by its name."""
    if isinstance(stream, Windowed) != (name in OF_WINDOWS):
        found = "these are windows" if isinstance(stream, Windowed) else f"{stream.node.words()} is a stream"
        error = PlanError(f"{name} is of {'windows' if name in OF_WINDOWS else 'a stream'}, and {found}")
        error.add_note("Write { window = … }, { group_by = … } if there are groups, then { agg = … }.")
        raise error
    before = ("merge", "apply", *_OF_ROWS) if isinstance(stream, Replicas) else ("merge",)
    if isinstance(stream, Replicas | ReplicasOfChanges) and name not in before:
        error = PlanError(f"{name} is of one stream, and {stream.node.words()} is of replicas")
        error.add_note('Put the step "merge" before it.')
        raise error
    if isinstance(stream, Stream) and name == "merge":
        error = PlanError(f"the step merge is of replicas, and {stream.node.words()} is one stream")
        error.add_note("Streams are merged by a stream of their own: [plan.NAME] with merge = [NAME, …].")
        raise error
    if value is False:
        raise PlanError(f"{name} is done or left out, {name} = false is neither")
    call: Callable[..., Any] = getattr(stream, name)
    if name == "merge":
        return _merged(stream, call, value)
    if name in ("distinct", "group_by"):
        return call(*(() if value is True else names_of(value) or ()))
    if name == "agg":
        return _said(call, value)
    return _OF_ROWS[name](call, value) if name in _OF_ROWS else called(stream, name, value, streams)


def _merged(stream: Made | Windowed, merge: Callable[..., Any], value: Any) -> Any:
    if not isinstance(value, MergeStepSection):
        return merge()
    if value.of is not None:
        raise PlanError("the step merge is of the replicas of a source, and of names streams")
    if value.identity is not None and isinstance(stream, ReplicasOfChanges):
        error = PlanError("rows of a table are told apart by its key, and identity names columns too")
        error.add_note("Leave identity out; the key of the source is what a row is known by.")
        raise error
    return merge(**value.arguments())


def _said(agg: Callable[..., Any], value: Mapping[str, str | bool]) -> Any:
    """Aggregates by the names of their columns; ``early`` is true or false, unless a column is called so."""
    aggregates, early = [], False
    for name, one in value.items():
        if isinstance(one, str):
            aggregates.append(parsed_aggregate(one).alias(name))
        elif name == "early":
            early = one
        else:
            meant = did_you_mean(name, ("early",))
            error = ValueError(
                f"agg has an aggregate for each column, and {name} is {str(one).lower()}{meant}"
            )
            error.add_note(f'Write {name} = "count()", for example; true and false are for early.')
            raise error
    return agg(*aggregates, early=early)


def _selected(select: Callable[..., Any], value: Any) -> Any:
    if isinstance(value, Mapping):
        return select(**_parsed(value))
    columns = []
    for one in value:
        if isinstance(one, Mapping):
            columns += [made.alias(name) for name, made in _parsed(one).items()]
        else:
            columns.append(parsed(one))
    return select(*columns)


def _parsed(texts: Mapping[str, str]) -> dict[str, Any]:
    return {name: parsed(text) for name, text in texts.items()}


_OF_ROWS: dict[str, Callable[[Callable[..., Any], Any], Any]] = {
    "filter": lambda call, value: call(parsed(value)),
    "select": _selected,
    "with_columns": lambda call, value: call(**_parsed(value)),
    "drop": lambda call, value: call(*(names_of(value) or ())),
    "rename": lambda call, value: call(value),
}
"""Operators that replicas have too, and how each is called."""
