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


def _check_payload(payload: object) -> None:
    if not isinstance(payload, Mapping):
        error = TypeError(f"a payload maps column names to values, {payload!r} does not")
        error.add_note('Name its column: {"value": ' + repr(payload) + "}.")
        raise error


@dataclass(frozen=True, slots=True)
class Insert:
    """One more event."""

    payload: Payload
    start: int
    end: int

    def __post_init__(self) -> None:
        _check_payload(self.payload)
        object.__setattr__(self, "start", checked_tick(self.start, "the start of an insert"))
        object.__setattr__(self, "end", checked_tick(self.end, "the end of an insert"))


@dataclass(frozen=True, slots=True)
class Adjust:
    """One event with this payload, start and old end now has another end; ``end == start`` removes it."""

    payload: Payload
    start: int
    old_end: int
    end: int

    def __post_init__(self) -> None:
        _check_payload(self.payload)
        object.__setattr__(self, "start", checked_tick(self.start, "the start of an adjust"))
        object.__setattr__(self, "old_end", checked_tick(self.old_end, "the old end of an adjust"))
        object.__setattr__(self, "end", checked_tick(self.end, "the end of an adjust"))

    @property
    def removes(self) -> bool:
        """The event is gone after this."""
        return self.end == self.start


@dataclass(frozen=True, slots=True)
class Stable:
    """Nothing before this time changes any more."""

    time: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "time", checked_tick(self.time, "the time of a stable"))


@dataclass(frozen=True, slots=True)
class Attach:
    """An input joins; it shows every event whose end is at or after its guarantee."""

    guarantee: int = BEGINNING

    def __post_init__(self) -> None:
        object.__setattr__(self, "guarantee", checked_tick(self.guarantee, "the guarantee of an attach"))


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

    @property
    def unending(self) -> bool:
        """No end is known."""
        return self.end == FOREVER


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
