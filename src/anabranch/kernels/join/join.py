"""Pairs of events of two inputs with equal keys and near starts (OOP 5.3), said at once, in no order.

An event that comes is paired with all of the other side that are kept and match; then it is kept itself, if
one to come of the other side may match it. A removal takes the same pairs back. Other adjusts change nothing:
a result is a point, and where it stands depends on starts alone. ``left`` and ``anti`` say that an event has
no match when the right is stable beyond all that could; ``semi`` says an event with its first match, and
takes it back with its last.

**Kept.** Of the left what starts at ``right - after`` or later, where the right is stable until ``right``; of
the right what starts at ``left - before`` or later. It is enough for removals too: one that can be removed
starts at or after the stable of its own side, so all that it matches is within these limits, and its own
payload comes with the removal. Whether an event without a match that is no longer kept had one is asked again
when it is removed: what it could match can neither come nor go any more.

**Valid.** Whatever is said or taken back has a new start of the left or the right in it, or one that is
removed, which is no earlier than the stable of its side; the other is near. `Band.frontier` is the least time
of all such. That an event has no match is said at its start, while ``right - after`` was at or before it.

**Pairs of promises.** No pair that comes later has both a start before that of the left and one before that
of the right (`pair`), which is more than any one time can say.

Memory: the events that are kept, and at most about twice as many that are over, which walks and sweeps let
go; per event 16 bytes, 16 more where it may be removed, its payload, and for ``left`` and ``anti`` 16 to find
it when it is over. Cost: a look-up of the key per row, and a look at the events of the key that are kept; of
a key that has many, at those that match and at most half as much time around them.
"""

from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from anabranch.kernels.join.band import LEFT, RIGHT
from anabranch.kernels.join.results import Meeting, Pairs, alone
from anabranch.kernels.join.side import Heard, Side
from anabranch.kernels.join.terms import Terms
from anabranch.kernels.kernel import Report, Result, State
from anabranch.kernels.runs import Runs, sorted_by_key
from anabranch.kernels.store.chains import GONE, Keys, count_matches, probe, sweep
from anabranch.kernels.store.saved import version_of
from anabranch.model.batch import Batch, concat
from anabranch.model.time import BEGINNING, FOREVER

VERSION = 1
PORTS: Final = ("left", "right")
_LEAST = 1024
_NOTHING = Result(Batch.of([]))
_NO_COUNTS = np.empty(0, np.int32)


class Join:
    """State: the keys, and of either side what is kept.

    ``removable`` says of which sides events may be removed; of the others none is ever looked up.
    """

    held: ClassVar[bool] = False

    def __init__(self, terms: Terms, removable: tuple[bool, bool] = (True, True)) -> None:
        self.terms = terms
        called = tuple(name for name, _ in terms.on)
        others = tuple(name for _, name in terms.on)
        self.sides = (
            Side(LEFT, called, called, terms.left, removable[LEFT]),
            Side(RIGHT, others, called, terms.right, removable[RIGHT]),
        )
        for side in self.sides:
            side.limit = terms.band.limit(side.number, BEGINNING)
        self.keys = Keys.of_capacity(_LEAST)
        self.awaiting = Runs(2, sorted_by_key)
        """Of ``left`` and ``anti`` the starts and nodes of the left, until it is known whether they match."""
        self._since, self._due = 0, _LEAST
        """Elements since the last sweep, and how many there are before the next."""

    @property
    def pair(self) -> tuple[int, int]:
        """No pair that comes later has starts before both."""
        return self.sides[LEFT].frontier, self.sides[RIGHT].frontier

    @property
    def frontier(self) -> int:
        """The least time at which anything may still be said."""
        return self.terms.frontier(*self.pair)

    def push(self, name: str, batch: Batch) -> Result:
        """The pairs that come, and those that go."""
        side, other = self._sides(name)
        heard = side.heard(batch)
        self._since += len(heard.start)
        said: list[Batch] = []
        if not heard.keyed.all():
            if self.terms.awaits and side.number == LEFT:
                said.append(self._alone(heard.take(~heard.keyed)))
            heard = heard.take(heard.keyed)
        if not len(heard.start):
            return Result(said[0]) if said else _NOTHING
        self.keys, number = self.keys.number(heard.key)
        pairs = self._found(side, other, number, heard)
        meeting, refused = Meeting(self.terms, side, heard, other, pairs).true()
        counts = _NO_COUNTS
        if self.terms.counts and side.number == LEFT:
            counts = np.bincount(meeting.pairs.row, minlength=len(number)).astype(np.int32)
        self.keys, into = side.keep(
            self.keys, number, heard, counts, self.terms.band.stretch, lingers=self._lingers(side)
        )
        if self._lingers(side):
            self._await(heard.start, into)
        said += self._said(meeting, counts)
        return Result(concat(said), refused)

    def advance(self, name: str, time: int) -> Result:
        """The events of the left that are now known to have no match; what can match no more is let go."""
        side, other = self._sides(name)
        if time <= side.frontier:
            return _NOTHING
        side.frontier = time
        other.limit = max(other.limit, self.terms.band.limit(other.number, time))
        said = self._unmatched() if self.terms.awaits and side.number == RIGHT else _NOTHING
        if self._since > self._due or time == FOREVER:
            self._sweep()
        return said

    def report(self) -> Report:
        """Events that are kept, those that are over and not let go yet among them."""
        nbytes = self.keys.nbytes + self.awaiting.nbytes + sum(side.nbytes for side in self.sides)
        touched = sum(int(side.nodes.touched[0]) for side in self.sides)
        return Report(sum(side.nodes.used for side in self.sides), nbytes, {"touched": touched})

    def saved(self) -> State:
        """The promises, and the events that are kept."""
        values: dict[str, Any] = {"frontiers": list(self.pair), "touched": self.report().counts["touched"]}
        return State(VERSION, values, [part for side in self.sides for part in side.saved(self.keys)])

    @classmethod
    def load(cls, state: State, terms: Terms, removable: tuple[bool, bool]) -> "Join":
        """The kernel that was saved."""
        version_of(state, VERSION, "a join")
        kernel = cls(terms, removable)
        left, right = kernel.sides
        left.frontier, right.frontier = state.values["frontiers"]
        left.limit = terms.band.limit(LEFT, right.frontier)
        right.limit = terms.band.limit(RIGHT, left.frontier)
        for side in kernel.sides:
            kernel.keys, into = side.load(
                kernel.keys, state.batches[2 * side.number : 2 * side.number + 2], terms.band.stretch
            )
            if kernel._lingers(side):
                kernel._await(side.starts(into), into)
        left.nodes.touched[0] = state.values["touched"]
        return kernel

    def _sides(self, name: str) -> tuple[Side, Side]:
        number = PORTS.index(name)
        return self.sides[number], self.sides[1 - number]

    def _lingers(self, side: Side) -> bool:
        """Nodes of a side wait until it is known whether they match, also where they are removed before."""
        return self.terms.awaits and side.number == LEFT

    def _found(self, side: Side, other: Side, number: NDArray[np.int32], heard: Heard) -> Pairs:
        """The rows of a side with the nodes of the other that match them by key and start."""
        band, room = self.terms.band, 2 * len(number)
        row, node = np.empty(room, np.int64), np.empty(room, np.int64)
        done = count = 0
        while True:
            rows = number, heard.start, *band.reach(side.number), other.limit, band.stretch, done, count
            done, count = probe(self.keys, other.number, other.nodes, *rows, row, node)
            if done == len(number):
                return Pairs(row[:count], node[:count])
            row, node = (np.concatenate([one, np.empty_like(one)]) for one in (row, node))

    def _said(self, meeting: Meeting, counts: NDArray[np.int32]) -> list[Batch]:
        """What comes of the pairs of a push, and of the rows of the left that have none."""
        terms, (side, heard) = self.terms, meeting[1:3]
        said = []
        if terms.how in ("inner", "left") and len(meeting.pairs.row):
            said.append(meeting.points())
        if side.number == RIGHT and terms.counts:
            said += self._counted(meeting)
        elif terms.how == "semi":
            said.append(self._alone(heard.take(counts > 0)))
        elif terms.awaits:
            said.append(self._alone(heard.take((counts == 0) & (heard.start < side.limit))))
        return said

    def _counted(self, meeting: Meeting) -> list[Batch]:
        """Count the matches of the left; those with a first one, or without the last, of a semi join."""
        left, nodes = self.sides[LEFT], meeting.pairs.node
        step = np.where(meeting.heard.removal[meeting.pairs.row], -1, 1).astype(np.int32)
        changed = np.empty(len(nodes), np.int64)
        changed = changed[: count_matches(left.nodes.matches, nodes, step, changed)]
        if self.terms.how != "semi" or not len(changed):
            return []
        nodes = nodes[changed]
        return [alone(self.terms, left.payloads.at(nodes), left.starts(nodes), step[changed] < 0)]

    def _alone(self, heard: Heard) -> Batch:
        return alone(self.terms, heard.payload, heard.start, heard.removal)

    def _sweep(self) -> None:
        """Let go of all that is over, and again once twice as many elements have come as are looked at."""
        left, right = self.sides
        sweep(self.keys, left.nodes, right.nodes, left.limit, right.limit)
        for side in self.sides:
            side.forget_payloads()
        self._since = 0
        self._due = 2 * max(_LEAST, self.keys.numbers.used, left.nodes.used + right.nodes.used)

    def _await(self, start: NDArray[np.int64], into: NDArray[np.int64]) -> None:
        """Remember when it will be known whether nodes of the left match."""
        kept = into >= 0
        if kept.any():
            self.awaiting.add(np.stack([start[kept], into[kept]]))

    def _unmatched(self) -> Result:
        """The events of the left that are over and have no match."""
        left = self.sides[LEFT]
        rows = self.awaiting.take_all() if left.limit == FOREVER else self.awaiting.take_before(left.limit)
        nodes = rows[1]
        if not len(nodes):
            return _NOTHING
        matches = left.nodes.matches[nodes]
        left.nodes.pool.give_back(nodes[matches == GONE])
        nodes = nodes[matches == 0]
        never = np.zeros(len(nodes), np.bool_)
        return Result(alone(self.terms, left.payloads.at(nodes), left.starts(nodes), never))
