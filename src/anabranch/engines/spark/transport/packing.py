"""Rows become parcels: told apart, hashed once, split by shard, each distinct payload once per parcel.

Stables, attaches and detaches go to every shard, and so does which channels sent something and how late its
events start, so that all shards end a micro-batch at one frontier.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anabranch.engines.spark.transport.before_shuffle import stepped
from anabranch.engines.spark.transport.dealing import Dealing
from anabranch.engines.spark.transport.parcel import NO_PAYLOAD, Parcel
from anabranch.engines.spark.transport.shards import shard_of
from anabranch.model.batch import Kind
from anabranch.model.compiled import compiled
from anabranch.model.identity import Words, identities
from anabranch.model.op import Op
from anabranch.model.rows import stacked, take_rows
from anabranch.model.slots import NONE
from anabranch.model.time import BEGINNING, FOREVER
from anabranch.progress.channel_rows import Stretch
from anabranch.rows.layout import Layout
from anabranch.rows.reading import Read
from anabranch.rows.refusal import Refusal

_INSERT, _ADJUST, _SNAPSHOT = int(Kind.INSERT), int(Kind.ADJUST), int(Op.SNAPSHOT)
ROWS = 65_536
"""Elements of a parcel, about: fewer cost calls, more cost memory and, beyond 10 MB, time."""
BYTES = 8 << 20
"""Bytes of payload of a parcel, about, before those that are equal become one."""


@dataclass(frozen=True, slots=True)
class Packing:
    """How rows become parcels."""

    layout: Layout
    shards: int
    rows: int = ROWS
    ordered: bool = False
    """The sequence of a row is its place in its channel; else it only tells rows apart."""
    edge: str = ""
    """The edge of a plan that the parcels are of."""
    dealing: Dealing | None = None
    """How rows are dealt out; None: by their identities."""
    steps: bytes = b""
    """What is made of rows before they are dealt out (`before_shuffle`)."""

    def parcels(
        self, groups: Iterable[list[Read]], refused: list[Refusal] | None = None
    ) -> Iterator[tuple[int, Parcel]]:
        """Parcels with the number of their shard; what was refused is the caller's to tell.

        What steps refuse is added to ``refused``.

        A group is not cut: copies of an event are in it, and their payload is in one parcel once.
        """
        waiting: list[Read] = []
        held = size = 0
        for group in groups:
            waiting += group
            held += sum(len(read.batch) for read in group)
            size += sum(read.batch.payload.nbytes for read in group)
            if held >= self.rows * self.shards or size >= BYTES * self.shards:
                yield from self._cut(waiting, refused)
                waiting, held, size = [], 0, 0
        if held:
            yield from self._cut(waiting, refused)

    def _cut(self, reads: list[Read], refused: list[Refusal] | None) -> Iterator[tuple[int, Parcel]]:
        batches = [read.batch for read in reads]
        stretch, sequence, names = _stretches(reads)
        count = len(stretch)
        columns: list[Any] = [
            stretch,
            sequence,
            np.arange(count, dtype=np.int32),
            *(np.concatenate([getattr(one, name) for one in batches]) for name in _TIMES),
        ]
        order = np.lexsort((sequence, stretch)) if self.ordered else np.argsort(stretch, kind="stable")
        if (order[:-1] > order[1:]).any():
            columns = [column[order] for column in columns]
        stretch, sequence, place, kind, start, end, old_end = columns
        firsts = np.searchsorted(stretch, np.arange(len(names)))
        lasts = np.searchsorted(stretch, np.arange(len(names)), side="right") - 1
        of_changes = self.layout.key is not None
        snapshots, latest = np.full(len(names), FOREVER), np.full(len(names), BEGINNING)
        note_times(stretch, kind, start, end, old_end, of_changes, snapshots, latest)
        stretches = tuple(
            Stretch(
                replica,
                channel,
                int(sequence[first]),
                self.ordered,
                int(sequence[last]),
                None if snapshot == FOREVER else snapshot,
                time,
            )
            for (replica, channel), first, last, snapshot, time in zip(
                names, firsts, lasts, snapshots.tolist(), latest.tolist(), strict=True
            )
        )
        row = sequence - sequence[firsts][stretch]
        payloads = [one.payload for one in batches]
        parcel = Parcel(
            stretches, stretch.astype(np.int32), row, kind, start, end, old_end, place, payloads[0][:0]
        )
        if self.steps:
            moved, payloads = stepped(reads, self, refused)
            parcel = _moved(parcel, moved, payloads[0][:0])
        parcel = replace(parcel, edge=self.edge)
        identity = self.layout.identity if self.dealing is None else self.dealing.identity
        yield from _dealt(parcel, payloads, identity, self.shards, self.layout.key, self.dealing)


def _moved(parcel: Parcel, moved: NDArray[np.int32], payload: pa.RecordBatch) -> Parcel:
    """Elements whose payloads are elsewhere now; events that steps have dropped are gone."""
    is_event = parcel.kind <= Kind.ADJUST
    place = np.where(is_event, moved[parcel.place], NO_PAYLOAD).astype(np.int32)
    stay = np.flatnonzero(~is_event | (place != NO_PAYLOAD))
    return replace(
        parcel,
        stretch=parcel.stretch[stay],
        row=parcel.row[stay],
        kind=parcel.kind[stay],
        start=parcel.start[stay],
        end=parcel.end[stay],
        old_end=parcel.old_end[stay],
        place=place[stay],
        payload=payload,
    )


@compiled
def note_times(
    stretch: Any, kind: Any, start: Any, end: Any, old_end: Any, of_changes: bool, snapshots: Any, latest: Any
) -> None:
    """Write of each stretch the least time of rows of a snapshot, and the greatest start of its other events.

    Events that will be refused for their lifetimes count for nothing. ``snapshots`` and ``latest`` have an
    item for each number in ``stretch``.
    """
    for i in range(len(kind)):
        if kind[i] > _ADJUST or end[i] < start[i] or (kind[i] != _ADJUST and end[i] == start[i]):
            continue
        n = stretch[i]
        if of_changes and kind[i] == _INSERT and old_end[i] == _SNAPSHOT:
            snapshots[n] = min(snapshots[n], start[i])
        else:
            latest[n] = max(latest[n], start[i])


_TIMES = ("kind", "start", "end", "old_end")


def split(
    parcel: Parcel,
    identity: tuple[str, ...] | None,
    shards: int,
    *,
    key: tuple[str, ...] | None = None,
    dealing: Dealing | None = None,
) -> Iterator[tuple[int, Parcel]]:
    """What each shard is told of a parcel: its events by their identities, and all that is no event.

    A shard to which no event belongs is told who spoke all the same. Changes have a key, and go where it
    belongs with its identities. Payloads that only an identity or a key takes for one stay apart.
    """
    return _dealt(parcel, [parcel.payload], identity, shards, key, dealing)


def _dealt(
    parcel: Parcel,
    payloads: list[pa.RecordBatch],
    identity: tuple[str, ...] | None,
    shards: int,
    key: tuple[str, ...] | None,
    dealing: Dealing | None = None,
) -> Iterator[tuple[int, Parcel]]:
    """The parcel of each shard; places are rows of the payloads one after the other, which are not copied."""
    is_event = parcel.kind <= Kind.ADJUST
    words = np.concatenate([_identities(payload, None) for payload in payloads])
    used = np.zeros(len(words), np.bool_)
    used[parcel.place[is_event]] = True
    number, first = distinct(words, used)
    if identity is not None or key is not None:
        words = np.concatenate([_identities(payload, key or identity) for payload in payloads])
    shard = shard_of(words, shards) if dealing is None else dealing.shard_of(payloads, words, shards)
    belongs = np.where(is_event, shard[parcel.place], -1) if shards > 1 and len(words) else None
    for n in range(shards):
        rows = slice(None) if belongs is None else np.flatnonzero((belongs == n) | ~is_event)
        mine = first if shards == 1 else first[shard[first] == n]
        places = np.full(len(first) + 1, NO_PAYLOAD, np.int32)
        places[number[mine]] = np.arange(len(mine), dtype=np.int32)
        events, place = is_event[rows], parcel.place[rows]
        yield (
            n,
            replace(
                parcel,
                stretch=parcel.stretch[rows],
                row=parcel.row[rows],
                kind=parcel.kind[rows],
                start=parcel.start[rows],
                end=parcel.end[rows],
                old_end=parcel.old_end[rows],
                place=places[np.where(events, number[place], -1)] if len(number) else place,
                payload=_gathered(payloads, mine),
                identities=words[mine],
            ),
        )


def _gathered(payloads: list[pa.RecordBatch], rows: NDArray[np.int64]) -> pa.RecordBatch:
    """Ascending rows of payloads that stand one after the other."""
    bounds = np.cumsum([0] + [payload.num_rows for payload in payloads])
    cuts = np.searchsorted(rows, bounds)
    parts = [
        take_rows(payload, rows[begin:end] - base)
        for payload, base, (begin, end) in zip(payloads, bounds, pairwise(cuts), strict=False)
    ]
    return stacked(parts) if len(parts) > 1 else parts[0]


def _identities(payload: pa.RecordBatch, columns: tuple[str, ...] | None) -> Words:
    """Of each payload, by some of its columns; stables alone have no columns at all."""
    some = columns is not None and payload.num_columns > 0
    return identities(payload.select(list(columns or ())) if some else payload)


def distinct(words: Words, used: NDArray[np.bool_]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """For each row the number of its identity, and for each number the first row that has it.

    A row that is not used has the number NO_PAYLOAD.
    """
    place, first = np.empty(len(words), np.int32), np.empty(len(words), np.int64)
    slots = np.full(1 << max(4, int(2 * len(words) - 1).bit_length()), NONE, np.int32)
    return place, first[: number_identities(words, used, slots, place, first)]


@compiled
def number_identities(words: Any, used: Any, slots: Any, place: Any, first: Any) -> int:
    """Number identities in the order of their first rows; how many there are."""
    mask, count = len(slots) - 1, 0
    for row in range(len(words)):
        if not used[row]:
            place[row] = NO_PAYLOAD
            continue
        slot = np.int64(words[row, 0]) & mask
        while slots[slot] != NONE:
            known = first[slots[slot]]
            if words[known, 0] == words[row, 0] and words[known, 1] == words[row, 1]:
                break
            slot = (slot + 1) & mask
        if slots[slot] == NONE:
            slots[slot] = count
            first[count] = row
            count += 1
        place[row] = slots[slot]
    return count


def _stretches(
    reads: list[Read],
) -> tuple[NDArray[np.int64], NDArray[np.int64], list[tuple[str, str]]]:
    """Who says each row, as a number, its sequence, and the replica and channel of each number in use."""
    known: dict[tuple[str, str], int] = {}
    codes = []
    for read in reads:
        pairs, code = _pairs(read)
        number = np.empty(len(pairs), np.int64)
        for n, pair in enumerate(pairs.tolist()):
            replica, channel = divmod(pair, len(read.channels))
            number[n] = known.setdefault((read.replicas[replica], read.channels[channel]), len(known))
        codes.append(number[code])
    return np.concatenate(codes), np.concatenate([read.sequence for read in reads]), list(known)


def _pairs(read: Read) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The pairs of a replica and a channel that speak, as numbers, and of each row which of them does."""
    pair = read.replica * len(read.channels) + read.channel
    possible = len(read.replicas) * len(read.channels)
    if possible > len(pair):  # of ten thousand replicas with a channel each, all pairs would fill memory
        return np.unique(pair, return_inverse=True)
    speaks = np.bincount(pair, minlength=possible) > 0
    return np.flatnonzero(speaks), (np.cumsum(speaks) - 1)[pair]
