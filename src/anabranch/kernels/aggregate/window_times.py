"""Which windows there are, when they close, and of which panes they are made.

Window w is [w * every, w * every + size) for every whole number w. None begins before the first tick; an end
beyond time is FOREVER. All is computed in whole numbers without limits.

Every window is made of whole panes. Windows that do not overlap are one each; where these leave gaps, a
pane has the gap behind its window, and no rows in it. Of windows that overlap, a slide is one pane where
the size is a whole number of slides, and else two: the first is what is left of the size after whole slides
(paired windows: Krishnamurthy, Wu and Franklin 2006). So a window has at most two panes a slide, whatever
the lengths.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anabranch.model.time import BEGINNING, FOREVER


@dataclass(frozen=True, slots=True)
class WindowTimes:
    """Windows of ``size`` that begin ``every`` so many ticks."""

    size: int
    every: int
    slide: bool = False
    """What is said of a window is said for its last slide, and not for all of it."""

    @property
    def tumbling(self) -> bool:
        """No two windows overlap, so that a window is one pane."""
        return self.size <= self.every

    @property
    def first(self) -> int:
        """The number of the first window."""
        return BEGINNING // self.every + 1

    @property
    def earliest(self) -> int:
        """Where the first window begins."""
        return self.first * self.every

    def inside(self, start: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which times are in a window: none is before the first, or between two that leave a gap."""
        found = start >= self.earliest
        return found if self.size >= self.every else found & (start % self.every < self.size)

    @property
    def panes_in_window(self) -> int:
        """How many panes a window is made of."""
        if self.tumbling:
            return 1
        slides, rest = divmod(self.size, self.every)
        return 2 * slides + 1 if rest else slides

    def panes(self, start: NDArray[np.int64]) -> NDArray[np.int64]:
        """The panes that times are in."""
        slide, rest = start // self.every, 0 if self.tumbling else self.size % self.every
        return 2 * slide + (start % self.every >= rest) if rest else slide

    def windows_of(self, pane: int) -> range:
        """The windows that a pane is part of."""
        first = BEGINNING // self.every + 1
        if self.tumbling:
            return range(max(pane, self.earliest // self.every), pane + 1)
        slides, rest = divmod(self.size, self.every)
        if not rest:
            return range(max(pane - slides + 1, first), pane + 1)
        return range(max((pane + 1) // 2 - slides, first), pane // 2 + 1)

    def panes_of(self, window: int) -> range:
        """The panes of a window."""
        begin = window if self.tumbling or self.size % self.every == 0 else 2 * window
        return range(begin, begin + self.panes_in_window)

    def bounds(self, window: int) -> tuple[int, int]:
        """Start and end of a window."""
        return window * self.every, min(window * self.every + self.size, FOREVER)

    def lifetime(self, window: int) -> tuple[int, int]:
        """The lifetime of what is said of a window; empty where it would begin beyond time."""
        start, end = window * self.every, window * self.every + self.size
        begin = max(end - self.every, BEGINNING) if self.slide else start
        return min(begin, FOREVER), min(end, FOREVER)

    def last_closed(self, time: int) -> int:
        """The last window that is closed where the input is stable until a time."""
        return FOREVER // self.every + 1 if time == FOREVER else (time - self.size) // self.every

    def reached(self, time: int) -> int:
        """Until when what is said is stable: where the first window begins that is not closed."""
        if time in (BEGINNING, FOREVER):
            return time
        first = ((time - self.size) // self.every + 1) * self.every
        return max(BEGINNING, min(first + (self.size - self.every if self.slide else 0), FOREVER))


OUTSIDE = "in_no_window"
"""What operators count the events as that are in no window."""


def outside_windows(operators: Mapping[str, Mapping[str, int]]) -> list[str]:
    """What a person should know of events that are in no window, of each operator that has counted some.

    >>> outside_windows({"window": {"in_no_window": 28}, "sort": {}})
    ['window: 28 events are in no window, as every is greater than size or they start before the first']
    """
    found = {name: counts.get(OUTSIDE, 0) for name, counts in operators.items()}
    return [
        f"{name}: {count:,} event{'s are' if count > 1 else ' is'} in no window, as every is greater than "
        f"size or {'they start' if count > 1 else 'it starts'} before the first"
        for name, count in found.items()
        if count
    ]
