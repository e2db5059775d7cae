"""Lifetimes drawn as bars under each other, with the frontier as a vertical line.

a  ███████▒▒▒▒▒▒▒▒▒▒▒▒▶     full: before the frontier, so settled
b      ██████               shaded: beyond it, so open
"""

from __future__ import annotations

from collections.abc import Sequence

from anabranch.model.elements import Event
from anabranch.model.notation import payload_text
from anabranch.model.time import BEGINNING, FOREVER, tick_text

LABEL = 24


def timeline(events: Sequence[Event], frontier: int, *, width: int = 80) -> list[str]:
    """One line per event and an axis below them."""
    if not events:
        return []
    labels = [_label(event) for event in events]
    room = max(20, width - max(map(len, labels)) - 2)
    times = [t for e in events for t in (e.start, e.end) if BEGINNING < t < FOREVER]
    first = min(times)
    last = max(first + 1, *times, *([frontier] if frontier < FOREVER else []))
    scale = (room - 2) / (last - first)

    def column(time: int) -> int:
        return room - 1 if time == FOREVER else min(round((time - first) * scale), room - 2)

    mark = column(frontier) if first <= frontier < FOREVER else room if frontier == FOREVER else -1
    lines = []
    for label, event in zip(labels, events, strict=True):
        begin, end = column(event.start), max(column(event.end), column(event.start) + 1)
        row = [" "] * room
        for x in range(begin, end):
            row[x] = "█" if x < mark else "▒"
        if event.end == FOREVER:
            row[room - 1] = "▶"
        if 0 <= mark < room and row[mark] == " ":
            row[mark] = "┊"
        lines.append(f"{label:<{max(map(len, labels))}}  {''.join(row).rstrip()}")
    return [*lines, " " * (max(map(len, labels)) + 2) + _axis(first, last, frontier, mark, room)]


def _label(event: Event) -> str:
    text = payload_text(event.payload)
    return text if len(text) <= LABEL else text[: LABEL - 1] + "…"


def _axis(first: int, last: int, frontier: int, mark: int, room: int) -> str:
    left, right = tick_text(first), tick_text(last)
    row = [*left, *" " * max(1, room - 1 - len(left) - len(right)), *right]
    note = f"stable {tick_text(frontier)}"
    if 0 <= mark < room and len(left) < mark < room - len(right) - len(note):
        row[mark : mark + len(note)] = note
    return "".join(row)
