"""Elements applied to a bag of events one after the other, compiled: the meaning of a stream prefix."""

from typing import Any

from anabranch.model.batch import Kind
from anabranch.model.compiled import compiled
from anabranch.model.event_table import EventTable, find, node_at, occupy, tag_of, vacate
from anabranch.model.slots import NONE
from anabranch.model.time import FOREVER
from anabranch.model.validity import Rule

INSERT, ADJUST, STABLE = int(Kind.INSERT), int(Kind.ADJUST), int(Kind.STABLE)

BROKEN = (
    Rule.EMPTY_LIFETIME,
    Rule.NEGATIVE_LIFETIME,
    Rule.INSERT_BEHIND_STABLE,
    Rule.ADJUST_OF_FROZEN,
    Rule.ADJUST_BEHIND_STABLE,
    Rule.NO_SUCH_EVENT,
)
VALID = -1
EMPTY, NEGATIVE, INSERT_BEHIND, OF_FROZEN, ADJUST_BEHIND, MISSING = range(len(BROKEN))


@compiled
def rule_of_times(kind: int, start: int, end: int, old_end: int, stable: int) -> int:
    """The rule that an insert or an adjust breaks by its times alone."""
    if kind == INSERT:
        if end <= start:
            return EMPTY
        return INSERT_BEHIND if start < stable else VALID
    if end < start:
        return NEGATIVE
    if old_end < stable or stable == FOREVER:
        return OF_FROZEN
    return ADJUST_BEHIND if end < stable else VALID


@compiled
def check_times(kind: Any, start: Any, end: Any, old_end: Any, stable: int, broken: Any) -> int:
    """Write the rule that each element of one stream breaks by its times to ``broken``; the stable then."""
    for i in range(len(kind)):
        if kind[i] == STABLE:
            stable = max(stable, start[i])
        else:
            broken[i] = rule_of_times(kind[i], start[i], end[i], old_end[i], stable)
    return stable


@compiled
def apply_elements(
    table: EventTable,
    elements: tuple[Any, Any, Any, Any, Any],
    place: int,
    position: int,
    stable: int,
    stops: bool,
    broken: Any,
    created: Any,
) -> tuple[int, int, int]:
    """Apply elements in order; an invalid one changes nothing and, if ``stops``, is the last one looked at.

    ``elements`` are the columns kind, start, end, old_end and identity. Writes the rule each element breaks
    to ``broken`` and the nodes that came to be to ``created``; returns how many elements were looked at, how
    many nodes came to be, and the stable. Element i has the position ``position + i`` and its payload stands
    at ``place + i``; an event that is adjusted keeps its place.
    """
    kind, start, end, old_end, identity = elements
    births = 0
    for i in range(len(kind)):
        if kind[i] == STABLE:
            stable = max(stable, start[i])
            continue
        low, high = identity[i, 0], identity[i, 1]
        stands = place + i
        rule = rule_of_times(kind[i], start[i], end[i], old_end[i], stable)
        if rule == VALID and kind[i] == ADJUST:
            slot = find(table, tag_of(low, high, start[i], old_end[i]), low, high, start[i], old_end[i])
            node = node_at(table, slot)
            if node == NONE:
                rule = MISSING
            elif table.copies[node] == 1:
                stands = table.place[node]
                vacate(table, slot)
            else:
                table.copies[node] -= 1
        if rule != VALID:
            broken[i] = rule
            if stops:
                return i + 1, births, stable
            continue
        if end[i] == start[i]:
            continue
        tag = tag_of(low, high, start[i], end[i])
        slot = find(table, tag, low, high, start[i], end[i])
        node = node_at(table, slot)
        if node != NONE:
            table.copies[node] += 1
            continue
        node = occupy(table, slot, tag, low, high, start[i], end[i])
        table.place[node] = stands
        table.arrival[node] = position + i
        created[births] = node
        births += 1
    return len(kind), births, stable
