"""How a query is doing: its status after each micro-batch, and its end, as ours."""

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import msgspec

from anabranch.engines.spark.query.backlog import unread
from anabranch.engines.spark.query.failure import failure
from anabranch.engines.spark.query.status import ShardStatus, Status, nothing, of_levels, together
from anabranch.engines.spark.stages import OBSERVED

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.listener import StreamingQueryListener
    from pyspark.sql.streaming.query import StreamingQuery


POLL = 0.25
"""Seconds after which a wait looks whether someone asked for its end."""


def status(query: "StreamingQuery") -> Status:
    """What the query said about its last micro-batch that had input; before the first, a status of nothing.

    What an earlier run heard is in its state, and told with the next micro-batch.
    """
    for progress in reversed(query.recentProgress):
        found = status_in(progress)
        if found is not None:
            return found
    return nothing()


def wait(query: "StreamingQuery", timeout: float | None = None) -> bool:
    """Whether the query has ended, after at most so many seconds; what stopped it is raised as ours.

    Ctrl-C stops the query and is then raised as it always is, a second one at once. A program that has an
    answer of its own to the signal keeps it.
    """
    from pyspark.errors import StreamingQueryException

    until = None if timeout is None else time.monotonic() + timeout
    left, ended = POLL, False
    try:
        with _interrupted() as interrupted:
            while left > 0 and not ended and not interrupted:
                left = POLL if until is None else until - time.monotonic()
                ended = bool(query.awaitTermination(max(0.001, min(POLL, left))))  # type: ignore[arg-type]
            if interrupted:
                with suppress(Exception):  # of a query that has failed meanwhile
                    query.stop()
                raise KeyboardInterrupt
    except StreamingQueryException as error:
        raise failure(error) from None
    return ended


@contextmanager
def _interrupted() -> Iterator[list[int]]:
    """Ctrl-C inside is noted instead of raised: it would leave a call of the JVM in the middle."""
    noted: list[int] = []
    before = signal.getsignal(signal.SIGINT)
    module = getattr(before, "__module__", None) or ""
    theirs = before is signal.default_int_handler or module.startswith("pyspark.")
    if threading.current_thread() is not threading.main_thread() or not theirs:
        yield noted
        return

    def note(number: int, _frame: Any) -> None:
        if noted:
            raise KeyboardInterrupt
        noted.append(number)

    signal.signal(signal.SIGINT, note)
    try:
        yield noted
    finally:
        signal.signal(signal.SIGINT, before)


def status_in(progress: Any) -> Status | None:
    """The status that a progress of Spark's carries, if it does."""
    observed = progress["observedMetrics"]
    levels = sorted(name for name in observed if name.startswith(OBSERVED) and name != OBSERVED)
    parts = [_shards(observed.get(name)) for name in (*levels, OBSERVED)]
    whole = [together(progress["batchId"], shards) for shards in parts if shards]
    if not whole:
        return None
    return msgspec.structs.replace(of_levels(whole), unread=unread(progress["sources"]))


def _shards(observed: Any) -> list[ShardStatus]:
    shards = [msgspec.json.decode(text, type=ShardStatus) for text in _texts(observed)]
    return sorted(shards, key=lambda one: one.shard)


def _texts(observed: Any) -> list[str]:
    """What the shards say; Spark Connect wraps the values of a row once more."""
    found = observed[0] if observed else []
    return found[0] if found and isinstance(found[0], list) else found


def watch(spark: "SparkSession", told: Callable[["Status", Any], object]) -> "StreamingQueryListener":
    """Tell a function of each micro-batch: its status and Spark's progress; ends with ``removeListener``."""
    from pyspark.sql.streaming.listener import StreamingQueryListener

    class Watch(StreamingQueryListener):
        def onQueryStarted(self, event: Any) -> None:  # noqa: N802
            pass

        def onQueryProgress(self, event: Any) -> None:  # noqa: N802
            progress = event.progress
            sources = [
                {"endOffset": one.endOffset, "latestOffset": one.latestOffset} for one in progress.sources
            ]
            observed = progress.observedMetrics
            found = status_in({"observedMetrics": observed, "batchId": progress.batchId, "sources": sources})
            if found is not None:
                told(found, progress)

        def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
            pass

    listener = Watch()
    spark.streams.addListener(listener)
    return listener
