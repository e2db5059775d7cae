"""CEDR streams whose progress is counted: external CTIs (CE 3 and 4.6, as corrected in our errata).

Inserts and retractions are those of `cedr`. ``X[a, b)#k`` says that k of them have sync times in ``[a, b)``.
All may arrive in any order: a retraction is held until the event it retracts is there, and a stable follows
once the intervals from the origin up to it are complete and no held retraction could still reach behind it.
"""

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, assert_never

from anabranch.model.clock import lifetime_text, tick_text
from anabranch.model.dialects import cedr
from anabranch.model.dialects.alive import Alive, Lifetime
from anabranch.model.dialects.cedr import Cti, Retraction, sync
from anabranch.model.dialects.coverage import Coverage
from anabranch.model.dialects.error import DialectError
from anabranch.model.dialects.held_retractions import HeldRetractions
from anabranch.model.dialects.payload_key import PayloadKey, payload_key
from anabranch.model.dialects.record_form import Record, RecordForm
from anabranch.model.elements import Adjust, Element, Insert, Stable, check_ticks
from anabranch.model.time import BEGINNING


@dataclass(frozen=True, slots=True)
class ExternalCti:
    """This many inserts and retractions have sync times in ``[start, end)``."""

    start: int
    end: int
    count: int

    def __post_init__(self) -> None:
        check_ticks(self, "an external CTI", "start", "end")
        if type(self.count) is not int:
            raise TypeError(f"the count of an external CTI is an int, not {self.count!r}")
        if self.start >= self.end or self.count < 0:
            raise DialectError(
                f"X{lifetime_text(self.start, self.end)}#{self.count} counts nothing that can arrive",
                "an interval ends after it starts, and a count is not negative",
                "Leave out empty intervals.",
            )


Item: TypeAlias = Insert | Retraction | ExternalCti


def read(
    items: Iterable[Item], *, origin: int = 0, unmatched: Callable[[Retraction], object] | None = None
) -> Iterator[Element]:
    """The elements that items stand for, as soon as they may be said.

    Retractions that have not met their event when the items end go to ``unmatched``, or are an error.

    >>> p = {"p": 1}
    >>> list(read([Retraction(p, 0, 9, 4), ExternalCti(0, 5, 2), Insert(p, 0, 9)]))[1:]
    [Adjust(payload={'p': 1}, start=0, old_end=9, end=4), Stable(time=5)]
    """
    coverage, alive, held, frontier = Coverage(origin), Alive(), HeldRetractions(), origin
    for item in items:
        match item:
            case Insert(payload, start, end):
                coverage.arrive(sync(item))
                alive.add(payload_key(payload), (start, end))
                yield item
                yield from _released(alive, held, payload_key(payload), (start, end))
            case Retraction(payload, start, end):
                coverage.arrive(sync(item))
                held.add(payload_key(payload), item)
                if alive.has(payload_key(payload), (start, end)):
                    yield from _released(alive, held, payload_key(payload), (start, end))
            case ExternalCti(start, end, count):
                coverage.expect(start, end, count)
            case _:
                assert_never(item)
        final = min(coverage.cover, held.earliest)
        if final > frontier:
            frontier = final
            alive.freeze(final)
            yield Stable(final)
    for retraction in held:
        if unmatched is None:
            raise _unmatched(retraction, len(held))
        unmatched(retraction)


def _released(alive: Alive, held: HeldRetractions, key: PayloadKey, lifetime: Lifetime) -> Iterator[Adjust]:
    """What waited for an event that is there now, then what waited for that, along the chain."""
    while retraction := held.take(key, lifetime):
        alive.move(key, lifetime, retraction.new_end)
        yield Adjust(retraction.payload, *lifetime, retraction.new_end)
        lifetime = (retraction.start, retraction.new_end)


def write(elements: Iterable[Element], *, origin: int = 0) -> Iterator[Item]:
    """The items of `cedr`, and for each stable that says something new the count of what it covers.

    Memory: one time per item written with a sync time at or after the last stable.
    """
    frontier = BEGINNING
    syncs: list[int] = []
    for item in cedr.write(elements):
        match item:
            case Cti(time):
                if time <= frontier:
                    continue
                if time <= origin:
                    raise _uncounted(f"stable({tick_text(time)}) lies at or before", origin)
                count = bisect_left(syncs, time)
                del syncs[:count]
                yield ExternalCti(max(origin, frontier), time, count)
                frontier = time
            case Insert() | Retraction():
                if sync(item) < max(origin, frontier):
                    what = f"an item has the sync time {tick_text(sync(item))}, before"
                    raise _uncounted(what, max(origin, frontier))
                insort(syncs, sync(item))
                yield item
            case _:
                assert_never(item)


def _uncounted(what: str, counted_from: int) -> DialectError:
    return DialectError(
        f"{what} {tick_text(counted_from)}, from where on items are counted",
        "no later interval reaches that far back, so no count could promise it",
        "Pass an origin before the earliest time to the writer and to the reader, and write valid streams.",
    )


def _unmatched(retraction: Retraction, number: int) -> DialectError:
    lifetime = lifetime_text(retraction.start, retraction.end)
    return DialectError(
        f"the items end and {number} of the retractions wait for their events, the first for "
        f"{dict(retraction.payload)} {lifetime}",
        "those events have not arrived, so the retractions say nothing",
        "Read on until they arrive, or take the rest with read(..., unmatched=callback).",
    )


_FORM = RecordForm(
    "kind",
    {
        "insert": ("payload", "start", "end"),
        "retraction": ("payload", "start", "end", "new_end"),
        "external_cti": ("start", "end", "count"),
    },
)
_ITEMS: dict[str, type[Item]] = {"insert": Insert, "retraction": Retraction, "external_cti": ExternalCti}
_KINDS = {item: kind for kind, item in _ITEMS.items()}


def to_record(item: Item) -> Record:
    """An item as a plain dict.

    >>> to_record(ExternalCti(0, 8, 4))
    {'kind': 'external_cti', 'start': 0, 'end': 8, 'count': 4}
    """
    return _FORM.record(_KINDS[type(item)], item)


def from_record(record: Mapping[str, Any]) -> Item:
    """The item a plain dict stands for."""
    kind, values = _FORM.parse(record)
    return _ITEMS[kind](**values)
