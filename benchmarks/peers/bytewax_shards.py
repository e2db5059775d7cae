"""Bytewax: a source of one partition per copy, and a dict for each of a few shards of the keys.

A state per key would be the plainer way, and several times slower. What is old is evicted by its time, by the
user: a copy that lags further than that comes out twice.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import bytewax.operators as op
from bytewax.dataflow import Dataflow
from bytewax.inputs import FixedPartitionedSource, StatefulSourcePartition
from bytewax.operators import StatefulBatchLogic
from bytewax.outputs import DynamicSink, StatelessSinkPartition
from bytewax.testing import run_main

from peers.arrivals import KEEP, Job, Ready, Row, copies, told, tuples

SHARDS = [str(number) for number in range(8)]
Change = tuple[Row, int | None]
"""A row, and the end that it had before, if it was there."""


class Copy(StatefulSourcePartition):
    """One copy, a batch at a time."""

    def __init__(self, batches: Iterable[list[Row]]) -> None:
        self.batches = iter(batches)

    def next_batch(self) -> list[Row]:
        """The next rows; the end of the batches is the end of the copy."""
        return next(self.batches)

    def snapshot(self) -> None:
        """Nothing is recovered here."""


class Replicas(FixedPartitionedSource):
    """All copies."""

    def __init__(self, every: list[Iterable[list[Row]]]) -> None:
        self.every = every

    def list_parts(self) -> list[str]:
        """Copies by number."""
        return [str(number) for number in range(len(self.every))]

    def build_part(self, step_id: str, for_part: str, resume_state: Any) -> Copy:
        """One copy from its beginning."""
        return Copy(self.every[int(for_part)])


class Latest(StatefulBatchLogic):
    """State: the end of each key, in spans of time of which the newest two are kept."""

    def __init__(self) -> None:
        self.spans: dict[int, dict[tuple[int, int, str], int]] = {}

    def on_batch(self, values: list[Row]) -> tuple[list[Change], bool]:
        """Rows that are new or have another end than before."""
        changes: list[Change] = []
        spans = self.spans
        for row in values:
            start, end, number, text = row
            span = spans.get(start // KEEP)
            if span is None:
                span = spans[start // KEEP] = {}
                for old in [known for known in spans if known < max(spans) - 1]:
                    del spans[old]
            key = (start, number, text)
            before = span.get(key)
            if before != end:
                span[key] = end
                changes.append((row, before))
        return changes, StatefulBatchLogic.RETAIN

    def snapshot(self) -> None:
        """Nothing is recovered here."""


class Total(DynamicSink, StatelessSinkPartition):
    """How many rows there are, and the sum of their ends."""

    def __init__(self) -> None:
        self.rows = self.ends = 0

    def build(self, step_id: str, worker_index: int, worker_count: int) -> "Total":
        """There is one worker."""
        return self

    def write_batch(self, items: list[tuple[str, Change]]) -> None:
        """Take the changes in."""
        for _, (row, before) in items:
            self.ends += row[1] - (before or 0)
            self.rows += before is None


def prepare(folder: Path, revised: bool, ready: Ready) -> Job:
    """Rows are tuples; where none is revised, the latest of each key is the first of it."""
    every = [ready(map(tuples, map(told, copy))) for copy in copies(folder)]

    def job() -> tuple[int, int]:
        flow, total = Dataflow("merge"), Total()
        arrived = op.input("copies", flow, Replicas(every))
        keyed = op.key_on("shard", arrived, lambda row: SHARDS[row[0] % len(SHARDS)])
        op.output("total", op.stateful_batch("latest", keyed, lambda _: Latest()), total)
        run_main(flow)
        return total.rows, total.ends

    return job
