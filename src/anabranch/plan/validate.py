"""Where adjusts of events that were never there are found out, in front of what would hand them on."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from anabranch.kernels.kernel import State
from anabranch.kernels.validate import Validate as Kernel
from anabranch.model.properties import Fact
from anabranch.plan.graph import Graph
from anabranch.plan.node import Node
from anabranch.plan.source import Source


@dataclass(frozen=True, kw_only=True, eq=False)
class Validate(Node):
    """Adjusts of events that are not there are refused."""

    word: ClassVar[str] = "validate"

    def operator(self, state: State | None = None) -> Kernel:
        """The kernel."""
        return Kernel() if state is None else Kernel.load(state)

    def meets(self) -> tuple[tuple[str, ...] | None, ...]:
        """What is said of one event, which is told by its whole payload."""
        return (tuple(self.schema.names),)


def validated(roots: Sequence[Node]) -> list[Node]:
    """The same plan, with sources validated whose adjusts no operator behind them would look up."""
    graph = Graph(roots)
    doubtful = [n for n, node in enumerate(graph.nodes) if _has_revisions(node) and not _held(graph, n)]
    if not doubtful:
        return list(roots)
    nodes: list[Node] = []
    for n, (node, inputs) in enumerate(zip(graph.nodes, graph.inputs, strict=True)):
        new = replace(node, inputs=tuple(nodes[one] for one in inputs)) if inputs else node
        nodes.append(Validate(inputs=(new,), line=node.line) if n in doubtful else new)
    return [nodes[root] for root in graph.roots]


def _has_revisions(node: Node) -> bool:
    return isinstance(node, Source) and not (
        node.checked or Fact.INSERT_ONLY in node.properties or node.replicated or node.of_changes
    )


def _held(graph: Graph, number: int) -> bool:
    """Every operator that is reached by steps alone looks up the events that adjusts name."""
    if number in graph.roots:
        return False
    for consumer in graph.consumers(number):
        node = graph.nodes[consumer]
        if not (node.looks_up or (node.stateless and _held(graph, consumer))):
            return False
    return True
