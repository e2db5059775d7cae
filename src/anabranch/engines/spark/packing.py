"""Rows become parcels: told apart, hashed once, split by shard, each distinct payload once per parcel.

Stables, attaches and detaches go to every shard, and so does who spoke, so that all shards end a micro-batch
at one frontier.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anabranch.engines.spark.layout import Layout, Read
from anabranch.engines.spark.parcel import NO_PAYLOAD, Parcel, Voice
from anabranch.engines.spark.shards import shard_of
from anabranch.model.batch import Batch, Kind, concat
from anabranch.model.compiled import compiled
from anabranch.model.identity import Words, identities
from anabranch.model.rows import rows_without_columns, take_rows
from anabranch.model.schema import conformed
from anabranch.model.slots import NOBODY
from anabranch.model.time import BEGINNING

ROWS = 65_536
"""Elements of a parcel, about: fewer cost calls, more cost memory and, beyond 10 MB, time."""


@dataclass(frozen=True, slots=True)
class Packing:
    """How rows become parcels."""

    layout: Layout
    shards: int
    rows: int = ROWS
    ordered: bool = False
    """The sequence of a row is its place in its channel; else it only tells rows apart."""

    def parcels(self, reads: Iterable[Read]) -> Iterator[tuple[int, Parcel]]:
        """Parcels with the number of their shard; what was refused is the caller's to tell."""
        waiting: list[Read] = []
        held = 0
        for read in reads:
            waiting.append(read)
            held += len(read.batch)
            if held >= self.rows * self.shards:
                yield from self._cut(waiting)
                waiting, held = [], 0
        if held:
            yield from self._cut(waiting)

    def _cut(self, reads: list[Read]) -> Iterator[tuple[int, Parcel]]:
        batch = concat([read.batch for read in reads])
        voice, sequence, names = _voices(reads)
        if self.layout.disorder is not None:
            batch, voice, sequence = self._with_progress(batch, voice, sequence, len(names))
        order = np.lexsort((sequence, voice)) if self.ordered else np.argsort(voice, kind="stable")
        if (order[:-1] > order[1:]).any():
            batch, voice, sequence = batch.take(order), voice[order], sequence[order]
        firsts = np.searchsorted(voice, np.arange(len(names)))
        lasts = np.searchsorted(voice, np.arange(len(names)), side="right") - 1
        voices = tuple(
            Voice(replica, channel, int(sequence[first]), self.ordered, int(sequence[last]))
            for (replica, channel), first, last in zip(names, firsts, lasts, strict=True)
        )
        yield from split(
            Parcel(
                voices,
                voice.astype(np.int16),
                sequence - sequence[firsts][voice],
                batch.kind,
                batch.start,
                batch.end,
                batch.old_end,
                np.arange(len(batch), dtype=np.int32),
                batch.payload,
            ),
            self.layout.identity,
            self.shards,
            key=self.layout.key,
        )

    def _with_progress(
        self, batch: Batch, voice: NDArray[np.int64], sequence: NDArray[np.int64], count: int
    ) -> tuple[Batch, NDArray[np.int64], NDArray[np.int64]]:
        """The elements, and of each voice the stable that the bound on its disorder allows."""
        bound = self.layout.disorder
        assert isinstance(bound, int), "spans are ticks where rows are packed"
        latest, last = np.full(count, BEGINNING), np.zeros(count, np.int64)
        events = batch.kind <= Kind.ADJUST
        np.maximum.at(latest, voice[events], batch.start[events])
        np.maximum.at(last, voice, sequence)
        speaking = np.flatnonzero(latest > BEGINNING + bound)
        stables = np.full(len(speaking), Kind.STABLE, np.int8), latest[speaking] - bound
        nothing = np.zeros(len(speaking), np.int64)
        rows = Batch(*stables, nothing, nothing, _null_rows(batch, len(speaking)))
        return (
            concat([batch, rows]),
            np.concatenate([voice, speaking]),
            np.concatenate([sequence, last[speaking]]),
        )


def split(
    parcel: Parcel, identity: tuple[str, ...] | None, shards: int, *, key: tuple[str, ...] | None = None
) -> Iterator[tuple[int, Parcel]]:
    """What each shard is told of a parcel: its events by their identities, and all that is no event.

    A shard to which no event belongs is told who spoke all the same. Changes have a key, and go where it
    belongs with its identities. Payloads that only an identity or a key takes for one stay apart.
    """
    words = _identities(parcel, None)
    is_event = parcel.kind <= Kind.ADJUST
    place, first = distinct(words, is_event)
    if identity is not None or key is not None:
        words = _identities(parcel, key or identity)
    shard = shard_of(words, shards)
    for number in range(shards):
        rows = np.flatnonzero(~is_event | (shard == number)) if shards > 1 else slice(None)
        mine = first if shards == 1 else first[shard[first] == number]
        places = np.full(len(first) + 1, NO_PAYLOAD, np.int32)
        places[np.searchsorted(first, mine)] = np.arange(len(mine), dtype=np.int32)
        part = Parcel(
            parcel.voices,
            parcel.voice[rows],
            parcel.row[rows],
            parcel.kind[rows],
            parcel.start[rows],
            parcel.end[rows],
            parcel.old_end[rows],
            places[place[rows]],
            take_rows(parcel.payload, mine),
            words[mine],
        )
        yield number, part


def _identities(parcel: Parcel, columns: tuple[str, ...] | None) -> Words:
    """Of each payload, by some of its columns; stables alone have no columns at all."""
    payload = parcel.payload
    some = columns is not None and payload.num_columns > 0
    return identities(payload.select(list(columns or ())) if some else payload)


def distinct(words: Words, is_event: NDArray[np.bool_]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """For each row the number of its identity, and for each number the first row that has it.

    A row that is no event has the number NO_PAYLOAD.
    """
    place, first = np.empty(len(words), np.int32), np.empty(len(words), np.int64)
    slots = np.full(1 << max(4, int(2 * len(words) - 1).bit_length()), NOBODY, np.int32)
    return place, first[: number_identities(words, is_event, slots, place, first)]


@compiled
def number_identities(words: Any, is_event: Any, slots: Any, place: Any, first: Any) -> int:
    """Number identities in the order of their first rows; how many there are."""
    mask, count = len(slots) - 1, 0
    for row in range(len(words)):
        if not is_event[row]:
            place[row] = NO_PAYLOAD
            continue
        slot = np.int64(words[row, 0]) & mask
        while slots[slot] != NOBODY:
            known = first[slots[slot]]
            if words[known, 0] == words[row, 0] and words[known, 1] == words[row, 1]:
                break
            slot = (slot + 1) & mask
        if slots[slot] == NOBODY:
            slots[slot] = count
            first[count] = row
            count += 1
        place[row] = slots[slot]
    return count


def _voices(
    reads: list[Read],
) -> tuple[NDArray[np.int64], NDArray[np.int64], list[tuple[str, str]]]:
    """Who says each row, as a number, its sequence, and the replica and channel of each number in use."""
    known: dict[tuple[str, str], int] = {}
    codes = []
    for read in reads:
        pair = read.replica * len(read.channels) + read.channel
        number = np.zeros(len(read.replicas) * len(read.channels), np.int64)
        for used in np.flatnonzero(np.bincount(pair, minlength=len(number))).tolist():
            replica, channel = divmod(used, len(read.channels))
            number[used] = known.setdefault((read.replicas[replica], read.channels[channel]), len(known))
        codes.append(number[pair])
    return np.concatenate(codes), np.concatenate([read.sequence for read in reads]), list(known)


def _null_rows(batch: Batch, count: int) -> Any:
    return conformed(rows_without_columns(count), batch.payload.schema)
