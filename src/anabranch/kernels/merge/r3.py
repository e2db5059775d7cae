"""Logical merge where payload and start are a key: any order, revisions, infinite ends (LM IV-D, corrected).

The first insert of an event goes out at once; corrections wait for the stable that would make them
impossible. An input drives the stable from the moment the output has reached its guarantee. What the listing
leaves out or has wrong is corrected as in `oracle/merge.py`, which gives the same elements by scans.

Memory: a node per payload and start that is not fully frozen, its payload once whatever the number of inputs.
Cost: logarithmic in the nodes per element, and per node that a stable changes.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anabranch.kernels.merge.nodes import (
    ABSENT,
    DUE,
    FIRST_INPUT,
    GIVEN,
    Nodes,
    create,
    delete,
    find,
    node_at,
    push,
    remove,
    tag_of,
    top,
)
from anabranch.model.application import ADJUST, INSERT, STABLE
from anabranch.model.batch import Batch, Kind
from anabranch.model.compiled import compiled
from anabranch.model.payloads import PayloadStore
from anabranch.model.slots import NOBODY
from anabranch.model.time import BEGINNING, FOREVER


@dataclass(slots=True)
class R3:
    """State: the nodes, their payloads, and what is known of each input by its number."""

    stable: int = BEGINNING
    nodes: Nodes = field(default_factory=lambda: Nodes.of_capacity(1024, 4), repr=False)
    payloads: PayloadStore = field(default_factory=PayloadStore, repr=False)
    numbers: dict[str, int] = field(default_factory=dict)
    reached: NDArray[np.int64] = field(default_factory=lambda: np.full(4, ABSENT))
    """The greatest stable that each input has said."""
    guarantee: NDArray[np.int64] = field(default_factory=lambda: np.full(4, ABSENT))
    attached: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(4, np.bool_))
    joined: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(4, np.bool_))

    def attach(self, name: str, guarantee: int = BEGINNING) -> None:
        """An input joins; it shows every event that ends at or after its guarantee."""
        assert name not in self.numbers, f"{name} is attached"
        if self.attached.all():
            self._double_inputs()
        number = int(np.flatnonzero(~self.attached)[0])
        self.numbers[name] = number
        self.attached[number], self.guarantee[number] = True, guarantee
        self.joined[number] = self.stable >= guarantee

    def detach(self, name: str) -> None:
        """An input leaves; what it alone supported stays until another input decides."""
        number = self.numbers.pop(name)
        self.attached[number] = self.joined[number] = False
        self.reached[number] = ABSENT
        self.nodes.shown[number] = ABSENT
        self.nodes.where[FIRST_INPUT + number] = NOBODY
        self.nodes.sizes[FIRST_INPUT + number] = 0

    def push(self, name: str, batch: Batch) -> Batch:
        """What comes out when an input says valid elements."""
        payload = self.payloads.admit(batch.payload)
        elements = (batch.kind, batch.start, batch.end, batch.old_end, batch.identities)
        self.nodes = self.nodes.with_room(int(np.count_nonzero(batch.kind == Kind.INSERT)), 0)
        said, born, reached = [], [], 0
        while True:
            out = np.empty((len(batch) + self.nodes.used + 1, 5), np.int64)
            created = np.empty(len(batch), np.int32)
            before = reached, self.stable
            reached, self.stable, rows, births = merge(
                self.nodes,
                elements,
                reached,
                self.numbers[name],
                self.payloads.next_place,
                self.stable,
                self.reached,
                self.guarantee,
                self.attached,
                self.joined,
                out,
                created,
            )
            said.append(out[:rows])
            born.append(created[:births])
            if reached == len(batch) and not self._ahead():
                break
            assert (reached, self.stable) != before, "a merge with room goes on"
        output = self._batch(np.concatenate(said), payload)
        users = np.concatenate(born)
        self.payloads.adopt(payload, self.nodes.place, users[self.nodes.given[users] != ABSENT])
        if self.payloads.crowded(self.nodes.used):
            self.payloads.compact(self.nodes.place, self.nodes.live())
        return output

    def _ahead(self) -> bool:
        return bool((self.joined & (self.reached > self.stable)).any())

    def _batch(self, rows: NDArray[np.int64], payload: Any) -> Batch:
        kind, place, start, end, old_end = np.ascontiguousarray(rows.T)
        return Batch(kind.astype(np.int8), start, end, old_end, self.payloads.rows_at(place, payload))

    def _double_inputs(self) -> None:
        more = np.full(len(self.reached), ABSENT)
        none = np.zeros(len(self.reached), np.bool_)
        self.reached = np.concatenate([self.reached, more])
        self.guarantee = np.concatenate([self.guarantee, more])
        self.attached = np.concatenate([self.attached, none])
        self.joined = np.concatenate([self.joined, none])
        self.nodes = self.nodes.with_room(0, len(self.reached))


@compiled
def _review(nodes: Nodes, node: int, i: int, stable: int) -> None:
    """Keep a half-frozen node among those an input would shorten exactly while the input would."""
    shown = nodes.shown[i, node]
    if stable <= shown < nodes.given[node]:
        push(nodes, FIRST_INPUT + i, node)
    else:
        remove(nodes, FIRST_INPUT + i, node)


@compiled
def _best_guess(nodes: Nodes, node: int, stable: int, reached: Any, attached: Any) -> Any:
    """The end that the furthest attached input shows of a half-frozen node, or the one in the output."""
    guess, furthest = nodes.given[node], ABSENT
    for i in range(len(reached)):
        if attached[i] and nodes.shown[i, node] >= stable and (furthest == ABSENT or reached[i] > furthest):
            guess, furthest = nodes.shown[i, node], max(reached[i], ABSENT + 1)
    return guess


@compiled
def _summon(nodes: Nodes, time: int, leader: int) -> None:
    """Make every half-frozen node that this stable can change due."""
    while nodes.sizes[GIVEN] and nodes.given[top(nodes, GIVEN)] < time:
        node = top(nodes, GIVEN)
        remove(nodes, GIVEN, node)
        push(nodes, DUE, node)
    heap = FIRST_INPUT + leader
    while nodes.sizes[heap] and nodes.shown[leader, top(nodes, heap)] < time:
        node = top(nodes, heap)
        remove(nodes, heap, node)
        push(nodes, DUE, node)


@compiled
def _advance(
    nodes: Nodes, time: int, leader: int, stable: int, reached: Any, attached: Any, out: Any, said: int
) -> int:
    """Make the output agree with the leader as far as this stable makes it final; how many rows are out then.

    A row of the output is (kind, place of the payload, start, end, old end).
    """
    _summon(nodes, time, leader)
    while nodes.sizes[DUE] and nodes.start[top(nodes, DUE)] < time:
        node = top(nodes, DUE)
        remove(nodes, DUE, node)
        start, given, end = nodes.start[node], nodes.given[node], nodes.shown[leader, node]
        half_frozen = start < stable
        if half_frozen and end < stable:
            end = given if given >= time else _best_guess(nodes, node, stable, reached, attached)
        if end == ABSENT:
            out[said] = ADJUST, nodes.place[node], start, start, given
            said += 1
            delete(nodes, node)
            continue
        if end != given and (end < time or given < time):
            out[said] = ADJUST, nodes.place[node], start, end, given
            said += 1
            nodes.given[node] = end
        if nodes.given[node] < time or time == FOREVER:
            delete(nodes, node)
            continue
        push(nodes, GIVEN, node)
        for i in range(len(reached)):
            _review(nodes, node, i, time)
    out[said] = STABLE, NOBODY, time, 0, 0
    return said + 1


@compiled
def drain(
    nodes: Nodes, stable: int, reached: Any, guarantee: Any, attached: Any, joined: Any, out: Any, said: int
) -> tuple[int, int, bool]:
    """Let inputs join and lead until none is ahead of the output, or the output may not have room.

    Returns the stable, the rows out, and whether none is ahead.
    """
    while True:
        leader, furthest = NOBODY, stable
        for i in range(len(reached)):
            joined[i] = attached[i] and (joined[i] or stable >= guarantee[i])
            if joined[i] and reached[i] > furthest:
                leader, furthest = i, reached[i]
        if leader == NOBODY:
            return stable, said, True
        if len(out) - said <= len(nodes.free) - nodes.unused[0]:
            return stable, said, False
        said = _advance(nodes, furthest, leader, stable, reached, attached, out, said)
        stable = furthest


@compiled
def merge(
    nodes: Nodes,
    elements: tuple[Any, Any, Any, Any, Any],
    first: int,
    i: int,
    place: int,
    stable: int,
    reached: Any,
    guarantee: Any,
    attached: Any,
    joined: Any,
    out: Any,
    created: Any,
) -> tuple[int, int, int, int]:
    """Let input i say elements from ``first`` on, as long as the output has room for what may come of them.

    ``elements`` are the columns kind, start, end, old_end and identity; the payload of row r stands at
    ``place + r``. Returns where it stopped, the stable, the rows out and the nodes created.
    """
    kind, start, end, _, identity = elements
    births = 0
    stable, said, done = drain(nodes, stable, reached, guarantee, attached, joined, out, 0)
    if not done:
        return first, stable, said, births
    for row in range(first, len(kind)):
        if kind[row] == STABLE:
            reached[i] = max(reached[i], start[row])
            if reached[i] > stable:
                stable, said, done = drain(nodes, stable, reached, guarantee, attached, joined, out, said)
                if not done:
                    return row + 1, stable, said, births
            continue
        low, high = identity[row, 0], identity[row, 1]
        tag = tag_of(low, high, start[row])
        slot = find(nodes, tag, low, high, start[row])
        node = node_at(nodes, slot)
        if node == NOBODY:
            if kind[row] == ADJUST or start[row] < stable:
                continue
            if said == len(out):
                return row, stable, said, births
            node = create(nodes, slot, tag, low, high, start[row], end[row])
            nodes.place[node] = place + row
            created[births] = node
            births += 1
            out[said] = INSERT, place + row, start[row], end[row], 0
            said += 1
        nodes.shown[i, node] = end[row] if end[row] > start[row] else ABSENT
        if nodes.start[node] < stable:
            _review(nodes, node, i, stable)
    return len(kind), stable, said, births
