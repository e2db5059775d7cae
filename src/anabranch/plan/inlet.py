"""Where what was dealt out to shards comes into a level of a plan: rows of a source, or what a level gave."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar

import pyarrow as pa

from anabranch.model.properties import Properties
from anabranch.plan.node import Node
from anabranch.plan.source import Source
from anabranch.progress.admission import Admission


@dataclass(frozen=True, kw_only=True, eq=False)
class Inlet(Source):
    """A source of a level. What it is of has been read, and stables are among it."""

    word: ClassVar[str] = "inlet"
    checked: ClassVar[bool] = True

    payload: pa.Schema
    """The columns that come in."""
    known: Properties = field(default_factory=Properties)
    on: pa.DataType | None = None
    channels: int = 1
    """How many channels must have spoken before it is stable until anything."""
    before: tuple[tuple[str, str], ...] = ()
    """What the steps that have run were set to."""

    @classmethod
    def of_source(cls, source: Source, last: Node, steps: tuple[Node, ...]) -> "Inlet":
        """Rows of a source after steps, the last of which is ``last``."""
        names = (
            "columns",
            "layout",
            "replicas",
            "awaited",
            "silent",
            "lossy",
            "declared",
            "by_time",
            "progress",
        )
        answers = ("on_invalid", "on_late", "name", "line")
        return cls(
            **{name: getattr(source, name) for name in (*names, *answers)},
            payload=last.schema,
            known=last.properties,
            on=source.clock,
            before=_settings_of(steps),
        )

    @classmethod
    def of_level(cls, name: str, node: Node, last: Node, steps: tuple[Node, ...], channels: int) -> "Inlet":
        """What the shards of a level gave, each a channel: what ``node`` gives there, after ``steps``."""
        return cls(
            name=name,
            columns=last.schema,
            payload=last.schema,
            known=last.properties.spread(),
            on=node.clock,
            channels=channels,
            line=node.line,
            before=_settings_of(steps),
        )

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns that come in."""
        return self.payload

    @cached_property
    def properties(self) -> Properties:
        """What is known of it, however it was dealt out."""
        return self.known

    @cached_property
    def clock(self) -> pa.DataType | None:
        """The type of the times."""
        return self.on

    def admission(self) -> Admission:
        """What its gate goes by."""
        return replace(super().admission(), channels=self.channels)

    def settings(self) -> dict[str, str]:
        """How rows are read, and what has been made of them before they come in."""
        return super().settings() | dict(self.before)


def _settings_of(steps: Sequence[Node]) -> tuple[tuple[str, str], ...]:
    """What steps are set to, in their order."""
    lines: list[tuple[str, str]] = []
    for number, step in enumerate(steps, 1):
        name = f"step {number}"
        lines += [(name, step.word), *((f"{name}, {what}", value) for what, value in step.settings().items())]
    return tuple(lines)
