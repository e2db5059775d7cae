"""Payload rows kept once, in Arrow chunks of one schema, until nothing refers to them.

A row is known by its place, a number that grows with each row added. All rows are copied together when fewer
than half of them are still referred to, so memory is at most about twice what is alive, and each row is
copied a bounded number of times on average.
"""

from bisect import bisect_right
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anabranch.model.rows import rows_in_runs, rows_without_columns, stacked, take_rows
from anabranch.model.schema import Columns, conformed

SLACK = 65_536
"""Rows that may be held without being referred to, however few are alive."""

_MANY = 64
_SMALL = 1024
_MUCH = 8


@dataclass(slots=True)
class PayloadStore:
    """State: the columns, chunks of rows, and the place of each chunk's first row."""

    columns: Columns = field(default_factory=Columns.none)
    chunks: list[pa.RecordBatch] = field(default_factory=list)
    bounds: list[int] = field(default_factory=lambda: [0])
    small: int = 0
    """How many chunks at the end are small."""
    _null: pa.RecordBatch | None = field(default=None, repr=False)

    @property
    def schema(self) -> pa.Schema:
        """The columns and types that all rows have."""
        return self.columns.schema

    @property
    def next_place(self) -> int:
        """The place of the first row of the next chunk."""
        return self.bounds[-1]

    @property
    def rows(self) -> int:
        """Rows held, alive or not."""
        return self.bounds[-1] - self.bounds[0]

    @property
    def nbytes(self) -> int:
        """Bytes of Arrow data held."""
        return sum(chunk.nbytes for chunk in self.chunks)

    def admit(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Rows in the types of the store, which widens for them; a SchemaError where it cannot."""
        columns = self.columns.with_rows(rows)
        if columns is self.columns and rows.schema.equals(columns.schema):
            return rows
        admitted = conformed(rows, columns.schema)
        widened = self.widened(columns)
        self.columns, self.chunks = widened.columns, widened.chunks
        return admitted

    def widened(self, columns: Columns) -> "PayloadStore":
        """The same rows at the same places in wider columns; a SchemaError where one cannot be."""
        if columns.schema == self.schema:
            return replace(self, columns=columns)
        chunks = [conformed(chunk, columns.schema) for chunk in self.chunks]
        return replace(self, columns=columns, chunks=chunks)

    def add(self, rows: pa.RecordBatch) -> None:
        """Keep rows that have been admitted, at the next places."""
        if not rows.num_rows:
            return
        self.chunks.append(rows)
        self.bounds.append(self.next_place + rows.num_rows)
        self.small = self.small + 1 if rows.num_rows < _SMALL else 0
        if self.small > _MANY:
            # Only the small ones at the end: with all that is held, pushes of one row cost 40 µs more.
            self.chunks[-self.small :] = [stacked(self.chunks[-self.small :])]
            self.bounds[-self.small :] = [self.bounds[-1]]
            self.small = int(self.chunks[-1].num_rows < _SMALL)

    def adopt(self, rows: pa.RecordBatch, place: NDArray[np.int64], users: NDArray[np.int32]) -> None:
        """Keep those rows of a batch that users refer to, and tell each user the place of its row.

        Row r of the batch is referred to as ``next_place + r``; users with an earlier place have one already.
        Where most rows are needed, all are kept as they are, unless they are a small part of something large:
        a copy costs more than the few that are garbage.
        """
        first = self.next_place
        users = users[place[users] >= first]
        if not len(users):
            return
        if 2 * len(users) > rows.num_rows and _is_whole(rows):
            self.add(rows)
            return
        needed = np.zeros(rows.num_rows, np.bool_)
        needed[place[users] - first] = True
        place[users] = first + np.cumsum(needed)[place[users] - first] - 1
        self.add(take_rows(rows, np.flatnonzero(needed)))

    def gather(self, places: NDArray[np.int64]) -> pa.Table:
        """The rows at these places, which ascend; a table without columns if there are none."""
        cuts = np.searchsorted(places, self.bounds)
        parts = [
            chunk if stop - begin == chunk.num_rows else take_rows(chunk, places[begin:stop] - bound)
            for chunk, bound, (begin, stop) in zip(self.chunks, self.bounds, pairwise(cuts), strict=False)
            if begin < stop
        ]
        return pa.Table.from_batches(parts, self.schema)

    def rows_at(self, places: NDArray[np.int64], rows: pa.RecordBatch) -> pa.RecordBatch:
        """The rows at these places, in any order, of the store or a batch not yet in it; -1 is a null row.

        To take from several chunks, Arrow copies them all: ten rows of a store of a million (100 bytes each)
        cost 23 ms. So where little of all is wanted, it is taken chunk by chunk first.
        """
        if not len(self.schema):
            return rows_without_columns(len(places))
        if len(places) <= 1:
            return self._row_at(int(places[0]), rows) if len(places) else rows.slice(0, 0)
        nothing = places < 0
        fresh = places >= self.next_place
        if fresh.all():
            return rows_in_runs(rows, places - self.next_place)
        if (fresh | nothing).all():
            return rows.take(pa.array(places - self.next_place, mask=nothing))
        if self.rows + rows.num_rows <= _MUCH * len(places):
            parts, where = [*self.chunks, rows], places - self.bounds[0]
        else:
            old, new = _ascending(places[~fresh & ~nothing]), _ascending(places[fresh])
            parts = [*self.gather(old).to_batches(), take_rows(rows, new - self.next_place)]
            where = np.searchsorted(np.concatenate([old, new]), places)
        found = pa.Table.from_batches(parts, self.schema).take(pa.array(where, mask=nothing))
        return stacked(found.to_batches())

    def _row_at(self, place: int, rows: pa.RecordBatch) -> pa.RecordBatch:
        """One row; of a chunk that is not small a copy, which does not keep all of it."""
        if place < 0:
            return self._null_row()
        if place >= self.next_place:
            return rows if rows.num_rows == 1 else rows.slice(place - self.next_place, 1)
        number = bisect_right(self.bounds, place) - 1
        chunk, row = self.chunks[number], place - self.bounds[number]
        return chunk.slice(row, 1) if chunk.num_rows <= _SMALL else take_rows(chunk, np.array([row]))

    def _null_row(self) -> pa.RecordBatch:
        if self._null is None or not self._null.schema.equals(self.schema):
            self._null = conformed(rows_without_columns(1), self.schema)
        return self._null

    def none(self) -> pa.RecordBatch:
        """No rows, in the columns of the store."""
        return self._null_row().slice(0, 0) if len(self.schema) else rows_without_columns(0)

    def at(self, places: NDArray[np.int64]) -> pa.RecordBatch:
        """The rows at these places, in any order."""
        return self.rows_at(places, self.none())

    def crowded(self, alive: int) -> bool:
        """More is held than is worth holding for this many rows alive."""
        return self.rows > 2 * alive + SLACK

    def compact(self, place: NDArray[np.int64], users: NDArray[np.int64]) -> None:
        """Forget what none of these users refers to, and tell each its new place."""
        users = users[np.argsort(place[users])]
        self.keep_only(place[users])
        place[users] = np.arange(len(users))

    def keep_only(self, places: NDArray[np.int64]) -> None:
        """Forget all rows but those at these ascending places, which become 0, 1, 2 and so on."""
        kept = self.gather(places)
        self.chunks = []
        self.bounds = [0]
        self.small = 0
        if kept.num_columns:
            for part in kept.combine_chunks().to_batches(max_chunksize=SLACK):
                self.add(part)
        else:
            self.add(rows_without_columns(len(places)))


def _is_whole(rows: pa.RecordBatch) -> bool:
    """Rows are no small part of something large; ``nbytes`` takes 7 µs, the other a tenth of one."""
    held = rows.get_total_buffer_size()
    return bool(held <= SLACK or held <= 2 * rows.nbytes + SLACK)


def _ascending(places: NDArray[np.int64]) -> NDArray[np.int64]:
    """Each place once; ``np.unique`` hashes first, which takes 6 ms for 40 000 places, this 0.5."""
    places = np.sort(places)
    return places[np.diff(places, prepend=-1) != 0]
