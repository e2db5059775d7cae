"""The relation a stream prefix denotes, kept up to date element by element.

Memory: one row per distinct event that is in the relation, its payload once. What was inserted and removed
again leaves nothing. Events that are fully frozen stay until `release` hands them out.
Cost: proportional to the elements applied, whatever is stored; `release` looks at all that is stored.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from html import escape
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from anabranch.model.application import BROKEN, VALID, apply_elements
from anabranch.model.batch import Batch, Kind
from anabranch.model.clock import lifetime_text, tick_text
from anabranch.model.elements import Adjust, Element, Event, Insert, Stable
from anabranch.model.event_table import EventTable
from anabranch.model.events import Events
from anabranch.model.freeze import Freeze, freeze
from anabranch.model.payloads import PayloadStore
from anabranch.model.time import BEGINNING, FOREVER
from anabranch.model.validity import Policy, Raise, Violation

_SHOWN = 5
"""Events that a representation names."""
_ROWS = 20
"""Events in the table of a notebook."""

Elements: TypeAlias = Batch | Element | Iterable[Element]


@dataclass(frozen=True, slots=True)
class Change:
    """What a batch did to a relation: the elements that were valid, and the frontier before and after."""

    elements: Batch
    before: int
    after: int

    def events(self) -> Events:
        """The events that are more (positive counts) and fewer (negative counts) than before."""
        return Events.changed_by(self.elements)


@dataclass(slots=True, repr=False)
class Relation:
    """A bag of events, the stable it has reached, and the elements that are applied to both.

    >>> relation = Relation()
    >>> change = relation.apply([Insert({"room": "A"}, 6, 20), Adjust({"room": "A"}, 6, 20, 25), Stable(10)])
    >>> relation.events()
    [Event(payload={'room': 'A'}, start=6, end=25)]
    >>> [str(status) for event, status in relation.freezes()]
    ['half frozen']
    """

    policy: Policy = field(default_factory=Raise)
    input: str | None = None
    """Whose stream this is, where there are several; violations name it."""
    frontier: int = BEGINNING
    """The greatest stable applied."""
    position: int = 0
    """How many elements have been looked at, invalid ones included; the first one's position is 1."""
    table: EventTable = field(default_factory=lambda: EventTable.of_capacity(1024))
    payloads: PayloadStore = field(default_factory=PayloadStore)

    def apply(self, elements: Elements) -> Change:
        """Apply elements in order; what is invalid goes to the policy and changes nothing."""
        batch = as_batch(elements)
        if batch.input is not None or (batch.kind > Kind.STABLE).any():
            error = ValueError("a relation is of one stream, this batch records inputs that come and go")
            error.add_note("Apply it to a Recording, or each part of Batch.split() to a relation of its own.")
            raise error
        identities = batch.identities
        payload = self.payloads.admit(batch.payload)
        before = self.frontier
        broken = np.full(len(batch), VALID, np.int8)
        created = np.empty(len(batch), np.int32)
        self.table = self.table.with_room(int(np.count_nonzero(batch.kind <= Kind.ADJUST)))
        looked_at, births, self.frontier = apply_elements(
            self.table,
            (batch.kind, batch.start, batch.end, batch.old_end, identities),
            self.payloads.next_place,
            self.position + 1,
            before,
            isinstance(self.policy, Raise),
            broken,
            created,
        )
        created = created[:births]
        self.payloads.adopt(payload, self.table.place, created[self.table.copies[created] > 0])
        self._compact()
        first = self.position + 1
        self.position += looked_at
        invalid = np.flatnonzero(broken != VALID)
        for row in invalid.tolist():
            self.policy(
                Violation(
                    BROKEN[broken[row]],
                    first + row,
                    batch.element(row),
                    _frontier_at(batch, row, before),
                    self.input,
                )
            )
        return Change(batch.take(broken == VALID) if len(invalid) else batch, before, self.frontier)

    def __repr__(self) -> str:
        """The stable it has reached and its events, the first few."""
        live = self.table.live()
        shown = self._events(live[: _SHOWN + 1]).objects()[:_SHOWN]
        events = [f"{event.payload!r} {lifetime_text(event.start, event.end)}" for event in shown]
        more = [f"and {len(self) - len(shown)} more"] if len(self) > len(shown) else []
        whose = "" if self.input is None else f" of {self.input!r}"
        reached = f"stable to {tick_text(self.frontier)}"
        return f"<Relation{whose}, {reached}: {', '.join([*events, *more]) or 'no events'}>"

    def _repr_html_(self) -> str:
        """A table of the first events, for notebooks."""
        shown = self.current().objects()[:_ROWS]
        names = list(dict.fromkeys(name for event in shown for name in event.payload))
        head = "".join(f"<th>{escape(str(name))}</th>" for name in ["start", "end", *names])
        rows = [
            [tick_text(event.start), tick_text(event.end), *(str(event.payload.get(name)) for name in names)]
            for event in shown
        ]
        body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
        more = f" (the first {len(shown)} of them)" if len(self) > len(shown) else ""
        whose = "" if self.input is None else f" of {escape(repr(self.input))}"
        caption = f"Relation{whose}: {len(self):,} events{more}, stable to {tick_text(self.frontier)}"
        return f"<table><caption>{caption}</caption><tr>{head}</tr>{body}</table>"

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Its events as columns, for any library that reads Arrow."""
        return self.current().to_arrow().__arrow_c_stream__(requested_schema)

    def __len__(self) -> int:
        """How many events there are, equal ones counted each."""
        return int(self.table.copies.sum())

    def current(self) -> Events:
        """The events in columns."""
        return self._events(self.table.live())

    def events(self) -> list[Event]:
        """The events as objects, by start, end and payload."""
        return self.current().objects()

    def freezes(self) -> list[tuple[Event, Freeze]]:
        """The events with what the frontier leaves open about each."""
        return [(event, freeze(event.start, event.end, self.frontier)) for event in self.events()]

    def release(self) -> Events:
        """Hand out the events that can never change again, and forget them."""
        live = self.table.live()
        frozen = live if self.frontier == FOREVER else live[self.table.end[live] < self.frontier]
        events = self._events(frozen)
        self.table.remove(frozen)
        self._compact()
        return events

    def _events(self, nodes: NDArray[np.int64]) -> Events:
        table = self.table
        nodes = nodes[np.argsort(table.place[nodes], kind="stable")]
        return Events(
            table.start[nodes],
            table.end[nodes],
            table.copies[nodes],
            np.stack([table.low[nodes], table.high[nodes]], axis=1),
            table.arrival[nodes],
            self.payloads.gather(table.place[nodes]),
        )

    def _compact(self) -> None:
        if self.payloads.crowded(self.table.used):
            self.payloads.compact(self.table.place, self.table.live())


def as_batch(elements: Elements) -> Batch:
    """Elements of any form as one batch."""
    match elements:
        case Batch():
            return elements
        case Insert() | Adjust() | Stable():
            return Batch.of([elements])
        case _ if hasattr(elements, "__arrow_c_stream__") or hasattr(elements, "__arrow_c_array__"):
            return Batch.from_arrow(elements)
        case _:
            return Batch.of(elements)


def _frontier_at(batch: Batch, row: int, before: int) -> int:
    stables = batch.start[:row][batch.kind[:row] == Kind.STABLE]
    return max(before, int(stables.max(initial=BEGINNING)))
