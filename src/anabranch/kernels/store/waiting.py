"""Rows that wait until the stable has passed their start, and come out in the order of start and identity.

A removal waits beside the row that it removes; they cancel when they come out, or when many removals wait. Of
rows that are equal in start and identity any may stand for another.

Memory: a slot for each row with its columns, its identity (16 bytes) and its start (16 bytes); removals are
about a third of what waits at most. Cost: each row is put into a sorted run, and is merged with others as
often as the logarithm of how many wait; identities are looked at where starts are equal.
"""

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anabranch.kernels.runs import KEY, Rows, by_key, with_ties_by
from anabranch.kernels.store.slot_columns import SlotColumns
from anabranch.model.identity import Words
from anabranch.model.pool import Pool, grown

SAVED = 2
"""How many batches are saved."""
_SLOT = 1
_FEW = 1024


class Waiting:
    """State: rows by slot, and their starts in order.

    >>> waiting = Waiting()
    >>> words = np.array([[5, 0], [4, 0], [5, 0]], np.uint64)
    >>> payload = pa.record_batch({"v": [1, 2, 1]})
    >>> waiting.add(np.array([7, 7, 7]), np.array([1, 1, -1], np.int8), words, payload)
    >>> start, rows = waiting.take_before(8)
    >>> start.tolist(), rows.to_pydict(), len(waiting)
    ([7], {'v': [2]}, 0)
    """

    def __init__(self) -> None:
        self.columns: SlotColumns | None = None
        """The payloads, once there are any."""
        self.words: Words = np.zeros((0, 2), np.uint64)
        self.sign = np.zeros(0, np.int8)
        """-1 where the row is a removal of another."""
        self.pool = Pool.of_capacity(0)
        self.starts = by_key(2)
        self.removals = 0

    def __len__(self) -> int:
        return self.pool.used

    @property
    def nbytes(self) -> int:
        """Bytes of state."""
        columns = 0 if self.columns is None else self.columns.nbytes
        return columns + self.words.nbytes + self.sign.nbytes + self.pool.nbytes + self.starts.nbytes

    def add(
        self, start: NDArray[np.int64], sign: NDArray[np.int8], words: Words, payload: pa.RecordBatch
    ) -> None:
        """Keep rows, or where a sign is -1 removals of rows."""
        if not len(start):
            return
        slots = self._slots(len(start), payload.schema)
        assert self.columns is not None, "columns are made with the first slots"
        if payload.schema != self.columns.schema:
            columns = [payload.column(one.name).cast(one.type) for one in self.columns.schema]
            payload = pa.RecordBatch.from_arrays(columns, schema=self.columns.schema)
        self.columns.put(slots, payload)
        self.words[slots], self.sign[slots] = words, sign
        self.starts.add(np.stack([start, slots]))
        self.removals += int(np.count_nonzero(sign < 0))
        if self.removals > len(self) // 3 + _FEW:
            entries = self.starts.take_all()
            self.starts.add(np.take(entries, self._ordered(entries), axis=1))

    def take_before(self, time: int | None) -> tuple[NDArray[np.int64], pa.RecordBatch | None]:
        """The starts and payloads of rows that start before a time (None: of all), which are gone then."""
        entries = self.starts.take_all() if time is None else self.starts.take_before(time)
        if not entries.shape[1] or self.columns is None:
            return _NO_STARTS, None
        order = self._ordered(entries)
        if not len(order):
            return _NO_STARTS, None
        slots = entries[_SLOT][order]
        payload = self.columns.at(slots)
        self._free(slots)
        return entries[KEY][order], payload

    def _slots(self, count: int, schema: pa.Schema) -> NDArray[np.int64]:
        self.pool = self.pool.with_room(count)
        if self.columns is None:
            self.columns = SlotColumns(schema)
        if len(self.sign) < self.pool.capacity:
            self.columns.grow(self.pool.capacity)
            self.words, self.sign = (grown(one, self.pool.capacity) for one in (self.words, self.sign))
        return self.pool.take(count).astype(np.int64)

    def _free(self, slots: NDArray[Any]) -> None:
        self.pool.give_back(slots)
        if self.columns is not None:
            self.columns.forget_unused(self.pool.free)

    def _ordered(self, entries: Rows) -> NDArray[np.int64]:
        """The places of entries in the order of start and identity, those that cancel left out and let go."""
        start, slots = entries
        if self.removals and (self.sign[slots] < 0).any():
            return self._netted(start, slots)
        order = np.argsort(start, kind="stable")
        return with_ties_by(order, start, lambda places: tuple(self.words[slots[places]].T))

    def _netted(self, start: NDArray[np.int64], slots: NDArray[np.int64]) -> NDArray[np.int64]:
        sign, words = self.sign[slots], self.words[slots]
        order = np.lexsort((-sign, words[:, 1], words[:, 0], start))
        sign, words, ascending = sign[order], words[order], start[order]
        new = np.ones(len(order), np.bool_)
        new[1:] = (ascending[1:] != ascending[:-1]) | (words[1:] != words[:-1]).any(axis=1)
        first = np.flatnonzero(new)
        which = np.cumsum(new) - 1
        left = np.add.reduceat(sign.astype(np.int64), first)
        stays = np.arange(len(order)) - first[which] < left[which]
        self.removals -= int(np.count_nonzero(sign < 0))
        self._free(slots[order[~stays]])
        return order[stays]

    def saved(self) -> list[pa.RecordBatch]:
        """The starts, signs and identities of all, and their payloads."""
        start, slots = self.starts.all()
        low, high = self.words[slots].T
        columns = {"start": start, "sign": self.sign[slots], "low": low, "high": high}
        payload = pa.RecordBatch.from_pylist([]) if self.columns is None else self.columns.at(slots)
        return [pa.RecordBatch.from_pydict(columns), payload]

    def load(self, batches: list[pa.RecordBatch]) -> None:
        """Keep what was saved."""
        rows, payload = batches
        start, sign, low, high = (rows.column(name).to_numpy() for name in ("start", "sign", "low", "high"))
        self.add(start, sign, np.stack([low, high], axis=1), payload)


_NO_STARTS = np.empty(0, np.int64)
