"""The merge as a query on Spark that runs while files appear, and is stopped and started again on the way."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

from anabranch.cli.demo import feed
from anabranch.cli.demo.replicas import Row
from anabranch.cli.micro_batches import leader

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from anabranch.engines.spark.query.status import Status

RESTART = 5
"""The step in which the query is stopped."""
PATIENCE = 120.0
"""Seconds without an answer from a query that runs."""


@dataclass(frozen=True, slots=True)
class MicroBatch:
    """One micro-batch, as a line of the demo."""

    now: int
    """Seconds of the demo."""
    batch: int
    leader: str
    frontier: int
    heard: int
    inserts: int
    adjusts: int
    quarantined: int
    disagreements: int


@dataclass(frozen=True, slots=True)
class Restart:
    """The query was stopped and started again from its checkpoint."""

    batch: int
    halfway: bool
    """The micro-batch had begun and was not complete."""


def play(
    spark: SparkSession,
    place: Path,
    said: Mapping[str, Sequence[Row]],
    told: Callable[[MicroBatch | Restart], object],
) -> None:
    """Let the replicas speak minute by minute, and merge what they say into a folder."""
    from anabranch import spark as ab

    answers: SimpleQueue[Status] = SimpleQueue()
    watch = ab.watch(spark, lambda status, _: answers.put(status))
    for name in said:
        (place / "in" / name).mkdir(parents=True)
    rows = ab.merge(
        ab.folder(spark, place / "in", schema=feed.SCHEMA),
        start="start",
        end="end",
        old_end="old_end",
        kind="kind",
        replica="replica",
        payload=["sensor", "value"],
        properties="keyed",
    )

    def start() -> StreamingQuery:
        return ab.write_folder(rows, place / "merged", checkpoint=place / "checkpoint")

    query, owed = start(), 0  # rows that were put and not yet heard of
    for step in range(feed.STEPS):
        now = {name: feed.in_step(own, step) for name, own in said.items()}
        feed.put(place / "in", step, now)
        owed += sum(map(len, now.values()))
        if step == RESTART:
            told(_stopped(query, place / "checkpoint"))
            query = start()
        while owed:
            status = _answer(query, answers)
            heard = sum(status.received.values())
            owed -= heard
            told(_micro_batch(status, heard, (step + 1) * feed.MINUTE))
    query.stop()
    spark.streams.removeListener(watch)


def _stopped(query: StreamingQuery, checkpoint: Path) -> Restart:
    """Stop a query as soon as it has begun the next micro-batch."""
    from anabranch.engines.spark.query.checkpoint import begun, completed

    batch, since = completed(checkpoint) + 1, time.monotonic()
    while begun(checkpoint) < batch and time.monotonic() - since < PATIENCE and query.isActive:
        time.sleep(0.01)
    query.stop()
    return Restart(batch, halfway=completed(checkpoint) < batch <= begun(checkpoint))


def _answer(query: StreamingQuery, answers: SimpleQueue[Status]) -> Status:
    from anabranch import spark as ab

    begun = time.monotonic()
    while True:
        try:
            return answers.get(timeout=0.5)
        except Empty:
            if not query.isActive:
                ab.wait(query)
                raise ab.QueryError("the merge ended before all was read") from None
            if time.monotonic() - begun > PATIENCE:
                error = ab.QueryError(f"the merge said nothing for {PATIENCE:.0f} seconds")
                error.add_note("Is the machine very busy? What Spark said is in spark.log.")
                raise error from None


def _micro_batch(status: Status, heard: int, now: int) -> MicroBatch:
    return MicroBatch(
        now,
        status.batch,
        leader(status) or "nobody",
        status.frontier,
        heard,
        status.emitted["insert"],
        status.emitted["adjust"],
        status.quarantined,
        sum(one.disagreements for one in status.replicas.values()),
    )
