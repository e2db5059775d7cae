"""What each input has said about the ends of a node's events: the third tier of R4's index (LM IV-E).

A node has a list of entries by end, ascending. An entry counts, for each input, how often an event of it got
this end and how often one lost it, and how many events of the output have it. Slot 0 of every count is that
of all inputs that have left, by maxima: as evidence they are still there. `oracle/evidence.py` says what
follows from the counts.

An entry is dropped when the output does not have its end, nobody shows it, and it is no evidence any more.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from anabranch.kernels.merge.nodes import EXTRA, START, Nodes
from anabranch.kernels.merge.sides import Sides
from anabranch.model.compiled import compiled, inlined, inner
from anabranch.model.pool import Pool, give_place, grown, take_place
from anabranch.model.slots import NONE

FIRST, RECENT, CREATOR, OWN, CAME = range(EXTRA, EXTRA + 5)
"""Cells of a node: its first entry, the one that was last looked for, who showed it first, one more than how
many the input that decided what is there had ever shown (0: none did), and pairs of came and gone."""

END, NEXT, GIVEN, CHANGE, TAKEN, STANDING, VOTES, TOWARDS = range(8)
"""Cells of an entry; CHANGE to VOTES are scratch of a stable. From TOWARDS on, pairs of towards and away."""

LEFT = 0
"""The slot of the inputs that have left; input i has slot i + 1."""


def node_width(inputs: int) -> int:
    """Cells of a node with this many inputs."""
    return CAME + 2 * (inputs + 1)


def _entry_width(inputs: int) -> int:
    return TOWARDS + 2 * (inputs + 1)


class Ledgers(NamedTuple):
    """State: the entries of all nodes, and which of their places are free."""

    cells: NDArray[np.int64]
    pool: Pool

    @classmethod
    def of_capacity(cls, capacity: int, inputs: int) -> "Ledgers":
        """No entries, with room for this many and for this many inputs."""
        return cls(np.zeros((capacity, _entry_width(inputs)), np.int64), Pool.of_capacity(capacity))

    @property
    def used(self) -> int:
        """How many entries there are."""
        return self.pool.used

    @property
    def nbytes(self) -> int:
        """Bytes held, room included."""
        return self.cells.nbytes + self.pool.nbytes

    def with_room(self, more: int) -> "Ledgers":
        """The same entries, each where it was, with room for more."""
        pool = self.pool.with_room(more)
        return self if pool is self.pool else Ledgers(grown(self.cells, pool.capacity), pool)

    def with_inputs(self, inputs: int) -> "Ledgers":
        """The same entries with counts of more inputs."""
        wider = np.zeros((self.pool.capacity, _entry_width(inputs)), np.int64)
        wider[:, : self.cells.shape[1]] = self.cells
        return self._replace(cells=wider)


def fold(cells: NDArray[np.int64], first: int, slot: int) -> None:
    """Count what an input has said among what those that left have said."""
    for column in (0, 1):
        left, leaving = first + 2 * LEFT + column, first + 2 * slot + column
        np.maximum(cells[:, left], cells[:, leaving], out=cells[:, left])


def clear(cells: NDArray[np.int64], first: int, slot: int) -> None:
    """Forget what an input has said."""
    cells[:, first + 2 * slot : first + 2 * slot + 2] = 0


@inlined
def towards(ledgers: Ledgers, entry: int, slot: int) -> Any:
    """How often an event of an input got this end."""
    return ledgers.cells[entry, TOWARDS + 2 * slot]


@inlined
def away(ledgers: Ledgers, entry: int, slot: int) -> Any:
    """How often one lost it."""
    return ledgers.cells[entry, TOWARDS + 2 * slot + 1]


@inlined
def shown(ledgers: Ledgers, entry: int, slot: int) -> Any:
    """How many events with this end an input shows."""
    return max(ledgers.cells[entry, TOWARDS + 2 * slot] - ledgers.cells[entry, TOWARDS + 2 * slot + 1], 0)


@inner
def _before(nodes: Nodes, ledgers: Ledgers, node: int, end: int) -> Any:
    """The last entry of a node before an end, or NONE.

    It is looked for from the recent one on: an event that is prolonged again and again leaves ends behind,
    and does not pass them each time.
    """
    before = nodes.cells[node, RECENT]
    if before != NONE and ledgers.cells[before, END] >= end:
        before = np.int64(NONE)
    entry = nodes.cells[node, FIRST] if before == NONE else ledgers.cells[before, NEXT]
    while entry != NONE and ledgers.cells[entry, END] < end:
        before, entry = entry, ledgers.cells[entry, NEXT]
    nodes.cells[node, RECENT] = before
    return before


@inner
def entry_with(nodes: Nodes, ledgers: Ledgers, node: int, end: int) -> Any:
    """The entry of a node for an end, or NONE."""
    before = _before(nodes, ledgers, node, end)
    entry = nodes.cells[node, FIRST] if before == NONE else ledgers.cells[before, NEXT]
    if entry != NONE and ledgers.cells[entry, END] == end:
        return entry
    return np.int64(NONE)


@inner
def entry_for(nodes: Nodes, ledgers: Ledgers, node: int, end: int) -> Any:
    """The entry of a node for an end, which is made where there is none."""
    before = _before(nodes, ledgers, node, end)
    entry = nodes.cells[node, FIRST] if before == NONE else ledgers.cells[before, NEXT]
    if entry != NONE and ledgers.cells[entry, END] == end:
        return entry
    made = take_place(ledgers.pool)
    for column in range(ledgers.cells.shape[1]):
        ledgers.cells[made, column] = 0
    ledgers.cells[made, END] = end
    ledgers.cells[made, NEXT] = entry
    if before == NONE:
        nodes.cells[node, FIRST] = made
    else:
        ledgers.cells[before, NEXT] = made
    return made


@compiled
def list_entries(nodes: Nodes, ledgers: Ledgers, order: Any, entries: Any) -> None:
    """Write out the entries of these nodes one after the other; NEXT says which node each belongs to."""
    row = 0
    for place in range(len(order)):
        entry = nodes.cells[order[place], FIRST]
        while entry != NONE:
            for column in range(ledgers.cells.shape[1]):
                entries[row, column] = ledgers.cells[entry, column]
            entries[row, NEXT] = place
            row += 1
            entry = ledgers.cells[entry, NEXT]


@compiled
def link_entries(nodes: Nodes, ledgers: Ledgers, entries: Any) -> None:
    """Give nodes the entries that `list_entries` wrote out, node n those of the n-th."""
    for node in range(len(nodes.cells)):
        nodes.cells[node, FIRST] = nodes.cells[node, RECENT] = NONE
    for row in range(len(entries)):
        entry = entry_for(nodes, ledgers, entries[row, NEXT], entries[row, END])
        for column in range(GIVEN, entries.shape[1]):
            ledgers.cells[entry, column] = entries[row, column]


@inlined
def _drop(ledgers: Ledgers, entry: int) -> None:
    give_place(ledgers.pool, entry)


@inner
def drop_all(nodes: Nodes, ledgers: Ledgers, node: int) -> None:
    """Forget all entries of a node."""
    entry = nodes.cells[node, FIRST]
    while entry != NONE:
        following = ledgers.cells[entry, NEXT]
        _drop(ledgers, entry)
        entry = following
    nodes.cells[node, FIRST] = NONE


@inner
def _is_dead(ledgers: Ledgers, entry: int) -> bool:
    """The output does not have this end, and nobody shows it."""
    if ledgers.cells[entry, GIVEN]:
        return False
    for column in range(TOWARDS, ledgers.cells.shape[1], 2):
        if ledgers.cells[entry, column] > ledgers.cells[entry, column + 1]:
            return False
    return True


@inner
def prune(nodes: Nodes, ledgers: Ledgers, node: int, stable: int) -> None:
    """Drop the dead entries of a node that are no evidence any more: frozen ends of a half-frozen one."""
    if nodes.cells[node, START] >= stable:
        return
    before, entry = np.int64(NONE), nodes.cells[node, FIRST]
    while entry != NONE and ledgers.cells[entry, END] < stable:
        following = ledgers.cells[entry, NEXT]
        if not _is_dead(ledgers, entry):
            before = entry
        else:
            if before == NONE:
                nodes.cells[node, FIRST] = following
            else:
                ledgers.cells[before, NEXT] = following
            nodes.cells[node, RECENT] = NONE
            _drop(ledgers, entry)
        entry = following


@inner
def hear(
    nodes: Nodes,
    ledgers: Ledgers,
    node: int,
    slot: int,
    old_end: int,
    end: int,
    adjusts: bool,
    complete: bool,
) -> Any:
    """Write an insert or an adjust of an input into its ledger: two new entries at most.

    Gives how many more events the input shows then: one more or less, or as many.
    """
    came, more = CAME + 2 * slot, np.int64(0)
    if not adjusts or nodes.cells[node, came] == nodes.cells[node, came + 1]:
        nodes.cells[node, came] += 1
    if adjusts:
        if complete:
            left = entry_with(nodes, ledgers, node, old_end)
        else:
            left = entry_for(nodes, ledgers, node, old_end)
        if left != NONE:
            showed = shown(ledgers, left, slot)
            if showed or not complete:
                ledgers.cells[left, TOWARDS + 2 * slot + 1] += 1
            more += shown(ledgers, left, slot) - showed
        if end == nodes.cells[node, START]:
            nodes.cells[node, came + 1] += 1
            return more
    entry = entry_for(nodes, ledgers, node, end)
    showed = shown(ledgers, entry, slot)
    ledgers.cells[entry, TOWARDS + 2 * slot] += 1
    return more + shown(ledgers, entry, slot) - showed


@inner
def total_shown(nodes: Nodes, ledgers: Ledgers, node: int, slot: int) -> int:
    """How many events an input shows."""
    total, entry = 0, nodes.cells[node, FIRST]
    while entry != NONE:
        total += shown(ledgers, entry, slot)
        entry = ledgers.cells[entry, NEXT]
    return total


@inner
def beyond(shown_now: int, own: int) -> Any:
    """How many of so many events the input that decided never showed."""
    return max(shown_now - own + 1, 0) if own else 0


@inner
def count_removed(nodes: Nodes, ledgers: Ledgers, node: int, first: int, sides: Sides) -> None:
    """Count what inputs show of a node beyond what the one that decides has ever shown."""
    own = nodes.cells[node, CAME + 2 * (first + 1)]
    nodes.cells[node, OWN] = own + 1
    for i in range(len(sides.attached)):
        if sides.attached[i] and nodes.cells[node, CAME + 2 * (i + 1)] > own:
            sides.removed[i] += beyond(total_shown(nodes, ledgers, node, i + 1), own + 1)


@inner
def count_frozen(nodes: Nodes, ledgers: Ledgers, node: int, sides: Sides) -> None:
    """The events of a node are unfrozen no more for those who show them."""
    for i in range(len(sides.attached)):
        sides.unfrozen[i] -= total_shown(nodes, ledgers, node, i + 1)


@inner
def total_given(nodes: Nodes, ledgers: Ledgers, node: int) -> int:
    """How many events the output has."""
    total, entry = 0, nodes.cells[node, FIRST]
    while entry != NONE:
        total += ledgers.cells[entry, GIVEN]
        entry = ledgers.cells[entry, NEXT]
    return total
