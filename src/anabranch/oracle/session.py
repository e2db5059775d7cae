"""Sessions over a bag of events: of each group what starts less than a gap after another, in a row.

A session is [first start, last start + gap); an end that is beyond time is FOREVER. It is closed once the
input is stable until its end.
"""

from collections.abc import Callable, Hashable, Iterable
from typing import Any

from anabranch.model.time import FOREVER
from anabranch.oracle.relation import Row
from anabranch.oracle.window import Made


def session(
    rows: Iterable[Row], group: Callable[[Any], Hashable], made: Made, *, gap: int, until: int = FOREVER
) -> list[Row]:
    """The events of all sessions that are closed until a time (FOREVER: of all sessions)."""
    output = []
    for key, inside, start, end in sessions(rows, group, gap):
        payload = made(key, inside, start, end)
        if payload is not None and end <= until:
            output.append((payload, start, end))
    return output


def sessions(
    rows: Iterable[Row], group: Callable[[Any], Hashable], gap: int
) -> list[tuple[Hashable, list[Row], int, int]]:
    """All sessions: group, events, start and end."""
    groups: dict[Hashable, list[Row]] = {}
    for row in sorted(rows, key=lambda row: row[1]):
        groups.setdefault(group(row[0]), []).append(row)
    found = []
    for key, all_rows in groups.items():
        parts: list[list[Row]] = []
        for row in all_rows:
            if parts and row[1] - parts[-1][-1][1] < gap:
                parts[-1].append(row)
            else:
                parts.append([row])
        found += [(key, part, part[0][1], min(part[-1][1] + gap, FOREVER)) for part in parts]
    return found


def frontier(rows: Iterable[Row], group: Callable[[Any], Hashable], gap: int, time: int) -> int:
    """Until when sessions are stable where the input is: no further than the start of one that is open."""
    if time == FOREVER:
        return time
    passed = [row for row in rows if row[1] < time]
    return min([time, *(start for _, _, start, end in sessions(passed, group, gap) if end > time)])
