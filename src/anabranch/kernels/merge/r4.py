"""Logical merge without restrictions: any order, revisions, true repeats (LM IV-E, corrected), lossy inputs.

A node has a ledger of ends for each input and for the output. While a complete input has joined, the furthest
decides at its stables what is there and what is not, as in R3. While none has, lossy inputs decide by what
they have shown. `oracle/indexed_merge.py` gives the same elements by scans.

Memory: a node per payload and start that is not final yet, or that a slower input has yet to pass, and an
entry per end that the output has, an input shows, or that is evidence; its payload once. Cost: logarithmic in
the nodes, per event and per node that a stable changes; in a node, the square of the ends that were shown and
are not final.
"""

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anabranch.kernels.merge.broken import Broken
from anabranch.kernels.merge.lead import PACES, followed, leads_by_shown
from anabranch.kernels.merge.ledgers import (
    CAME,
    CHANGE,
    CREATOR,
    FIRST,
    GIVEN,
    LEFT,
    OWN,
    RECENT,
    TOWARDS,
    Ledgers,
    beyond,
    clear,
    entry_for,
    entry_with,
    fold,
    hear,
    link_entries,
    list_entries,
    node_width,
    prune,
    shown,
    total_given,
    total_shown,
)
from anabranch.kernels.merge.nodes import (
    FORGOTTEN,
    HALF,
    PLACE,
    SKIPPED,
    START,
    STATE,
    Nodes,
    create,
    decide,
    find,
    node_at,
    tag_of,
)
from anabranch.kernels.merge.output import (
    Notes,
    Output,
    batch_of,
    emit_adjust,
    emit_insert,
    noted,
)
from anabranch.kernels.merge.r4_stable import DONE, NO_ROOM, NOT_KEYED, ROWS, drain, keep_open, shorten
from anabranch.kernels.merge.reaction import BY_LATEST, BY_STABLE, BY_UNFROZEN, EVERY, QUORUM, Reaction
from anabranch.kernels.merge.reaction import FIRST as AT_ONCE
from anabranch.kernels.merge.settings import REMEMBER
from anabranch.kernels.merge.sides import Sides
from anabranch.kernels.store.heap import push
from anabranch.kernels.store.saved import columns_of, matrix_of
from anabranch.model.application import ADJUST, STABLE
from anabranch.model.batch import Batch
from anabranch.model.compiled import compiled, inner
from anabranch.model.identity import Words
from anabranch.model.output_policy import FirstThenFinal, OutputPolicy, Pace
from anabranch.model.payloads import PayloadStore
from anabranch.model.properties import Case, Fact
from anabranch.model.slots import NONE
from anabranch.model.time import BEGINNING


@inner
def _react(
    nodes: Nodes,
    ledgers: Ledgers,
    node: int,
    i: int,
    more: Any,
    adjusts: bool,
    old_end: int,
    end: int,
    stable: int,
    sides: Sides,
    reaction: Reaction,
    follows: bool,
    output: Output,
) -> None:
    """What the policy lets out at an insert or an adjust, by which input i shows so many more events."""
    start, place = nodes.cells[node, START], nodes.cells[node, PLACE]
    if follows and adjusts:
        entry = entry_with(nodes, ledgers, node, old_end)
        if entry != NONE and ledgers.cells[entry, GIVEN]:
            if end != old_end and (start >= stable or (old_end >= stable and end >= stable)):
                emit_adjust(output, place, start, old_end, end)
                ledgers.cells[entry, GIVEN] -= 1
                if end > start:
                    ledgers.cells[entry_for(nodes, ledgers, node, end), GIVEN] += 1
            return
    gives = follows or reaction.code == QUORUM or (reaction.code == AT_ONCE and more > 0)
    if not gives or not end > start >= stable:
        return
    given = total_given(nodes, ledgers, node)
    if total_shown(nodes, ledgers, node, i + 1) <= given:
        return
    if reaction.code == QUORUM:
        votes = 0
        for j in range(len(sides.attached)):
            votes += sides.attached[j] and total_shown(nodes, ledgers, node, j + 1) > given
        if votes < reaction.quorum:
            return
    emit_insert(output, place, start, end)
    ledgers.cells[entry_for(nodes, ledgers, node, end), GIVEN] += 1


@compiled
def merge(
    nodes: Nodes,
    ledgers: Ledgers,
    elements: tuple[Any, Any, Any, Any, Any],
    row: int,
    i: int,
    place: int,
    stable: int,
    sides: Sides,
    pace: int,
    reaction: Reaction,
    remember: int,
    output: Output,
    notes: Notes,
    upcoming: Any,
    created: Any,
    late: Any,
    leave_out: bool,
    repeats: Any,
) -> tuple[int, int, int, int, int, int]:
    """Let input i say elements from ``row`` on, as long as there is room for what may come of them.

    ``elements`` are the columns kind, start, end, old_end and identity; the payload of row r stands at
    ``place + r``. Returns where it stopped and why, the stable, how many nodes were created, how many rows of
    a lossy input were late, and how many repeat a key and were left out.
    """
    kind, start, end, old_end, identity = elements
    births, tardy, again, settled = 0, 0, 0, False
    null_row: Any = np.int64(NONE)
    follows = reaction.code == EVERY
    while True:
        # One place to drain from: each would be compiled with all that drains.
        if not settled:
            counts = reaction.code == BY_UNFROZEN
            stable, state = drain(
                nodes, ledgers, stable, sides, pace, remember, output, notes, upcoming, null_row, counts
            )
            if state != DONE:
                return row, state, stable, births, tardy, again
            settled = True
            if reaction.code == BY_STABLE:
                follows = i == followed(sides, sides.reached)
        if row == len(kind):
            return row, DONE, stable, births, tardy, again
        if kind[row] == STABLE:
            if start[row] > sides.reached[i]:
                sides.reached[i] = start[row]
                settled, null_row = False, place + row
            row += 1
            continue
        # A row that is no stable says one row, and makes one node and (in `hear`) two entries, at most.
        if output.rows[0] == len(output.kind) or ledgers.pool.height[0] < 2 or not nodes.pool.height[0]:
            return row, NO_ROOM, stable, births, tardy, again
        low, high = np.int64(identity[row, 0]), np.int64(identity[row, 1])
        tag = tag_of(low, high, start[row])
        slot = find(nodes, tag, low, high, start[row])
        node = node_at(nodes, slot)
        adjusts = kind[row] == ADJUST
        if node != NONE and sides.keyed[i] and not adjusts and total_shown(nodes, ledgers, node, i + 1) > 0:
            if not leave_out:
                return row, NOT_KEYED, stable, births, tardy, again
            repeats[again] = row
            again += 1
            row += 1
            continue
        if node == NONE:
            is_late = start[row] < stable and not sides.complete[i]
            is_news = start[row] >= min(stable, nodes.queue[FORGOTTEN]) and not adjusts
            if is_late or (sides.complete[i] and not is_news):
                if is_late:
                    sides.late[i] += 1
                    late[tardy] = row
                    tardy += 1
                row += 1
                continue
            node = create(nodes, slot, tag, low, high, start[row], place + row)
            nodes.cells[node, FIRST] = nodes.cells[node, RECENT] = NONE
            nodes.cells[node, CREATOR] = i
            for column in range(OWN, nodes.cells.shape[1]):
                nodes.cells[node, column] = 0
            created[births] = node
            births += 1
            if start[row] < stable:
                # The output lacks it for good; whether the input means it shows when the input has passed it.
                decide(nodes, node, stable)
                nodes.cells[node, OWN] = 1
            else:
                push(nodes.due, start[row], node)
        own = nodes.cells[node, OWN]
        more = hear(nodes, ledgers, node, i + 1, old_end[row], end[row], adjusts, sides.complete[i])
        if own:
            after = total_shown(nodes, ledgers, node, i + 1)
            sides.removed[i] += beyond(after, own) - beyond(after - more, own)
        if reaction.code >= BY_LATEST:
            if start[row] >= stable:
                sides.unfrozen[i] += more
                if not adjusts:
                    sides.latest[i] = max(sides.latest[i], start[row])
            follows = leads_by_shown(sides, i, reaction.code)
        _react(
            nodes,
            ledgers,
            node,
            i,
            more,
            adjusts,
            old_end[row],
            end[row],
            stable,
            sides,
            reaction,
            follows,
            output,
        )
        if adjusts:
            prune(nodes, ledgers, node, stable)
        if nodes.cells[node, STATE] == HALF:
            if follows:
                keep_open(nodes, ledgers, node, stable, len(sides.attached))
            else:
                shorten(nodes, ledgers, node, i + 1, stable)
        row += 1


@compiled
def _open_all(nodes: Nodes, ledgers: Ledgers, stable: int, inputs: int) -> None:
    """Put the half-frozen nodes into the heaps."""
    for node in range(len(nodes.cells)):
        if nodes.cells[node, STATE] == HALF:
            keep_open(nodes, ledgers, node, stable, inputs)


@compiled
def _let_those_who_left_shorten(nodes: Nodes, ledgers: Ledgers, stable: int) -> None:
    """Put the half-frozen nodes of which they show an end that the output lacks into their heap."""
    left: Any = np.int64(LEFT)
    nodes.shorter_size[LEFT] = 0
    for node in range(len(nodes.cells)):
        if nodes.cells[node, STATE] == HALF:
            shorten(nodes, ledgers, node, left, stable)


@compiled
def _shown(nodes: Nodes, ledgers: Ledgers, i: int, identity: Any, start: Any, end: Any, counts: Any) -> None:
    """How many of each event input i shows."""
    for row in range(len(start)):
        low, high = np.int64(identity[row, 0]), np.int64(identity[row, 1])
        node = node_at(nodes, find(nodes, tag_of(low, high, start[row]), low, high, start[row]))
        counts[row] = 0
        if node != NONE:
            entry = entry_with(nodes, ledgers, node, end[row])
            counts[row] = shown(ledgers, entry, i + 1) if entry != NONE else 0


_NO_ELEMENTS = Batch.of([])


@dataclass(slots=True)
class R4:
    """State: the nodes, their ledgers and payloads. The inputs are the caller's."""

    case: ClassVar[Case] = Case.R4
    sides: Sides
    policy: OutputPolicy = field(default_factory=FirstThenFinal)
    pace: Pace = Pace.SLOWEST
    remember: int = REMEMBER
    stable: int = BEGINNING
    stables: bool = field(default=True, kw_only=True)
    """Those of the output stand among what comes out."""
    nodes: Nodes = field(init=False, repr=False)
    ledgers: Ledgers = field(init=False, repr=False)
    payloads: PayloadStore = field(default_factory=PayloadStore, repr=False)
    notes: Notes = field(default_factory=lambda: Notes.of_capacity(64), repr=False)
    noted: list[dict[str, Any]] = field(default_factory=list, repr=False)
    """The payloads of the notes."""
    late: NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32), repr=False)
    """Rows of the last push that came too late."""
    repeats: NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32), repr=False)
    """Rows of the last push that repeat a key, and were left out."""

    def __post_init__(self) -> None:
        inputs = self.sides.capacity
        self.nodes = Nodes.of_capacity(1024, node_width(inputs), inputs + 1)
        self.ledgers = Ledgers.of_capacity(2048, inputs)

    @property
    def live(self) -> int:
        """Payloads and starts whose events can still change."""
        return self.nodes.live

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self.nodes.nbytes + self.ledgers.nbytes + self.payloads.nbytes

    def widen(self, sides: Sides) -> None:
        """The same inputs, with room for more."""
        inputs = sides.capacity
        self.nodes = self.nodes.with_voices(inputs + 1, node_width(inputs))
        self.ledgers = self.ledgers.with_inputs(inputs)
        self.sides = sides

    def forget(self, i: int) -> None:
        """An input has left; what it alone supported stays until others decide.

        What it has said is evidence from then on, complete or not: a lossy input may come and find nobody
        else who knows more.
        """
        for cells, first in ((self.nodes.cells, CAME), (self.ledgers.cells, TOWARDS)):
            fold(cells, first, i + 1)
            clear(cells, first, i + 1)
        creator = self.nodes.cells[:, CREATOR]
        creator[creator == i] = NONE
        self.nodes.shorter_size[i + 1] = 0
        _let_those_who_left_shorten(self.nodes, self.ledgers, self.stable)

    def dump(self) -> tuple[dict[str, Any], list[pa.RecordBatch]]:
        """All there is to know but the inputs: how far it is, nodes, ledgers, payloads."""
        rows, stamps = self.nodes.in_order()
        cells = self.nodes.cells[rows]
        entries = np.empty((self.ledgers.used, self.ledgers.cells.shape[1]), np.int64)
        list_entries(self.nodes, self.ledgers, rows, entries)
        state = {
            "stable": self.stable,
            "queue": self.nodes.queue[SKIPPED:].tolist(),
        }
        payload = self.payloads.at(cells[:, PLACE])
        cells[:, [PLACE, FIRST, RECENT]] = 0
        entries[:, CHANGE:TOWARDS] = 0
        return state, [columns_of(cells), columns_of(stamps[:, None]), columns_of(entries), payload]

    @classmethod
    def load(
        cls,
        sides: Sides,
        policy: OutputPolicy,
        pace: Pace,
        remember: int,
        state: Any,
        batches: list[pa.RecordBatch],
    ) -> "R4":
        """What was dumped, with the inputs it had then."""
        nodes, stamps, entries, payload = batches
        cells = matrix_of(nodes)
        cells[:, PLACE] = np.arange(len(cells))
        loaded = cls(sides, policy, pace, remember, state["stable"])
        loaded.nodes = Nodes.restored(cells, matrix_of(stamps)[:, 0], sides.capacity + 1)
        loaded.nodes.queue[SKIPPED:] = state["queue"]
        loaded.ledgers = loaded.ledgers.with_room(entries.num_rows)
        link_entries(loaded.nodes, loaded.ledgers, matrix_of(entries))
        loaded.payloads.add(loaded.payloads.admit(payload))
        _open_all(loaded.nodes, loaded.ledgers, loaded.stable, sides.capacity)
        return loaded

    def settle(self) -> Batch:
        """Let inputs join and lead after some came or went."""
        return self._run(NONE, Batch.of([]))

    def push(self, i: int, batch: Batch, *, leave_out: bool = False) -> Batch:
        """What comes out when an input says valid elements.

        Where one that has a key repeats it, that is left out, or `Broken`.
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
        _shown(self.nodes, self.ledgers, i, identities, start, end, counts)
        return counts

    def _run(self, i: int, batch: Batch, *, leave_out: bool = False) -> Batch:
        payload = self.payloads.admit(batch.payload) if len(batch) else self.payloads.none()
        elements = batch.kind, batch.start, batch.end, batch.old_end, batch.identities
        reaction = Reaction.of(self.policy, self.sides)
        pace, upcoming = PACES[self.pace], np.zeros(2, np.int64)
        parts, born, tardy, repeats, row, state = [], [], [], [], 0, NO_ROOM
        while state == NO_ROOM:
            self.nodes = self.nodes.with_room(1)
            self.ledgers = self.ledgers.with_room(2)
            output = Output.of_capacity(len(batch) - row + int(upcoming[ROWS]) + 1)
            created, late, again = (np.empty(len(batch) - row, np.int32) for _ in range(3))
            row, state, self.stable, births, lates, agains = merge(
                self.nodes,
                self.ledgers,
                elements,
                row,
                i,
                self.payloads.next_place,
                self.stable,
                self.sides,
                pace,
                reaction,
                self.remember,
                output,
                self.notes,
                upcoming,
                created,
                late,
                leave_out,
                again,
            )
            born.append(created[:births])
            tardy.append(late[:lates])
            repeats.append(again[:agains])
            parts.append(output)
        self.late = tardy[0] if len(tardy) == 1 else np.concatenate(tardy)
        self.repeats = repeats[0] if len(repeats) == 1 else np.concatenate(repeats)
        result = batch_of(parts, self.payloads, payload, stables=self.stables)
        if self.notes.rows[0]:
            self.noted = noted(self.notes, self.payloads, payload)
        if len(batch):
            self.nodes.keep(self.payloads, payload, born[0] if len(born) == 1 else np.concatenate(born))
        if state == NOT_KEYED:
            raise Broken(Fact.KEYED, result, [(i, batch[row:])])
        return result
