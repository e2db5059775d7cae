"""One input of a join: how far it is stable, and its events that one to come of the other may match."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anabranch.kernels.store.chains import START, Keys, Nodes, Rows, chained, keep
from anabranch.kernels.store.slot_columns import SlotColumns
from anabranch.model.batch import Batch, Kind
from anabranch.model.identity import Words, identities
from anabranch.model.rows import take_rows
from anabranch.model.schema import conformed
from anabranch.model.time import BEGINNING

_LEAST = 1024
_NO_WORDS = np.empty((0, 2), np.uint64)


class Heard(NamedTuple):
    """What counts of a batch: events that come, and events that are removed."""

    start: NDArray[np.int64]
    removal: NDArray[np.bool_]
    payload: pa.RecordBatch
    keyed: NDArray[np.bool_]
    """No key is null."""
    key: Words
    """The identity of the keys of each row."""
    words: Words
    """The identity of the payload of each row, where events may be removed; else nothing."""

    def take(self, mask: NDArray[np.bool_]) -> "Heard":
        """The rows where a mask is true."""
        if mask.all():
            return self
        rows = np.flatnonzero(mask)
        words = self.words[rows] if len(self.words) else self.words
        columns = self.start[rows], self.removal[rows], take_rows(self.payload, rows), self.keyed[rows]
        return Heard(*columns, self.key[rows], words)


@dataclass(slots=True)
class Side:
    """State: the nodes of the events that are kept, and their payloads by node."""

    number: int
    keys: tuple[str, ...]
    called: tuple[str, ...]
    """The names under which keys are hashed, the same on both sides."""
    schema: pa.Schema
    removable: bool
    """Events may be removed."""
    frontier: int = BEGINNING
    limit: int = BEGINNING
    """The least start that one to come of the other side may match."""
    nodes: Nodes = field(init=False)
    payloads: SlotColumns = field(init=False)

    def __post_init__(self) -> None:
        self.nodes = Nodes.of_capacity(_LEAST, removable=self.removable)
        self.payloads = SlotColumns(self.schema)
        self.payloads.grow(_LEAST)

    def heard(self, batch: Batch) -> Heard:
        """What counts of a batch: an adjust that removes nothing changes no start."""
        if batch.kind.any():
            removal = (batch.kind == Kind.ADJUST) & (batch.end == batch.start)
            counts = removal | (batch.kind == Kind.INSERT)
            if not counts.all():
                count = int(counts.sum())
                batch = batch[:count] if counts[:count].all() else batch.take(counts)
                removal = removal[counts]
        else:
            removal = np.zeros(len(batch), np.bool_)
        assert not removal.any() or self.removable, "a stream of which nothing is removed has no removals"
        payload = batch.payload
        if not payload.schema.equals(self.schema):
            payload = conformed(payload, self.schema)
        words = _NO_WORDS
        if self.removable:
            words = identities(payload) if batch.__dict__.get("by") is not None else batch.identities
        keyed, key = _keys(payload, self.keys, self.called)
        return Heard(batch.start, removal, payload, keyed, key, words)

    def keep(
        self,
        keys: Keys,
        number: NDArray[np.int32],
        heard: Heard,
        counts: NDArray[np.int32],
        stretch: int,
        *,
        lingers: bool,
    ) -> tuple[Keys, NDArray[np.int64]]:
        """Keep what may still match, and forget what is removed; the keys, and the node of each row."""
        kept = heard.start >= self.limit
        into = np.full(len(number), -1, np.int64)
        if not kept.any():
            return keys, into
        self._make_room(len(number))
        rows = Rows(number, heard.start, heard.removal, kept, heard.words, counts)
        done = 0
        while (done := keep(keys, self.number, self.nodes, rows, stretch, lingers, done, into)) < len(number):
            keys = keys.grown(keys.numbers.with_room(keys.numbers.capacity + 1))
        stored = into >= 0
        if stored.any():
            payload = heard.payload if stored.all() else take_rows(heard.payload, np.flatnonzero(stored))
            self.payloads.put(into[stored], payload)
        return keys, into

    def starts(self, nodes: NDArray[np.int64]) -> NDArray[np.int64]:
        """The starts of nodes."""
        return self.nodes.node[nodes, START]

    def forget_payloads(self) -> None:
        """Let go of payloads that no node refers to, once they are many."""
        self.payloads.forget_unused(self.nodes.pool.free)

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self.nodes.nbytes + self.payloads.nbytes

    def saved(self, keys: Keys) -> list[pa.RecordBatch]:
        """The events that are kept, the first to be linked first, and their payloads."""
        found, number = np.empty(self.nodes.used, np.int64), np.empty(self.nodes.used, np.int64)
        count = chained(keys, self.number, self.nodes, self.limit, found, number)
        found, number = found[:count][::-1], number[:count][::-1]
        words = self.nodes.words[found] if self.removable else np.zeros((count, 2), np.uint64)
        columns = {
            "key_low": keys.numbers.words[number, 0],
            "key_high": keys.numbers.words[number, 1],
            "low": words[:, 0],
            "high": words[:, 1],
            "start": self.starts(found),
            "matches": self.nodes.matches[found],
        }
        return [pa.RecordBatch.from_pydict(columns), self.payloads.at(found)]

    def load(
        self, keys: Keys, batches: Sequence[pa.RecordBatch], stretch: int
    ) -> tuple[Keys, NDArray[np.int64]]:
        """Keep what was saved; the keys, and the nodes in the order of what was saved."""
        events, payload = batches
        column = {name: events.column(name).to_numpy() for name in events.schema.names}
        key = np.stack([column["key_low"], column["key_high"]], axis=1)
        words = np.stack([column["low"], column["high"]], axis=1) if self.removable else _NO_WORDS
        there = np.ones(len(key), np.bool_)
        heard = Heard(column["start"], ~there, payload, there, key, words)
        keys, number = keys.number(key)
        return self.keep(keys, number, heard, column["matches"], stretch, lingers=False)

    def _make_room(self, more: int) -> None:
        if (nodes := self.nodes.with_room(more)) is not self.nodes:
            self.nodes = nodes
            self.payloads.grow(nodes.capacity)


def _keys(
    payload: pa.RecordBatch, names: tuple[str, ...], called: tuple[str, ...]
) -> tuple[NDArray[np.bool_], Words]:
    """Which rows have no null among their keys, and the identity of the keys of each."""
    keyed = np.ones(payload.num_rows, np.bool_)
    if not names:
        return keyed, np.zeros((payload.num_rows, 2), np.uint64)
    columns = [payload.column(name) for name in names]
    for column in columns:
        if column.null_count:
            keyed &= column.is_valid().to_numpy(zero_copy_only=False)
    return keyed, identities(pa.RecordBatch.from_arrays(columns, names=list(called)))
