"""A bag of events in columns: what a relation is at one moment, or how two of them differ."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anabranch.model.batch import Batch, Kind
from anabranch.model.elements import Event
from anabranch.model.identity import Words
from anabranch.model.time import BEGINNING


@dataclass(frozen=True)
class Events:
    """Distinct events with how often each occurs; in a difference, counts may be negative.

    The times say how many events there are: a payload table without columns has no rows of its own.
    """

    start: NDArray[np.int64]
    end: NDArray[np.int64]
    count: NDArray[np.int64]
    identity: Words
    arrival: NDArray[np.int64]
    """The position of the element that made each event what it is."""
    payload: pa.Table

    def __len__(self) -> int:
        return len(self.start)

    @classmethod
    def changed_by(cls, batch: Batch) -> "Events":
        """The net change that valid elements make: what they add, less what they take away."""
        data = np.flatnonzero(batch.kind <= Kind.ADJUST)
        gone = np.flatnonzero(batch.kind == Kind.ADJUST)
        rows = np.concatenate([data, gone])
        return cls(
            batch.start[rows],
            np.concatenate([batch.end[data], batch.old_end[gone]]),
            np.concatenate([np.ones(len(data), np.int64), np.full(len(gone), -1, np.int64)]),
            batch.identities[rows],
            rows + 1,
            pa.Table.from_batches([batch.take(rows).payload]),
        ).consolidated()

    def first_difference(self, other: "Events") -> "Difference | None":
        """The earliest event, by start and end, that this bag and another do not have in equal number."""
        start, end = np.concatenate([self.start, other.start]), np.concatenate([self.end, other.end])
        identity = np.concatenate([self.identity, other.identity])
        rows, surplus = _summed(start, end, identity, np.concatenate([self.count, -other.count]))
        if not len(rows):
            return None
        first = int(rows[0])
        side, row = (self, first) if first < len(self) else (other, first - len(self))
        same = (other.start == start[first]) & (other.end == end[first])
        right = int(other.count[same & (other.identity == identity[first]).all(axis=1)].sum())
        event, _ = next(side.take(np.array([row])).rows())
        return Difference(event, right + int(surplus[0]), right, len(rows), int(side.arrival[row]))

    def settled(self, stable: int, *, since: int = BEGINNING) -> "Events":
        """What a stable has fixed: the events that start before it, with ends that are still open cut to it.

        Of these only the ones that end at or after ``since``, for inputs that vouch for no others.
        """
        clipped = np.minimum(self.end, stable)
        rows = np.flatnonzero((self.start < stable) & (clipped >= since))
        part = self.take(rows)
        return replace(part, end=clipped[rows]).consolidated()

    def consolidated(self) -> "Events":
        """Every event once, with the sum of its counts; none whose sum is zero and none that never held."""
        return self.take(*_summed(self.start, self.end, self.identity, self.count))

    def take(self, rows: NDArray[np.int64], count: NDArray[np.int64] | None = None) -> "Events":
        """Some of the events, in this order."""
        return Events(
            self.start[rows],
            self.end[rows],
            self.count[rows] if count is None else count,
            self.identity[rows],
            self.arrival[rows],
            self.payload.take(pa.array(rows)) if self.payload.num_columns else self.payload,
        )

    def rows(self) -> Iterator[tuple[Event, int]]:
        """Each distinct event with its count, as they stand."""
        payloads = self.payload.to_pylist() if self.payload.num_columns else [{}] * len(self)
        times = zip(payloads, self.start.tolist(), self.end.tolist(), self.count.tolist(), strict=True)
        for row, start, end, count in times:
            yield Event({k: v for k, v in row.items() if v is not None}, start, end), count

    def objects(self) -> list[Event]:
        """The events by start, end and payload, each as often as it occurs."""
        counted = sorted(self.rows(), key=lambda row: (row[0].start, row[0].end, _text(row[0].payload)))
        return [event for event, count in counted for _ in range(count)]

    def to_arrow(self) -> pa.Table:
        """A table with the columns start, end (null: no end), count and those of the payload."""
        from anabranch.model.clock_columns import times

        columns: dict[str, Any] = {"start": times(self.start), "end": times(self.end), "count": self.count}
        names = [name for name in self.payload.column_names if name not in columns]
        if len(names) < self.payload.num_columns:
            columns["payload"] = self.payload.to_struct_array()
        else:
            columns |= {name: self.payload.column(name) for name in names}
        return pa.table(columns)


@dataclass(frozen=True, slots=True)
class Difference:
    """One event that occurs more often on one side; the earliest by start, then end, stands for all."""

    event: Event
    left: int
    """How often it occurs on the left."""
    right: int
    """How often it occurs on the right."""
    events: int
    """How many distinct events differ in all."""
    arrived: int
    """The position of the element that made the event on the side where it occurs more often."""


def _summed(
    start: NDArray[np.int64], end: NDArray[np.int64], identity: Words, count: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where each distinct event stands first, by start and end, and the sum of its counts where not zero."""
    order = np.lexsort((identity[:, 1], identity[:, 0], end, start))
    new = np.ones(len(order), np.bool_)
    columns = (start, end, identity[:, 0], identity[:, 1])
    new[1:] = np.logical_or.reduce([column[order][1:] != column[order][:-1] for column in columns])
    first = np.flatnonzero(new)
    total = np.add.reduceat(count[order], first) if len(first) else np.zeros(0, np.int64)
    held = (total != 0) & (end[order[first]] > start[order[first]])
    return order[first[held]], total[held]


def _text(payload: Any) -> str:
    return repr(sorted(payload.items(), key=lambda item: item[0]))
