"""The architecture as one picture: what is built, what runs it, who drives that, and who judges.

In the colours and letters of the pictures of plans (`anabranch/plan/picture.py`): what keeps state is yellow
and has a bar, what has none is grey, sources are blue and outputs green. Words that would leave their box are
found when it is drawn.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape

from anabranch.plan.card import mono_width, sans_width

WIDTH, HEIGHT = 1120, 650
SIDE = 12
STYLE = """
  .ground { fill: #ffffff; }
  text { font: 11px system-ui, "Segoe UI", Helvetica, Arial, sans-serif; fill: #1f2328; }
  .word { font-size: 13px; font-weight: 600; }
  .file { font: 10.5px ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; fill: #59636e; }
  .note { font-size: 10.5px; fill: #59636e; }
  .source { fill: #ddf4ff; stroke: #0969da; }
  .step { fill: #f6f8fa; stroke: #818b98; }
  .state { fill: #fff8c5; stroke: #bf8700; }
  .output { fill: #dafbe1; stroke: #1a7f37; }
  .frame { fill: none; stroke: #818b98; stroke-dasharray: 5 3; }
  .bar { fill: #bf8700; }
  .line { fill: none; stroke: #59636e; stroke-width: 1.5; }
  .faint { fill: none; stroke: #59636e; stroke-width: 1.2; stroke-dasharray: 2 3; }
  .head { fill: #59636e; }
  @media (prefers-color-scheme: dark) {
    .ground { fill: #0d1117; }
    text { fill: #e6edf3; }
    .file, .note { fill: #9da7b3; }
    .source { fill: #0c2d6b; stroke: #58a6ff; }
    .step { fill: #1c2128; stroke: #768390; }
    .state { fill: #3d2a00; stroke: #d29922; }
    .output { fill: #0a3318; stroke: #3fb950; }
    .frame { stroke: #768390; }
    .bar { fill: #d29922; }
    .line, .faint { stroke: #9da7b3; }
    .head { fill: #9da7b3; }
  }
"""
_WIDTHS = {
    "word": lambda words: sans_width(words, size=13, bold=True),
    "file": lambda words: mono_width(words, size=10.5),
    "note": lambda words: sans_width(words, size=10.5),
    "": lambda words: sans_width(words, size=11),
}


@dataclass(frozen=True)
class Box:
    """A word, where it is in the source, and what is to be said of it, in lines."""

    kind: str
    x: float
    y: float
    width: float
    height: float
    word: str
    lines: tuple[str, ...] = ()
    file: str = ""

    def drawn(self) -> Iterator[str]:
        """The box and its words, all of which are inside."""
        radius = {"output": 14, "step": 8}.get(self.kind, 4)
        yield (
            f'<rect class="{self.kind}" x="{self.x}" y="{self.y}" width="{self.width}" '
            f'height="{self.height}" rx="{radius}"/>'
        )
        if self.kind == "state":
            yield f'<path class="bar" d="M{self.x} {self.y + 4} q0 -4 4 -4 v{self.height} q-4 0 -4 -4 z"/>'
        y = self.y + 21
        yield self._text(y, self.word, "word")
        if self.file:
            y += 15
            yield self._text(y, self.file, "file")
        for line in self.lines:
            y += 16
            yield self._text(y, line, "")
        assert y + 6 <= self.y + self.height, f"{self.word}: there is no room for so many lines"

    def _text(self, y: float, words: str, kind: str) -> str:
        width = _WIDTHS[kind](words)
        room = self.width - 2 * SIDE
        assert width <= room, f"{words!r} is {width:.0f} wide, and there is room for {room:.0f}"
        return f'<text class="{kind or "says"}" x="{self.x + SIDE}" y="{y}">{escape(words)}</text>'


BOXES = (
    Box("frame", 20, 16, 1080, 112, "plan: what a person builds; nothing runs yet"),
    Box("step", 40, 48, 250, 68, "Stream", ("frozen, with operators as methods",), "plan/stream.py"),
    Box(
        "step",
        330,
        48,
        394,
        68,
        "node",
        ("columns, properties, settings; refuses what cannot work",),
        "plan/<operator>.py",
    ),
    Box(
        "step",
        764,
        48,
        316,
        68,
        "expression",
        ("a tree over Arrow's functions, exact types",),
        "expressions/",
    ),
    Box("source", 20, 214, 136, 52, "source", ("rows or elements",)),
    Box("source", 20, 290, 136, 52, "source", ("of replicas",)),
    Box("frame", 184, 158, 772, 328, "what runs a plan"),
    Box(
        "state",
        204,
        200,
        172,
        152,
        "gate",
        (
            "one for each source:",
            "order of channels,",
            "validity, lateness,",
            "who joins and leaves,",
            "how far each has come",
        ),
        "progress/gate.py",
    ),
    Box("frame", 412, 190, 528, 172, "flow", (), "engines/flow.py"),
    Box("step", 428, 238, 112, 68, "step", ("filter",), "kernels/"),
    Box("state", 556, 238, 112, 68, "kernel", ("merge",), "kernels/"),
    Box("step", 684, 238, 112, 68, "step", ("tumble",), "kernels/"),
    Box("state", 812, 238, 112, 68, "kernel", ("final",), "kernels/"),
    Box("output", 980, 214, 120, 52, "output", ("the stable last",)),
    Box("output", 980, 304, 120, 52, "output", ("of a tap",)),
    Box(
        "step",
        204,
        402,
        332,
        70,
        "answers to what is refused",
        ("raised, dropped or set aside, as policies say",),
        "kernels/answers.py",
    ),
    Box(
        "state",
        560,
        402,
        380,
        70,
        "state",
        ("a section per kernel and gate, as values and batches",),
        "kernels/store/saved.py",
    ),
    Box(
        "frame",
        20,
        532,
        330,
        102,
        "embedded: a job drives one flow",
        (
            "a push is a pass, answered at once in the",
            "form in which it was given; state is bytes;",
            "one thread, no clock",
        ),
        "engines/embedded/",
    ),
    Box(
        "frame",
        378,
        532,
        374,
        102,
        "Spark: one flow in every shard",
        (
            "level after level, cut where keys change; rows",
            "travel as parcels, heard in rounds; a journal in",
            "the state store, sealed; one frontier for all shards",
        ),
        "engines/spark/",
    ),
    Box(
        "frame",
        780,
        532,
        320,
        102,
        "oracle: judges all of it",
        (
            "the slow, obvious meaning of each",
            "operator; laws compare after every push, at",
            "any cut, with state dumped anywhere",
        ),
        "oracle/, tests/laws/",
    ),
)


def _arrow(*points: tuple[float, float], kind: str = "line") -> Iterator[str]:
    """A line through points, the last part of which is straight, with a head."""
    (ax, ay), (bx, by) = points[-2:]
    dx, dy = (bx > ax) - (bx < ax), (by > ay) - (by < ay)
    path = "M" + " L".join(f"{x} {y}" for x, y in (*points[:-1], (bx - 7 * dx, by - 7 * dy)))
    yield f'<path class="{kind}" d="{path}"/>'
    left = bx - 8 * dx - 4 * dy, by - 8 * dy - 4 * dx
    right = bx - 8 * dx + 4 * dy, by - 8 * dy + 4 * dx
    yield f'<path class="head" d="M{bx} {by} L{left[0]} {left[1]} L{right[0]} {right[1]} z"/>'


def _note(x: float, y: float, words: str, end: float) -> str:
    assert x + _WIDTHS["note"](words) <= end, f"{words!r} would cross {end}"
    return f'<text class="note" x="{x}" y="{y}">{escape(words)}</text>'


def _lines() -> Iterator[str]:
    yield from _arrow((290, 82), (330, 82))
    yield from _arrow((764, 82), (724, 82))
    yield from _arrow((527, 116), (527, 190))
    yield _note(537, 147, "each node makes its step or kernel", 956)
    for y in (240, 316):
        yield from _arrow((156, y), (204, y))
    yield from _arrow((376, 272), (428, 272))
    for x in (540, 668, 796):
        yield from _arrow((x, 272), (x + 16, 272))
    yield from _arrow((924, 272), (968, 272), (968, 240), (980, 240))
    yield from _arrow((803, 272), (803, 330), (980, 330))
    yield _note(428, 326, "a pass: at every operator all events,", 803)
    yield _note(428, 342, "then all promises; edges may carry replicas", 803)
    yield from _arrow((290, 352), (290, 402))
    yield from _arrow((500, 362), (500, 402))
    yield _note(300, 386, "rows, their rule, their origin", 500)
    yield from _arrow((750, 362), (750, 402))
    yield _note(760, 386, "saved, and made again", 940)
    for x, words in ((210, "drives it"), (565, "drives it"), (870, "judges it")):
        yield from _arrow((x, 532), (x, 486))
        yield _note(x + 10, 514, words, x + 150)


def drawn() -> str:
    """The picture, as the text of an SVG file."""
    boxes = [line for box in BOXES for line in box.drawn()]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" '
            f'height="{HEIGHT}" style="max-width: 100%; height: auto" role="img">',
            "<title>Anabranch: plans, the flow of steps and kernels, the engines that drive it</title>",
            f"<style>{STYLE}</style>",
            f'<rect class="ground" width="{WIDTH}" height="{HEIGHT}" rx="6"/>',
            *_lines(),
            *boxes,
            "</svg>",
            "",
        ]
    )
