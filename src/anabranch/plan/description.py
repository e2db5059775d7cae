"""A plan as data, for programs: every operator with its inputs, and what is known of its output."""

from collections.abc import Mapping, Sequence
from typing import Any

from anabranch.model.clock import length_text
from anabranch.model.clock_columns import clock_of
from anabranch.plan.graph import Graph
from anabranch.plan.line import NO_LINE
from anabranch.plan.merge import Merge
from anabranch.plan.node import Node
from anabranch.plan.source import Source
from anabranch.plan.validate import validated


def described(outputs: Mapping[str, Node]) -> dict[str, Any]:
    """The operators of some outputs, each after those that it reads, which it names by their places.

    >>> import anabranch as ab
    >>> levels = ab.source("levels", {"level": "int64", "at": "int64"}, start="at", disorder=2)
    >>> found = described({"": levels.filter(ab.col("level") > 3).node})
    >>> [(one["operator"], one["inputs"]) for one in found["operators"]], found["outputs"]
    ([('source', []), ('filter', [0])], {'': 1})
    """
    graph = Graph(validated(list(outputs.values())))
    return {
        "operators": [
            _operator(node, inputs) for node, inputs in zip(graph.nodes, graph.inputs, strict=True)
        ],
        "outputs": dict(zip(outputs, graph.roots, strict=True)),
    }


def _operator(node: Node, inputs: Sequence[int]) -> dict[str, Any]:
    properties, clock = node.properties, clock_of(node.clock)
    longest = None if properties.longest is None else length_text(properties.longest, clock)
    return {
        "operator": node.word,
        **({"name": node.name} if isinstance(node, Source) else {}),
        **({"case": node.choice.case.name, "reason": node.choice.reason} if isinstance(node, Merge) else {}),
        "words": node.words(),
        "inputs": list(inputs),
        "columns": {field.name: str(field.type) for field in node.schema},
        "times": "ticks" if node.clock is None else str(node.clock),
        "facts": [str(fact) for fact in properties],
        "key": None if properties.key is None else list(properties.key),
        "longest": longest,
        "of_replicas": node.replicated,
        "keeps_state": not node.stateless,
        "line": None if node.line == NO_LINE else f"{node.line.file}:{node.line.number}",
    }
