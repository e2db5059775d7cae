"""Windows over a bag of events, one after the other, each with all that starts within it.

Window w is [w * every, w * every + size) for every whole number w; none begins before the first tick, and an
end that is beyond time is FOREVER. A window is closed once the input is stable until its end.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, TypeAlias

from anabranch.model.time import BEGINNING, FOREVER
from anabranch.oracle.relation import Row

Made: TypeAlias = Callable[[Any, Sequence[Row], int, int], Hashable | None]
"""Of a group, its events and the bounds of the window the payload; None where it fails."""


def window(
    rows: Iterable[Row],
    group: Callable[[Any], Hashable],
    made: Made,
    *,
    size: int,
    every: int,
    slide: bool = False,
    until: int = FOREVER,
) -> list[Row]:
    """The events of all windows that are closed until a time (FOREVER: of all windows)."""
    found: dict[tuple[int, Hashable], list[Row]] = {}
    for row in rows:
        for number in windows_of(row[1], size, every):
            found.setdefault((number, group(row[0])), []).append(row)
    output = []
    for (number, key), inside in found.items():
        start, end = number * every, min(number * every + size, FOREVER)
        said = max(number * every + size - every, BEGINNING) if slide else start
        payload = made(key, inside, start, end)
        if payload is not None and end <= until and said < FOREVER:
            output.append((payload, said, end))
    return output


def windows_of(start: int, size: int, every: int) -> range:
    """The windows that contain a time."""
    return range(max((start - size) // every + 1, BEGINNING // every + 1), start // every + 1)


def frontier(time: int, size: int, every: int, *, slide: bool = False) -> int:
    """Until when the windows are stable where the input is: the start of the first that is not closed."""
    if time in (BEGINNING, FOREVER):
        return time
    first = ((time - size) // every + 1) * every + (size - every if slide else 0)
    return max(BEGINNING, min(first, FOREVER))
