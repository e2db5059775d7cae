"""The scene as one SVG file: what each replica showed, and what three ways of reading them made of it.

Time goes from left to right, a row is a sensor, a bar is a reading. Colours follow the viewer's light or dark
setting; what is wrong also differs in shape, and says what it is where the pointer rests on it.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from anabranch.cli.demo.readings import LENGTH, SENSORS, Reading, clock
from anabranch.cli.demo.replicas import DIES, GUARANTEE, RETURNS, SLOW, Row
from anabranch.cli.demo.verdict import Verdict

WIDTH, LEFT, RIGHT = 1100, 92, 28
SCALE = (WIDTH - LEFT - RIGHT) / LENGTH
TOP, HEAD, PITCH, BAR, GAP = 66, 26, 16, 11, 16
LANE = HEAD + len(SENSORS) * PITCH + GAP
LABELLED = 26
"""A bar this wide has room for its value."""

STYLE = """
  svg { background: #ffffff; }
  .ground { fill: #ffffff; }
  text { font: 11px system-ui, "Segoe UI", Helvetica, Arial, sans-serif; fill: #1f2328; }
  .title { font-size: 17px; font-weight: 600; }
  .name { font-size: 13px; font-weight: 600; }
  .value { font-size: 9px; text-anchor: middle; }
  .middle { text-anchor: middle; }
  .right { text-anchor: end; }
  .soft { fill: #59636e; }
  .grid { stroke: #d1d9e0; stroke-width: 1; }
  .silence { fill: #f1f3f5; stroke: #818b98; stroke-dasharray: 2 3; }
  .event { fill: #cfe8ff; stroke: #0969da; }
  .open { fill: #cfe8ff; stroke: #0969da; stroke-dasharray: 3 2; }
  .again { stroke: #0969da; stroke-width: 2; }
  .missing { fill: none; stroke: #cf222e; stroke-width: 1.5; stroke-dasharray: 4 2; }
  text.missing { fill: #cf222e; stroke: none; font-weight: 700; }
  .repeated { fill: #ffd8a8; stroke: #bc4c00; stroke-width: 1.5; }
  text.repeated { fill: #7a3000; stroke: none; font-weight: 700; }
  .stale { fill: #e8dbff; stroke: #8250df; }
  .tail { stroke: #8250df; stroke-width: 2.5; }
  @media (prefers-color-scheme: dark) {
    svg { background: #0d1117; }
    .ground { fill: #0d1117; }
    text { fill: #e6edf3; }
    .soft { fill: #9198a1; }
    .grid { stroke: #30363d; }
    .silence { fill: #161b22; stroke: #656c76; }
    .event, .open { fill: #10345c; stroke: #58a6ff; }
    .again { stroke: #58a6ff; }
    .missing { stroke: #ff7b72; }
    text.missing { fill: #ff7b72; }
    .repeated { fill: #5a2d0c; stroke: #ffa657; }
    text.repeated { fill: #ffc38a; }
    .stale { fill: #3b2663; stroke: #d2a8ff; }
    .tail { stroke: #d2a8ff; }
  }
"""


@dataclass(frozen=True, slots=True)
class Result:
    """What one way of reading the replicas made of them."""

    name: str
    verdict: Verdict


def drawn(truth: Sequence[Reading], said: Mapping[str, Sequence[Row]], results: Sequence[Result]) -> str:
    """The picture as the text of an SVG file."""
    lanes = len(said) + len(results)
    bottom = TOP + lanes * LANE
    height = bottom + 64
    title = "One stream, two replicas, and east dies"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
        f'height="{height}" role="img" aria-label="{title}">',
        f"<style>{STYLE}</style>",
        f'<rect class="ground" width="{WIDTH}" height="{height}"/>',
        _text(16, 28, title, "title"),
        _text(
            16,
            48,
            f"{len(truth)} readings of {len(SENSORS)} sensors; a bar is a reading, from its start to its end",
            "soft",
        ),
        *_axis(bottom),
        *_head(
            0,
            "east",
            f"dies at {clock(DIES)}; is back at {clock(RETURNS)} with what ends at or after "
            f"{clock(GUARANTEE)}, and says old things again",
        ),
        *_east(0, truth, said["east"]),
        *_head(1, "west", f"has it all; {', '.join(SLOW)} come a minute later"),
        *(_bar(1, one.sensor, one.start, one.end, "event", one) for one in truth),
    ]
    for lane, result in enumerate(results, len(said)):
        parts += _result(lane, truth, result)
    parts += _legend(bottom + 44)
    return "\n".join([*parts, "</svg>", ""])


def _axis(bottom: int) -> Iterator[str]:
    for time in range(0, LENGTH + 1, 60):
        x = _x(time)
        yield f'<line class="grid" x1="{x}" x2="{x}" y1="{TOP + HEAD - 6}" y2="{bottom - GAP + 4}"/>'
        yield _text(x, bottom + 4, clock(time)[:5], "middle soft")


def _head(lane: int, name: str, words: str) -> list[str]:
    y = TOP + lane * LANE + 14
    return [
        _text(16, y, name, "name"),
        _text(LEFT + 60, y, words, "soft"),
        *(_text(LEFT - 8, _y(lane, sensor) + 9, sensor, "right soft") for sensor in SENSORS),
    ]


def _east(lane: int, truth: Sequence[Reading], rows: Sequence[Row]) -> Iterator[str]:
    """What east showed before it died, as far as it knew, and after it came back."""
    top = TOP + lane * LANE + HEAD - 4
    left, width = _x(DIES), _x(RETURNS) - _x(DIES)
    yield (
        f'<rect class="silence" x="{left}" y="{top}" width="{width:.1f}" '
        f'height="{len(SENSORS) * PITCH + 2}"/>'
    )
    before = {row.key: row.end for row in rows if row.said < DIES}
    after = {row.key: row.end for row in rows if row.said >= RETURNS}
    for one in truth:
        key = one.sensor, one.value, one.start
        if before.get(key) == one.end or after.get(key) == one.end:
            yield _bar(lane, one.sensor, one.start, one.end, "event", one)
        elif key in before:
            yield _bar(lane, one.sensor, one.start, DIES, "open", one, "its end was not known")
        if key in before and key in after:
            y = _y(lane, one.sensor) + BAR + 2
            yield (
                f'<line class="again" x1="{_x(one.start) + 1:.1f}" x2="{_x(one.end) - 1:.1f}" '
                f'y1="{y}" y2="{y}"/>'
            )
    yield _text(left + 46, top + len(SENSORS) * PITCH / 2 + 4, "east is dead", "middle soft")


def _result(lane: int, truth: Sequence[Reading], result: Result) -> Iterator[str]:
    verdict = result.verdict
    counts = verdict.counts()
    words = f"{counts['missing']} missing, {counts['repeated']} repeated, {counts['stale']} with a stale end"
    yield from _head(lane, result.name, words)
    missing, repeated = set(verdict.missing), Counter(verdict.repeated)
    stale = dict(verdict.stale)
    for one in truth:
        if one in missing:
            yield _bar(lane, one.sensor, one.start, one.end, "missing", one, "missing", label="×")
        elif one in repeated:
            times = repeated[one] + 1
            yield _bar(
                lane, one.sensor, one.start, one.end, "repeated", one, f"{times} times", label=f"{times}×"
            )
        elif one not in stale:
            yield _bar(lane, one.sensor, one.start, one.end, "event", one)
        else:
            yield _bar(lane, one.sensor, one.start, one.end, "stale", one, "stale end")
        if one in stale:
            yield _tail(lane, one, stale[one])
    for one in verdict.spurious:
        yield _bar(lane, one.sensor, one.start, one.end, "repeated", one, "never happened", label="?")


def _tail(lane: int, one: Reading, end: int) -> str:
    """From the true end to the one that the result has, earlier or later."""
    y = _y(lane, one.sensor) + BAR + 2
    first, last = sorted((_x(one.end), min(_x(end), WIDTH - 6)))
    words = "never ends" if end > LENGTH * 10 else f"ends at {clock(end)}"
    return (
        f'<line class="tail" x1="{first:.1f}" x2="{max(last, first + 2):.1f}" y1="{y}" y2="{y}">'
        f"<title>{escape(_words(one))}: here it {words}</title></line>"
    )


def _bar(
    lane: int,
    sensor: str,
    start: int,
    end: int,
    kind: str,
    one: Reading,
    problem: str = "",
    *,
    label: str | None = None,
) -> str:
    x, width = _x(start) + 0.5, min(_x(end), WIDTH - 6) - _x(start) - 1.5
    y = _y(lane, sensor)
    words = _words(one) + (f": {problem}" if problem else "")
    inside = label or (f"{one.value}" if width >= LABELLED and kind != "open" else "")
    shown = f"value {kind}" if label else "value"
    text = _text(x + width / 2, y + 9, inside, shown) if inside else ""
    return (
        f'<g><title>{escape(words)}</title><rect class="{kind}" x="{x:.1f}" y="{y}" width="{width:.1f}" '
        f'height="{BAR}" rx="2"/>{text}</g>'
    )


def _legend(y: int) -> Iterator[str]:
    x = float(LEFT)
    for kind, words in (
        ("event", "as it was measured"),
        ("again", "said again by east"),
        ("missing", "missing"),
        ("repeated", "repeated"),
        ("stale", "stale end; the line goes to the end it has"),
    ):
        if kind == "again":
            yield f'<rect class="event" x="{x}" y="{y - 9}" width="26" height="{BAR}" rx="2"/>'
            yield f'<line class="again" x1="{x}" x2="{x + 26}" y1="{y + 4}" y2="{y + 4}"/>'
        else:
            yield f'<rect class="{kind}" x="{x}" y="{y - 9}" width="26" height="{BAR}" rx="2"/>'
        if kind == "stale":
            yield f'<line class="tail" x1="{x + 26}" x2="{x + 40}" y1="{y + 4}" y2="{y + 4}"/>'
            x += 14
        if kind in ("missing", "repeated"):
            yield _text(x + 13, y, "×" if kind == "missing" else "2×", f"value {kind}")
        yield _text(x + 34, y, words)
        x += 34 + text_width(words) + 22


def text_width(words: str, size: float = 11) -> float:
    """About how wide words are; letters of the fonts that are likely are narrower."""
    return len(words) * size * 0.56


def _text(x: float, y: float, words: str, kind: str = "") -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}">{escape(words)}</text>'


def _words(one: Reading) -> str:
    return f"{one.sensor} {one.value}, {clock(one.start)} to {clock(one.end)}"


def _x(time: int) -> float:
    return round(LEFT + time * SCALE, 1)


def _y(lane: int, sensor: str) -> int:
    return TOP + lane * LANE + HEAD + SENSORS.index(sensor) * PITCH
