"""Case R3 with a separate index for every input and one for the output (R3- of LM VI-B), compiled.

Each index holds the payload rows of its own events, so memory grows with the inputs, and every element is
looked up in two indexes. Otherwise it is built of what the merge is built of, and a stable looks only at what
it may change: so what it lacks is the sharing. It gives the elements of R3 for complete inputs without gaps.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anabranch.kernels.merge.nodes import (
    ABSENT,
    EXTRA,
    FREE,
    HALF,
    HIGH,
    LOW,
    PLACE,
    START,
    STATE,
    UNFROZEN,
    VISITED,
    Nodes,
    delete,
    find,
    node_at,
    sort_changing,
    tag_of,
)
from anabranch.kernels.merge.output import Output, emit_adjust, emit_insert, emit_stable
from anabranch.kernels.store.heap import pop, push
from anabranch.model.application import ADJUST, STABLE
from anabranch.model.batch import Batch, Kind
from anabranch.model.compiled import compiled
from anabranch.model.payloads import PayloadStore
from anabranch.model.pool import take_place
from anabranch.model.slots import NONE, slot_of
from anabranch.model.time import BEGINNING, FOREVER

END = EXTRA
# An index is `Nodes` itself, of which only a part is used: the types that compiled functions of the package
# have seen are in their cache, and one of this file there would stop programs that cannot import it.


@dataclass(slots=True)
class Stored:
    """State: an index, and the payloads of its events."""

    index: Nodes = field(default_factory=lambda: Nodes.of_capacity(1024, END + 1, 0))
    payloads: PayloadStore = field(default_factory=PayloadStore)

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self.index.nbytes + self.payloads.nbytes

    def keep(self, payload: pa.RecordBatch, created: NDArray[np.int32]) -> None:
        """Keep the payloads of those events that were created and are still there; forget those of others."""
        self.index.keep(self.payloads, payload, created)


class Naive:
    """R3- of complete inputs with the policy first-then-final."""

    def __init__(self, inputs: int) -> None:
        self.inputs = [Stored() for _ in range(inputs)]
        self.output = Stored()
        self.stable = BEGINNING

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self.output.nbytes + sum(stored.nbytes for stored in self.inputs)

    def push(self, i: int, batch: Batch) -> Batch:
        """What comes out when input number i says valid elements."""
        mine, output = self.inputs[i], self.output
        inserts = int(np.count_nonzero(batch.kind != Kind.STABLE))
        payload = output.payloads.admit(batch.payload)
        own = mine.payloads.admit(batch.payload)
        mine.index, output.index = mine.index.with_room(inserts), output.index.with_room(inserts)
        # A stable of input i changes an event again only after an element of input i did.
        out = Output.of_capacity(output.index.used + 3 * len(batch))
        gone = np.empty((output.index.used + inserts, 3), np.int64)
        born = np.empty((2, len(batch)), np.int32)
        self.stable, ours, theirs, forgotten = merge(
            mine.index,
            output.index,
            (batch.kind, batch.start, batch.end, batch.identities),
            (mine.payloads.next_place, output.payloads.next_place),
            self.stable,
            out,
            gone,
            born,
        )
        kind, place, start, end, old_end = (column[: out.rows[0]] for column in out[:5])
        result = Batch(kind, start, end, old_end, output.payloads.rows_at(place, payload))
        for stored in self.inputs:
            forget(stored.index, gone[:forgotten])
        mine.keep(own, born[0, :ours])
        output.keep(payload, born[1, :theirs])
        return result


@compiled
def _create(index: Nodes, slot: int, low: int, high: int, start: int, place: int) -> Any:
    """An event in an empty slot."""
    node = take_place(index.pool)
    index.slots[slot] = slot_of(tag_of(low, high, start), node)
    index.cells[node, LOW] = low
    index.cells[node, HIGH] = high
    index.cells[node, START] = start
    index.cells[node, PLACE] = place
    index.cells[node, STATE] = UNFROZEN
    return node


@compiled
def _file_end(index: Nodes, node: int, state: int) -> None:
    """Let an event of this state be found by its end; a heap that is full is made anew."""
    if index.open.size[0] == len(index.open.key):
        index.open.size[0] = 0
        for other in range(len(index.cells)):
            if index.cells[other, STATE] == state and other != node:
                push(index.open, index.cells[other, END], other)
    push(index.open, index.cells[node, END], node)


@compiled
def _slot(index: Nodes, low: int, high: int, start: int) -> Any:
    """The slot of this payload and start, or the empty slot where it would go."""
    return find(index, tag_of(low, high, start), low, high, start)


@compiled
def _same(index: Nodes, other: Nodes, node: int) -> Any:
    """The event of an index that has the payload and start of another index's event, or NONE."""
    low, high, start = other.cells[node, LOW], other.cells[node, HIGH], other.cells[node, START]
    return node_at(index, _slot(index, low, high, start))


@compiled
def _candidates(mine: Nodes, output: Nodes, time: int) -> int:
    """Note the events of the output that a stable of an input may change; how many there are."""
    count = 0
    last = time == FOREVER
    while output.due.size[0] and output.due.key[0] < time:
        node = pop(output.due)
        output.cells[node, STATE] = VISITED
        output.changing[count] = node
        count += 1
    while output.open.size[0] and (output.open.key[0] < time or last):
        end = output.open.key[0]
        node = pop(output.open)
        if output.cells[node, STATE] == HALF and output.cells[node, END] == end:
            output.cells[node, STATE] = VISITED
            output.changing[count] = node
            count += 1
    while mine.open.size[0] and (mine.open.key[0] < time or last):
        end = mine.open.key[0]
        shown = pop(mine.open)
        if mine.cells[shown, STATE] == FREE or mine.cells[shown, END] != end:
            continue
        node = _same(output, mine, shown)
        if node != NONE and output.cells[node, STATE] == HALF:
            output.cells[node, STATE] = VISITED
            output.changing[count] = node
            count += 1
    return count


@compiled
def _advance(mine: Nodes, output: Nodes, time: int, out: Output, gone: Any, forgotten: int) -> int:
    """Make the output agree with an input as far as its stable makes that final; how many are gone then."""
    candidates = _candidates(mine, output, time)
    count = 0
    for n in range(candidates):
        node = np.int64(output.changing[n])
        if _wanted(mine, output, node, time) != output.cells[node, END]:
            output.changing[count] = node
            count += 1
        else:
            forgotten = _settle(output, node, time, gone, forgotten)
    sort_changing(output, count)
    for n in range(count):
        node = np.int64(output.changing[n])
        end, start = _wanted(mine, output, node, time), output.cells[node, START]
        place, given = output.cells[node, PLACE], output.cells[node, END]
        emit_adjust(out, place, start, given, start if end == ABSENT else end)
        output.cells[node, END] = end
        forgotten = _settle(output, node, time, gone, forgotten)
    emit_stable(out, time, NONE)
    return forgotten


@compiled
def _wanted(mine: Nodes, output: Nodes, node: int, time: int) -> Any:
    """The end that an event of the output has after a stable of an input, or ABSENT."""
    given, shown = output.cells[node, END], _same(mine, output, node)
    end = mine.cells[shown, END] if shown != NONE else np.int64(ABSENT)
    return given if end >= time and given >= time else end


@compiled
def _settle(output: Nodes, node: int, time: int, gone: Any, forgotten: int) -> int:
    """Forget an event of the output if it is final, else it is half frozen."""
    if output.cells[node, END] >= time and time != FOREVER:
        output.cells[node, STATE] = HALF
        _file_end(output, node, HALF)
        return forgotten
    gone[forgotten, 0] = output.cells[node, LOW]
    gone[forgotten, 1] = output.cells[node, HIGH]
    gone[forgotten, 2] = output.cells[node, START]
    delete(output, node)
    return forgotten + 1


@compiled
def merge(
    mine: Nodes,
    output: Nodes,
    elements: tuple[Any, Any, Any, Any],
    places: tuple[int, int],
    stable: int,
    out: Output,
    gone: Any,
    born: Any,
) -> tuple[int, int, int, int]:
    """Let an input say elements; the payload of row r stands at ``places`` + r of its index and the output's.

    Returns the stable, how many events came into each of the two indexes, and how many are gone.
    """
    kind, start, end, identity = elements
    ours, theirs, forgotten = 0, 0, 0
    for row in range(len(kind)):
        if kind[row] == STABLE:
            if start[row] > stable:
                stable = start[row]
                forgotten = _advance(mine, output, stable, out, gone, forgotten)
            continue
        low, high = np.int64(identity[row, 0]), np.int64(identity[row, 1])
        slot = _slot(output, low, high, start[row])
        if node_at(output, slot) == NONE:
            if kind[row] == ADJUST or start[row] < stable:
                continue
            node = _create(output, slot, low, high, start[row], places[1] + row)
            output.cells[node, END] = end[row]
            push(output.due, start[row], node)
            emit_insert(out, places[1] + row, start[row], end[row])
            born[1, theirs] = node
            theirs += 1
        slot = _slot(mine, low, high, start[row])
        node = node_at(mine, slot)
        if end[row] == start[row]:
            if node != NONE:
                delete(mine, node)
            continue
        if node == NONE:
            node = _create(mine, slot, low, high, start[row], places[0] + row)
            born[0, ours] = node
            ours += 1
        mine.cells[node, END] = end[row]
        _file_end(mine, node, UNFROZEN)
    return stable, ours, theirs, forgotten


@compiled
def forget(index: Nodes, keys: Any) -> None:
    """Forget the events with these payloads and starts, where there are such."""
    for row in range(len(keys)):
        low, high, start = keys[row, 0], keys[row, 1], keys[row, 2]
        node = node_at(index, _slot(index, low, high, start))
        if node != NONE:
            delete(index, node)
