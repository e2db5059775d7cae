"""The events that a predicate is true of."""

from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from anabranch.expressions.evaluation import type_of
from anabranch.expressions.text import text
from anabranch.expressions.tree import Tree, uses_end
from anabranch.expressions.wire import exact_text
from anabranch.kernels.filter import Filter as FilterStep
from anabranch.kernels.kernel import State
from anabranch.model.properties import Fact
from anabranch.plan.node import Node, PlanError


@dataclass(frozen=True, kw_only=True, eq=False)
class Filter(Node):
    """Events of the input for which the predicate is true."""

    word: ClassVar[str] = "filter"
    stateless: ClassVar[bool] = True

    predicate: Tree

    def check(self) -> None:
        """Raise where the predicate is no truth, or not the same for all elements of an event."""
        kind = type_of(self.predicate, self.inputs[0].schema)
        if not pa.types.is_boolean(kind):
            error = PlanError(f"a filter is by true or false, {text(self.predicate)} is {kind}")
            error.add_note("Compare it with something, for example col('level') > 3.")
            raise error
        check_ends(self.inputs[0], self.predicate)

    def operator(self, state: State | None = None) -> FilterStep:
        """The step."""
        return FilterStep(self.predicate)

    def settings(self) -> dict[str, str]:
        """The predicate."""
        return {"predicate": text(self.predicate), "predicate, exactly": exact_text(self.predicate)}

    def words(self) -> str:
        """The predicate."""
        return f"filter {text(self.predicate)}"


def check_ends(node: Node, tree: Tree) -> None:
    """Raise where an expression looks at ends that may still change."""
    if uses_end(tree) and Fact.INSERT_ONLY not in node.properties:
        error = PlanError(f"an end may still change here, and {text(tree)} looks at it")
        error.add_note("Look at ends after final(), or where the source has no adjusts.")
        raise error
