"""Payloads, elements and events as commands show them, whatever types they hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from anabranch.model.clock import Clock
    from anabranch.model.elements import Control, Element, Event, Payload
    from anabranch.model.relation import Relation


def payload_shown(payload: Payload) -> str:
    """A payload in the notation; what the notation has no words for is text."""
    from anabranch.model.json_lines import json_payload
    from anabranch.model.notation import payload_text

    return payload_text(json_payload(payload, as_text=True))


def element_text(element: Element | Control | str) -> str:
    """An element in the notation, or a raw line as it is."""
    from dataclasses import replace

    from anabranch.model.elements import Adjust, Insert
    from anabranch.model.json_lines import json_payload
    from anabranch.model.notation import line_of

    if isinstance(element, str):
        return element
    if isinstance(element, Insert | Adjust):
        return line_of(replace(element, payload=json_payload(element.payload, as_text=True)))
    return line_of(element)


def time_field(name: str, time: int, clock: Clock | None = None) -> dict[str, int | str | None]:
    """A time as a JSON field: null is infinite, as everywhere, and one that never was is left out."""
    from anabranch.model.clock import Clock, iso_text
    from anabranch.model.time import BEGINNING, FOREVER

    if time in (BEGINNING, FOREVER):
        return {} if time == BEGINNING else {name: None}
    return {name: iso_text(time, clock or Clock.TICKS)}


def event_fields(event: Event, clock: Clock | None = None) -> dict[str, Any]:
    """An event as JSON fields; times as in lines: moments and dates as ISO 8601, else numbers."""
    from anabranch.model.json_lines import json_payload

    return {
        "payload": json_payload(event.payload, as_text=True),
        **time_field("start", event.start, clock),
        **time_field("end", event.end, clock),
    }


def counted_events(relation: Relation) -> list[tuple[Event, int]]:
    """The distinct events with their counts, by start, end and payload."""
    rows = relation.current().rows()
    return sorted(rows, key=lambda row: (row[0].start, row[0].end, str(row[0].payload)))
