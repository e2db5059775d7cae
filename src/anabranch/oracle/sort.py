"""Sort by scans: what has been passed by the frontier comes out by sync time, one element at a time.

The law: before its frontier the output is what the input is, and nothing of it starts later (`cut_at`).
"""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from anabranch.model.elements import Adjust, Element, Event, Insert, Payload, Stable, sync
from anabranch.model.time import BEGINNING, FOREVER
from anabranch.oracle.payload import payload_key
from anabranch.oracle.relation import Row


def cut_at(rows: Iterable[Row], time: int) -> Counter[Row]:
    """What is known of events before a time: those that start before it, as far as they last until then."""
    return Counter((payload, start, min(end, time)) for payload, start, end in rows if start < time)


class Sort:
    """The events that the input shows, and those that the output shows, in lists."""

    def __init__(self, *, order: Callable[[Payload], Any] = lambda payload: str(dict(payload))) -> None:
        """``order`` is how elements of one sync time and kind are ordered."""
        self.order = order
        self.input: list[Event] = []
        self.output: list[Event] = []
        self.frontier = BEGINNING

    def push(self, element: Element) -> list[Element]:
        """What comes out when the input says a valid element."""
        match element:
            case Insert(payload, start, end):
                self.input.append(Event(payload, start, end))
            case Adjust():
                _adjust(self.input, element)
            case Stable(time):
                return self._advance(time) if time > self.frontier else []
        return []

    def _advance(self, time: int) -> list[Element]:
        new = [event for event in self.input if self.frontier <= event.start < time]
        out: list[Insert | Adjust] = [Insert(event.payload, event.start, event.end) for event in new]
        for key in {_key(event) for event in self.output}:
            shown = [event for event in self.output if _key(event) == key]
            ends = Counter(event.end for event in shown)
            wanted = Counter(event.end for event in self.input if _key(event) == key)
            moves = zip(sorted((ends - wanted).elements()), sorted((wanted - ends).elements()), strict=True)
            out += [
                Adjust(shown[0].payload, shown[0].start, old_end, end)
                for old_end, end in moves
                if min(old_end, end) < time or time == FOREVER
            ]
        for element in out:
            if isinstance(element, Adjust):
                _adjust(self.output, element)
        self.output += new
        self.frontier = time
        return [*sorted(out, key=self._place), Stable(time)]

    def _place(self, element: Insert | Adjust) -> tuple[Any, ...]:
        adjusts = isinstance(element, Adjust)
        old_end = element.old_end if isinstance(element, Adjust) else 0
        return sync(element), adjusts, self.order(element.payload), element.start, element.end, old_end


def _key(event: Event) -> Any:
    return payload_key(event.payload), event.start


def _adjust(events: list[Event], adjust: Adjust) -> None:
    wanted = payload_key(adjust.payload), adjust.start, adjust.old_end
    keys = [(payload_key(event.payload), event.start, event.end) for event in events]
    event = events.pop(keys.index(wanted))
    if not adjust.removes:
        events.append(Event(event.payload, adjust.start, adjust.end))
