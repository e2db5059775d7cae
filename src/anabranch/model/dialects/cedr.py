"""Inserts, retractions and CTIs: the bitemporal streams of CEDR (SP 2.1).

An insert is our insert. A retraction moves the end of an event to an earlier time, down to its start (the
event is gone). A CTI is a stable: what follows has sync times at or after it (insert: start, retraction: new
end).

A lifetime cannot grow here. An event that starts at or after the last CTI is taken back whole and inserted
again with the later end; any other keeps its end or gets an earlier one.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, assert_never

from anabranch.model.clock import lifetime_text, tick_text
from anabranch.model.dialects.error import DialectError
from anabranch.model.dialects.record_form import Record, RecordForm
from anabranch.model.elements import Adjust, Element, Insert, Payload, Stable, check_payload, check_ticks
from anabranch.model.time import BEGINNING


@dataclass(frozen=True, slots=True)
class Retraction:
    """One event with this payload and lifetime now ends earlier; ``new_end == start`` removes it."""

    payload: Payload
    start: int
    end: int
    new_end: int

    def __post_init__(self) -> None:
        check_payload(self.payload)
        check_ticks(self, "a retraction", "start", "end", "new_end")
        if not self.start <= self.new_end < self.end:
            lifetime = lifetime_text(self.start, self.end)
            raise DialectError(
                f"a retraction of {lifetime} moves the end to {tick_text(self.new_end)}",
                "a retraction shortens a lifetime, down to nothing at its start",
                "To end an event later, retract it to its start and insert it again.",
            )


@dataclass(frozen=True, slots=True)
class Cti:
    """Every later item has a sync time at or after this (current time increment)."""

    time: int

    def __post_init__(self) -> None:
        check_ticks(self, "a CTI", "time")


Item: TypeAlias = Insert | Retraction | Cti


def sync(item: Insert | Retraction) -> int:
    """The earliest time at which an item changes the relation."""
    return item.start if isinstance(item, Insert) else item.new_end


def read(items: Iterable[Item]) -> Iterator[Element]:
    """The elements that items stand for, one for one.

    >>> list(read([Insert({"p": 1}, 1, 20), Retraction({"p": 1}, 1, 20, 10), Cti(10)]))[1:]
    [Adjust(payload={'p': 1}, start=1, old_end=20, end=10), Stable(time=10)]
    """
    for item in items:
        match item:
            case Insert():
                yield item
            case Retraction(payload, start, end, new_end):
                yield Adjust(payload, start, end, new_end)
            case Cti(time):
                yield Stable(time)
            case _:
                assert_never(item)


def write(elements: Iterable[Element]) -> Iterator[Item]:
    """The items that say the same as elements: two for an adjust that lengthens, none for one without effect.

    >>> list(write([Insert({"p": 1}, 1, 5), Adjust({"p": 1}, 1, 5, 9)]))[1:]
    [Retraction(payload={'p': 1}, start=1, end=5, new_end=1), Insert(payload={'p': 1}, start=1, end=9)]
    """
    frontier = BEGINNING
    for element in elements:
        match element:
            case Insert():
                yield element
            case Adjust(payload, start, old_end, end):
                if end < old_end:
                    yield Retraction(payload, start, old_end, end)
                elif end > old_end:
                    if start < frontier:
                        raise _half_frozen(element, frontier)
                    yield Retraction(payload, start, old_end, start)
                    yield Insert(payload, start, end)
            case Stable(time):
                frontier = max(frontier, time)
                yield Cti(time)
            case _:
                assert_never(element)


def _half_frozen(adjust: Adjust, frontier: int) -> DialectError:
    lifetime = lifetime_text(adjust.start, adjust.old_end)
    return DialectError(
        f"{dict(adjust.payload)} {lifetime} would be lengthened to {tick_text(adjust.end)}, "
        f"and it starts before the last CTI {tick_text(frontier)}",
        "retractions only shorten, and an event that has started before a CTI cannot be inserted again",
        "Insert events with the latest end they may get (for example none), or send the stable later.",
    )


_FORM = RecordForm(
    "kind",
    {
        "insert": ("payload", "start", "end"),
        "retraction": ("payload", "start", "end", "new_end"),
        "cti": ("time",),
    },
)
_ITEMS: dict[str, type[Item]] = {"insert": Insert, "retraction": Retraction, "cti": Cti}
_KINDS = {item: kind for kind, item in _ITEMS.items()}


def to_record(item: Item) -> Record:
    """An item as a plain dict.

    >>> to_record(Cti(10))
    {'kind': 'cti', 'time': 10}
    """
    return _FORM.record(_KINDS[type(item)], item)


def from_record(record: Mapping[str, Any]) -> Item:
    """The item a plain dict stands for."""
    kind, values = _FORM.parse(record)
    return _ITEMS[kind](**values)
