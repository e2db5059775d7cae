"""A plan as a picture: sources on the left, outputs on the right, as the text of an SVG file.

What keeps state has a bar at its left, and a merge its case on a badge. What there is one of for each replica
is a stack of cards, from which three lines lead on until a merge ends that. What is known of a stream stands
below the operator that changes it. Colours follow the viewer's light or dark setting; styles are of this
picture alone, since a notebook shows many on one page.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from anabranch.plan.card import (
    KIND,
    KIND_LINE,
    KNOWN_LINE,
    RULE,
    SAYS_LINE,
    SIDE,
    TOP,
    WORD_LINE,
    Card,
    operator_card,
    output_card,
    sans_width,
)
from anabranch.plan.explain import explained, one_line
from anabranch.plan.graph import Graph
from anabranch.plan.layers import Box, Layout, Line, Point, laid_out
from anabranch.plan.node import Node
from anabranch.plan.source import Source
from anabranch.plan.tap import Tap
from anabranch.plan.validate import validated

_MARGIN, _LEGEND = 18.0, 34.0
_STACK = 4.0
"""How far a card of a stack stands out behind the one before it."""
_HEAD = 8.0
_LABEL = 14
"""So many letters of the name of an input are shown."""
_RADII = {"source": 4, "step": 8, "state": 4, "output": 16}
_STYLE = """
  .ground { fill: #ffffff; }
  text { font: 10.5px system-ui, "Segoe UI", Helvetica, Arial, sans-serif; fill: #1f2328; }
  .word { font-size: 13px; font-weight: 600; }
  .kind { font-size: 10px; }
  .says { font: 11px ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; }
  .kind, .known { fill: #59636e; }
  .source { fill: #ddf4ff; stroke: #0969da; }
  .step { fill: #f6f8fa; stroke: #818b98; }
  .state { fill: #fff8c5; stroke: #bf8700; }
  .output { fill: #dafbe1; stroke: #1a7f37; }
  .bar, .badge { fill: #bf8700; }
  .case { font-size: 10px; font-weight: 600; fill: #ffffff; text-anchor: middle; }
  .rule { stroke: #1f2328; stroke-opacity: 0.18; }
  .line { fill: none; stroke: #59636e; stroke-width: 1.5; }
  .head { fill: #59636e; }
  @media (prefers-color-scheme: dark) {
    .ground { fill: #0d1117; }
    text { fill: #e6edf3; }
    .kind, .known { fill: #9da7b3; }
    .source { fill: #0c2d6b; stroke: #58a6ff; }
    .step { fill: #1c2128; stroke: #768390; }
    .state { fill: #3d2a00; stroke: #d29922; }
    .output { fill: #0a3318; stroke: #3fb950; }
    .bar, .badge { fill: #d29922; }
    .case { fill: #0d1117; }
    .rule { stroke: #e6edf3; }
    .line { stroke: #9da7b3; }
    .head { fill: #9da7b3; }
  }
"""


@dataclass(frozen=True, slots=True)
class _Drawing:
    """Boxes, and lines between their numbers, each with the name that its target knows it by."""

    cards: list[Card]
    replicated: list[bool]
    lines: list[Line]
    labels: list[str]


def picture(outputs: Mapping[str, Node]) -> str:
    """The plan of some outputs, as the text of an SVG file."""
    graph = Graph(validated(list(outputs.values())))
    drawing = _drawing(graph, list(outputs))
    layout = laid_out(list(_boxes(drawing)), drawing.lines)
    legend = list(_legend(drawing, layout.height + 2 * _MARGIN))
    width = round(max(layout.width, _legend_width(drawing)) + 2 * _MARGIN)
    height = round(layout.height + 2 * _MARGIN + (_LEGEND if legend else 0))
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" class="anabranch-plan" viewBox="0 0 {width} {height}" '
            f'width="{width}" height="{height}" style="max-width: 100%; height: auto" role="img">',
            f"<title>{escape(_title(graph, drawing))}</title>",
            f"<desc>{escape(explained(outputs))}</desc>",
            f"<style>{_scoped(_STYLE)}</style>",
            f'<rect class="ground" width="{width}" height="{height}" rx="6"/>',
            *_lines(drawing, layout),
            *_drawn_cards(drawing, layout),
            *legend,
            "</svg>",
            "",
        ]
    )


def _drawing(graph: Graph, names: Sequence[str]) -> _Drawing:
    """Taps are no boxes on the way, but outputs beside it."""
    number: dict[int, int] = {}
    drawing = _Drawing([], [], [], [])
    for n, (node, inputs) in enumerate(zip(graph.nodes, graph.inputs, strict=True)):
        if isinstance(node, Tap):
            number[n] = number[inputs[0]]
            continue
        number[n] = len(drawing.cards)
        drawing.cards.append(operator_card(node))
        drawing.replicated.append(node.replicated)
        for one, port in zip(inputs, node.ports, strict=True):
            label = _label(port, drawing.cards[number[one]])
            room = sans_width(label, size=KIND) + _HEAD + 4 if label else 0.0
            drawing.lines.append(Line(number[one], number[n], room))
            drawing.labels.append(label)
    for name, n in _ends(graph, names):
        node = graph.nodes[n]
        tapped = isinstance(node, Tap) and node.name == name
        drawing.lines.append(Line(number[n], len(drawing.cards)))
        drawing.labels.append("")
        drawing.cards.append(output_card(name, node, "tap" if tapped else "output"))
        drawing.replicated.append(node.replicated)
    return drawing


def _label(port: str, read: Card) -> str:
    """The name of an input where it says more than the box it comes from."""
    name = one_line(port)
    if not name or name.isdecimal() or (read.kind == "source" and read.word == name):
        return ""
    return name if len(name) <= _LABEL else f"{name[: _LABEL - 1]}…"


def _ends(graph: Graph, names: Sequence[str]) -> list[tuple[str, int]]:
    """Names under which streams come out, each with the number of its node."""
    taps = [(node.name, n) for n, node in enumerate(graph.nodes) if isinstance(node, Tap)]
    return list(dict.fromkeys([*zip(names, graph.roots, strict=True), *taps]))


def _boxes(drawing: _Drawing) -> Iterator[Box]:
    for card, replicated in zip(drawing.cards, drawing.replicated, strict=True):
        more = 2 * _STACK if replicated else 0.0
        yield Box(card.width + more, card.height + more, last=card.kind == "output")


def _lines(drawing: _Drawing, layout: Layout) -> Iterator[str]:
    for line, label, route in zip(drawing.lines, drawing.labels, layout.routes, strict=True):
        points = [(x + _MARGIN, y + _MARGIN) for x, y in route]
        if label:
            x, y = points[-1]
            yield _text(x - line.room, y - 4, label, "kind")
        if not drawing.replicated[line.source]:
            yield _line(points, 0.0, _HEAD)
            continue
        for n, shift in enumerate((5.0, 0.0, -5.0)):
            (x, y), *rest = points
            yield _line([(x - (2 - n) * _STACK, y), *rest], shift, _HEAD * 0.7)


def _line(points: list[Point], shift: float, head: float) -> str:
    """A curve through points, moved up or down; where it is steep, sideways too, so that two stay apart."""
    (x, y), *rest = points
    path = f"M{x:.1f} {y + shift:.1f}"
    for n, (right, below) in enumerate(rest):
        last = n == len(rest) - 1
        end = right - head if last else right
        if y == below:
            path += f" H{end:.1f}"
        else:
            steep = max(-1.0, min(1.0, (below - y) / max(end - x, 1.0)))
            middle = (x + end) / 2 - shift * steep
            path += f" C{middle:.1f} {y + shift:.1f} {middle:.1f} {below + shift:.1f}"
            path += f" {end:.1f} {below + shift:.1f}"
        x, y = right, below
    y += shift
    half = head / 2
    return (
        f'<path class="line" d="{path}"/><path class="head" d="M{x:.1f} {y:.1f} '
        f'l{-head - 1:.1f} {-half:.1f} v{2 * half:.1f} z"/>'
    )


def _drawn_cards(drawing: _Drawing, layout: Layout) -> Iterator[str]:
    for card, replicated, (x, y), width in zip(
        drawing.cards, drawing.replicated, layout.corners, layout.widths, strict=True
    ):
        left, top = x + _MARGIN, y + _MARGIN
        yield f"<g><title>{escape(card.full)}</title>"
        if replicated:
            width, top = width - 2 * _STACK, top + 2 * _STACK  # noqa: PLW2901
            yield from (_behind(card, left, top, width, n * _STACK) for n in (2, 1))
        yield from _drawn(card, left, top, width)
        yield "</g>"


def _behind(card: Card, x: float, y: float, width: float, by: float) -> str:
    """A card of which only the upper and the right edge are seen."""
    r = _RADII[card.kind]
    across, down, corner = width - 2 * r, card.height - 2 * r, f"a{r} {r} 0 0 1"
    return (
        f'<path class="{card.kind}" d="M{x + by + r:.1f} {y - by:.1f} h{across:.1f} {corner} {r} {r} '
        f"v{down:.1f} {corner} {-r} {r} h{-across:.1f} {corner} {-r} {-r} "
        f'v{-down:.1f} {corner} {r} {-r} z"/>'
    )


def _drawn(card: Card, x: float, y: float, width: float) -> Iterator[str]:
    yield (
        f'<rect class="box {card.kind}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" '
        f'height="{card.height:.1f}" rx="{_RADII[card.kind]}"/>'
    )
    if card.kind == "state":
        yield f'<path class="bar" d="M{x:.1f} {y + 4:.1f} q0 -4 4 -4 v{card.height:.1f} q-4 0 -4 -4 z"/>'
    y += (card.height - card.said_height) / 2
    if card.mark:
        room = card.mark_width - 8
        left = x + width - SIDE + 2 - room
        yield (
            f'<path class="badge" d="M{left + 8:.1f} {y + TOP:.1f} h{room - 16:.1f} a8 8 0 0 1 0 16 '
            f'h{16 - room:.1f} a8 8 0 0 1 0 -16 z"/>'
        )
        yield _text(left + room / 2, y + TOP + 11.7, card.mark, "case")
    left, height = x + SIDE, y + TOP
    if card.heading:
        yield _text(left, height + 9, card.heading, "kind")
        height += KIND_LINE
    for line in card.word_lines:
        yield _text(left, height + 13, line, "word")
        height += WORD_LINE
    for line in card.says_lines:
        yield _text(left, height + 11.5, line, "says")
        height += SAYS_LINE
    if card.known:
        rule = height + RULE / 2 + 0.5
        yield f'<path class="rule" d="M{left:.1f} {rule:.1f} H{x + width - SIDE:.1f}"/>'
        height += RULE
    for line in card.known_lines:
        yield _text(left, height + 10.5, line, "known")
        height += KNOWN_LINE


def _legend_words(drawing: _Drawing) -> list[tuple[str, str]]:
    kinds: set[str] = {card.kind for card in drawing.cards}
    known = (
        ("source", "source"),
        ("step", "row by row"),
        ("state", "keeps state"),
        ("output", "output"),
    )
    words = [(kind, said) for kind, said in known if kind in kinds]
    return [*words, ("replicas", "one for each replica")] if any(drawing.replicated) else words


def _legend_width(drawing: _Drawing) -> float:
    return sum(26 + sans_width(words, size=KIND) + 14 for _, words in _legend_words(drawing))


def _legend(drawing: _Drawing, y: float) -> Iterator[str]:
    x = _MARGIN
    for kind, words in _legend_words(drawing):
        if kind == "replicas":
            yield from (f'<path class="line" d="M{x:.1f} {y + shift:.1f} h18"/>' for shift in (3, 7, 11))
        else:
            radius = min(_RADII[kind], 6)
            yield f'<rect class="{kind}" x="{x:.1f}" y="{y + 1:.1f}" width="18" height="12" rx="{radius}"/>'
        if kind == "state":
            yield f'<path class="bar" d="M{x:.1f} {y + 1:.1f} h4 v12 h-4 z"/>'
        yield _text(x + 24, y + 10.5, words, "kind")
        x += 26 + sans_width(words, size=KIND) + 14


def _title(graph: Graph, drawing: _Drawing) -> str:
    sources = [one_line(node.name) for node in graph.nodes if isinstance(node, Source)]
    ends = [card.word for card in drawing.cards if card.kind == "output"]
    return f"Plan: {', '.join(sources)} → {', '.join(ends)}" if ends else "Plan of nothing"


def _scoped(style: str) -> str:
    """Selectors that are of this picture alone."""
    lines = []
    for line in style.splitlines():
        selectors, brace, rest = line.partition(" {")
        if brace and not selectors.strip().startswith("@"):
            selectors = ", ".join(f".anabranch-plan {one.strip()}" for one in selectors.split(","))
        lines.append(f"{selectors}{brace}{rest}")
    return "\n".join(lines)


def _text(x: float, y: float, words: str, kind: str) -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}">{escape(words)}</text>'
