"""One operator of a plan over its inputs: frozen, checked when made, and known by the line that made it.

A node says what comes of it (columns, properties, clock), what its state depends on (settings), which columns
of each input must meet in one place for it to be right, and makes the kernel or step that runs it.
"""

from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, ClassVar, Final

import pyarrow as pa

from anabranch.errors import AnabranchError
from anabranch.kernels.kernel import Kernel, State, Step
from anabranch.model.properties import Fact, Properties
from anabranch.plan.line import Line, users_line

ANYWHERE: Final = None
"""Rows of an input may be wherever they are."""


class PlanError(AnabranchError, ValueError):
    """A plan that cannot mean anything, or cannot be run as it is."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Node:
    """An operator and its inputs; those that are built alike are one."""

    inputs: tuple["Node", ...] = ()
    line: Line = field(default_factory=users_line, repr=False)

    word: ClassVar[str]
    """The one name of the operator: of the method, the kernel, the oracle and the page."""
    stateless: ClassVar[bool] = False
    """It is run by a step."""
    compares: ClassVar[bool] = False
    """It takes events of replicas that are equal for one, so a value has one form in all of them."""
    looks_up: ClassVar[bool] = False
    """Its kernel knows the events that adjusts name, and passes over those that name none."""

    def __post_init__(self) -> None:
        with self.line.named():
            self.check()
            _ = self.schema, self.properties, self.clock, self.words()

    def check(self) -> None:
        """Raise where the settings make no sense over these inputs."""

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns of the payload."""
        return self.inputs[0].schema

    @cached_property
    def properties(self) -> Properties:
        """What may be relied on."""
        return self.inputs[0].properties

    @cached_property
    def clock(self) -> pa.DataType | None:
        """The type of the times, for people; None: ticks."""
        clocks = list(dict.fromkeys(node.clock for node in self.inputs))
        if len(clocks) > 1:
            error = PlanError(f"streams that meet are on one clock, these are on {_clocks(clocks)}")
            error.add_note("Cast the times of one of them where it is read.")
            raise error
        return clocks[0]

    @property
    def replicated(self) -> bool:
        """What comes of it has a name beside it, of the replica that sent it."""
        return any(node.replicated for node in self.inputs)

    @property
    def ports(self) -> tuple[str, ...]:
        """The names by which the operator knows its inputs."""
        return ("",) * len(self.inputs)

    @property
    def told_apart_by(self) -> tuple[str, ...] | None:
        """The columns by which it tells events of its inputs apart; None: all of them."""
        return None

    def check_channels(self) -> None:
        """Raise where it needs the rows of a replica in one order, and several channels send them."""

    def for_sinks(self) -> dict[str, Any]:
        """What sinks go by where it is the last operator, by name."""
        return {}

    @property
    def mark(self) -> str:
        """Which of its ways an operator goes, in a letter or two; nothing where it has one way."""
        return ""

    def operator(self, state: State | None = None) -> Kernel | Step:
        """A kernel at its beginning, or as it was saved; or a step."""
        raise NotImplementedError

    def settings(self) -> dict[str, str]:
        """What the state depends on, and every state behind it, as text."""
        return {}

    def meets(self) -> tuple[tuple[str, ...] | None, ...]:
        """Of each input the columns whose equals must meet in one place; ANYWHERE: any rows may be apart."""
        return (ANYWHERE,) * len(self.inputs)

    def rests_on_absence(self) -> tuple[bool, ...]:
        """Of each input whether an event that is missing there makes another one come out, or another result.

        Elsewhere what comes of the missing event is missing, and no more.
        """
        return (False,) * len(self.inputs)

    def words(self) -> str:
        """What it does, in a few words."""
        return self.word

    def traced(self, columns: tuple[str, ...]) -> tuple[str, ...] | None:
        """The columns of the (one) input that columns of the output are, unchanged; None where one is new."""
        return columns

    @cached_property
    def key(self) -> tuple[Any, ...]:
        """What makes it this node, but for its inputs; equal ones over equal inputs are one."""
        own = [getattr(self, one.name) for one in fields(self) if one.name not in ("inputs", "line")]
        return (type(self), *map(_comparable, own))


def _comparable(value: Any) -> Any:
    try:
        hash(value)
    except TypeError:
        return repr(value)
    return value


def _clocks(clocks: list[pa.DataType | None]) -> str:
    return " and ".join("ticks" if clock is None else str(clock) for clock in clocks)


def require(node: Node, fact: Fact, what: str, why: str, way_out: str) -> None:
    """Raise where a stream lacks a fact that an operator over it rests on."""
    if fact not in node.properties:
        error = PlanError(f"{what} {why}, and {node.words()} is not {fact}")
        error.add_note(way_out)
        raise error
