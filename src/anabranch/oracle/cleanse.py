"""Cleanse by scans: only what can never change again comes out, as inserts, one element at a time.

LM VI-D releases all fully frozen events in order of start. While a longer event with a smaller start is still
open, that is not an order, and the stable may not pass the open event: so events from its start on wait, or
come out of order where the order does not matter, and the stable that comes out is its start.
"""

from collections.abc import Callable, Iterable
from typing import Any

from anabranch.model.elements import Adjust, Element, Event, Insert, Payload, Stable
from anabranch.model.time import BEGINNING, FOREVER
from anabranch.oracle.payload import payload_key
from anabranch.oracle.relation import Row


def cleansed(rows: Iterable[Row], time: int, *, ordered: bool) -> list[Row]:
    """The events that are out where the input is stable until a time."""
    given = list(rows)
    first_open = frontier(given, time)
    return [row for row in given if _is_final(row[2], time) and (not ordered or row[1] < first_open)]


def frontier(rows: Iterable[Row], time: int) -> int:
    """Until when the output is stable: no further than the start of an event that is not final."""
    return min([time, *(start for _, start, end in rows if not _is_final(end, time))])


def _is_final(end: int, time: int) -> bool:
    return end < time or time == FOREVER


class Cleanse:
    """The events that have not gone out, in a list."""

    def __init__(
        self, *, ordered: bool, order: Callable[[Payload], Any] = lambda payload: str(dict(payload))
    ) -> None:
        """``order`` is how events of one start are ordered where several go out."""
        self.ordered = ordered
        self.order = order
        self.events: list[Event] = []
        self.frontier = BEGINNING
        self.stable = BEGINNING

    def push(self, element: Element) -> list[Element]:
        """What comes out when the input says a valid element."""
        match element:
            case Insert(payload, start, end):
                self.events.append(Event(payload, start, end))
            case Adjust(payload, start, old_end, end):
                self._take_away(payload, start, old_end)
                if not element.removes:
                    self.events.append(Event(payload, start, end))
            case Stable(time):
                return self._advance(time) if time > self.frontier else []
        return []

    def _take_away(self, payload: Payload, start: int, end: int) -> None:
        wanted = payload_key(payload), start, end
        keys = [(payload_key(event.payload), event.start, event.end) for event in self.events]
        del self.events[keys.index(wanted)]

    def _advance(self, time: int) -> list[Element]:
        self.frontier = time
        first_open = min(
            (e.start for e in self.events if e.start < time and not self._final(e)), default=time
        )
        final = [event for event in self.events if self._final(event)]
        leaving = [event for event in final if event.start < first_open or not self.ordered]
        for event in leaving:
            self.events.remove(event)
        leaving.sort(key=lambda event: (event.start, self.order(event.payload), event.end))
        out: list[Element] = [Insert(event.payload, event.start, event.end) for event in leaving]
        if first_open > self.stable:
            self.stable = first_open
            out.append(Stable(first_open))
        return out

    def _final(self, event: Event) -> bool:
        return _is_final(event.end, self.frontier)
