"""Open and close: the elements of example 3 of LM, also I- and D-streams, positive and negative tuples.

``open(p, start)`` adds an event without an end. ``close(p, end)`` gives an end to the event of p that has the
greatest start at or before it: a later close revises an earlier one, a close at the start removes the event,
and a close at the end of time opens the latest event again. Progress is a stable, as in our own elements.

Only one event of a payload is active at a time. A reader takes the events of one payload in any order of
arrival, so their lifetimes may overlap for a moment; what overlaps after an element cannot be written.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, assert_never

from anabranch.model.clock import lifetime_text, tick_text
from anabranch.model.dialects.alive import Alive, Lifetime
from anabranch.model.dialects.error import DialectError, no_such_event
from anabranch.model.dialects.payload_key import payload_key
from anabranch.model.dialects.record_form import Record, RecordForm
from anabranch.model.elements import Adjust, Element, Insert, Payload, Stable, check_payload, check_ticks
from anabranch.model.time import FOREVER


@dataclass(frozen=True, slots=True)
class Open:
    """One more event; its end is not known."""

    payload: Payload
    start: int

    def __post_init__(self) -> None:
        check_payload(self.payload)
        check_ticks(self, "an open", "start")


@dataclass(frozen=True, slots=True)
class Close:
    """The latest event of this payload that starts no later than this ends here."""

    payload: Payload
    end: int

    def __post_init__(self) -> None:
        check_payload(self.payload)
        check_ticks(self, "a close", "end")


Item: TypeAlias = Open | Close | Stable


def read(items: Iterable[Item]) -> Iterator[Element]:
    """The elements that items stand for, one for one.

    >>> list(read([Open({"p": "B"}, 2), Close({"p": "B"}, 6), Close({"p": "B"}, 5)]))[2]
    Adjust(payload={'p': 'B'}, start=2, old_end=6, end=5)
    """
    alive = Alive()
    for item in items:
        match item:
            case Open(payload, start):
                key = payload_key(payload)
                if there := alive.starting_at(key, start):
                    raise _overlap(payload, (start, FOREVER), there[0])
                alive.add(key, (start, FOREVER))
                yield Insert(payload, start, FOREVER)
            case Close(payload, end):
                lifetime = _closed(alive, item)
                alive.move(payload_key(payload), lifetime, end)
                yield Adjust(payload, *lifetime, end)
            case Stable(time):
                alive.freeze(time)
                yield item
            case _:
                assert_never(item)


def write(elements: Iterable[Element]) -> Iterator[Item]:
    """The items that say the same as elements: open, and close where there is an end; close for an adjust."""
    alive = Alive()
    for element in elements:
        match element:
            case Insert(payload, start, end):
                key = payload_key(payload)
                _check_before(alive.lifetimes(key), payload, (start, end))
                _check_after(alive.lifetimes(key), payload, (start, end))
                alive.add(key, (start, end))
                yield Open(payload, start)
                if end != FOREVER:
                    yield Close(payload, end)
            case Adjust(payload, start, old_end, end):
                key = payload_key(payload)
                if not alive.has(key, (start, old_end)):
                    raise no_such_event(element)
                if old_end == end:
                    continue
                _check_after(alive.lifetimes(key), payload, (start, end))
                alive.move(key, (start, old_end), end)
                yield Close(payload, end)
            case Stable(time):
                alive.freeze(time)
                yield element
            case _:
                assert_never(element)


def _closed(alive: Alive, item: Close) -> Lifetime:
    """The event that a close gives an end to."""
    lifetimes = alive.lifetimes(payload_key(item.payload))
    place = bisect_right(lifetimes, (item.end, FOREVER))
    if not place:
        raise DialectError(
            f"close({dict(item.payload)}, {tick_text(item.end)}) finds no event to close",
            "none with that payload that can still change was opened at or before that time",
            "Open the event before it is closed, and send stables after its last close.",
        )
    return lifetimes[place - 1]


def _check_before(lifetimes: list[Lifetime], payload: Payload, lifetime: Lifetime) -> None:
    """No other event of a payload is active at the start of a new one."""
    place = bisect_right(lifetimes, (lifetime[0], FOREVER))
    if place and lifetimes[place - 1][1] > lifetime[0]:
        raise _overlap(payload, lifetime, lifetimes[place - 1])


def _check_after(lifetimes: list[Lifetime], payload: Payload, lifetime: Lifetime) -> None:
    """The next event of a payload starts after this one has ended, so no close can be taken for its close."""
    start, end = lifetime
    place = bisect_right(lifetimes, (start, FOREVER))
    if place == len(lifetimes) or lifetimes[place][0] > end:
        return
    if lifetimes[place][0] < end:
        raise _overlap(payload, lifetime, lifetimes[place])
    raise DialectError(
        f"close({dict(payload)}, {tick_text(end)}) for the event {lifetime_text(*lifetime)} "
        f"would be read as the end of {lifetime_text(*lifetimes[place])}",
        "a close ends the event with the greatest start at or before it",
        "Close the earlier event before the next one opens, or write cedr, whose changes say the lifetime.",
    )


def _overlap(payload: Payload, lifetime: Lifetime, other: Lifetime) -> DialectError:
    return DialectError(
        f"{dict(payload)} would be active twice, {lifetime_text(*lifetime)} and {lifetime_text(*other)}",
        "open and close do not say which event of a payload they mean, so only one may be active at a time",
        "Give the payload a column that tells the events apart, or write cedr: its changes say lifetimes.",
    )


_FORM = RecordForm("kind", {"open": ("payload", "start"), "close": ("payload", "end"), "stable": ("time",)})
_ITEMS: dict[str, type[Item]] = {"open": Open, "close": Close, "stable": Stable}
_KINDS = {item: kind for kind, item in _ITEMS.items()}


def to_record(item: Item) -> Record:
    """An item as a plain dict.

    >>> to_record(Open({"p": "A"}, 1))
    {'kind': 'open', 'payload': {'p': 'A'}, 'start': 1}
    """
    return _FORM.record(_KINDS[type(item)], item)


def from_record(record: Mapping[str, Any]) -> Item:
    """The item a plain dict stands for."""
    kind, values = _FORM.parse(record)
    return _ITEMS[kind](**values)
