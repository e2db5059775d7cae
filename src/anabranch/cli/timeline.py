"""Lifetimes drawn as bars under each other, with the frontier as a vertical line.

a  ███████▒▒▒▒▒▒▒▒▒▒▒▒▶     full: before the frontier, so settled
b      ██████               shaded: beyond it, so open
"""

from __future__ import annotations

from collections.abc import Sequence

from anabranch.cli.shown import payload_shown
from anabranch.model.elements import Event
from anabranch.model.time import BEGINNING, FOREVER, Clock, tick_text

LABEL = 24


def timeline(
    events: Sequence[Event], frontier: int, width: int = 80, clock: Clock = Clock.TICKS
) -> list[str]:
    """One line per event and an axis below them."""
    if not events:
        return []
    labels = [_label(event) for event in events]
    margin = max(map(len, labels)) + 2
    room = max(20, width - margin)
    known = [t for e in events for t in (e.start, e.end, frontier) if BEGINNING < t < FOREVER] or [0]
    first, last = min(known), max(*known, min(known) + 1)

    def column(time: int) -> int:
        if time == FOREVER:
            return room - 1
        return min(max(0, time - first) * (room - 2) // (last - first), room - 2)

    mark = room if frontier == FOREVER else NOWHERE if frontier == BEGINNING else column(frontier)
    bars = [_bar(column(e.start), column(e.end), mark, room, endless=e.end == FOREVER) for e in events]
    lines = [f"{label:<{margin}}{bar}" for label, bar in zip(labels, bars, strict=True)]
    return [*lines, " " * margin + _axis(first, last, frontier, mark, room, clock)]


NOWHERE = -1


def _bar(begin: int, end: int, mark: int, room: int, *, endless: bool) -> str:
    row = [" "] * room
    if 0 <= mark < room:
        row[mark] = "┊"
    for x in range(begin, max(end, begin + 1)):
        row[x] = "█" if x < mark else "▒"
    if endless:
        row[room - 1] = "▶"
    return "".join(row).rstrip()


def _label(event: Event) -> str:
    text = payload_shown(event.payload)
    return text if len(text) <= LABEL else text[: LABEL - 1] + "…"


def _axis(first: int, last: int, frontier: int, mark: int, room: int, clock: Clock) -> str:
    left, right = tick_text(first, clock), tick_text(last, clock)
    row = [*left, *" " * max(1, room - 1 - len(left) - len(right)), *right]
    note = f"stable {tick_text(frontier, clock)}"
    if 0 <= mark < room and len(left) < mark < room - len(right) - len(note):
        row[mark : mark + len(note)] = note
    return "".join(row)
