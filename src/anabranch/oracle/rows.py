"""Windows of rows over a bag of events: of each group every so many rows, so many in order.

Rows are in the order of their starts, and at one start in an order that is given. Window k of a group has its
rows from number k * every on, counted from 0, as many as its size. It lasts from the start of its first row
until just after that of its last, and is complete once it is full and the input stable beyond it, or ends.
"""

from collections.abc import Callable, Hashable, Iterable
from typing import Any

from anabranch.model.time import FOREVER
from anabranch.oracle.relation import Row
from anabranch.oracle.window import Made


def rows(
    given: Iterable[Row],
    group: Callable[[Any], Hashable],
    made: Made,
    *,
    size: int,
    every: int,
    order: Callable[[Row], Any],
    until: int = FOREVER,
) -> list[Row]:
    """The events of all windows that are full until a time (FOREVER: of all windows)."""
    output = []
    for key, inside in _windows(given, group, size, every, order, until):
        if len(inside) == size or until == FOREVER:
            start, end = inside[0][1], inside[-1][1] + 1
            payload = made(key, inside, start, end)
            if payload is not None:
                output.append((payload, start, end))
    return output


def frontier(
    given: Iterable[Row],
    group: Callable[[Any], Hashable],
    time: int,
    *,
    size: int,
    every: int,
    order: Callable[[Row], Any],
) -> int:
    """Until when windows are stable where the input is: no further than the start of one that is not full."""
    if time == FOREVER:
        return time
    windows = _windows(given, group, size, every, order, time)
    return min([time, *(inside[0][1] for _, inside in windows if len(inside) < size)])


def _windows(
    given: Iterable[Row],
    group: Callable[[Any], Hashable],
    size: int,
    every: int,
    order: Callable[[Row], Any],
    until: int,
) -> list[tuple[Hashable, list[Row]]]:
    groups: dict[Hashable, list[Row]] = {}
    for row in sorted(given, key=lambda row: (row[1], order(row))):
        if row[1] < until:
            groups.setdefault(group(row[0]), []).append(row)
    return [
        (key, inside[begin : begin + size])
        for key, inside in groups.items()
        for begin in range(0, len(inside), every)
    ]
