"""Lifetimes drawn as bars under each other, with the frontier as a vertical line.

a  ███████▒▒▒▒▒▒▒▒▒▒▒▒▶     full: before the frontier, so settled
b      ██████               shaded: beyond it, so open
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from anabranch.cli.display import payload_shown
from anabranch.model.clock import Clock, tick_text
from anabranch.model.elements import Event
from anabranch.model.time import BEGINNING, FOREVER

LABEL = 24
_NARROWEST = 12
"""Columns in which bars still say something."""


@dataclass(frozen=True, slots=True)
class Glyphs:
    """What a screen draws with."""

    settled: str = "█"
    open: str = "▒"
    endless: str = "▶"
    stable: str = "┊"
    cut: str = "…"
    infinite: str = "∞"

    @classmethod
    def of(cls, encoding: str) -> Glyphs:
        """Those that an encoding has: blocks, or characters of ASCII."""
        try:
            "█▒▶┊…∞".encode(encoding)
        except (UnicodeEncodeError, LookupError):
            return cls("#", ".", ">", "|", "~", "inf")
        return cls()

    def text(self, text: str) -> str:
        """A text with the characters that there are."""
        return text.replace("∞", self.infinite).replace("…", self.cut)


def timeline(
    events: Sequence[Event],
    frontier: int,
    width: int = 80,
    clock: Clock = Clock.TICKS,
    glyphs: Glyphs = Glyphs(),  # noqa: B008 - frozen
) -> list[str]:
    """One line per event, an axis below them and what the bars mean; none where there is no room."""
    longest = min(LABEL, width // 3)
    if not events or width - longest - 2 < _NARROWEST:
        return []
    labels = [_label(event, longest, glyphs) for event in events]
    margin = max(map(len, labels)) + 2
    room = width - margin
    known = [t for e in events for t in (e.start, e.end, frontier) if BEGINNING < t < FOREVER] or [0]
    first, last = min(known), max(*known, min(known) + 1)

    def column(time: int) -> int:
        if time == FOREVER:
            return room - 1
        return min(max(0, time - first) * (room - 2) // (last - first), room - 2)

    mark = room if frontier == FOREVER else NOWHERE if frontier == BEGINNING else column(frontier)
    bars = [
        _bar(column(e.start), column(e.end), mark, room, glyphs, endless=e.end == FOREVER) for e in events
    ]
    lines = [f"{label:<{margin}}{bar}" for label, bar in zip(labels, bars, strict=True)]
    axis = [" " * margin + line for line in _axis(first, last, frontier, mark, room, clock)]
    if any(len(line) > width for line in axis):
        axis = _worded("from", first, width, clock)
        axis += _worded("to", last, width, clock) if max(known) > first else []
        axis += _worded("stable", frontier, width, clock) if 0 <= mark < room else []
    return [*lines, *axis, *_legend("".join(bars), width, glyphs)]


NOWHERE = -1


def _bar(begin: int, end: int, mark: int, room: int, glyphs: Glyphs, *, endless: bool) -> str:
    row = [" "] * room
    if 0 <= mark < room:
        row[mark] = glyphs.stable
    for x in range(begin, max(end, begin + 1)):
        row[x] = glyphs.settled if x < mark else glyphs.open
    if endless:
        row[room - 1] = glyphs.endless
    return "".join(row).rstrip()


def _label(event: Event, longest: int, glyphs: Glyphs) -> str:
    text = payload_shown(event.payload)
    return text if len(text) <= longest else text[: longest - 1] + glyphs.cut


def _axis(first: int, last: int, frontier: int, mark: int, room: int, clock: Clock) -> list[str]:
    """The times at both ends, and that of the stable where it is, below them if they leave no room."""
    left, right = tick_text(first, clock), tick_text(last, clock)
    row = [*left, *" " * max(1, room - 1 - len(left) - len(right)), *right]
    if not 0 <= mark < room:
        return ["".join(row)]
    note = f"stable {tick_text(frontier, clock)}"
    if len(left) < mark < room - len(right) - len(note):
        row[mark : mark + len(note)] = note
        return ["".join(row)]
    return ["".join(row), " " * max(0, min(mark, room - len(note))) + note]


def _worded(word: str, time: int, width: int, clock: Clock) -> list[str]:
    """A time with what it is, in one line or two."""
    whole = f"{word} {tick_text(time, clock)}"
    return [whole] if len(whole) <= width else [word, f"  {tick_text(time, clock)}"]


def _legend(bars: str, width: int, glyphs: Glyphs) -> list[str]:
    """What each character that is drawn means, in lines of the width."""
    meanings = {
        glyphs.settled: "settled",
        glyphs.open: "may change",
        glyphs.endless: "no end yet",
        glyphs.stable: "stable",
    }
    words = [f"{glyph} {meaning}" for glyph, meaning in meanings.items() if glyph in bars]
    lines = [""]
    for word in words:
        joined = f"{lines[-1]}   {word}" if lines[-1] else word
        lines[-1:] = [joined] if len(joined) <= width else [lines[-1], word]
    return lines
