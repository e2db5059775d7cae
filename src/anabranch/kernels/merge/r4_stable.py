"""What a stable makes of nodes with ledgers: who decides, what is said, and what is final then.

A stable looks at the nodes that it may change and at no others: those that begin before it, those with an end
in the output that it freezes, and those of which an input shows an end that the output lacks.
"""

from typing import Any

import numpy as np

from anabranch.kernels.merge.lead import (
    join_all,
    leader,
    next_stable,
    passed_by_all,
)
from anabranch.kernels.merge.ledgers import (
    CHANGE,
    CREATOR,
    END,
    FIRST,
    GIVEN,
    NEXT,
    Ledgers,
    count_frozen,
    count_removed,
    drop_all,
    prune,
    shown,
    total_given,
    total_shown,
)
from anabranch.kernels.merge.nodes import (
    ABSENT,
    HALF,
    HEAD,
    LENGTH,
    PLACE,
    SKIPPED,
    START,
    STATE,
    VISITED,
    Nodes,
    decide,
    leave_queue,
    shorter,
    sort_changing,
)
from anabranch.kernels.merge.output import (
    Notes,
    Output,
    emit_adjust,
    emit_insert,
    emit_stable,
    note,
)
from anabranch.kernels.merge.sides import Sides
from anabranch.kernels.merge.wanted_ends import want_what_is_shown, want_what_stands
from anabranch.kernels.store.heap import pop, push
from anabranch.model.compiled import inlined, inner
from anabranch.model.slots import NONE
from anabranch.model.time import FOREVER

DONE, NO_ROOM, NOT_KEYED = range(3)
"""How far a merge has come with a batch, and why no further."""

CHANGING, ROWS = range(2)
"""What is upcoming: how many nodes a stable has found to change, and the most rows that says."""


@inner
def _next_open(nodes: Nodes, ledgers: Ledgers, node: int, stable: int) -> Any:
    """The end in the output that freezes next, or FOREVER."""
    entry = nodes.cells[node, FIRST]
    while entry != NONE:
        if ledgers.cells[entry, GIVEN] and ledgers.cells[entry, END] >= stable:
            return ledgers.cells[entry, END]
        entry = ledgers.cells[entry, NEXT]
    return np.int64(FOREVER)


@inner
def _next_more(nodes: Nodes, ledgers: Ledgers, node: int, slot: int, stable: int) -> Any:
    """The first open end that a slot shows more often than the output has it, or ABSENT."""
    entry = nodes.cells[node, FIRST]
    while entry != NONE:
        end = ledgers.cells[entry, END]
        if end >= stable and shown(ledgers, entry, slot) > ledgers.cells[entry, GIVEN]:
            return end
        entry = ledgers.cells[entry, NEXT]
    return np.int64(ABSENT)


@inner
def shorten(nodes: Nodes, ledgers: Ledgers, node: int, slot: int, stable: int) -> None:
    """Let a stable look at a half-frozen node where a slot shows an end before it that the output lacks."""
    end = _next_more(nodes, ledgers, node, slot, stable)
    if end == ABSENT:
        return
    heap = shorter(nodes, slot)
    if heap.size[0] == len(heap.key):
        heap.size[0] = 0
        for other in range(len(nodes.cells)):
            if nodes.cells[other, STATE] == HALF and other != node:
                first = _next_more(nodes, ledgers, other, slot, stable)
                if first != ABSENT:
                    push(heap, first, other)
    push(heap, end, node)


@inner
def keep_open(nodes: Nodes, ledgers: Ledgers, node: int, stable: int, inputs: int) -> None:
    """A node is half frozen with the ends it now has in the output."""
    nodes.cells[node, STATE] = HALF
    if nodes.open.size[0] == len(nodes.open.key):
        nodes.open.size[0] = 0
        for other in range(len(nodes.cells)):
            if nodes.cells[other, STATE] == HALF and other != node:
                push(nodes.open, _next_open(nodes, ledgers, other, stable), other)
    push(nodes.open, _next_open(nodes, ledgers, node, stable), node)
    for slot in range(inputs + 1):
        shorten(nodes, ledgers, node, slot, stable)


@inner
def _settle(nodes: Nodes, ledgers: Ledgers, node: int, time: int, inputs: int) -> None:
    """A node is as this stable leaves it."""
    prune(nodes, ledgers, node, time)
    entry, is_open = nodes.cells[node, FIRST], False
    while entry != NONE:
        is_open = is_open or (ledgers.cells[entry, GIVEN] > 0 and ledgers.cells[entry, END] >= time)
        entry = ledgers.cells[entry, NEXT]
    if is_open and time != FOREVER:
        keep_open(nodes, ledgers, node, time, inputs)
    else:
        decide(nodes, node, time)


@inner
def _rows_of_change(nodes: Nodes, ledgers: Ledgers, node: int, stable: int, time: int) -> Any:
    """The most rows that are said about a node whose CHANGE is set; 0 where there is nothing to say.

    Each row of `_change` takes an end away, brings one, or both, and as many do only one as one kind is more
    than the other: so there are no more rows than ends of the kind that is more.
    """
    fewer: Any = np.int64(0)
    more: Any = np.int64(0)
    is_final = False
    half_frozen = nodes.cells[node, START] < stable
    entry = nodes.cells[node, FIRST]
    while entry != NONE:
        end, change = ledgers.cells[entry, END], ledgers.cells[entry, CHANGE]
        if change and (not half_frozen or end >= stable):
            is_final = is_final or end < time
            fewer += max(-change, 0)
            more += max(change, 0)
        entry = ledgers.cells[entry, NEXT]
    return max(fewer, more) if is_final or fewer != more else np.int64(0)


@inner
def _visit(
    nodes: Nodes,
    ledgers: Ledgers,
    node: int,
    time: int,
    first: int,
    stable: int,
    sides: Sides,
    upcoming: Any,
) -> None:
    """Settle a node, or note it as one that changes."""
    if first == NONE:
        want_what_stands(nodes, ledgers, node, stable, time, sides)
    else:
        want_what_is_shown(nodes, ledgers, node, stable, time, first, sides)
        if nodes.cells[node, START] >= stable:
            count_removed(nodes, ledgers, node, first, sides)
    rows = _rows_of_change(nodes, ledgers, node, stable, time)
    if rows:
        nodes.cells[node, STATE] = VISITED
        nodes.changing[upcoming[CHANGING]] = node
        upcoming[CHANGING] += 1
        upcoming[ROWS] += rows
    else:
        _settle(nodes, ledgers, node, time, len(sides.attached))


@inner
def _pick(nodes: Nodes, ledgers: Ledgers, node: int, open_from: int, sign: int, last: bool) -> Any:
    """The first or the last open entry that has to lose (-1) or get (1) an event, or NONE."""
    found, entry = np.int64(NONE), nodes.cells[node, FIRST]
    while entry != NONE:
        if ledgers.cells[entry, END] >= open_from and ledgers.cells[entry, CHANGE] * sign > 0:
            found = entry
            if not last:
                return found
        entry = ledgers.cells[entry, NEXT]
    return found


@inlined
def _lose(ledgers: Ledgers, entry: int) -> Any:
    ledgers.cells[entry, CHANGE] += 1
    ledgers.cells[entry, GIVEN] -= 1
    return ledgers.cells[entry, END]


@inlined
def _get(ledgers: Ledgers, entry: int) -> Any:
    ledgers.cells[entry, CHANGE] -= 1
    ledgers.cells[entry, GIVEN] += 1
    return ledgers.cells[entry, END]


@inner
def _change(nodes: Nodes, ledgers: Ledgers, node: int, stable: int, time: int, output: Output) -> None:
    """Say what makes the output have the ends that are wanted, as far as this stable makes them final."""
    start, place = nodes.cells[node, START], nodes.cells[node, PLACE]
    open_from = stable if start < stable else start
    more, entry = 0, nodes.cells[node, FIRST]
    while entry != NONE:
        if ledgers.cells[entry, END] >= open_from:
            more += ledgers.cells[entry, CHANGE]
        entry = ledgers.cells[entry, NEXT]
    for _ in range(-more):
        loser = _pick(nodes, ledgers, node, open_from, -1, False)
        emit_adjust(output, place, start, _lose(ledgers, loser), start)
    for _ in range(more):
        getter = _pick(nodes, ledgers, node, open_from, 1, False)
        emit_insert(output, place, start, _get(ledgers, getter))
    while True:
        loser = _pick(nodes, ledgers, node, open_from, -1, False)
        getter = _pick(nodes, ledgers, node, open_from, 1, False)
        if loser == NONE:
            return
        if ledgers.cells[getter, END] < time:
            if ledgers.cells[loser, END] >= time:
                loser = _pick(nodes, ledgers, node, open_from, -1, True)
        elif ledgers.cells[loser, END] < time:
            getter = _pick(nodes, ledgers, node, open_from, 1, True)
        else:
            return
        old_end = _lose(ledgers, loser)
        emit_adjust(output, place, start, old_end, _get(ledgers, getter))


@inner
def _look(
    nodes: Nodes,
    ledgers: Ledgers,
    time: int,
    first: int,
    stable: int,
    sides: Sides,
    upcoming: Any,
    counts: bool,
) -> None:
    """Note the nodes that this stable changes, in the order in which they are said; settle the others."""
    while nodes.open.size[0] and (nodes.open.key[0] < time or time == FOREVER):
        node = pop(nodes.open)
        if nodes.cells[node, STATE] == HALF:
            _visit(nodes, ledgers, node, time, first, stable, sides, upcoming)
    for slot in range(len(sides.attached) + 1):
        if first not in (NONE, slot - 1):
            continue
        heap = shorter(nodes, slot)
        while heap.size[0] and heap.key[0] < time:
            node = pop(heap)
            if nodes.cells[node, STATE] == HALF:
                _visit(nodes, ledgers, node, time, first, stable, sides, upcoming)
    while nodes.due.size[0] and nodes.due.key[0] < time:
        due = pop(nodes.due)
        if counts:
            count_frozen(nodes, ledgers, due, sides)
        _visit(nodes, ledgers, due, time, first, stable, sides, upcoming)
    if upcoming[CHANGING] > 1:
        sort_changing(nodes, upcoming[CHANGING])


@inner
def _advance(
    nodes: Nodes,
    ledgers: Ledgers,
    time: int,
    stable: int,
    sides: Sides,
    upcoming: Any,
    output: Output,
    null_row: int,
) -> None:
    """Make the output agree with who decides as far as this stable makes it final; there is room for it."""
    for n in range(upcoming[CHANGING]):
        changed: Any = np.int64(nodes.changing[n])
        _change(nodes, ledgers, changed, stable, time, output)
        _settle(nodes, ledgers, changed, time, len(sides.attached))
    upcoming[CHANGING] = upcoming[ROWS] = 0
    emit_stable(output, time, null_row)


@inner
def _differs(nodes: Nodes, ledgers: Ledgers, node: int, i: int, guarantee: int) -> tuple[Any, Any]:
    """The first end that an input shows and the output lacks, and the first of the opposite, or ABSENT."""
    extra, lacking = np.int64(ABSENT), np.int64(ABSENT)
    entry = nodes.cells[node, FIRST]
    while entry != NONE:
        more = shown(ledgers, entry, i + 1) - ledgers.cells[entry, GIVEN]
        if ledgers.cells[entry, END] >= guarantee:
            if more > 0 and extra == ABSENT:
                extra = ledgers.cells[entry, END]
            if more < 0 and lacking == ABSENT:
                lacking = ledgers.cells[entry, END]
        entry = ledgers.cells[entry, NEXT]
    return extra, lacking


@inner
def _compare(nodes: Nodes, ledgers: Ledgers, node: int, sides: Sides, notes: Notes) -> None:
    """Count holes and disagreements of the inputs about a node that all have passed."""
    given = total_given(nodes, ledgers, node)
    for i in range(len(sides.attached)):
        if not sides.attached[i] or sides.idle[i]:
            continue
        extra, lacking = _differs(nodes, ledgers, node, i, sides.guarantee[i])
        if extra == ABSENT and lacking == ABSENT:
            continue
        missed = given - total_shown(nodes, ledgers, node, i + 1)
        if not sides.complete[i] and missed > 0 and extra == ABSENT:
            sides.holes[i] += missed
            creator = nodes.cells[node, CREATOR]
            if creator not in (NONE, i):
                sides.filled[creator] += missed
        else:
            note(notes, sides, i, nodes.cells[node, PLACE], nodes.cells[node, START], extra, lacking)


@inner
def _leave(nodes: Nodes, ledgers: Ledgers) -> None:
    node: Any = np.int64(nodes.decided[nodes.queue[HEAD]])
    drop_all(nodes, ledgers, node)
    leave_queue(nodes)


@inner
def _forget_passed(nodes: Nodes, ledgers: Ledgers, sides: Sides, remember: int, notes: Notes) -> None:
    """Compare and forget what every input has passed; forget the oldest of more than is remembered."""
    if not nodes.queue[LENGTH]:
        return
    passed = passed_by_all(sides)
    while nodes.queue[LENGTH] and nodes.stamp[nodes.queue[HEAD]] <= passed:
        first: Any = np.int64(nodes.decided[nodes.queue[HEAD]])
        _compare(nodes, ledgers, first, sides, notes)
        _leave(nodes, ledgers)
    while nodes.queue[LENGTH] > remember:
        nodes.queue[SKIPPED] += 1
        _leave(nodes, ledgers)


@inner
def drain(
    nodes: Nodes,
    ledgers: Ledgers,
    stable: int,
    sides: Sides,
    pace: int,
    remember: int,
    output: Output,
    notes: Notes,
    upcoming: Any,
    null_row: int,
    counts: bool,
) -> tuple[int, int]:
    """Let inputs join and lead until none is ahead of the output, or the output may not have room.

    ``null_row`` is the place of a payload that is null, or NONE; ``counts``: what is unfrozen is counted.
    Returns the stable and DONE or NO_ROOM; then what is upcoming tells how many rows are needed, and the same
    inputs go on with it where it stopped.
    """
    while True:
        join_all(sides, stable)
        first = leader(sides)
        time = next_stable(sides, pace) if first == NONE else sides.reached[first]
        if time <= stable:
            _forget_passed(nodes, ledgers, sides, remember, notes)
            return stable, DONE
        if not upcoming[CHANGING]:
            _look(nodes, ledgers, time, first, stable, sides, upcoming, counts)
        if len(output.kind) - output.rows[0] <= upcoming[ROWS]:
            return stable, NO_ROOM
        _advance(nodes, ledgers, time, stable, sides, upcoming, output, null_row)
        stable = time
