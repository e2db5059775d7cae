"""Which ends the events of a node shall have after a stable: by the input that leads, or by evidence alone.

`oracle/evidence.py` and `oracle/indexed_merge.py` say the same by scans.
"""

from typing import Any

import numpy as np

from anabranch.kernels.merge.ledgers import (
    CAME,
    CHANGE,
    END,
    FIRST,
    GIVEN,
    LEFT,
    NEXT,
    STANDING,
    TAKEN,
    TOWARDS,
    VOTES,
    Ledgers,
    away,
    shown,
    towards,
)
from anabranch.kernels.merge.nodes import START, Nodes
from anabranch.kernels.merge.sides import Sides
from anabranch.model.compiled import inner
from anabranch.model.slots import NONE
from anabranch.model.time import BEGINNING


@inner
def _first_open(nodes: Nodes, ledgers: Ledgers, node: int, open_from: int) -> Any:
    """The first entry at or after a time, or NONE."""
    entry = nodes.cells[node, FIRST]
    while entry != NONE and ledgers.cells[entry, END] < open_from:
        entry = ledgers.cells[entry, NEXT]
    return entry


@inner
def want_what_is_shown(
    nodes: Nodes, ledgers: Ledgers, node: int, stable: int, time: int, first: int, sides: Sides
) -> None:
    """Set CHANGE of each open entry to how many more the output shall have, by the input that leads.

    The events of a half-frozen node exist: what the leader shows is filled up or cut to their number. Ends
    that stay open fill up as they are; for those that would freeze, the furthest input that shows one does.
    """
    half_frozen = nodes.cells[node, START] < stable
    begin = _first_open(nodes, ledgers, node, stable) if half_frozen else nodes.cells[node, FIRST]
    missing, spare = 0, 0
    entry = begin
    while entry != NONE:
        more = shown(ledgers, entry, first + 1) - ledgers.cells[entry, GIVEN]
        ledgers.cells[entry, CHANGE] = more
        missing -= more
        spare += max(-more, 0)
        entry = ledgers.cells[entry, NEXT]
    if not half_frozen:
        return
    while missing < 0:
        entry, last = begin, np.int64(NONE)
        while entry != NONE:
            if ledgers.cells[entry, CHANGE] > 0:
                last = entry
            entry = ledgers.cells[entry, NEXT]
        cut = min(ledgers.cells[last, CHANGE], -missing)
        ledgers.cells[last, CHANGE] -= cut
        missing += cut
    if missing > 0:
        _fill_up(nodes, ledgers, node, stable, time, sides, begin, missing, spare - missing)


@inner
def _fill_up(
    nodes: Nodes,
    ledgers: Ledgers,
    node: int,
    stable: int,
    time: int,
    sides: Sides,
    begin: int,
    missing: int,
    skip: int,
) -> None:
    guess = _best_guess(nodes, ledgers, node, stable, sides)
    entry, moved = begin, 0
    while entry != NONE:
        surplus = max(-ledgers.cells[entry, CHANGE], 0)
        kept = max(surplus - skip, 0)
        skip = max(skip - surplus, 0)
        if ledgers.cells[entry, END] >= time or guess == NONE:
            ledgers.cells[entry, CHANGE] += kept
        else:
            moved += kept
        entry = ledgers.cells[entry, NEXT]
    if moved:
        ledgers.cells[guess, CHANGE] += moved


@inner
def _best_guess(nodes: Nodes, ledgers: Ledgers, node: int, stable: int, sides: Sides) -> Any:
    """The first open end that the furthest attached input shows, or NONE."""
    guess, best = np.int64(NONE), NONE
    for i in range(len(sides.attached)):
        if not sides.attached[i]:
            continue
        if best != NONE and (
            sides.reached[i] < sides.reached[best]
            or (sides.reached[i] == sides.reached[best] and sides.attached_as[i] > sides.attached_as[best])
        ):
            continue
        entry = _first_open(nodes, ledgers, node, stable)
        while entry != NONE and not shown(ledgers, entry, i + 1):
            entry = ledgers.cells[entry, NEXT]
        if entry != NONE:
            guess, best = entry, i
    return guess


@inner
def want_what_stands(nodes: Nodes, ledgers: Ledgers, node: int, stable: int, time: int, sides: Sides) -> None:
    """Set CHANGE of each open entry to how many more the output shall have, by evidence alone."""
    half_frozen = nodes.cells[node, START] < stable
    open_from = stable if half_frozen else nodes.cells[node, START]
    begin = _first_open(nodes, ledgers, node, open_from)
    came: Any = np.int64(0)
    gone: Any = np.int64(0)
    given: Any = np.int64(0)
    for column in range(CAME, nodes.cells.shape[1], 2):
        came = max(came, nodes.cells[node, column])
        gone = max(gone, nodes.cells[node, column + 1])
    entry = begin
    while entry != NONE:
        given += ledgers.cells[entry, GIVEN]
        ledgers.cells[entry, TAKEN] = 0
        entry = ledgers.cells[entry, NEXT]
    count = given if half_frozen else max(came - gone, 0)
    for passed in (time, np.int64(BEGINNING)):
        for shows in (False, True):
            if count:
                _tally(ledgers, begin, passed, shows, sides)
                count -= _take(ledgers, begin, count, time)
    if count:
        _tally_given(ledgers, begin)
        count -= _take(ledgers, begin, count, time)
    last = np.int64(NONE)
    entry = begin
    while entry != NONE:
        for column in range(TOWARDS, ledgers.cells.shape[1], 2):
            if ledgers.cells[entry, column]:
                last = entry
        entry = ledgers.cells[entry, NEXT]
    if count:
        # There is one: of a half-frozen node the ends that are given were enough, and an input that has shown
        # more events of an unfrozen one than it has removed moved one to an end, which is kept as evidence.
        ledgers.cells[last, TAKEN] += count
    entry = begin
    while entry != NONE:
        ledgers.cells[entry, CHANGE] = ledgers.cells[entry, TAKEN] - ledgers.cells[entry, GIVEN]
        entry = ledgers.cells[entry, NEXT]


@inner
def _tally(ledgers: Ledgers, begin: Any, time: Any, shows: bool, sides: Sides) -> None:
    """How often each end stands, or is shown, by the inputs that have reached a time; how many show it.

    All have reached the beginning, those that left too, which are evidence of what stands.
    """
    entry = begin
    while entry != NONE:
        most: Any = np.int64(0)
        least: Any = np.int64(0)
        votes = np.int64(0)
        if time == BEGINNING and not shows:
            most, least = towards(ledgers, entry, LEFT), away(ledgers, entry, LEFT)
        for i in range(len(sides.attached)):
            if sides.attached[i] and sides.reached[i] >= time:
                shown_now = shown(ledgers, entry, i + 1)
                votes += shown_now > 0
                if shows:
                    most = max(most, shown_now)
                else:
                    most = max(most, towards(ledgers, entry, i + 1))
                    least = max(least, away(ledgers, entry, i + 1))
        ledgers.cells[entry, STANDING] = max(most - least, 0)
        ledgers.cells[entry, VOTES] = votes
        entry = ledgers.cells[entry, NEXT]


@inner
def _tally_given(ledgers: Ledgers, begin: Any) -> None:
    """How often the output has each end."""
    entry = begin
    while entry != NONE:
        ledgers.cells[entry, STANDING] = ledgers.cells[entry, GIVEN]
        ledgers.cells[entry, VOTES] = 0
        entry = ledgers.cells[entry, NEXT]


@inner
def _comes_first(ledgers: Ledgers, entry: Any, other: Any, time: int) -> Any:
    """Ends before the stable come first, then those with more votes; of equals the one that is asked for."""
    early, late = ledgers.cells[entry, END] < time, ledgers.cells[other, END] < time
    if early != late:
        return early
    return ledgers.cells[entry, VOTES] >= ledgers.cells[other, VOTES]


@inner
def _take(ledgers: Ledgers, begin: Any, count: Any, time: int) -> Any:
    """Take ends that were tallied, as often as that, the ones that come first first; how many were taken."""
    taken: Any = np.int64(0)
    while taken < count:
        best: Any = np.int64(NONE)
        entry = begin
        while entry != NONE:
            if ledgers.cells[entry, STANDING] > ledgers.cells[entry, TAKEN] and (
                best == NONE or _comes_first(ledgers, entry, best, time)
            ):
                best = entry
            entry = ledgers.cells[entry, NEXT]
        if best == NONE:
            break
        more = min(ledgers.cells[best, STANDING] - ledgers.cells[best, TAKEN], count - taken)
        ledgers.cells[best, TAKEN] += more
        taken += more
    return taken
