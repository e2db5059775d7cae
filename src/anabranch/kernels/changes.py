"""Changes of a keyed table as elements: a row holds from the commit that brought it to the one that ended it.

Changes come in batches in which each is an insert from its commit time on, with its `Op` in ``old_end`` and
the identity of its key columns.

Changes of a log count in the order in which they come, and one that does not fit (an update of a row that is
not there) is handed back at once, with the reason. Others count in the order of commit time: one that is
late is put in its place, and the rows around it are adjusted. One that does not fit may do so when another
has come: it waits until a stable has passed it, and is then handed back.

At one commit time the changes of a key count in the order of their numbers where the rows have one. Else no
order of arrival may matter, as two feeds of one table have two: inserts come before updates and upserts, and
these before deletes, so that a delete wins; those of one kind are in the order of the identities of their
rows, an upsert before an update of the same row, which may need it. How often that decided is counted.

A row of a *snapshot* is there when it is read, and nobody knows since when: it holds from the beginning of
time, until `begin_at` says more. A row that is read *incrementally*, beside the log, says nothing where the
table shows the same values, and is an upsert where it does not.

Memory: the rows that are there, and of changes that are no log those since the frontier; each payload once.
None after stable(∞). Cost: constant per change, of a late one the changes of its key that are later.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anabranch.kernels.change_chains import (
    OP_DELETE,
    OP_INCREMENTAL,
    OP_INSERT,
    OP_SNAPSHOT,
    OP_UPDATE,
    OP_UPSERT,
    Chains,
    apply_changes,
    begin_at,
    forget,
    give_up,
    in_chains,
    places_at,
    restore,
    rows_there,
)
from anabranch.kernels.kernel import Refused, Report, Result, State
from anabranch.kernels.store.saved import version_of
from anabranch.model.application import INSERT
from anabranch.model.batch import Batch, concat
from anabranch.model.identity import Words, identities
from anabranch.model.origin import Origin
from anabranch.model.payloads import PayloadStore
from anabranch.model.rows import take_rows
from anabranch.model.slots import NONE
from anabranch.model.time import BEGINNING, FOREVER
from anabranch.model.validity import Rule

_RULES = (
    Rule.CHANGE_BEHIND_STABLE,
    Rule.EMPTY_LIFETIME,
    Rule.NO_SUCH_ROW,
    Rule.ROW_IS_THERE,
    Rule.NO_SUCH_ROW,
)
_DETAILS = (
    "the last stable is {known}",
    "this one commits at the end of time",
    "no row of its key is there",
    "a row of its key has been there since {known}",
    "this one commits before that, the row of its key has been there since {known} (a log counts in its "
    "order, with by_time=True in that of commits)",
)
_ROOM = 1024
_NO_ROWS = np.empty((0, 6), np.int64)
VERSION = 2


def changes(op: NDArray[np.int64], time: NDArray[np.int64], rows: pa.RecordBatch) -> Batch:
    """Changes as a batch: the rows after them, or of a delete those before, of which the key is enough."""
    return Batch(np.full(len(op), INSERT, np.int8), time, np.full(len(op), FOREVER), op, rows)


def _upserts(batch: Batch) -> Batch:
    upserts = changes(np.full(len(batch), OP_UPSERT), batch.start, batch.payload)
    return upserts.with_origin(batch.origin)


@dataclass(slots=True)
class Changes:
    """State: the changes of a table that still count, with their payloads, and how far they have come.

    >>> from anabranch.model.notation import text
    >>> rows = pa.RecordBatch.from_pylist([{"id": 1, "v": "a"}, {"id": 1, "v": "b"}])
    >>> table = Changes(["id"])
    >>> print(text(table.push("", changes(np.array([Op.INSERT, Op.UPDATE]), np.array([3, 5]), rows)).events))
    + {"id": 1, "v": "a"} [3, ∞)
    ~ {"id": 1, "v": "a"} [3, ∞) -> [3, 5)
    + {"id": 1, "v": "b"} [5, ∞)
    >>> (refused,) = table.push("", changes(np.array([Op.INSERT]), np.array([6]), rows[1:])).refused
    >>> refused.detail, int(refused.known[0])
    ('a row of its key has been there since {known}', 5)
    """

    held: ClassVar[bool] = False

    key: Sequence[str]
    """The columns that name a row."""
    by_time: bool = False
    """Changes count by commit time, and not as they come."""
    numbered: bool = False
    """By time, changes of one commit time count in the order of their numbers."""
    begins: bool = False
    """Rows of a snapshot are those that the table begins with."""
    frontier: int = BEGINNING
    """No later change commits before this."""
    ties: int = 0
    """How many changes met another of their key and commit time, without numbers to order them."""
    channels: list[str] = field(default_factory=list)
    """Where the changes that still count come from."""
    chains: Chains = field(default_factory=lambda: Chains.of_capacity(_ROOM), repr=False)
    payloads: PayloadStore = field(default_factory=PayloadStore, repr=False)

    @property
    def live(self) -> int:
        """How many rows are there, after all changes."""
        return int(rows_there(self.chains))

    @property
    def nbytes(self) -> int:
        """Bytes of state."""
        return sum(column.nbytes for column in self.chains) + self.payloads.nbytes

    def push(self, name: str, batch: Batch) -> Result:
        """The rows that changes stand for, each with the origin of the change that it comes of.

        Rows of a snapshot are those of the table while it ``begins``; later they are read incrementally.
        """
        if batch.origin is None:
            batch = batch.with_origin(Origin(np.arange(len(batch)), ordered=False))
        read = (batch.kind == INSERT) & (batch.old_end >= (OP_INCREMENTAL if self.begins else OP_SNAPSHOT))
        if not read.any():
            return self._push(batch)
        parts = []
        for rows in self._in_parts(batch, read):
            part = batch.take(rows)
            if read[rows[0]]:
                part = _upserts(part.take(self._news(part)))
            parts.append(self._push(part))
        refused = (group for part in parts for group in part.refused)
        return Result(concat([part.events for part in parts]), tuple(refused))

    def advance(self, name: str, time: int) -> Result:
        """No later change commits before a time; what waited, and fits no more, is refused."""
        nothing = self.payloads.none()
        if time <= self.frontier:
            return Result(self._elements(_NO_ROWS, nothing, None))
        self.frontier = time
        unfit = np.empty((self.chains.waiting, 7), np.int64)
        refused = self._refused(unfit[: give_up(self.chains, time, unfit)], nothing)
        self._forget_what_is_gone(nothing, np.empty(0, np.int32))
        return Result(self._elements(_NO_ROWS, nothing, None), refused)

    def begin_at(self, keys: Words, time: NDArray[np.int64]) -> None:
        """The rows of these keys that a snapshot brought have been there since these times."""
        begin_at(self.chains, keys, time)

    def _in_parts(self, batch: Batch, read: NDArray[np.bool_]) -> Iterator[NDArray[np.int64]]:
        """Rows that are read apart from those that are not, and of one key at most once."""
        keys = batch.told_apart_by(self.key).identities
        for rows in np.split(np.arange(len(batch)), np.flatnonzero(np.diff(read)) + 1):
            if read[rows[0]] and len(np.unique(keys[rows], axis=0)) < len(rows):
                yield from np.split(rows, len(rows))
            else:
                yield rows

    def _news(self, batch: Batch) -> NDArray[np.int64]:
        """Which rows show other values than the table at their times."""
        keys, places = batch.told_apart_by(self.key).identities, np.empty(len(batch), np.int64)
        payload = self.payloads.admit(batch.payload)
        places_at(self.chains, keys, batch.start, places)
        same = places != NONE
        known = identities(self.payloads.at(places[same]))
        same[same] = (identities(take_rows(payload, np.flatnonzero(same))) == known).all(axis=1)
        return np.flatnonzero(~same)

    def _push(self, batch: Batch) -> Result:
        assert batch.origin is not None
        keys = batch.told_apart_by(self.key).identities
        payload = self.payloads.admit(batch.payload)
        self.chains = self.chains.with_room(len(batch), self.frontier)
        columns = batch.kind, batch.start, batch.old_end, keys
        rank = self._ranks(batch.old_end, batch.payload, batch.origin.number)
        source = batch.origin.number, self._codes(batch.origin), rank, not self.by_time
        brought = np.empty(len(batch), np.int32)
        elements, refused = [_NO_ROWS], [np.empty((0, 7), np.int64)]
        row, births, room = 0, 0, 2 * len(batch)
        while row < len(batch):
            out, unfit = np.empty((room, 6), np.int64), np.empty((len(batch) - row, 7), np.int64)
            row, said, left, born, ties = apply_changes(
                self.chains,
                columns,
                source,
                row,
                self.payloads.next_place,
                self.frontier,
                out,
                unfit,
                brought[births:],
            )
            births, room = births + born, 2 * room
            self.ties += 0 if self.numbered or not self.by_time else ties
            elements.append(out[:said])
            refused.append(unfit[:left])
        events = self._elements(np.concatenate(elements), payload, batch.origin)
        result = Result(events, self._refused(np.concatenate(refused), payload))
        self._forget_what_is_gone(payload, brought[:births])
        return result

    def _ranks(
        self, op: NDArray[np.int64], rows: pa.RecordBatch, number: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """The order of changes of one key at one time: their numbers, or what follows from what they are."""
        if self.numbered or not self.by_time:
            return number
        words = (identities(rows)[:, 0] >> np.uint64(3)).astype(np.int64) & ~1 | (op == OP_UPDATE)
        return words | np.where(op == OP_DELETE, 2, op != OP_INSERT).astype(np.int64) << 61

    def _codes(self, origin: Origin) -> NDArray[np.int32]:
        """Of each change the number of its channel here."""
        codes = np.zeros(len(origin.channels), np.int32)
        for channel in [0] if origin.channel is None else np.unique(origin.channel).tolist():
            name = origin.channels[channel]
            if name not in self.channels:
                self.channels.append(name)
            codes[channel] = self.channels.index(name)
        return codes[origin.of_channels()]

    def _elements(self, out: NDArray[np.int64], payload: pa.RecordBatch, origin: Origin | None) -> Batch:
        kind, place, start, end, old_end, row = np.ascontiguousarray(out.T)
        elements = Batch(kind.astype(np.int8), start, end, old_end, self.payloads.rows_at(place, payload))
        return elements if origin is None else elements.with_origin(origin.take(row))

    def _refused(self, refused: NDArray[np.int64], payload: pa.RecordBatch) -> tuple[Refused, ...]:
        """What does not fit, by the reason, in the order of channels and numbers."""
        found = []
        for reason in np.unique(refused[:, 5]).tolist():
            rows = refused[refused[:, 5] == reason]
            rows = rows[np.lexsort((rows[:, 3], rows[:, 4]))]
            op, time, place, number, channel, _, known = np.ascontiguousarray(rows.T)
            origin = Origin(number, channel.astype(np.int32), tuple(self.channels))
            batch = changes(op, time, self.payloads.rows_at(place, payload)).with_origin(origin)
            found.append(Refused(_RULES[reason], batch, known, _DETAILS[reason]))
        return tuple(found)

    def _forget_what_is_gone(self, payload: pa.RecordBatch, brought: NDArray[np.int32]) -> None:
        if self.frontier == FOREVER:
            self.chains, self.payloads = Chains.of_capacity(_ROOM), PayloadStore(self.payloads.columns)
            return
        self.payloads.adopt(payload, self.chains.place, brought)
        if self.payloads.crowded(self.chains.used):
            self.payloads.compact(self.chains.place, self.chains.live())

    def report(self) -> Report:
        """What is held."""
        return Report(self.live, self.nbytes, {"in doubt": self.chains.waiting, "tied": self.ties})

    def saved(self) -> State:
        """All of the state: how far it is, and the changes as two record batches, payloads apart."""
        forget(self.chains, self.frontier)
        nodes = np.empty(self.chains.used, np.int64)
        in_chains(self.chains, nodes)
        columns = {name: getattr(self.chains, name)[nodes] for name in _SAVED}
        payload = self.payloads.at(self.chains.place[nodes])
        values = {
            "key": list(self.key),
            "frontier": self.frontier,
            "channels": self.channels,
            "begins": self.begins,
            "ties": self.ties,
        }
        return State(VERSION, values, [pa.RecordBatch.from_pydict(columns), payload])

    @classmethod
    def load(cls, saved: State, *, by_time: bool = False, numbered: bool = False) -> "Changes":
        """The kernel whose state was saved; from here on it gives the same elements."""
        _, values, (rows, payload) = version_of(saved, VERSION, "changes()")
        state = cls(by_time=by_time, numbered=numbered, **values)
        state.payloads.add(state.payloads.admit(payload))
        state.chains = state.chains.with_room(len(rows), state.frontier)
        columns = [rows.column(name).to_numpy() for name in _SAVED]
        rank = state._ranks(rows.column("op").to_numpy().astype(np.int64), payload, columns[5])
        restore(state.chains, (columns[0], columns[1]), (*columns[2:], rank))
        return state


_SAVED = {
    "low": np.uint64,
    "high": np.uint64,
    "time": np.int64,
    "op": np.int8,
    "fits": np.int8,
    "number": np.int64,
    "channel": np.int32,
}
"""The columns of a node that a dump has."""
