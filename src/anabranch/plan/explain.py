"""A plan in words: its operators from the last to the sources, and what is known of what comes of each.

What is read twice has a number, ``(1)``, and is told where it is met first. A line that is too long for its
column goes on below, and what is known of it follows.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from textwrap import wrap

from anabranch.model.clock import length_text
from anabranch.model.clock_columns import clock_of
from anabranch.model.properties import Fact, Properties
from anabranch.plan.graph import Graph
from anabranch.plan.node import Node
from anabranch.plan.validate import validated

_WIDTH, _LEFT, _NARROWEST = 110, 70, 30
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


@dataclass(frozen=True, slots=True)
class _Entry:
    """A node where the tree meets it: what stands before its words on the first line and on others."""

    first: str
    rest: str
    words: str
    known: str


@dataclass(slots=True)
class _Telling:
    """The numbers of nodes that are met more than once, given as they are met."""

    graph: Graph
    shared: set[int]
    told: set[int] = field(default_factory=set)
    numbers: dict[int, int] = field(default_factory=dict)

    def tree(self, node: int, first: str, rest: str) -> Iterator[_Entry]:
        """A node and all before it."""
        words, inputs = one_line(self.graph.nodes[node].words()), self.graph.inputs[node]
        if node in self.shared:
            words = f"({self.numbers.setdefault(node, len(self.numbers) + 1)}) {words}"
        if node in self.told:
            yield _Entry(first, rest, words, "as above")
            return
        self.told.add(node)
        yield _Entry(first, rest + ("│ " if inputs else "  "), words, known_of(self.graph.nodes[node]))
        for place, one in enumerate(inputs, 1):
            branch, below = ("└ ", "  ") if place == len(inputs) else ("├ ", "│ ")
            yield from self.tree(one, rest + branch, rest + below)


def explained(outputs: Mapping[str, Node]) -> str:
    """The plan of some outputs, each a tree; what two of them share is told once."""
    graph = Graph(validated(list(outputs.values())))
    met = Counter([*graph.roots, *(one for inputs in graph.inputs for one in inputs)])
    telling = _Telling(graph, {node for node, times in met.items() if times > 1})
    entries: list[_Entry] = []
    for name, root in zip(outputs, graph.roots, strict=True):
        if name:
            entries.append(_Entry("", "", f"{one_line(name)}:", ""))
        indent = "  " if name else ""
        entries += telling.tree(root, indent, indent)
    lengths = [len(one.first) + len(one.words) for one in entries if one.known]
    column = max((length for length in lengths if length <= _LEFT), default=_LEFT // 2) + 3
    return "\n".join(line.rstrip() for entry in entries for line in _lines(entry, column))


def _lines(entry: _Entry, column: int) -> Iterator[str]:
    """An entry in two columns; one that is too long for the left one has what is known of it below."""
    more = entry.rest + "  "
    width = max(_WIDTH, len(more) + _NARROWEST)
    left = wrap(
        entry.words, width, initial_indent=entry.first, subsequent_indent=more, break_on_hyphens=False
    )
    right = wrap(entry.known, max(_WIDTH - column, _NARROWEST), break_on_hyphens=False)
    if right and (len(left) > 1 or len(left[0]) + 3 > column):
        yield from left
        left = []
    for n in range(max(len(left), len(right))):
        start = left[n] if n < len(left) else entry.rest
        yield f"{start:<{column}}{right[n] if n < len(right) else ''}"


def one_line(text: str) -> str:
    r"""The same words with line ends, and whatever else cannot be seen, as escapes.

    >>> one_line("a\nb")
    'a\\nb'
    """
    return "".join(one if one.isprintable() else repr(one)[1:-1] for one in text)


def known_of(node: Node) -> str:
    """What may be relied on about what comes of a node, in words."""
    properties = node.properties
    words = [str(fact) for fact in _strongest(properties)]
    if properties.key is not None:
        keyed = (
            f"keyed by {one_line(', '.join(properties.key))}" if properties.key else "one event at a start"
        )
        words = [word for word in words if word != str(Fact.KEYED)] + [keyed]
    words = words or ["adjusts in any order"]
    if properties.longest is not None:
        points = properties.longest == 1
        longest = length_text(properties.longest, clock_of(node.clock))
        words.append("points" if points else f"lifetimes up to {longest}")
    if Fact.PUNCTUATED not in properties:
        words.append("never stable")
    if Fact.COMPLETE not in properties:
        words.append("may have holes")
    return ("each replica: " if node.replicated else "") + ", ".join(words)


def _strongest(properties: Properties) -> Iterator[Fact]:
    """The facts that no other of them implies."""
    implied = {fact for one in properties if one in _IMPLIED for fact in _IMPLIED[one]}
    return (fact for fact in _SHOWN if fact in properties and fact not in implied)
