"""Payload rows kept once, in Arrow chunks, until nothing refers to them.

A row is known by its place, a number that grows with each row added. Chunks are rewritten when fewer than
half of their rows are still referred to, so memory is at most about twice what is alive, and each row is
copied a bounded number of times on average.
"""

from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anabranch.model.batch import rows_without_columns, take_rows

SLACK = 65_536
"""Rows that may be held without being referred to, however few are alive."""


@dataclass(slots=True)
class PayloadStore:
    """State: chunks of rows, and the place of each chunk's first row."""

    chunks: list[pa.RecordBatch] = field(default_factory=list)
    bounds: list[int] = field(default_factory=lambda: [0])

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

    def add(self, rows: pa.RecordBatch) -> None:
        """Keep rows at the next places."""
        if rows.num_rows:
            self.chunks.append(rows)
            self.bounds.append(self.next_place + rows.num_rows)

    def gather(self, places: NDArray[np.int64]) -> pa.Table:
        """The rows at these places, which ascend."""
        cuts = np.searchsorted(places, self.bounds)
        parts = [
            chunk if stop - begin == chunk.num_rows else take_rows(chunk, places[begin:stop] - bound)
            for chunk, bound, (begin, stop) in zip(self.chunks, self.bounds, pairwise(cuts), strict=False)
            if begin < stop
        ]
        parts = parts or [chunk[:0] for chunk in self.chunks[:1]] or [rows_without_columns(0)]
        tables = [pa.Table.from_batches([part]) for part in parts]
        return pa.concat_tables(tables, promote_options="permissive")

    def crowded(self, alive: int) -> bool:
        """More is held than is worth holding for this many rows alive."""
        return self.rows > 2 * alive + SLACK

    def keep_only(self, places: NDArray[np.int64]) -> None:
        """Forget all rows but those at these ascending places, which become 0, 1, 2 and so on."""
        kept = self.gather(places)
        self.chunks = []
        self.bounds = [0]
        if kept.num_columns:
            for part in kept.combine_chunks().to_batches(max_chunksize=SLACK):
                self.add(part)
        else:
            self.add(rows_without_columns(len(places)))
