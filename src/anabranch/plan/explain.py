"""A plan in words: its operators from the last to the sources, and what is known of what comes of each."""

from collections.abc import Iterator, Mapping

from anabranch.model.properties import Fact, Properties
from anabranch.plan.graph import Graph
from anabranch.plan.node import Node
from anabranch.plan.spans import length_text
from anabranch.plan.validate import validated

_SHOWN = (
    Fact.PERFECT,
    Fact.INSERT_ONLY,
    Fact.STRICTLY_INCREASING,
    Fact.ORDERED,
    Fact.DETERMINISTIC_TIES,
    Fact.DISJOINT,
    Fact.KEYED,
)
_IMPLIED = {
    Fact.PERFECT: {Fact.INSERT_ONLY, Fact.ORDERED},
    Fact.STRICTLY_INCREASING: {Fact.ORDERED, Fact.DETERMINISTIC_TIES, Fact.KEYED},
    Fact.DISJOINT: {Fact.KEYED},
}


def explained(outputs: Mapping[str, Node]) -> str:
    """The plan of some outputs, each a tree; what two of them share is told once."""
    names = list(outputs)
    roots = validated(list(outputs.values()))
    graph = Graph(roots)
    told: dict[int, int] = {}
    lines: list[tuple[str, str]] = []
    for name, root in zip(names, graph.roots, strict=True):
        if name:
            lines.append((f"{name}:", ""))
        lines += _tree(graph, root, "", "", told)
    width = min(max((len(left) for left, _ in lines), default=0), 60)
    return "\n".join(f"{left:<{width}}  {right}".rstrip() for left, right in lines)


def _tree(
    graph: Graph, number: int, first: str, rest: str, told: dict[int, int]
) -> Iterator[tuple[str, str]]:
    node = graph.nodes[number]
    if number in told:
        yield f"{first}{node.words()}", "as above"
        return
    told[number] = len(told)
    yield f"{first}{node.words()}", known_of(node)
    inputs = graph.inputs[number]
    for n, one in enumerate(inputs):
        last = n == len(inputs) - 1
        yield from _tree(graph, one, rest + ("└ " if last else "├ "), rest + ("  " if last else "│ "), told)


def known_of(node: Node) -> str:
    """What may be relied on about what comes of a node, in words."""
    properties = node.properties
    words = [str(fact) for fact in _strongest(properties)]
    if properties.key is not None:
        words = [word for word in words if word != str(Fact.KEYED)] + [
            f"keyed by {', '.join(properties.key)}"
        ]
    if properties.longest is not None:
        words.append(f"lasts at most {length_text(properties.longest, node.clock)}")
    if Fact.PUNCTUATED not in properties:
        words.append("never stable")
    if Fact.COMPLETE not in properties:
        words.append("may have holes")
    return ", ".join(words)


def _strongest(properties: Properties) -> Iterator[Fact]:
    """The facts that no other of them implies."""
    implied = {fact for one in properties if one in _IMPLIED for fact in _IMPLIED[one]}
    return (fact for fact in _SHOWN if fact in properties and fact not in implied)
