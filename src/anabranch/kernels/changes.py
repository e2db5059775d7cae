"""Changes of a keyed table as elements: a row holds from the commit that brought it to the one that ended it.

Changes come in batches in which each is an insert from its commit time on, with its `Op` in ``old_end`` and
the identity of its key columns; stables are progress.

Changes of a log count in the order in which they come, and one that does not fit (an update of a row that is
not there) is handed back at once, with the reason. Others count in the order of commit time, and at one time
as they come or are numbered: one that is late is put in its place, and the rows around it are adjusted. One
that does not fit may do so when another has come: it waits until a stable has passed it, and is then handed
back.

A row of a *snapshot* is there when it is read, and nobody knows since when: it holds from the beginning of
time, until `begin_at` says more. A row that is read *incrementally*, beside the log, says nothing where the
table shows the same values, and is an upsert where it does not.

Memory: the rows that are there, and of changes that are no log those since the frontier; each payload once.
None after stable(∞). Cost: constant per change, of a late one the changes of its key that are later.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anabranch.kernels.change_chains import (
    OP_INCREMENTAL,
    OP_SNAPSHOT,
    OP_UPSERT,
    Chains,
    apply_changes,
    begin_at,
    forget,
    in_chains,
    places_at,
    restore,
    rows_there,
)
from anabranch.model.application import INSERT
from anabranch.model.batch import Batch, concat
from anabranch.model.identity import Words, identities
from anabranch.model.payloads import PayloadStore
from anabranch.model.rows import take_rows
from anabranch.model.slots import NOBODY
from anabranch.model.time import BEGINNING, FOREVER, tick_text
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


def changes(op: NDArray[np.int64], time: NDArray[np.int64], rows: pa.RecordBatch) -> Batch:
    """Changes as a batch: the rows after them, or of a delete those before, of which the key is enough."""
    return Batch(np.full(len(op), INSERT, np.int8), time, np.full(len(op), FOREVER), op, rows)


def _upserts(batch: Batch) -> Batch:
    return changes(np.full(len(batch), OP_UPSERT), batch.start, batch.payload)


@dataclass(frozen=True, slots=True)
class Refused:
    """Changes that do not fit, of this batch or of an earlier one."""

    changes: Batch
    channel: Sequence[str]
    number: NDArray[np.int64]
    """Which row of its channel each was."""
    reason: NDArray[np.int64]
    known: NDArray[np.int64]
    """What it does not fit with: the frontier, or since when there is a row of the key."""

    def __len__(self) -> int:
        return len(self.number)

    @classmethod
    def joined(cls, parts: Sequence["Refused"]) -> "Refused":
        """Those of several batches, one after the other."""
        columns = [
            np.concatenate([getattr(part, name) for part in parts]) for name in ("number", "reason", "known")
        ]
        names = [name for part in parts for name in part.channel]
        return cls(concat([part.changes for part in parts]), names, *columns)

    def rule(self, n: int) -> Rule:
        """The rule that one of them breaks."""
        return _RULES[self.reason[n]]

    def detail(self, n: int) -> str:
        """The values that break it."""
        return _DETAILS[self.reason[n]].format(known=tick_text(int(self.known[n])))


@dataclass(frozen=True, slots=True)
class Told:
    """What a batch of changes stands for, and which do not fit and never will."""

    elements: Batch
    origin: NDArray[np.int64]
    """For each element the change it comes of, as a row of the batch."""
    refused: Refused


@dataclass(slots=True)
class Changes:
    """State: the changes of a table that still count, with their payloads, and how far they have come.

    >>> from anabranch.model.notation import text
    >>> from anabranch.model.op import Op
    >>> rows = pa.RecordBatch.from_pylist([{"id": 1, "v": "a"}, {"id": 1, "v": "b"}])
    >>> table = Changes(["id"])
    >>> told = table.push(changes(np.array([Op.INSERT, Op.UPDATE]), np.array([3, 5]), rows))
    >>> print(text(told.elements.elements()))
    + {"id": 1, "v": "a"} [3, ∞)
    ~ {"id": 1, "v": "a"} [3, ∞) -> [3, 5)
    + {"id": 1, "v": "b"} [5, ∞)
    >>> told = table.push(changes(np.array([Op.INSERT]), np.array([6]), rows[1:]))
    >>> told.refused.detail(0)
    'a row of its key has been there since 5'
    """

    key: Sequence[str]
    """The columns that name a row."""
    by_time: bool = False
    """Changes count by commit time, and not as they come."""
    frontier: int = BEGINNING
    """No later change commits before this."""
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

    def push(
        self,
        batch: Batch,
        numbers: NDArray[np.int64] | None = None,
        channel: str = "",
        *,
        ordered: bool = False,
        begins: bool = False,
    ) -> Told:
        """What changes and progress stand for; with ``numbers`` they are these rows of a channel.

        By time, those of one commit time count in the order of their numbers where the channel is ordered.
        Rows of a snapshot are those of the table where it ``begins``; later they are read incrementally.
        """
        numbers = np.arange(len(batch)) if numbers is None else numbers
        read = (batch.kind == INSERT) & (batch.old_end >= (OP_INCREMENTAL if begins else OP_SNAPSHOT))
        if not read.any():
            return self._push(batch, numbers, channel, ordered=ordered)
        parts, places = [], []
        for rows in self._in_parts(batch, read):
            part = batch.take(rows)
            news = self._news(part) if read[rows[0]] else np.arange(len(rows))
            part = _upserts(part.take(news)) if read[rows[0]] else part
            parts.append(self._push(part, numbers[rows[news]], channel, ordered=ordered))
            places.append(rows[news[parts[-1].origin]])
        return Told(
            concat([part.elements for part in parts]),
            np.concatenate(places),
            Refused.joined([part.refused for part in parts]),
        )

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
        same = places != NOBODY
        known = identities(self.payloads.at(places[same]))
        same[same] = (identities(take_rows(payload, np.flatnonzero(same))) == known).all(axis=1)
        return np.flatnonzero(~same)

    def _push(self, batch: Batch, numbers: NDArray[np.int64], channel: str, *, ordered: bool) -> Told:
        keys = batch.told_apart_by(self.key).identities
        payload = self.payloads.admit(batch.payload)
        self.chains = self.chains.with_room(len(batch), self.frontier)
        columns = batch.kind, batch.start, batch.old_end, keys
        source = numbers, self._code(channel), not self.by_time, self.by_time and ordered
        brought = np.empty(len(batch), np.int32)
        elements, refused = [np.empty((0, 6), np.int64)], [np.empty((0, 7), np.int64)]
        row, births, room = 0, 0, 2 * len(batch)
        while row < len(batch):
            out = np.empty((room, 6), np.int64)
            unfit = np.empty((len(batch) + self.chains.waiting, 7), np.int64)
            row, self.frontier, said, left, born = apply_changes(
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
            elements.append(out[:said])
            refused.append(unfit[:left])
        told = self._told(np.concatenate(elements), np.concatenate(refused), payload)
        self._forget_what_is_gone(payload, brought[:births])
        return told

    def _code(self, channel: str) -> int:
        if channel not in self.channels:
            self.channels.append(channel)
        return self.channels.index(channel)

    def _told(self, out: NDArray[np.int64], refused: NDArray[np.int64], payload: pa.RecordBatch) -> Told:
        kind, place, start, end, old_end, origin = np.ascontiguousarray(out.T)
        rows = self.payloads.rows_at(place, payload)
        elements = Batch(kind.astype(np.int8), start, end, old_end, rows)
        order = np.lexsort((refused[:, 3], refused[:, 4]))
        op, time, place, number, channel, reason, known = np.ascontiguousarray(refused[order].T)
        unfit = changes(op, time, self.payloads.rows_at(place, payload))
        names = [self.channels[n] for n in channel.tolist()]
        return Told(elements, origin, Refused(unfit, names, number, reason, known))

    def _forget_what_is_gone(self, payload: pa.RecordBatch, brought: NDArray[np.int32]) -> None:
        if self.frontier == FOREVER:
            self.chains, self.payloads = Chains.of_capacity(_ROOM), PayloadStore(self.payloads.columns)
            return
        self.payloads.adopt(payload, self.chains.place, brought)
        if self.payloads.crowded(self.chains.used):
            self.payloads.compact(self.chains.place, self.chains.live())

    def dump(self) -> tuple[dict[str, Any], list[pa.RecordBatch]]:
        """The state as plain data: how far it is, and the changes as two record batches, payloads apart."""
        forget(self.chains, self.frontier)
        nodes = np.empty(self.chains.used, np.int64)
        in_chains(self.chains, nodes)
        columns = {name: getattr(self.chains, name)[nodes] for name in _SAVED}
        payload = self.payloads.at(self.chains.place[nodes])
        values = {"key": list(self.key), "frontier": self.frontier, "channels": self.channels}
        return values, [pa.RecordBatch.from_pydict(columns), payload]

    @classmethod
    def load(
        cls, metadata: dict[str, Any], batches: list[pa.RecordBatch], *, by_time: bool = False
    ) -> "Changes":
        """The state that was dumped; from here on it gives the same elements."""
        rows, payload = batches
        state = cls(by_time=by_time, **metadata)
        state.payloads.add(state.payloads.admit(payload))
        state.chains = state.chains.with_room(len(rows), state.frontier)
        saved = {name: rows.column(name).to_numpy() for name in rows.schema.names}
        if "since" in saved:  # as written before changes could come late: only the rows that are there
            state.channels = [""]
            saved |= {"time": saved["since"], "fits": np.ones(len(rows), np.int8)}
        nothing = np.zeros(len(rows), np.int64)
        columns = [saved.get(name, nothing).astype(_SAVED[name]) for name in _SAVED]
        restore(state.chains, (columns[0], columns[1]), tuple(columns[2:]))
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
