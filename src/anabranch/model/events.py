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

    def minus(self, other: "Events") -> "Events":
        """What this bag has more (positive) and less (negative) than another."""
        both = pa.concat_tables([self.payload, other.payload], promote_options="permissive")
        return Events(
            np.concatenate([self.start, other.start]),
            np.concatenate([self.end, other.end]),
            np.concatenate([self.count, -other.count]),
            np.concatenate([self.identity, other.identity]),
            np.concatenate([self.arrival, other.arrival]),
            both,
        ).consolidated()

    def count_of(self, other: "Events") -> int:
        """How often the first event of another bag occurs in this one."""
        same = (self.start == other.start[0]) & (self.end == other.end[0])
        same &= (self.identity == other.identity[0]).all(axis=1)
        return int(self.count[same].sum())

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
        order = np.lexsort((self.identity[:, 1], self.identity[:, 0], self.end, self.start))
        columns = (self.start, self.end, self.identity[:, 0], self.identity[:, 1])
        new = np.ones(len(order), np.bool_)
        if len(order):
            new[1:] = np.logical_or.reduce([c[order][1:] != c[order][:-1] for c in columns])
        first = np.flatnonzero(new)
        count = np.add.reduceat(self.count[order], first) if len(first) else np.zeros(0, np.int64)
        kept = (count != 0) & (self.end[order[first]] > self.start[order[first]])
        return self.take(order[first[kept]], count[kept])

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
        from anabranch.model.arrow import times

        columns: dict[str, Any] = {"start": times(self.start), "end": times(self.end), "count": self.count}
        names = [name for name in self.payload.column_names if name not in columns]
        if len(names) < self.payload.num_columns:
            columns["payload"] = self.payload.to_struct_array()
        else:
            columns |= {name: self.payload.column(name) for name in names}
        return pa.table(columns)


def _text(payload: Any) -> str:
    return repr(sorted(payload.items(), key=lambda item: item[0]))
