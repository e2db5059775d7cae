"""The events of one start that are out, compiled: all that R0, R1 and R2 remember of the output.

R0 and R1 tell them apart by number: the k-th event that is out stands in row k. R2 tells them apart by
payload and end: slots lead to a row for each, with how many copies are out and how many each input has shown.

A new start begins by setting ``used`` to zero. A slot leads to a row only while the row is used and names the
slot in return, so what the slots held before needs no wiping (Briggs and Torczon 1993, sparse sets).
"""

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anabranch.model.application import INSERT
from anabranch.model.compiled import compiled, inlined
from anabranch.model.murmur import mix
from anabranch.model.slots import NONE

SMALL = 64


class Ties(NamedTuple):
    """State: the events in rows, and for R2 the slots that lead to them."""

    low: NDArray[np.uint64]
    high: NDArray[np.uint64]
    end: NDArray[np.int64]
    given: NDArray[np.int64]
    """Copies that are out."""
    shown: NDArray[np.int64]
    """Copies by row and input; without inputs where events are told apart by number."""
    slot: NDArray[np.int32]
    """The slot that leads to each row, or NONE."""
    slots: NDArray[np.int32]
    used: NDArray[np.int64]
    """How many rows there are, as an array of one."""

    @classmethod
    def of_capacity(cls, capacity: int, inputs: int) -> "Ties":
        """No events, with room for this many (a power of two) and, to tell them apart by payload, inputs."""
        return cls(
            low=np.zeros(capacity, np.uint64),
            high=np.zeros(capacity, np.uint64),
            end=np.zeros(capacity, np.int64),
            given=np.zeros(capacity, np.int64),
            shown=np.zeros((capacity, inputs), np.int64),
            slot=np.full(capacity, NONE, np.int32),
            slots=np.zeros(2 * capacity, np.int32),
            used=np.zeros(1, np.int64),
        )

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return int(self.used[0])

    @property
    def live(self) -> int:
        """How many events are out."""
        return int(self.given[: self.rows].sum())

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return sum(column.nbytes for column in self)

    def fitted(self, more: int) -> "Ties":
        """The same events, with room for more rows and not for very many more."""
        needed = max(self.rows + more, SMALL)
        if needed <= len(self.end) <= 8 * needed:
            return self
        return self._copied(1 << (needed - 1).bit_length(), self.shown.shape[1])

    def widened(self, inputs: int) -> "Ties":
        """The same events, with room for more inputs."""
        return self._copied(len(self.end), inputs)

    def _copied(self, capacity: int, inputs: int) -> "Ties":
        copy = Ties.of_capacity(capacity, inputs)
        rows = self.rows
        for new, old in zip(copy[:4], self[:4], strict=True):
            new[:rows] = old[:rows]
        copy.shown[:rows, : self.shown.shape[1]] = self.shown[:rows]
        copy.used[0] = rows
        if inputs:
            _link_all(copy)
        return copy

    def to_arrow(self) -> pa.RecordBatch:
        """The rows, as Arrow data."""
        inputs = self.shown.shape[1]
        columns = {
            name: pa.array(getattr(self, name)[: self.rows]) for name in ("low", "high", "end", "given")
        }
        shown = {f"shown {i}": pa.array(self.shown[: self.rows, i].copy()) for i in range(inputs)}
        return pa.RecordBatch.from_pydict(columns | shown)

    @classmethod
    def from_arrow(cls, rows: pa.RecordBatch) -> "Ties":
        """What `to_arrow` gave."""
        columns = [column.to_numpy() for column in rows.columns]
        loaded = cls.of_capacity(SMALL, len(columns) - 4).fitted(rows.num_rows)
        for new, old in zip([*loaded[:4], *loaded.shown.T], columns, strict=True):
            new[: rows.num_rows] = old
        loaded.used[0] = rows.num_rows
        if len(columns) > 4:
            _link_all(loaded)
        return loaded


@inlined
def is_empty(ties: Ties, slot: int) -> bool:
    """A slot leads nowhere."""
    row = ties.slots[slot]
    return row >= ties.used[0] or ties.slot[row] != slot


@inlined
def _home(ties: Ties, low: Any, high: Any, end: int) -> Any:
    return np.int64(mix(low ^ mix(np.uint64(end) + high)) & np.uint64(len(ties.slots) - 1))


@compiled
def append(ties: Ties, low: Any, high: Any, end: int, given: int) -> Any:
    """A row for an event of which no input has shown a copy; no slot leads to it."""
    row = ties.used[0]
    ties.used[0] += 1
    ties.low[row], ties.high[row], ties.end[row] = low, high, end
    ties.given[row] = given
    ties.slot[row] = NONE
    for i in range(ties.shown.shape[1]):
        ties.shown[row, i] = 0
    return row


@compiled
def row_of(ties: Ties, low: Any, high: Any, end: int) -> Any:
    """The row to which a slot leads for a payload and end; a new one without copies if there was none."""
    mask = len(ties.slots) - 1
    slot = _home(ties, low, high, end)
    while not is_empty(ties, slot):
        row = ties.slots[slot]
        if ties.low[row] == low and ties.high[row] == high and ties.end[row] == end:
            return np.int64(row)
        slot = (slot + 1) & mask
    row = append(ties, low, high, end, 0)
    ties.slots[slot], ties.slot[row] = row, slot
    return row


@compiled
def link(ties: Ties, row: int) -> None:
    """Let a slot lead to a row to which none leads, and which is not like any other."""
    mask = len(ties.slots) - 1
    slot = _home(ties, ties.low[row], ties.high[row], ties.end[row])
    while not is_empty(ties, slot):
        slot = (slot + 1) & mask
    ties.slots[slot], ties.slot[row] = row, slot


@compiled
def _link_all(ties: Ties) -> None:
    for row in range(ties.used[0]):
        link(ties, row)


@compiled
def find_tied(
    kind: Any, start: Any, stable: int, latest: int, keyed: bool, own: int, rows: Any
) -> tuple[int, int]:
    """The inserts that may meet another event of their start: among these rows, before them or after them.

    Of an input that is ``keyed`` those too that may meet only what it has shown itself, at ``own``, its last
    start, or in these rows. Returns how many there are, and the most inserts of one start.
    """
    count, run, most, before = 0, 0, 1, NONE
    for row in range(len(kind)):
        behind = start[row] < latest or start[row] < stable
        if kind[row] != INSERT or (behind and not keyed):
            continue
        if before == NONE or start[row] != start[before]:
            run = 1
            # One that goes back is not taken: what follows it may meet the one before it.
            goes_back = keyed and before != NONE and start[row] < start[before]
            if goes_back and (count == 0 or rows[count - 1] != before):
                rows[count] = before
                count += 1
            if start[row] == latest or (keyed and start[row] == own):
                rows[count] = row
                count += 1
        else:
            run += 1
            most = max(most, run)
            if count == 0 or rows[count - 1] != before:
                rows[count] = before
                count += 1
            rows[count] = row
            count += 1
        before = row
    if before != NONE and (count == 0 or rows[count - 1] != before):
        rows[count] = before
        count += 1
    return count, most
