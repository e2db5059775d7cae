"""A stream that is an output of its own, wherever else it goes."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from anabranch.kernels.kernel import Result, State
from anabranch.model.batch import Batch
from anabranch.plan.graph import Graph
from anabranch.plan.node import Node, PlanError


class Pass:
    """The step that leaves all as it is."""

    def map(self, batch: Batch) -> Result:
        """The same."""
        return Result(batch)

    def reached(self, time: int) -> int:
        """The same."""
        return time


@dataclass(frozen=True, kw_only=True, eq=False)
class Tap(Node):
    """The same stream, with a name under which it comes out."""

    word: ClassVar[str] = "tap"
    stateless: ClassVar[bool] = True

    name: str

    def check(self) -> None:
        """Raise where the name is none."""
        if not isinstance(self.name, str) or not self.name:
            raise PlanError(f"an output has a name, {self.name!r} is none")

    def operator(self, state: State | None = None) -> Pass:
        """The step."""
        return Pass()

    def settings(self) -> dict[str, str]:
        """Its name."""
        return {"name": self.name}

    def words(self) -> str:
        """Its name."""
        return f"tap {self.name!r}"


def taps_below(*roots: Node) -> Iterator[tuple[str, Node]]:
    """The outputs that are tapped within a plan, by name; two of one name are refused."""
    seen: dict[str, Node] = {}
    for node in Graph(roots).nodes:
        if isinstance(node, Tap):
            if node.name in seen:
                error = PlanError(f"an output has a name of its own, two are called {node.name!r}")
                error.add_note("Tap one of them under another name.")
                with node.line.named():
                    raise error
            seen[node.name] = node
            yield node.name, node
