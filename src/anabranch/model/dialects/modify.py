"""Add, modify, finalize: the elements of example 1 of LM.

``a(value, start, end)`` adds an event, ``m(value, start, end)`` gives the event with that value and start
another end (its start: the event is removed), and ``f(time)`` freezes like a stable.

An m does not say the old end, so among the events that can still change, payload and start must be a key when
one of them is modified. Events that are never modified need no key.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, assert_never

from anabranch.model.clock import lifetime_text, tick_text
from anabranch.model.dialects.alive import Alive, Lifetime
from anabranch.model.dialects.error import DialectError, no_such_event
from anabranch.model.dialects.payload_key import payload_key
from anabranch.model.dialects.record_form import Record, RecordForm
from anabranch.model.elements import Adjust, Element, Insert, Payload, Stable, check_payload, check_ticks


@dataclass(frozen=True, slots=True)
class Add:
    """One more event."""

    payload: Payload
    start: int
    end: int

    def __post_init__(self) -> None:
        check_payload(self.payload)
        check_ticks(self, "an add", "start", "end")


@dataclass(frozen=True, slots=True)
class Modify:
    """The event with this payload and start now has this end; ``end == start`` removes it."""

    payload: Payload
    start: int
    end: int

    def __post_init__(self) -> None:
        check_payload(self.payload)
        check_ticks(self, "a modify", "start", "end")


@dataclass(frozen=True, slots=True)
class Finalize:
    """Nothing before this time changes any more."""

    time: int

    def __post_init__(self) -> None:
        check_ticks(self, "a finalize", "time")


Item: TypeAlias = Add | Modify | Finalize


def read(items: Iterable[Item]) -> Iterator[Element]:
    """The elements that items stand for, one for one.

    >>> list(read([Add({"value": "A"}, 6, 7), Modify({"value": "A"}, 6, 12)]))[1]
    Adjust(payload={'value': 'A'}, start=6, old_end=7, end=12)
    """
    alive = Alive()
    for item in items:
        match item:
            case Add(payload, start, end):
                alive.add(payload_key(payload), (start, end))
                yield Insert(payload, start, end)
            case Modify(payload, start, end):
                lifetime = _named(alive, item)
                alive.move(payload_key(payload), lifetime, end)
                yield Adjust(payload, start, lifetime[1], end)
            case Finalize(time):
                alive.freeze(time)
                yield Stable(time)
            case _:
                assert_never(item)


def write(elements: Iterable[Element]) -> Iterator[Item]:
    """The items that say the same as elements, one for one; an adjust that moves nothing needs none."""
    alive = Alive()
    for element in elements:
        match element:
            case Insert(payload, start, end):
                alive.add(payload_key(payload), (start, end))
                yield Add(payload, start, end)
            case Adjust(payload, start, old_end, end):
                key = payload_key(payload)
                if not alive.has(key, (start, old_end)):
                    raise no_such_event(element)
                if old_end == end:
                    continue
                item = Modify(payload, start, end)
                alive.move(key, _named(alive, item), end)
                yield item
            case Stable(time):
                alive.freeze(time)
                yield Finalize(time)
            case _:
                assert_never(element)


def _named(alive: Alive, item: Modify) -> Lifetime:
    """The one event that an m names."""
    named = alive.starting_at(payload_key(item.payload), item.start)
    if len(named) == 1:
        return named[0]
    text = f"m({dict(item.payload)}, {tick_text(item.start)}, {tick_text(item.end)})"
    if not named:
        raise DialectError(
            f"{text} names no event that can still change",
            "none with that payload and start was added, or it was removed, or it has been finalized",
            "Add the event before it is modified, and finalize it after.",
        )
    lifetimes = ", ".join(lifetime_text(*lifetime) for lifetime in named)
    raise DialectError(
        f"{text} names {len(named)} events, {lifetimes}",
        "m does not say an old end, so payload and start must be a key of what can still change",
        "Give the payload a column that tells the events apart, or write cedr: its changes say the old end.",
    )


_FORM = RecordForm(
    "kind", {"a": ("payload", "start", "end"), "m": ("payload", "start", "end"), "f": ("time",)}
)
_ITEMS: dict[str, type[Item]] = {"a": Add, "m": Modify, "f": Finalize}
_KINDS = {item: kind for kind, item in _ITEMS.items()}


def to_record(item: Item) -> Record:
    """An item as a plain dict.

    >>> to_record(Finalize(11))
    {'kind': 'f', 'time': 11}
    """
    return _FORM.record(_KINDS[type(item)], item)


def from_record(record: Mapping[str, Any]) -> Item:
    """The item a plain dict stands for."""
    kind, values = _FORM.parse(record)
    return _ITEMS[kind](**values)
