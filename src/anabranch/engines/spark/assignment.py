"""What the shards of one level of a plan are given to run, as a value that travels to the executors."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import pyarrow as pa

from anabranch.engines.settings import GAINS
from anabranch.engines.spark.refused_rows import RefusedRows
from anabranch.engines.spark.transport.dealing import Dealing
from anabranch.kernels.answers import Answers
from anabranch.model.validity import Quarantine
from anabranch.plan.graph import Graph
from anabranch.plan.inlet import Inlet
from anabranch.plan.levels import OUTPUT, Edge, Level
from anabranch.plan.node import Node
from anabranch.plan.state_settings import operator_names, state_settings


@dataclass(frozen=True, eq=False)
class Assignment:
    """A level, and what the query has set for it."""

    level: Level
    shards: int = 1
    answers: Answers = field(default_factory=lambda: Answers(Quarantine(), Quarantine(), Quarantine()))
    """What is done with what is refused where neither source nor operator sets it."""
    refused_rows: Mapping[str, RefusedRows] = field(default_factory=dict)
    """How refused rows of each edge are given back."""
    later: tuple[Edge, ...] = ()
    """The edges by which what comes out goes on to later levels."""
    goes_to: Mapping[str, int] = field(default_factory=dict)
    """The level that each of them is into."""
    dealing: Mapping[str, Dealing] = field(default_factory=dict)
    """How what goes on each of them is dealt out."""
    last: int = 1
    """The number of the last level."""
    idle: tuple[tuple[str, str], ...] = ()
    """Edges, each with a replica of it that is not waited for while it sends nothing."""
    mark: str = ""
    """Which run of which query it is of."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Assignment) and (self.mark, self.level.number) == (
            other.mark,
            other.level.number,
        )

    def __hash__(self) -> int:
        return hash((self.mark, self.level.number))

    @property
    def is_last(self) -> bool:
        """What comes out is what the query gives."""
        return self.level.number == self.last

    @cached_property
    def identities(self) -> dict[str, tuple[str, ...] | None]:
        """What tells events of each edge apart where they are used first; None: all columns."""
        return identities_of(self.level)

    @cached_property
    def settings(self) -> dict[str, str]:
        """What the state depends on."""
        return level_settings(self.level)

    def refused_rows_of(self, edge: str) -> RefusedRows:
        """How refused rows of an edge are given back."""
        return self.refused_rows.get(edge, RefusedRows(edge))

    @property
    def clock(self) -> pa.DataType | None:
        """The type of the times, for people."""
        if len(self.refused_rows) == 1:
            return next(iter(self.refused_rows.values())).clock
        return next(iter(self.level.outputs.values())).clock

    @property
    def output(self) -> Node:
        """What comes out of the query, on the last level."""
        return self.level.outputs[OUTPUT]


def level_settings(level: Level) -> dict[str, str]:
    """What the state of a level depends on: its operators, and how the rows of its edges are dealt out."""
    apart = identities_of(level)
    dealt = {f"{edge.name}: dealt out by": _dealt_by(edge, apart[edge.name]) for edge in level.edges}
    lines = state_settings(level.outputs) | dealt
    return lines | _wider(level.edges[0].inlet) if _is_one_comparison(level) else lines


def _wider(inlet: Inlet) -> dict[str, str]:
    """What it is compared by where columns of rows may be added and become wider."""
    (name,) = operator_names([inlet])
    return {GAINS: "true"} | {f"{name}: {what}": value for what, value in inlet.wide_settings.items()}


def _dealt_by(edge: Edge, apart: tuple[str, ...] | None) -> str:
    if apart is None and edge.by == edge.names == tuple(edge.inlet.schema.names):
        return "every column"
    return f"{list(edge.by)} as {list(edge.names)}"


def _is_one_comparison(level: Level) -> bool:
    """All that it runs compares the replicas of a source, whose rows nothing was made of before."""
    if level.outputs.keys() != {OUTPUT} or len(level.edges) != 1:
        return False
    (edge,), (node,) = level.edges, level.outputs.values()
    return node.compares and node.inputs == (edge.inlet,) and not (edge.origin or edge.steps)


def identities_of(level: Level) -> dict[str, tuple[str, ...] | None]:
    """What tells events of each edge into a level apart where they are used first; None: all columns."""
    graph, found = Graph(level.outputs.values()), {}
    for edge in level.edges:
        number = graph.number(edge.inlet)
        readers = [graph.nodes[n] for n in graph.consumers(number)]
        columns = {node.told_apart_by for node in readers}
        found[edge.name] = columns.pop() if len(columns) == 1 and number not in graph.roots else None
    return found


def dealing_of(edge: Edge, level: Level) -> Dealing:
    """How the rows of an edge into a level are dealt out."""
    return Dealing.of(edge.by, edge.names, edge.inlet.schema, identities_of(level)[edge.name])
