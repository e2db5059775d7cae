"""Draws the pictures of docs/merge.md: what inputs say from left to right, and what the merge answers below;
the architecture (`architecture.py`); and a plan, as it draws itself.

.venv/bin/python docs/pictures/draw.py
"""

from html import escape
from pathlib import Path

import architecture

from anabranch import Attach, Batch, Detach, Merger, Stable, Stream, Tagged, col, parse, source, text

WIDTH, HEIGHT, LEFT, TOP = 118, 46, 62, 8
STYLE = """
  text { font: 12px ui-monospace, Menlo, Consolas, monospace; fill: #24292f; }
  .name { font-weight: bold; }
  .lane { stroke: #8c959f; stroke-width: 1; }
  .event { fill: #ddf4ff; stroke: #0969da; }
  .change { fill: #fff8c5; stroke: #bf8700; }
  .stable { fill: #dafbe1; stroke: #1a7f37; }
  .control { fill: none; stroke: #8c959f; stroke-dasharray: 3 2; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3; }
    .event { fill: #0c2d6b; stroke: #58a6ff; }
    .change { fill: #4b2900; stroke: #d29922; }
    .stable { fill: #04260f; stroke: #3fb950; }
  }
"""

PICTURES = {
    "first-then-final": (
        True,
        "east: + A [6, 20)\nwest: + A [6, 25)\nwest: + B [8, 12)\nwest: | 14\nwest: | 22\neast: + B [8, 12)",
    ),
    "failover": (
        True,
        "east: + A [1, 5)\nwest: + A [1, 5)\neast: detach\nwest: + B [2, 7)\nwest: | 3\neast: attach\n"
        "east: + A [1, 5)\neast: + C [4, 6)",
    ),
    "hole-complete": (True, "east: + A [1, 5)\neast: + B [2, 6)\nwest: + B [2, 6)\nwest: | 9\neast: | 9"),
    "hole-lossy": (False, "east: + A [1, 5)\neast: + B [2, 6)\nwest: + B [2, 6)\nwest: | 9\neast: | 9"),
}


def plan() -> Stream:
    """Readings of gateways in windows, as they are and when they are final."""
    heard = source(
        "gateways",
        {"gateway": "string", "sensor": "string", "level": "float64", "at": "timestamp[us, tz=UTC]"},
        start="at",
        duration="5 minutes",
        disorder="1 minute",
        replica="gateway",
        lossy=True,
    )
    return heard.filter(col("level") > 0).merge().tumble("10 minutes").tap("early").final()


def drawn(recording: str, *, complete: bool) -> str:
    """A lane for each of two inputs and for the output, as SVG."""
    merger = Merger()
    lanes = {"east": 0, "west": 1, "out": 2}
    for name in ("east", "west"):
        merger.attach(name, complete=complete)
    boxes, columns, tallest = [], 0, 1
    for line in parse(recording):
        assert isinstance(line, Tagged)
        answers = list(merger.play(Batch.of([line])).elements())
        boxes.append(_box(columns, lanes[line.input], 0, line.element))
        boxes += [_box(columns, 2, depth, answer) for depth, answer in enumerate(answers)]
        columns, tallest = columns + 1, max(tallest, len(answers))
    width, height = LEFT + columns * WIDTH + 4, TOP + (2 + tallest) * HEIGHT
    rows = [
        f'<text class="name" x="4" y="{TOP + lane * HEIGHT + 22}">{name}</text>'
        f'<line class="lane" x1="{LEFT - 8}" x2="{width}" y1="{y}" y2="{y}"/>'
        for name, lane in lanes.items()
        for y in [TOP + lane * HEIGHT - 4]
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" role="img">\n<style>{STYLE}</style>\n' + "\n".join(rows + boxes) + "\n</svg>\n"
    )


def _box(column: int, lane: int, depth: int, element: object) -> str:
    match element:
        case Stable():
            kind = "stable"
        case Attach() | Detach():
            kind = "control"
        case _:
            kind = "event" if text([element]).startswith("+") else "change"
    words = text([Tagged("x", element)]).removeprefix("x: ") if kind == "control" else text([element])
    first, arrow, second = words.partition(" -> ")
    x, y = LEFT + column * WIDTH, TOP + (lane + depth) * HEIGHT + 2
    lines = [first, f"-> {second}"] if arrow else [first]
    middle = y + (22 if len(lines) == 1 else 15)
    spans = "".join(
        f'<tspan x="{x + 6}" y="{middle + 15 * number}">{escape(line)}</tspan>'
        for number, line in enumerate(lines)
    )
    return (
        f'<rect class="{kind}" x="{x}" y="{y}" width="{WIDTH - 8}" height="36" rx="4"/><text>{spans}</text>'
    )


if __name__ == "__main__":
    for name, (complete, recording) in PICTURES.items():
        Path(__file__).with_name(f"{name}.svg").write_text(drawn(recording, complete=complete))
    Path(__file__).with_name("architecture.svg").write_text(architecture.drawn())
    Path(__file__).with_name("plan.svg").write_text(plan().picture())
