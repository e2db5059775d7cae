"""The merge of the panes of a window, by group, as windows follow each other.

Panes enter at the end and leave at the beginning; one that is held can no longer change. What can be taken
away again exactly (counts, sums, values that are counted) is a running merge of all panes that are held: a
pane is merged once as it enters, and taken away as it leaves. Of what cannot (the least and the greatest, a
user's own states), the panes before a boundary are older ones: in place of its own state, a slot of theirs
has the merge of all slots of its group from its pane up to the boundary, and the running merge is of the
newer panes alone. So a group of a window is one merge of two. When the last older pane leaves, all newer ones
become older.

Memory: a slot for each group that is held; eight bytes for each slot, and twelve for each number of a group.
Cost: each group of a pane is merged two to four times in all, however many windows the pane is part of; a
window costs its groups.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from anabranch.kernels.aggregate.aggregation import Aggregation
from anabranch.kernels.aggregate.column import Slots
from anabranch.kernels.aggregate.panes import Panes
from anabranch.model.compiled import compiled
from anabranch.model.pool import grown
from anabranch.model.slots import NONE

_NO_SLOTS = np.empty(0, np.int32)


class Running:
    """State: which panes are held, and of each of their groups what a window is made of."""

    def __init__(self, panes: Panes, aggregation: Aggregation) -> None:
        self.panes, self.aggregation = panes, aggregation
        self.begin = self.boundary = self.end = 0
        """The panes from the beginning to the end are held; those before the boundary are older ones."""
        self.numbers = _NO_SLOTS
        """The groups that are held, ascending."""
        self.slot = _NO_SLOTS
        """The slot of the running merge of each group."""
        self.held = _NO_SLOTS
        """In how many panes each group is held."""
        self.oldest = _NO_SLOTS
        """The slot of each group in the first older pane that has one; NONE: no older pane has."""
        self.following = _NO_SLOTS
        """Of each slot of an older pane that of the same group in the next older pane that has one."""

    @property
    def nbytes(self) -> int:
        """Bytes of state beside that of the slots."""
        columns = self.numbers, self.slot, self.held, self.oldest, self.following
        return sum(column.nbytes for column in columns)

    @property
    def older(self) -> int | None:
        """The pane before which those that are held are older ones; None: none is held."""
        return max(self.begin, self.boundary) if len(self.numbers) else None

    def move(self, begin: int, end: int) -> None:
        """Hold the panes from one on and before another; neither is before what it was."""
        self.leave(begin)
        if self.boundary < self.begin:
            self._become_older()
        self._enter(end)

    def window(self, *, last: bool) -> tuple[Slots, NDArray[np.int32], Slots]:
        """Slots that are the merge of all panes held, their groups, and which of the slots were taken for it.

        ``last``: nothing moves until the slots have been read.
        """
        numbers = self.numbers
        if last and self.aggregation.invertible:
            return self.slot[numbers], numbers, _NO_SLOTS
        into = self.panes.take(len(numbers))
        self.aggregation.with_room(self.panes.capacity)
        if not self.aggregation.invertible:
            older = self.oldest[numbers] != NONE
            self.aggregation.merge(into[older], self.oldest[numbers[older]], invertible=False)
        self.aggregation.merge(into, self.slot[numbers])
        return into, numbers, into

    def leave(self, begin: int) -> None:
        """Hold no pane before this one."""
        if not len(self.numbers):
            self.begin = self.boundary = self.end = begin
            return
        if begin >= self.end:
            self._clear(self.numbers)
            self.numbers = _NO_SLOTS
            self.begin = self.boundary = self.end = begin
            return
        slots = self.panes.slots_of_all(self.panes.between(self.begin, begin))
        self.begin = begin
        if not len(slots):
            return
        numbers = self.panes.tables.number[slots]
        self.aggregation.merge(self.slot[numbers], slots, -1, invertible=True)
        let_go(slots, numbers, self.held, self.oldest, self.following)
        alive = self.held[self.numbers] > 0
        if not alive.all():
            self._clear(self.numbers[~alive])
            self.numbers = self.numbers[alive]

    def restore(self, begin: int, boundary: int, end: int) -> None:
        """Hold panes again, of which those before the boundary are older ones already."""
        self.begin, self.boundary, self.end = begin, boundary, begin
        self._enter(boundary, invertible=True)
        self._link(merged=True)
        self._enter(end)

    def _enter(self, end: int, *, invertible: bool | None = None) -> None:
        """Hold the panes before this one as well."""
        slots = self.panes.slots_of_all(self.panes.between(self.end, end))
        self.end = max(end, self.end)
        if not len(slots):
            return
        numbers = self.panes.tables.number[slots]
        self._have_room(int(numbers.max()) + 1)
        new = np.empty(len(numbers), np.int32)
        new = new[: hold(numbers, self.held, new)]
        if len(new):
            self.slot[new] = self.panes.take(len(new))
            self.aggregation.with_room(self.panes.capacity)
            self.numbers = np.sort(np.concatenate([self.numbers, new]))
        self.aggregation.merge(self.slot[numbers], slots, invertible=invertible)

    def _become_older(self) -> None:
        """Make all panes that are held older ones."""
        self.boundary = self.end
        if self.aggregation.invertible or not len(self.numbers):
            return
        self.aggregation.clear(self.slot[self.numbers], invertible=False)
        self._link(merged=False)

    def _link(self, *, merged: bool) -> None:
        """Find of each group in an older pane the next one that has it, and merge with it what is not."""
        self.following = grown(self.following, self.panes.capacity, NONE)
        self.oldest[self.numbers] = NONE
        for pane in reversed(self.panes.between(self.begin, self.boundary)):
            slots = self.panes.slots_of(pane)
            numbers = self.panes.tables.number[slots]
            after = self.oldest[numbers]
            self.following[slots], self.oldest[numbers] = after, slots
            if not merged:
                some = after != NONE
                self.aggregation.merge(slots[some], after[some], invertible=False)

    def _have_room(self, groups: int) -> None:
        """Have a place for this many numbers of groups."""
        if groups > len(self.slot):
            capacity = max(groups, 2 * len(self.slot))
            self.slot, self.oldest = (grown(one, capacity, NONE) for one in (self.slot, self.oldest))
            self.held = grown(self.held, capacity)

    def _clear(self, numbers: NDArray[np.int32]) -> None:
        """Hold some groups no longer."""
        slots = self.slot[numbers]
        self.held[numbers], self.oldest[numbers] = 0, NONE
        self.aggregation.clear(slots)
        self.panes.give_back(slots)


@compiled
def hold(numbers: Any, held: Any, new: Any) -> int:
    """Count the panes in which groups are held, and write down the groups that were in none."""
    count = 0
    for number in numbers:
        if held[number] == 0:
            new[count] = number
            count += 1
        held[number] += 1
    return count


@compiled
def let_go(slots: Any, numbers: Any, held: Any, oldest: Any, following: Any) -> None:
    """Count the panes in which groups are held no longer, and go on to their next older panes."""
    for i in range(len(slots)):
        held[numbers[i]] -= 1
        if oldest[numbers[i]] == slots[i]:
            oldest[numbers[i]] = following[slots[i]]
