"""Elements are what a stream is made of; events are what it denotes.

An event is a payload with a half-open lifetime ``[start, end)``. An insert adds one event, an adjust moves
the end of one event that is there (to its start: the event is removed), and a stable says that nothing before
its time changes any more. Equal events may occur more than once.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from anabranch.model.time import BEGINNING, FOREVER, checked_tick

Payload: TypeAlias = Mapping[str, Any]


def check_payload(payload: object) -> None:
    """A payload maps column names to values."""
    if not isinstance(payload, Mapping):
        error = TypeError(f"a payload maps column names to values, {payload!r} does not")
        error.add_note('Name its column: {"value": ' + repr(payload) + "}.")
        raise error


def check_ticks(item: object, kind: str, *names: str) -> None:
    """The named fields of a frozen item are ticks, and plain ints from here on."""
    for name in names:
        tick = getattr(item, name)
        if type(tick) is not int or not BEGINNING <= tick <= FOREVER:
            what = f"the {name.replace('_', ' ')} of {kind}"
            object.__setattr__(item, name, checked_tick(tick, what))


@dataclass(frozen=True, slots=True)
class Insert:
    """One more event."""

    payload: Payload
    start: int
    end: int

    def __post_init__(self) -> None:
        check_payload(self.payload)
        check_ticks(self, "an insert", "start", "end")


@dataclass(frozen=True, slots=True)
class Adjust:
    """One event with this payload, start and old end now has another end; ``end == start`` removes it."""

    payload: Payload
    start: int
    old_end: int
    end: int

    def __post_init__(self) -> None:
        check_payload(self.payload)
        check_ticks(self, "an adjust", "start", "old_end", "end")

    @property
    def removes(self) -> bool:
        """The event is gone after this."""
        return self.end == self.start


@dataclass(frozen=True, slots=True)
class Stable:
    """Nothing before this time changes any more."""

    time: int

    def __post_init__(self) -> None:
        check_ticks(self, "a stable", "time")


@dataclass(frozen=True, slots=True)
class Attach:
    """An input joins; it shows every event whose end is at or after its guarantee."""

    guarantee: int = BEGINNING

    def __post_init__(self) -> None:
        check_ticks(self, "an attach", "guarantee")


@dataclass(frozen=True, slots=True)
class Detach:
    """An input leaves."""


Element: TypeAlias = Insert | Adjust | Stable
Control: TypeAlias = Attach | Detach


@dataclass(frozen=True, slots=True)
class Tagged:
    """What one of several inputs said, in a recording of all of them in arrival order."""

    input: str
    element: Element | Control


@dataclass(frozen=True, slots=True)
class Event:
    """A payload that holds during ``[start, end)``."""

    payload: Payload
    start: int
    end: int


def sync(element: Insert | Adjust) -> int:
    """The earliest time at which an element changes the relation.

    For an insert its start; for an adjust the earlier of its two ends (in CEDR, whose retractions only
    shorten, that is the new end).
    """
    match element:
        case Insert():
            return element.start
        case Adjust():
            return min(element.old_end, element.end)
