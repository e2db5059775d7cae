"""What a merge says, as columns that compiled loops fill."""

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anabranch.kernels.merge.sides import Sides
from anabranch.model.application import ADJUST, INSERT, STABLE
from anabranch.model.batch import Batch, holds
from anabranch.model.compiled import inlined
from anabranch.model.payloads import PayloadStore


class Output(NamedTuple):
    """Rows of output, each with the place of its payload; and how many there are.

    Nothing that says a row looks for room: a loop does before it takes an element, of which one row may come,
    and before a stable, of which it knows the most that may come. Without room it stops there.
    """

    kind: NDArray[np.int8]
    place: NDArray[np.int64]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    old_end: NDArray[np.int64]
    rows: NDArray[np.int64]

    @classmethod
    def of_capacity(cls, capacity: int) -> "Output":
        """Nothing, with room for this many rows."""
        return cls(
            np.empty(capacity, np.int8),
            np.empty(capacity, np.int64),
            np.empty(capacity, np.int64),
            np.empty(capacity, np.int64),
            np.empty(capacity, np.int64),
            np.zeros(1, np.int64),
        )


def batch_of(
    parts: list[Output], payloads: PayloadStore, payload: pa.RecordBatch, *, stables: bool = True
) -> Batch:
    """What was said, with payloads from a store or from rows that are not yet in it.

    Where ``stables`` are not wanted they are left out before payloads are gathered: to take them out of a
    batch gathers all payloads again, a third of the time of a merge.
    """
    output = parts[0] if len(parts) == 1 else _joined(parts)
    rows: Any = slice(int(output.rows[0]))
    if not stables and holds(output.kind[rows], STABLE):
        rows = np.flatnonzero(output.kind[rows] != STABLE)
    columns = output.kind[rows], output.start[rows], output.end[rows], output.old_end[rows]
    return Batch(*columns, payloads.rows_at(output.place[rows], payload))


def _joined(parts: list[Output]) -> Output:
    joined = Output.of_capacity(sum(int(part.rows[0]) for part in parts))
    for part in parts:
        begin, end = joined.rows[0], joined.rows[0] + part.rows[0]
        for column in range(len(joined) - 1):
            joined[column][begin:end] = part[column][: part.rows[0]]
        joined.rows[0] = end
    return joined


@inlined
def _emit(output: Output, kind: int, place: int, start: int, end: int, old_end: int) -> None:
    row = output.rows[0]
    output.kind[row] = kind
    output.place[row] = place
    output.start[row] = start
    output.end[row] = end
    output.old_end[row] = old_end
    output.rows[0] = row + 1


@inlined
def emit_insert(output: Output, place: int, start: int, end: int) -> None:
    """One more event."""
    _emit(output, INSERT, place, start, end, 0)


@inlined
def emit_adjust(output: Output, place: int, start: int, old_end: int, end: int) -> None:
    """Another end."""
    _emit(output, ADJUST, place, start, end, old_end)


@inlined
def emit_stable(output: Output, time: int, place: int) -> None:
    """Nothing before this time changes any more; at the place there is a null row, or it is NONE."""
    _emit(output, STABLE, place, time, 0, 0)


class Notes(NamedTuple):
    """Disagreements: input, place of the payload, start, the end shown, the end in the output; how many."""

    row: NDArray[np.int64]
    rows: NDArray[np.int64]

    @classmethod
    def of_capacity(cls, capacity: int) -> "Notes":
        """No notes, with room for this many."""
        return cls(np.empty((capacity, 5), np.int64), np.zeros(1, np.int64))


def noted(notes: Notes, payloads: PayloadStore, payload: pa.RecordBatch) -> list[dict[str, Any]]:
    """The payloads of the notes, in a store or in rows that are not yet in it."""
    if not notes.rows[0]:
        return []
    rows: list[dict[str, Any]] = payloads.rows_at(notes.row[: notes.rows[0], 1], payload).to_pylist()
    return rows or [{}] * int(notes.rows[0])


@inlined
def note(notes: Notes, sides: Sides, i: int, place: int, start: int, shown: Any, given: Any) -> None:
    """Count that input i disagrees with the output about an event, and keep the first few as examples."""
    sides.disagreements[i] += 1
    row = notes.rows[0]
    if row < len(notes.row):
        notes.row[row, 0] = i
        notes.row[row, 1] = place
        notes.row[row, 2] = start
        notes.row[row, 3] = shown
        notes.row[row, 4] = given
        notes.rows[0] = row + 1
