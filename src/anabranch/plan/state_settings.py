"""What the state of a plan depends on: its operators, their settings, and what each input is connected to.

Two plans share their states if and only if this is the same of both. Limits, and what is done with refused
rows, are no part of it: they may change while a state goes on. A function is known by its name alone.
"""

from collections.abc import Iterable, Mapping

from anabranch.plan.graph import Graph
from anabranch.plan.node import Node
from anabranch.plan.source import Source
from anabranch.plan.validate import validated


def state_settings(outputs: Mapping[str, Node]) -> dict[str, str]:
    """Lines by operator, setting and output: equal ones for equal plans, however often they are built."""
    graph = Graph(validated(list(outputs.values())))
    names = operator_names(graph.nodes)
    lines: dict[str, str] = {}
    for name, node, inputs in zip(names, graph.nodes, graph.inputs, strict=True):
        if inputs:
            lines[name] = f"of {' and '.join(names[number] for number in inputs)}"
        lines |= {f"{name}: {what}": value for what, value in node.settings().items()}
    for name, number in zip(outputs, graph.roots, strict=True):
        lines[f"output {name}".rstrip()] = names[number]
    return lines


def operator_names(nodes: Iterable[Node]) -> list[str]:
    """A name for every node, the same whenever the plan is built: its word, and a number where needed."""
    seen: dict[str, int] = {}
    names = []
    for node in nodes:
        word = f"source {node.name}" if isinstance(node, Source) else node.word
        seen[word] = seen.get(word, 0) + 1
        names.append(word if seen[word] == 1 else f"{word} {seen[word]}")
    return names
