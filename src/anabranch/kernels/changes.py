"""Changes of a keyed table as elements: a row holds from the commit that brought it to the one that ended it.

Changes come in batches in which each is an insert from its commit time on, with its `Op` in ``old_end`` and
the identity of its key columns; stables are progress. `model/dialects/change_rows.py` gives the same elements
from objects; here a change that does not fit changes nothing and is handed back with the reason, and upsert
is an update where the row is there, an insert where it is not.

Memory: the rows that are there, each payload once; none after stable(∞). Cost: constant per change.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anabranch.model.application import ADJUST, INSERT, STABLE
from anabranch.model.batch import Batch
from anabranch.model.compiled import compiled, inlined
from anabranch.model.payloads import PayloadStore
from anabranch.model.slots import NOBODY, TAG_MASK, link_all, node_in, slot_of, tag_in, vacate_slot
from anabranch.model.time import BEGINNING, FOREVER, tick_text
from anabranch.model.validity import Rule


class Op(IntEnum):
    """What happens to a row, as a number in a column."""

    INSERT = 0
    UPDATE = 1
    DELETE = 2
    UPSERT = 3


_INSERT, _DELETE, _UPSERT = int(Op.INSERT), int(Op.DELETE), int(Op.UPSERT)

FITS = -1
BEHIND, AT_THE_END, NOT_THERE, NOT_YET, THERE = range(5)
_RULES = (
    Rule.CHANGE_BEHIND_STABLE,
    Rule.EMPTY_LIFETIME,
    Rule.NO_SUCH_ROW,
    Rule.NO_SUCH_ROW,
    Rule.ROW_IS_THERE,
)
_DETAILS = (
    "the last stable is {known}",
    "this one commits at the end of time",
    "no row of its key is there",
    "this one commits before that, the row of its key has been there since {known}",
    "a row of its key has been there since {known}",
)


def changes(op: NDArray[np.int64], time: NDArray[np.int64], rows: pa.RecordBatch) -> Batch:
    """Changes as a batch: the rows after them, or of a delete those before, of which the key is enough."""
    return Batch(np.full(len(op), INSERT, np.int8), time, np.full(len(op), FOREVER), op, rows)


class RowTable(NamedTuple):
    """State: the rows that are there, by the identity of their keys, as an open-addressing table."""

    slots: NDArray[np.int64]
    low: NDArray[np.uint64]
    high: NDArray[np.uint64]
    since: NDArray[np.int64]
    place: NDArray[np.int64]
    """Where the payload stands; NOBODY for a node that is free."""
    free: NDArray[np.int32]
    unused: NDArray[np.int64]
    """How high the stack of free nodes is, as an array of one."""

    @classmethod
    def of_capacity(cls, capacity: int) -> "RowTable":
        """No rows, with room for this many (a power of two)."""
        return cls(
            slots=np.full(2 * capacity, NOBODY, np.int64),
            low=np.zeros(capacity, np.uint64),
            high=np.zeros(capacity, np.uint64),
            since=np.zeros(capacity, np.int64),
            place=np.full(capacity, NOBODY, np.int64),
            free=np.arange(capacity, dtype=np.int32)[::-1].copy(),
            unused=np.array([capacity], np.int64),
        )

    @property
    def capacity(self) -> int:
        """How many rows fit."""
        return len(self.free)

    @property
    def used(self) -> int:
        """How many rows there are."""
        return self.capacity - int(self.unused[0])

    def live(self) -> NDArray[np.int64]:
        """The nodes that hold a row."""
        return np.flatnonzero(self.place != NOBODY)

    def with_room(self, more: int) -> "RowTable":
        """The same rows, each at the same node, with room for this many more."""
        if more <= self.unused[0]:
            return self
        larger = RowTable.of_capacity(1 << (self.used + more - 1).bit_length())
        for column in ("low", "high", "since", "place"):
            getattr(larger, column)[: self.capacity] = getattr(self, column)
        new, unused = larger.capacity - self.capacity, int(self.unused[0])
        larger.free[new : new + unused] = self.free[:unused]
        larger.unused[0] = new + unused
        link_all(self.slots, larger.slots)
        return larger


@dataclass(frozen=True, slots=True)
class Told:
    """What a batch of changes stands for, and which of them do not fit."""

    elements: Batch
    origin: NDArray[np.int64]
    """For each element the change it comes of, as a row of the batch."""
    refused: NDArray[np.int64]
    """The changes that do not fit."""
    reason: NDArray[np.int64]
    known: NDArray[np.int64]
    """What they do not fit with: the frontier, or since when there is a row of the key."""

    def rule(self, number: int) -> Rule:
        """The rule that one of those that do not fit breaks."""
        return _RULES[self.reason[number]]

    def detail(self, number: int) -> str:
        """The values that break it."""
        return _DETAILS[self.reason[number]].format(known=tick_text(int(self.known[number])))


@dataclass(slots=True)
class Changes:
    """State: the rows of a table that are there, with their payloads, and how far its changes have come.

    >>> from anabranch.model.notation import text
    >>> rows = pa.RecordBatch.from_pylist([{"id": 1, "v": "a"}, {"id": 1, "v": "b"}, {"id": 2}])
    >>> table = Changes(["id"])
    >>> told = table.push(changes(np.array([Op.INSERT, Op.UPDATE, Op.DELETE]), np.array([3, 5, 6]), rows))
    >>> print(text(told.elements.elements()))
    + {"id": 1, "v": "a"} [3, ∞)
    ~ {"id": 1, "v": "a"} [3, ∞) -> [3, 5)
    + {"id": 1, "v": "b"} [5, ∞)
    >>> told.refused.tolist(), told.detail(0)
    ([2], 'no row of its key is there')
    """

    key: Sequence[str]
    """The columns that name a row."""
    frontier: int = BEGINNING
    """No later change commits before this."""
    rows: RowTable = field(default_factory=lambda: RowTable.of_capacity(1024), repr=False)
    payloads: PayloadStore = field(default_factory=PayloadStore, repr=False)

    @property
    def live(self) -> int:
        """How many rows are there."""
        return self.rows.used

    @property
    def nbytes(self) -> int:
        """Bytes of state."""
        return sum(column.nbytes for column in self.rows) + self.payloads.nbytes

    def push(self, batch: Batch) -> Told:
        """What changes and progress stand for."""
        keys = batch.told_apart_by(self.key).identities
        payload = self.payloads.admit(batch.payload)
        self.rows = self.rows.with_room(len(batch))
        out = np.empty((2 * len(batch), 5), np.int64)
        refused = np.empty((len(batch), 3), np.int64)
        brought = np.empty(len(batch), np.int32)
        self.frontier, said, unfit, births = apply_changes(
            self.rows,
            (batch.kind, batch.start, batch.old_end, keys),
            self.payloads.next_place,
            self.frontier,
            out,
            refused,
            brought,
        )
        kind, place, start, end, origin = np.ascontiguousarray(out[:said].T)
        elements = Batch(
            kind.astype(np.int8),
            start,
            end,
            np.where(kind == ADJUST, FOREVER, 0),
            self.payloads.rows_at(place, payload),
        )
        self._forget_what_is_gone(payload, brought[:births])
        return Told(elements, origin, *np.ascontiguousarray(refused[:unfit].T))

    def _forget_what_is_gone(self, payload: pa.RecordBatch, brought: NDArray[np.int32]) -> None:
        if self.frontier == FOREVER:
            self.rows, self.payloads = RowTable.of_capacity(1024), PayloadStore(self.payloads.schema)
            return
        self.payloads.adopt(payload, self.rows.place, brought)
        if self.payloads.crowded(self.rows.used):
            self.payloads.compact(self.rows.place, self.rows.live())

    def dump(self) -> tuple[dict[str, Any], list[pa.RecordBatch]]:
        """The state as plain data: how far it is, and the rows as two record batches, payloads apart."""
        nodes = self.rows.live()
        columns = {name: getattr(self.rows, name)[nodes] for name in ("low", "high", "since")}
        payload = self.payloads.at(self.rows.place[nodes])
        return {"key": list(self.key), "frontier": self.frontier}, [
            pa.RecordBatch.from_pydict(columns),
            payload,
        ]

    @classmethod
    def load(cls, metadata: dict[str, Any], batches: list[pa.RecordBatch]) -> "Changes":
        """The state that was dumped; from here on it gives the same elements."""
        rows, payload = batches
        state = cls(**metadata)
        state.payloads.add(state.payloads.admit(payload))
        state.rows = state.rows.with_room(len(rows))
        _restore(state.rows, *(rows.column(name).to_numpy() for name in ("low", "high", "since")))
        return state


@inlined
def _tag_of(low: Any) -> Any:
    """31 bits of a key; an identity is a hash, so its lowest bits are a home among the slots."""
    return np.int64(low & TAG_MASK)


@compiled
def _find(table: RowTable, low: Any, high: Any) -> Any:
    """The slot of the row of this key, or the empty slot where it would go."""
    mask, tag = len(table.slots) - 1, _tag_of(low)
    slot = tag & mask
    while table.slots[slot] >= 0:
        if tag_in(table.slots[slot]) == tag:
            node = node_in(table.slots[slot])
            if table.low[node] == low and table.high[node] == high:
                break
        slot = (slot + 1) & mask
    return slot


@compiled
def _occupy(table: RowTable, slot: int, low: Any, high: Any, since: int, place: int) -> Any:
    """Put a row into an empty slot; its node."""
    table.unused[0] -= 1
    node = np.int64(table.free[table.unused[0]])
    table.slots[slot] = slot_of(_tag_of(low), node)
    table.low[node], table.high[node] = low, high
    table.since[node], table.place[node] = since, place
    return node


@compiled
def _vacate(table: RowTable, slot: int) -> None:
    """Free the node of a slot."""
    node = node_in(table.slots[slot])
    table.place[node] = NOBODY
    table.free[table.unused[0]] = node
    table.unused[0] += 1
    vacate_slot(table.slots, slot)


@inlined
def _reason(op: int, time: int, frontier: int, is_there: bool, since: int) -> Any:
    """Why a change does not fit, or that it does."""
    if time == FOREVER:
        return AT_THE_END
    if time < frontier:
        return BEHIND
    if op == _INSERT:
        return THERE if is_there else FITS
    if not is_there:
        return FITS if op == _UPSERT else NOT_THERE
    return FITS if since <= time else NOT_YET


@compiled
def apply_changes(
    table: RowTable,
    batch: tuple[Any, Any, Any, Any],
    place: int,
    frontier: int,
    out: Any,
    refused: Any,
    brought: Any,
) -> tuple[int, int, int, int]:
    """Apply changes and progress in order; there is room for all that may come of them.

    ``batch`` are the columns kind, time, op and key; the payload of row r stands at ``place + r``. A row of
    the output is (kind, place of the payload, start, end, row of the batch), one of what is refused (row of
    the batch, reason, what it does not fit with). Returns the frontier, how many rows are out, how many are
    refused, and how many nodes ``brought`` names: those of rows that came, of which some have left again.
    """
    kind, time, op, key = batch
    said = unfit = births = 0
    for row in range(len(kind)):
        at = time[row]
        if kind[row] == STABLE:
            frontier = max(frontier, at)
            out[said] = STABLE, NOBODY, at, 0, row
            said += 1
            continue
        low, high = key[row, 0], key[row, 1]
        slot = _find(table, low, high)
        node = node_in(table.slots[slot])
        is_there = node != NOBODY
        since = table.since[node] if is_there else frontier
        reason = _reason(op[row], at, frontier, is_there, since)
        if reason != FITS:
            refused[unfit] = row, reason, frontier if reason == BEHIND else since
            unfit += 1
            continue
        if is_there:
            out[said] = ADJUST, table.place[node], since, at, row
            said += 1
        if op[row] == _DELETE:
            _vacate(table, slot)
            continue
        out[said] = INSERT, place + row, at, FOREVER, row
        said += 1
        if not is_there:
            node = _occupy(table, slot, low, high, at, place)
        if not is_there or table.place[node] < place:
            brought[births] = node
            births += 1
        table.since[node], table.place[node] = at, place + row
    return frontier, said, unfit, births


@compiled
def _restore(table: RowTable, low: Any, high: Any, since: Any) -> None:
    """Put rows into an empty table, the payload of row r at place r."""
    for row in range(len(low)):
        _occupy(table, _find(table, low[row], high[row]), low[row], high[row], since[row], row)
