"""A query while it runs: what it says after each micro-batch, its end, and how it is stopped in order."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from anabranch.engines.spark.query.checkpoint import begun, completed
from anabranch.engines.spark.query.status import events_in
from anabranch.engines.spark.query.watch import status_in, wait

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

    from anabranch.engines.spark.query.status import Status

POLL = 0.25
PATIENCE = 5.0
"""Seconds for the progress of a micro-batch that is complete."""


@dataclass(slots=True)
class Stop:
    """Whether someone asked for the end: once, after the micro-batch under way; twice, at once."""

    asked: int = 0


@contextmanager
def stoppable() -> Iterator[Stop]:
    """Ctrl-C and SIGTERM inside ask for an end instead of ending the process."""
    stop = Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return

    def ask(_number: int, _frame: FrameType | None) -> None:
        stop.asked += 1
        if stop.asked > 1:
            raise KeyboardInterrupt

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@dataclass(slots=True)
class Totals:
    """What a query did since it was started."""

    batches: int = 0
    received: int = 0
    emitted: int = 0
    quarantined: int = 0
    dropped: int = 0
    disagreements: int = 0
    advanced: bool = False
    """The stable of the output has moved."""
    stopped: bool = False
    last: Status | None = field(default=None, repr=False)

    def add(self, status: Status) -> None:
        """Count a micro-batch."""
        self.batches += 1
        self.received += events_in(status.received)
        self.emitted += events_in(status.emitted)
        self.quarantined += status.quarantined
        self.dropped += status.dropped
        self.disagreements = sum(one.disagreements for one in status.replicas.values())
        self.advanced = self.advanced or bool(status.emitted.get("stable"))
        self.last = status

    @property
    def all_refused(self) -> bool:
        """Rows were read, and every one was refused: a row that is used comes out, or moves the stable."""
        refused = self.quarantined + self.dropped
        return 0 < refused >= self.received and not self.emitted and not self.advanced

    def held(self) -> dict[str, int]:
        """How many events or partial results each operator holds for what comes later."""
        operators = {} if self.last is None else self.last.operators
        return {name: counts["live"] for name, counts in operators.items() if counts["live"]}


def follow(
    query: StreamingQuery,
    checkpoint: Path,
    after: int,
    stop: Stop,
    report: Callable[[Status, Any], object],
    begins: Callable[[int], object] = lambda _: None,
) -> Totals:
    """Tell of each micro-batch until the query ends or is stopped; what stopped it is raised as ours.

    ``after`` is the micro-batch that was complete when the query was started; that the next has begun, for
    which Python workers start, is told by ``begins``.
    """
    totals = Totals()
    looked = None
    waits = True

    def look() -> None:
        nonlocal after, looked
        last = query.lastProgress
        if last is None or last["timestamp"] == looked:
            return
        looked = last["timestamp"]
        for progress in query.recentProgress:
            status = status_in(progress) if progress["batchId"] > after else None
            if status is not None:
                after = status.batch
                totals.add(status)
                report(status, progress)

    while not stop.asked:
        ended = wait(query, POLL)
        if waits and begun(checkpoint) > after:
            waits = False
            begins(begun(checkpoint))
        look()
        if ended:
            return totals
    under_way = begun(checkpoint)
    while completed(checkpoint) < under_way and not wait(query, POLL):
        pass
    since = time.monotonic()
    while after < under_way and time.monotonic() - since < PATIENCE and query.isActive:
        time.sleep(POLL / 5)
        look()
    query.stop()
    totals.stopped = True
    return totals
