"""A table of current values: for each key the payload of its latest event.

    sensor  level  valid_from  _key   _fallback
    a       1.6    10:05       9c44…  [{payload: {a, 1.5}, valid_from: 10:00, copies: 1}, {…}]
    b       7.1    10:04       51d0…  null

The latest event is the one with the greatest start; of several the one with the greatest identity, which does
not depend on the order in which they came. Where an event is taken back, its key falls back to the one
before. That one is in the row itself: ``_fallback`` has all events of the key that may still become, or cease
to be, the latest, or is null where there is no other. So a micro-batch is one commit to one table, which is
right at every version of it; a reader never sees a key without what it falls back to, and a version that is
restored has the fallbacks of its time. A history beside it would take a second commit, and a search for the
last event of a key, which may be in any of its files.

Memory: after a stable at t no event that starts before t is removed any more, so of those only the last is
kept. A key that is quiet holds its row and no more; one that is busy the events since the last stable.
``_key`` is the identity of the key columns, so that rows are found by one comparison.

Cost: the table has one row per key, and the rows of the keys that change are read and written once.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from anabranch.connectors.tables.micro_batch import MicroBatch, ids_of, in_one, ticks_of, words_of
from anabranch.connectors.tables.table_error import TableError
from anabranch.connectors.tables.views import FROM, Change, Changes, Find, Wanted, check_names, codes, missing
from anabranch.model.clock_columns import times
from anabranch.model.events import Events
from anabranch.model.identity import Words, identities
from anabranch.model.spelling import did_you_mean
from anabranch.model.time import FOREVER

KEY, FALLBACK = "_key", "_fallback"


@dataclass(frozen=True)
class Current:
    """The latest event of each key is a row."""

    payload: pa.Schema
    clock: pa.DataType
    key: tuple[str, ...]
    open_only: bool = False
    """An event that has an end does not count."""
    final: bool = False
    """No event is ever taken back."""
    kind = "current"
    by = (KEY,)

    def __post_init__(self) -> None:
        check_names(self.payload.names, (FROM, KEY, FALLBACK), self.kind)
        unknown = [name for name in self.key if name not in self.payload.names]
        if unknown or not self.key:
            meant = did_you_mean(unknown[0], self.payload.names) if unknown else ""
            wrong = f"{unknown[0]!r} is none{meant}" if unknown else "none is named"
            error = TableError(f"the current values of a stream are by a key of payload columns, and {wrong}")
            error.add_note(f"Give key=(…) with names out of {', '.join(map(repr, self.payload.names))}.")
            raise error

    @property
    def schema(self) -> pa.Schema:
        """The payload, since when it holds, and what the key falls back to."""
        own = [
            pa.field(FROM, self.clock),
            pa.field(KEY, pa.binary()),
            pa.field(FALLBACK, pa.list_(self._held)),
        ]
        return pa.schema([*self.payload, *own])

    @property
    def _held(self) -> pa.DataType:
        return pa.struct(
            [("payload", pa.struct(list(self.payload))), (FROM, self.clock), ("copies", pa.int64())]
        )

    def changes(self, batch: MicroBatch, find: Find) -> Changes:
        """For each key that an event comes to or goes from, what its row is then."""
        net = self._counted(batch.net)
        if not len(net):
            return Changes(self.schema.empty_table(), np.zeros(0, np.int8))
        columns = [in_one(net.payload.column(name)) for name in self.key]
        keys = identities(pa.RecordBatch.from_arrays(columns, names=self.key))
        there = find(Wanted(KEY, ids_of(np.unique(keys, axis=0)), tuple(self.schema.names)))
        payload = in_one(net.payload.to_struct_array()).cast(pa.struct(list(self.payload)))
        coming = _Events(payload, net.start, net.count, net.identity, keys)
        every = coming.and_then(_held(there, self.payload)).summed()
        if every.copies.min() < 0:
            short = int(every.copies.argmin())
            raise missing(every.payload[short].as_py(), int(every.start[short]), self.clock)
        return self._rows(every, words_of(there.column(KEY)), batch.frontier)

    def _counted(self, net: Events) -> Events:
        """How many more or fewer events there are of each payload and start, of those that count."""
        count = np.where(net.end == FOREVER, net.count, 0) if self.open_only else net.count
        event = codes(net.identity[:, 0], net.identity[:, 1], net.start)
        total = np.zeros(len(event), np.int64)
        np.add.at(total, event, count)
        _, first = np.unique(event, return_index=True)
        changed = total[: len(first)] != 0
        return net.take(first[changed], total[: len(first)][changed])

    def _kept(self, every: "_Events", frontier: int) -> NDArray[np.int64]:
        """The events that a key may come to show: of those that stay for good the last, and all others."""
        there = np.flatnonzero(every.copies > 0)
        if self.open_only and not self.final:  # an end may still come to an event that has none
            return there
        stays = (every.start[there] < frontier) | self.final
        last = np.ones(len(there), np.bool_)
        last[:-1] = ~stays[1:] | (every.key[there][1:] != every.key[there][:-1]).any(axis=1)
        every.copies[there[stays]] = 1  # none of them goes any more, so how many there are does not matter
        return there[~stays | last]

    def _rows(self, every: "_Events", before: Words, frontier: int) -> Changes:
        words = np.concatenate([every.key, before])
        key = codes(words[:, 0], words[:, 1])
        was = np.bincount(key[len(every.start) :], minlength=key.max() + 1) > 0
        kept = self._kept(every, frontier)
        size = np.bincount(key[kept], minlength=len(was))
        latest = np.empty(len(was), np.int64)
        latest[key[: len(every.start)]] = np.arange(len(every.start))
        latest[key[kept]] = kept
        alone = (size == 1) & (every.copies[latest] == 1)

        stay, gone = np.flatnonzero(size), np.flatnonzero((size == 0) & was)
        rows, listed = np.concatenate([stay, gone]), kept[~alone[key[kept]]]
        lengths = np.where(alone[rows], 0, size[rows])
        fallback = pa.ListArray.from_arrays(
            pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int32()),
            every.take(listed).as_structs(self._held),
            mask=pa.array(lengths == 0),
        )
        shown = every.take(latest[rows])
        columns = [*shown.payload.flatten(), shown.times(self.clock), ids_of(shown.key), fallback]
        change = np.where(size[rows] == 0, Change.DELETE, np.where(was[rows], Change.UPDATE, Change.INSERT))
        return Changes(pa.Table.from_arrays(columns, schema=self.schema), change.astype(np.int8))


@dataclass(frozen=True)
class _Events:
    """Events of keys, with how many copies there are of each."""

    payload: Any
    start: NDArray[np.int64]
    copies: NDArray[np.int64]
    identity: Words
    key: Words

    def and_then(self, others: "_Events") -> "_Events":
        return _Events(
            pa.concat_arrays([self.payload, others.payload]),
            np.concatenate([self.start, others.start]),
            np.concatenate([self.copies, others.copies]),
            np.concatenate([self.identity, others.identity]),
            np.concatenate([self.key, others.key]),
        )

    def take(self, rows: NDArray[np.int64]) -> "_Events":
        return _Events(
            self.payload.take(pa.array(rows)),
            self.start[rows],
            self.copies[rows],
            self.identity[rows],
            self.key[rows],
        )

    def summed(self) -> "_Events":
        """Each event once with the sum of its copies, by key, start and identity."""
        event = codes(*self.key.T, self.start, *self.identity.T)
        _, first = np.unique(event, return_index=True)
        copies = np.zeros(len(first), np.int64)
        np.add.at(copies, event, self.copies)
        return replace(self.take(first), copies=copies)

    def times(self, clock: pa.DataType) -> Any:
        return times(self.start, np.zeros(len(self.start), np.bool_), clock)

    def as_structs(self, held: pa.DataType) -> Any:
        columns = [self.payload, self.times(held.field(FROM).type), pa.array(self.copies)]
        return pa.StructArray.from_arrays(columns, fields=list(held))


def _held(rows: pa.Table, payload: pa.Schema) -> _Events:
    """The events that rows of the table hold."""
    alone = rows.filter(pc.is_null(rows.column(FALLBACK)))
    listed = rows.filter(pc.is_valid(rows.column(FALLBACK)))
    lists = in_one(listed.column(FALLBACK))
    payloads, starts, copies = pc.list_flatten(lists).flatten()
    shown = in_one(alone.select(payload.names).to_struct_array())
    every = pa.concat_arrays([shown.cast(pa.struct(list(payload))), payloads.cast(pa.struct(list(payload)))])
    return _Events(
        every,
        np.concatenate([ticks_of(alone.column(FROM)), ticks_of(starts)]),
        np.concatenate([np.ones(alone.num_rows, np.int64), copies.to_numpy()]),
        identities(pa.RecordBatch.from_struct_array(every)),
        np.concatenate(
            [
                words_of(alone.column(KEY)),
                words_of(listed.column(KEY))[pc.list_parent_indices(lists).to_numpy()],
            ]
        ),
    )
