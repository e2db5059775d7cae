"""All nodes of a plan, each after its inputs; those that are built alike over the same inputs are one."""

from collections.abc import Iterable
from typing import Any

from anabranch.plan.node import Node


class Graph:
    """Nodes in an order in which inputs come first, with the numbers of the inputs of each."""

    def __init__(self, roots: Iterable[Node]) -> None:
        self.nodes: list[Node] = []
        self.inputs: list[tuple[int, ...]] = []
        self._known: dict[int, int] = {}
        self._alike: dict[tuple[Any, ...], int] = {}
        self.roots = [self.number(root) for root in roots]

    def number(self, node: Node) -> int:
        """The number of a node, which may be that of one that is built alike."""
        if id(node) in self._known:
            return self._known[id(node)]
        inputs = tuple(self.number(one) for one in node.inputs)
        name = (*node.key, inputs)
        if name not in self._alike:
            self._alike[name] = len(self.nodes)
            self.nodes.append(node)
            self.inputs.append(inputs)
        self._known[id(node)] = self._alike[name]
        return self._alike[name]

    def consumers(self, number: int) -> list[int]:
        """The numbers of the nodes that read a node, one for each time they do."""
        return [n for n, inputs in enumerate(self.inputs) for one in inputs if one == number]
