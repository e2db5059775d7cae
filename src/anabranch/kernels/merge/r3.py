"""Logical merge where payload and start are a key: any order, revisions, infinite ends (LM IV-D, corrected).

Each node holds the end in the output and the end each input shows. At inserts and adjusts the output policy
decides what is said; at a stable the output is made to agree with the input that said it, as far as the
stable makes that final. `oracle/indexed_merge.py` gives the same elements by scans.

Memory: a node per payload and start that is not final yet, or that a slower input has yet to pass; its
payload once whatever the number of inputs. Cost: logarithmic in the nodes, per event and per node that a
stable changes.
"""

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anabranch.kernels.merge.broken import Broken
from anabranch.kernels.merge.lead import followed, join_all, leader, leads_by_shown, passed_by_all
from anabranch.kernels.merge.nodes import (
    ABSENT,
    EXTRA,
    FORGOTTEN,
    HALF,
    HEAD,
    LENGTH,
    PLACE,
    SKIPPED,
    START,
    STATE,
    UNFROZEN,
    VISITED,
    Nodes,
    create,
    decide,
    find,
    leave_queue,
    node_at,
    shorter,
    sort_changing,
    tag_of,
)
from anabranch.kernels.merge.output import (
    Notes,
    Output,
    batch_of,
    emit_adjust,
    emit_insert,
    emit_stable,
    note,
    noted,
)
from anabranch.kernels.merge.reaction import (
    BY_LATEST,
    BY_STABLE,
    BY_UNFROZEN,
    EVERY,
    FIRST,
    QUORUM,
    Reaction,
)
from anabranch.kernels.merge.settings import REMEMBER
from anabranch.kernels.merge.sides import Sides
from anabranch.kernels.store.heap import pop, push
from anabranch.kernels.store.saved import columns_of, matrix_of
from anabranch.model.application import ADJUST, INSERT, STABLE
from anabranch.model.batch import Batch
from anabranch.model.compiled import compiled, inlined, inner
from anabranch.model.identity import Words
from anabranch.model.output_policy import FirstThenFinal, OutputPolicy
from anabranch.model.payloads import PayloadStore
from anabranch.model.properties import Case, Fact
from anabranch.model.slots import NONE
from anabranch.model.time import BEGINNING, FOREVER

GIVEN, EVER, LEFT, SHOWN = range(EXTRA, EXTRA + 4)
"""Cells of a node: the end in the output, the inputs that have ever shown it as bits, the end that inputs
which have left showed, the end each shows."""
LACKED = -1
"""EVER of a node that the output lacks for good because the input that led never showed it."""
LAST_BIT = 62
"""Of the inputs from this one on it is known together whether they have ever shown a node."""

DONE, NO_ROOM, NOT_KEYED = range(3)
_FEW = 64


@inner
def _shorten(nodes: Nodes, node: int, i: int, stable: int) -> None:
    """Let input i's next stable look at a half-frozen node if it would shorten it."""
    shown = nodes.cells[node, SHOWN + i]
    if not stable <= shown < nodes.cells[node, GIVEN]:
        return
    heap = shorter(nodes, i)
    if heap.size[0] == len(heap.key):
        heap.size[0] = 0
        for other in range(len(nodes.cells)):
            end = nodes.cells[other, SHOWN + i]
            if nodes.cells[other, STATE] == HALF and stable <= end < nodes.cells[other, GIVEN]:
                push(heap, end, other)
    push(heap, shown, node)


@inner
def _keep_open(nodes: Nodes, node: int, time: int, inputs: int) -> None:
    """A node is half frozen with the end it now has in the output."""
    nodes.cells[node, STATE] = HALF
    if nodes.open.size[0] == len(nodes.open.key):
        nodes.open.size[0] = 0
        for other in range(len(nodes.cells)):
            if nodes.cells[other, STATE] == HALF and other != node:
                push(nodes.open, nodes.cells[other, GIVEN], other)
    push(nodes.open, nodes.cells[node, GIVEN], node)
    for i in range(inputs):
        _shorten(nodes, node, i, time)


@inner
def _best_guess(nodes: Nodes, node: int, stable: int, sides: Sides) -> Any:
    """The end that the furthest attached input shows of a half-frozen node, or the one in the output."""
    guess, best = nodes.cells[node, GIVEN], NONE
    for i in range(len(sides.attached)):
        if not sides.attached[i] or nodes.cells[node, SHOWN + i] < stable:
            continue
        ahead = best == NONE or sides.reached[i] > sides.reached[best]
        if ahead or (
            sides.reached[i] == sides.reached[best] and sides.attached_as[i] < sides.attached_as[best]
        ):
            guess, best = nodes.cells[node, SHOWN + i], i
    return guess


@inner
def _wanted(nodes: Nodes, node: int, time: int, first: int, stable: int, sides: Sides) -> Any:
    """The end that a node has after a stable of the input that leads, or ABSENT."""
    end, given = nodes.cells[node, SHOWN + first], nodes.cells[node, GIVEN]
    if nodes.cells[node, START] < stable and end < stable:
        return given if given >= time else _best_guess(nodes, node, stable, sides)
    if min(end, given) >= time:
        return given
    return end


@inlined
def _bit(i: int) -> Any:
    """What stands for an input in EVER."""
    return np.int64(1) << np.int64(min(i, LAST_BIT))


@inner
def _count_removed(nodes: Nodes, node: int, first: int, sides: Sides) -> None:
    """Count a node for those who show it, if the input that leads never did."""
    if nodes.cells[node, SHOWN + first] != ABSENT or nodes.cells[node, EVER] & _bit(first):
        return
    nodes.cells[node, EVER] = LACKED
    for i in range(len(sides.attached)):
        sides.removed[i] += sides.attached[i] and nodes.cells[node, SHOWN + i] != ABSENT


@inlined
def _visit(nodes: Nodes, node: int, time: int, first: int, stable: int, sides: Sides, count: int) -> Any:
    """Settle a node, or note it as one that changes; how many are noted then."""
    given = nodes.cells[node, GIVEN]
    if nodes.cells[node, STATE] == UNFROZEN:
        _count_removed(nodes, node, first, sides)
    if _wanted(nodes, node, time, first, stable, sides) != given:
        nodes.cells[node, STATE] = VISITED
        nodes.changing[count] = node
        count += 1
    elif given < time or time == FOREVER:
        decide(nodes, node, time)
    elif nodes.cells[node, STATE] == UNFROZEN:
        _keep_open(nodes, node, time, len(sides.attached))
    return count


@inner
def _change(nodes: Nodes, node: int, time: int, end: int, sides: Sides, output: Output) -> None:
    """Say that a node has another end, and settle it."""
    start, place, given = nodes.cells[node, START], nodes.cells[node, PLACE], nodes.cells[node, GIVEN]
    if given == ABSENT:
        emit_insert(output, place, start, end)
    else:
        emit_adjust(output, place, start, given, start if end == ABSENT else end)
    nodes.cells[node, GIVEN] = end
    if end < time or time == FOREVER:
        decide(nodes, node, time)
    else:
        _keep_open(nodes, node, time, len(sides.attached))


@inner
def _count_frozen(nodes: Nodes, node: int, sides: Sides) -> None:
    """A node is unfrozen no more for those who show it."""
    for i in range(len(sides.attached)):
        sides.unfrozen[i] -= nodes.cells[node, SHOWN + i] != ABSENT


@inner
def _advance(
    nodes: Nodes,
    time: int,
    first: int,
    stable: int,
    sides: Sides,
    output: Output,
    null_row: int,
    counts: bool,
) -> None:
    """Make the output agree with the input that leads as far as this stable makes it final."""
    count: Any = np.int64(0)
    while nodes.open.size[0] and (nodes.open.key[0] < time or time == FOREVER):
        key = nodes.open.key[0]
        node = pop(nodes.open)
        if nodes.cells[node, STATE] == HALF and nodes.cells[node, GIVEN] == key:
            count = _visit(nodes, node, time, first, stable, sides, count)
    heap = shorter(nodes, first)
    while heap.size[0] and heap.key[0] < time:
        node = pop(heap)
        if nodes.cells[node, STATE] == HALF:
            count = _visit(nodes, node, time, first, stable, sides, count)
    while nodes.due.size[0] and nodes.due.key[0] < time:
        due = pop(nodes.due)
        if counts:
            _count_frozen(nodes, due, sides)
        count = _visit(nodes, due, time, first, stable, sides, count)
    if count > 1:
        sort_changing(nodes, count)
    for n in range(count):
        changed: Any = np.int64(nodes.changing[n])
        _change(nodes, changed, time, _wanted(nodes, changed, time, first, stable, sides), sides, output)
    emit_stable(output, time, null_row)


@inner
def _compare(nodes: Nodes, node: int, sides: Sides, notes: Notes) -> None:
    """Count the inputs that show something else than the output about a node that all have passed."""
    start, given, place = nodes.cells[node, START], nodes.cells[node, GIVEN], nodes.cells[node, PLACE]
    for i in range(len(sides.attached)):
        shown = nodes.cells[node, SHOWN + i]
        if not sides.attached[i] or sides.idle[i] or shown == given:
            continue
        if shown == ABSENT and given < sides.guarantee[i]:
            continue
        note(notes, sides, i, place, start, shown, given)


@inner
def _forget_passed(nodes: Nodes, sides: Sides, remember: int, notes: Notes) -> None:
    """Compare and forget what every input has passed; forget the oldest of more than is remembered."""
    if not nodes.queue[LENGTH]:
        return
    passed = passed_by_all(sides)
    while nodes.queue[LENGTH] and nodes.stamp[nodes.queue[HEAD]] <= passed:
        first: Any = np.int64(nodes.decided[nodes.queue[HEAD]])
        _compare(nodes, first, sides, notes)
        leave_queue(nodes)
    while nodes.queue[LENGTH] > remember:
        nodes.queue[SKIPPED] += 1
        leave_queue(nodes)


@inner
def drain(
    nodes: Nodes,
    stable: int,
    sides: Sides,
    remember: int,
    output: Output,
    notes: Notes,
    null_row: int,
    counts: bool,
) -> tuple[int, int]:
    """Let inputs join and lead until none is ahead of the output, or the output may not have room.

    ``null_row`` is the place of a payload that is null, or NONE; ``counts``: what is unfrozen is counted.
    Returns the stable and DONE or NO_ROOM.
    """
    while True:
        join_all(sides, stable)
        first = leader(sides)
        if first == NONE or sides.reached[first] <= stable:
            _forget_passed(nodes, sides, remember, notes)
            return stable, DONE
        # A stable says one row of a node at most, and itself.
        if len(output.kind) - output.rows[0] <= len(nodes.pool.stack) - nodes.pool.height[0]:
            return stable, NO_ROOM
        time = sides.reached[first]
        _advance(nodes, time, first, stable, sides, output, null_row, counts)
        stable = time


@inlined
def _follow(nodes: Nodes, node: int, end: int, stable: int, sides: Sides, output: Output) -> None:
    """Let the output change as an input did, where the output's stable allows it."""
    start, place, given = nodes.cells[node, START], nodes.cells[node, PLACE], nodes.cells[node, GIVEN]
    if given == ABSENT:
        if end > start >= stable:
            emit_insert(output, place, start, end)
            nodes.cells[node, GIVEN] = end
    elif end != given and (start >= stable or (given >= stable and end >= stable)):
        emit_adjust(output, place, start, given, end)
        nodes.cells[node, GIVEN] = end if end > start else ABSENT
        if start < stable:
            _keep_open(nodes, node, stable, len(sides.attached))


@inner
def _count_shown(nodes: Nodes, node: int, i: int, inserts: bool, was: int, sides: Sides) -> None:
    """Count what input i has just said of an unfrozen node, of which it showed an end or ABSENT before."""
    sides.unfrozen[i] += np.int64(nodes.cells[node, SHOWN + i] != ABSENT) - np.int64(was != ABSENT)
    if inserts:
        sides.latest[i] = max(sides.latest[i], nodes.cells[node, START])


@inner
def _votes(nodes: Nodes, node: int, sides: Sides) -> int:
    """How many attached inputs show a node."""
    votes = 0
    for i in range(len(sides.attached)):
        votes += sides.attached[i] and nodes.cells[node, SHOWN + i] != ABSENT
    return votes


@compiled
def merge(
    nodes: Nodes,
    elements: tuple[Any, Any, Any, Any],
    row: int,
    i: int,
    place: int,
    stable: int,
    sides: Sides,
    reaction: Reaction,
    remember: int,
    output: Output,
    notes: Notes,
    created: Any,
    leave_out: bool,
    repeats: Any,
) -> tuple[int, int, int, int, int]:
    """Let input i say elements from ``row`` on, as long as there is room for what may come of them.

    ``elements`` are the columns kind, start, end and identity; the payload of row r stands at ``place + r``.
    Returns where it stopped and why, the stable, how many nodes were created, and how many rows repeat a key
    and were left out.
    """
    kind, start, end, identity = elements
    cells = nodes.cells
    births, again, follows, settled = 0, 0, reaction.code == EVERY, False
    null_row: Any = np.int64(NONE)
    while True:
        # One place to drain from: each would be compiled with all that drains.
        if not settled:
            counts = reaction.code == BY_UNFROZEN
            stable, state = drain(nodes, stable, sides, remember, output, notes, null_row, counts)
            if state != DONE:
                return row, state, stable, births, again
            settled = True
            if reaction.code == BY_STABLE:
                follows = i == followed(sides, sides.reached)
        if row == len(kind):
            return row, DONE, stable, births, again
        if kind[row] == STABLE:
            if start[row] > sides.reached[i]:
                sides.reached[i] = start[row]
                settled, null_row = False, place + row
            row += 1
            continue
        low, high = np.int64(identity[row, 0]), np.int64(identity[row, 1])
        tag = tag_of(low, high, start[row])
        slot = find(nodes, tag, low, high, start[row])
        node = node_at(nodes, slot)
        if node == NONE:
            if kind[row] == ADJUST or start[row] < min(stable, nodes.queue[FORGOTTEN]):
                row += 1
                continue
            if output.rows[0] == len(output.kind) or not nodes.pool.height[0]:
                return row, NO_ROOM, stable, births, again
            node = create(nodes, slot, tag, low, high, start[row], place + row)
            cells[node, GIVEN], cells[node, EVER], cells[node, LEFT] = ABSENT, 0, ABSENT
            for j in range(len(sides.attached)):
                cells[node, SHOWN + j] = ABSENT
            created[births] = node
            births += 1
            if start[row] < stable:
                # The output lacks it for good; whether the input means it shows when the input has passed it.
                decide(nodes, node, stable)
                cells[node, EVER] = LACKED
            else:
                push(nodes.due, start[row], node)
        elif kind[row] == INSERT and cells[node, SHOWN + i] != ABSENT:
            if not leave_out:
                return row, NOT_KEYED, stable, births, again
            repeats[again] = row
            again += 1
            row += 1
            continue
        elif output.rows[0] == len(output.kind):
            return row, NO_ROOM, stable, births, again
        was = cells[node, SHOWN + i]
        if was == cells[node, LEFT]:
            cells[node, LEFT] = ABSENT  # the input speaks for those who left, which showed the same
        cells[node, SHOWN + i] = end[row] if end[row] > start[row] else ABSENT
        if cells[node, EVER] == LACKED:
            sides.removed[i] += np.int64(was == ABSENT) - np.int64(cells[node, SHOWN + i] == ABSENT)
        else:
            cells[node, EVER] |= _bit(i)
        if reaction.code == FIRST:
            if was == ABSENT and cells[node, GIVEN] == ABSENT and end[row] > start[row] >= stable:
                emit_insert(output, cells[node, PLACE], start[row], end[row])
                cells[node, GIVEN] = end[row]
        elif reaction.code == QUORUM:
            if (
                cells[node, GIVEN] == ABSENT
                and end[row] > start[row] >= stable
                and _votes(nodes, node, sides) >= reaction.quorum
            ):
                emit_insert(output, cells[node, PLACE], start[row], end[row])
                cells[node, GIVEN] = end[row]
        else:
            if reaction.code >= BY_LATEST:
                if start[row] >= stable:
                    _count_shown(nodes, node, i, kind[row] == INSERT, was, sides)
                follows = leads_by_shown(sides, i, reaction.code)
            if follows:
                _follow(nodes, node, end[row], stable, sides, output)
        if cells[node, STATE] == HALF:
            _shorten(nodes, node, i, stable)
        row += 1


@compiled
def _open_all(nodes: Nodes, stable: int, inputs: int) -> None:
    """Put the half-frozen nodes into the heaps."""
    for node in range(len(nodes.cells)):
        if nodes.cells[node, STATE] == HALF:
            _keep_open(nodes, node, stable, inputs)


@compiled
def _shown(nodes: Nodes, i: int, identity: Any, start: Any, end: Any, counts: Any) -> None:
    """Whether input i shows each event."""
    for row in range(len(start)):
        low, high = np.int64(identity[row, 0]), np.int64(identity[row, 1])
        node = node_at(nodes, find(nodes, tag_of(low, high, start[row]), low, high, start[row]))
        counts[row] = node != NONE and nodes.cells[node, SHOWN + i] == end[row]


_NO_ELEMENTS = Batch.of([])


@dataclass(slots=True)
class R3:
    """State: the nodes and their payloads. The inputs are the caller's."""

    case: ClassVar[Case] = Case.R3
    sides: Sides
    policy: OutputPolicy = field(default_factory=FirstThenFinal)
    remember: int = REMEMBER
    stable: int = BEGINNING
    stables: bool = field(default=True, kw_only=True)
    """Those of the output stand among what comes out."""
    nodes: Nodes = field(init=False, repr=False)
    payloads: PayloadStore = field(default_factory=PayloadStore, repr=False)
    notes: Notes = field(default_factory=lambda: Notes.of_capacity(64), repr=False)
    noted: list[dict[str, Any]] = field(default_factory=list, repr=False)
    """The payloads of the notes."""
    repeats: NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32), repr=False)
    """Rows of the last push that repeat a key, and were left out."""

    def __post_init__(self) -> None:
        self.nodes = Nodes.of_capacity(1024, SHOWN + self.sides.capacity, self.sides.capacity)

    @property
    def live(self) -> int:
        """Events that can still change."""
        return self.nodes.live

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self.nodes.nbytes + self.payloads.nbytes

    def widen(self, sides: Sides) -> None:
        """The same inputs, with room for more."""
        inputs = sides.capacity
        old = self.sides.capacity
        self.nodes = self.nodes.with_voices(inputs, SHOWN + inputs)
        self.nodes.cells[:, SHOWN + old :] = ABSENT
        self.sides = sides

    def forget(self, i: int) -> None:
        """An input has left; what it alone supported stays until another input decides.

        What it showed is kept for a case that decides by evidence.
        """
        ever = self.nodes.cells[:, EVER]
        if i < LAST_BIT:
            ever[ever != LACKED] &= ~(1 << i)
        shown = self.nodes.cells[:, SHOWN + i]
        np.copyto(self.nodes.cells[:, LEFT], shown, where=shown != ABSENT)
        shown[:] = ABSENT
        self.nodes.shorter_size[i] = 0

    def dump(self) -> tuple[dict[str, Any], list[pa.RecordBatch]]:
        """All there is to know but the inputs: how far it is, the nodes, and their payloads."""
        rows, stamps = self.nodes.in_order()
        cells = self.nodes.cells[rows]
        payload = self.payloads.at(cells[:, PLACE])
        cells[:, PLACE] = 0
        state = {"stable": self.stable, "queue": self.nodes.queue[SKIPPED:].tolist()}
        return state, [columns_of(cells), columns_of(stamps[:, None]), payload]

    @classmethod
    def load(
        cls, sides: Sides, policy: OutputPolicy, remember: int, state: Any, batches: list[pa.RecordBatch]
    ) -> "R3":
        """What was dumped, with the inputs it had then."""
        nodes, stamps, payload = batches
        cells = matrix_of(nodes)
        cells[:, PLACE] = np.arange(len(cells))
        loaded = cls(sides, policy, remember, state["stable"])
        loaded.nodes = Nodes.restored(cells, matrix_of(stamps)[:, 0], sides.capacity)
        loaded.nodes.queue[SKIPPED:] = state["queue"]
        loaded.payloads.add(loaded.payloads.admit(payload))
        _open_all(loaded.nodes, loaded.stable, sides.capacity)
        return loaded

    def settle(self) -> Batch:
        """Let inputs join and lead after some came or went."""
        return self._run(NONE, Batch.of([]))

    def push(self, i: int, batch: Batch, *, leave_out: bool = False) -> Batch:
        """What comes out when an input says valid elements.

        Those that show that there is no key are left out, or the first is `Broken`.
        """
        self.sides.idle[i] = False
        return self._run(i, batch, leave_out=leave_out)

    def advance(self, i: int, time: int) -> Batch:
        """What comes out when an input says a stable: `merge` begins with what follows from stables."""
        self.sides.idle[i] = False
        self.sides.reached[i] = max(self.sides.reached[i], time)
        return self._run(i, _NO_ELEMENTS)

    def shows(
        self, i: int, identities: Words, start: NDArray[np.int64], end: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """How often an input shows each of some events."""
        counts = np.empty(len(start), np.int64)
        _shown(self.nodes, i, identities, start, end, counts)
        return counts

    def _run(self, i: int, batch: Batch, *, leave_out: bool = False) -> Batch:
        payload = self.payloads.admit(batch.payload) if len(batch) else self.payloads.none()
        elements = batch.kind, batch.start, batch.end, batch.identities
        reaction = Reaction.of(self.policy, self.sides)
        parts: list[Output] = []
        born, repeats, row, state = [], [], 0, NO_ROOM
        while state == NO_ROOM:
            self.nodes = self.nodes.with_room(1)
            # A batch of a few events seldom says more rows than it has; what does is told to come again.
            few = 0 < len(batch) < _FEW and not parts
            output = Output.of_capacity(len(batch) + 1 + (0 if few else self.nodes.used))
            created, again = np.empty(len(batch) - row, np.int32), np.empty(len(batch) - row, np.int32)
            row, state, self.stable, births, count = merge(
                self.nodes,
                elements,
                row,
                i,
                self.payloads.next_place,
                self.stable,
                self.sides,
                reaction,
                self.remember,
                output,
                self.notes,
                created,
                leave_out,
                again,
            )
            born.append(created[:births])
            repeats.append(again[:count])
            parts.append(output)
        self.repeats = repeats[0] if len(repeats) == 1 else np.concatenate(repeats)
        result = batch_of(parts, self.payloads, payload, stables=self.stables)
        if self.notes.rows[0]:
            self.noted = noted(self.notes, self.payloads, payload)
        if len(batch):
            self.nodes.keep(self.payloads, payload, born[0] if len(born) == 1 else np.concatenate(born))
        if state == NOT_KEYED:
            raise Broken(Fact.KEYED, result, [(i, batch[row:])])
        return result
