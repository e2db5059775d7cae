"""The papers' workload (LM VI-B), in columns, millions of elements at a time.

Events have an integer in [0, 400] and a random string; starts advance by random gaps; a share of the events
comes late; stables stand where what follows allows them. Replicas of one workload hold the same events, each
with its own disorder, its own revisions and its own stables.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anabranch.model.batch import Batch, Kind
from anabranch.model.time import BEGINNING, FOREVER

ROWS = 65_536


@dataclass(frozen=True)
class Workload:
    """A logical stream; the defaults are the paper's, with times in milliseconds.

    >>> sum(len(batch) for batch in Workload(events=1000).replica(0)) > 1000
    True
    """

    events: int = 200_000
    seed: int = 0
    stable_freq: float = 0.01
    """The probability that an element is a stable."""
    active: int = 10_000
    """How many events are active at a time, on average; sets their duration."""
    max_gap: int = 20_000
    """The greatest distance between consecutive starts; each is drawn from 0 to this."""
    disorder: float = 0.2
    """The share of events that come late."""
    delay: int = 200_000
    """How late they come at most."""
    revisions: float = 0.0
    """The share of events that first have another end, and are adjusted before they would end."""
    payload_bytes: int = 1000
    closed: bool = True
    """The stream ends with stable(FOREVER)."""

    def __post_init__(self) -> None:
        for name in ("stable_freq", "disorder", "revisions"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} is a share between 0 and 1, not {getattr(self, name)}")
        if self.events < 0 or self.active < 1 or self.max_gap < 0 or self.payload_bytes < 0:
            raise ValueError(f"a workload has no negative sizes and at least one active event: {self}")
        if self.payload_bytes >= 2**31 // ROWS:
            raise ValueError(f"payload_bytes is below {2**31 // ROWS}, not {self.payload_bytes}")
        if (self.events + 2 * self.active) * self.max_gap + self.delay >= 2**62:
            raise ValueError(
                f"{self.events} events with gaps up to {self.max_gap} do not fit into int64 ticks"
            )

    @cached_property
    def start(self) -> NDArray[np.int64]:
        """When each event starts, ascending."""
        random = np.random.default_rng([self.seed, 1])
        return np.cumsum(random.integers(0, self.max_gap, self.events, endpoint=True))

    @property
    def duration(self) -> int:
        """How long every event lasts."""
        return max(1, self.active * self.max_gap // 2)

    def payload(self, rows: NDArray[np.int64]) -> pa.RecordBatch:
        """The payloads of these events; the same event always has the same one."""
        first, last = (int(rows.min()), int(rows.max())) if len(rows) else (0, 0)
        parts = [_block(self.seed, self.payload_bytes, n) for n in range(first // ROWS, last // ROWS + 1)]
        near = pa.Table.from_batches(parts).combine_chunks().to_batches()[0]
        return near.take(pa.array(rows - first // ROWS * ROWS))

    def replica(self, number: int) -> Iterator[Batch]:
        """One physical stream of it."""
        random = np.random.default_rng([self.seed, 3, number])
        kind, event, end, old_end, order = self._elements(random)
        kind, event, end, old_end = kind[order], event[order], end[order], old_end[order]
        start = self.start[event]
        sync = np.where(kind == Kind.ADJUST, np.minimum(end, old_end), start)
        room = np.concatenate([np.minimum.accumulate(sync[::-1])[::-1][1:], [FOREVER]])
        stable_after = random.random(len(kind)) < self.stable_freq
        last = BEGINNING
        for begin in range(0, len(kind), ROWS):
            part = slice(begin, min(begin + ROWS, len(kind)))
            at = np.flatnonzero(stable_after[part] & (room[part] < FOREVER) & (room[part] > last)) + 1
            times = room[part][at - 1]
            last = int(times.max(initial=last))
            yield Batch(
                np.insert(kind[part], at, np.int8(Kind.STABLE)),
                np.insert(start[part], at, times),
                np.insert(end[part], at, 0),
                np.insert(old_end[part], at, 0),
                _with_null_rows(self.payload(event[part]), at),
            )
        if self.closed:
            nothing = np.zeros(1, np.int64)
            empty = self.payload(nothing).schema.empty_table().schema
            yield Batch(
                np.array([Kind.STABLE], np.int8),
                np.array([FOREVER]),
                nothing,
                nothing,
                pa.RecordBatch.from_pylist([{}], schema=empty),
            )

    def _elements(self, random: np.random.Generator) -> Any:
        """Inserts, then adjusts, as columns (kind, event, end, old end) and their arrival order."""
        everyone = np.arange(self.events)
        final = self.start + self.duration
        revised = np.flatnonzero(random.random(self.events) < self.revisions)
        told = final.copy()
        told[revised] += random.integers(1, self.duration + 1, len(revised))
        late = random.random(self.events) < self.disorder
        arrival = self.start + late * random.integers(0, self.delay + 1, self.events)
        corrected = arrival[revised] + random.integers(1, self.duration + 1, len(revised))
        return (
            np.repeat(np.array([Kind.INSERT, Kind.ADJUST], np.int8), [self.events, len(revised)]),
            np.concatenate([everyone, revised]),
            np.concatenate([told, final[revised]]),
            np.concatenate([np.zeros(self.events, np.int64), told[revised]]),
            np.argsort(np.concatenate([arrival, corrected]), kind="stable"),
        )


@lru_cache(maxsize=4)
def _block(seed: int, payload_bytes: int, number: int) -> pa.RecordBatch:
    """The payloads of ROWS consecutive events."""
    random = np.random.default_rng([seed, 2, number])
    letters = (np.frombuffer(random.bytes(ROWS * payload_bytes), np.uint8) & 15) + np.uint8(97)
    offsets = np.arange(ROWS + 1, dtype=np.int32) * np.int32(payload_bytes)
    text = pa.StringArray.from_buffers(ROWS, pa.py_buffer(offsets), pa.py_buffer(letters))
    return pa.RecordBatch.from_arrays([random.integers(0, 401, ROWS), text], names=["number", "text"])


def _with_null_rows(rows: pa.RecordBatch, before: NDArray[np.int64]) -> pa.RecordBatch:
    places = np.insert(np.arange(rows.num_rows), before, -1)
    return rows.take(pa.array(places, mask=places < 0))
