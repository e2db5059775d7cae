"""Other columns: select, with_columns, drop and rename are one operator."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import pyarrow as pa

from anabranch.expressions.evaluation import type_of
from anabranch.expressions.text import text
from anabranch.expressions.tree import Column, Tree, plain_column
from anabranch.expressions.wire import exact_text
from anabranch.kernels.kernel import State
from anabranch.kernels.select import Select as SelectStep
from anabranch.model.properties import Fact, Properties
from anabranch.plan.filter import check_ends
from anabranch.plan.node import Node, PlanError


@dataclass(frozen=True, kw_only=True, eq=False)
class Select(Node):
    """Each column of the output is an expression over the input's."""

    word: ClassVar[str] = "select"
    stateless: ClassVar[bool] = True

    columns: tuple[tuple[str, Tree], ...]

    @classmethod
    def of(cls, node: Node, names: Sequence[str]) -> "Select":
        """Some columns as they are."""
        return cls(inputs=(node,), columns=tuple((name, Column(name)) for name in names))

    def check(self) -> None:
        """Raise where two columns have one name."""
        names = [name for name, _ in self.columns]
        twice = [name for name in names if names.count(name) > 1]
        if twice:
            error = PlanError(f"a name stands for one column, two are called {twice[0]!r}")
            error.add_note("Give one of them another name, with .alias(…) or as a keyword.")
            raise error
        for _, tree in self.columns:
            check_ends(self.inputs[0], tree)

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns with the types of their expressions."""
        given = self.inputs[0].schema
        return pa.schema([(name, type_of(tree, given)) for name, tree in self.columns])

    @cached_property
    def properties(self) -> Properties:
        """All that is not about equal payloads; a key where its columns stay."""
        known = self.inputs[0].properties
        stay = {plain: name for name, tree in self.columns if (plain := plain_column(tree)) is not None}
        key = known.key if known.key is not None else tuple(self.inputs[0].schema.names)
        if Fact.KEYED in known and all(name in stay for name in key):
            return Properties(known.facts, tuple(stay[name] for name in key), known.longest)
        lost = Fact.KEYED, Fact.DISJOINT
        if Fact.STRICTLY_INCREASING in known:  # no two events have one start, whatever their payloads are
            return Properties(known.facts - {Fact.DISJOINT}, None, known.longest)
        return known.keep(*(fact for fact in known if fact not in lost))

    def operator(self, state: State | None = None) -> SelectStep:
        """The step."""
        return SelectStep(self.columns, self.schema)

    def settings(self) -> dict[str, str]:
        """The expressions."""
        lines = {"columns": str(list(self.schema.names))}
        for name, tree in self.columns:
            lines[f"column {name!r}"] = f"{text(tree)}, {self.schema.field(name).type}"
            lines[f"column {name!r}, exactly"] = exact_text(tree)
        return lines

    def traced(self, columns: tuple[str, ...]) -> tuple[str, ...] | None:
        """The columns of the input that some are, unchanged."""
        plain = {name: plain_column(tree) for name, tree in self.columns}
        found = [plain[name] for name in columns]
        return None if None in found else tuple(name for name in found if name is not None)

    def words(self) -> str:
        """The columns, each as it is made."""
        return "select " + (", ".join(_words(name, tree) for name, tree in self.columns) or "nothing")


def _words(name: str, tree: Tree) -> str:
    return name if plain_column(tree) == name else f"{name} = {text(tree)}"
