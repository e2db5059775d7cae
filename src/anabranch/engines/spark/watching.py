"""How a query is doing: its status after each micro-batch, and its end, as ours."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from anabranch.engines.spark.failure import failure
from anabranch.engines.spark.stages import OBSERVED
from anabranch.engines.spark.status import ShardStatus, Status, together

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.listener import StreamingQueryListener
    from pyspark.sql.streaming.query import StreamingQuery


def status(query: "StreamingQuery") -> Status | None:
    """What the query said about its last micro-batch that had input; None before the first."""
    for progress in reversed(query.recentProgress):
        found = status_in(progress)
        if found is not None:
            return found
    return None


def wait(query: "StreamingQuery", timeout: float | None = None) -> bool:
    """Whether the query has ended, after at most so many seconds; what stopped it is raised as ours."""
    from pyspark.errors import StreamingQueryException

    try:
        if timeout is None:
            query.awaitTermination()
            return True
        return bool(query.awaitTermination(timeout))  # type: ignore[arg-type]  # it takes a float
    except StreamingQueryException as error:
        raise failure(error) from None


def status_in(progress: Any) -> Status | None:
    """The status that a progress of Spark's carries, if it does."""
    observed = progress["observedMetrics"].get(OBSERVED)
    shards = [msgspec.json.decode(text, type=ShardStatus) for text in _texts(observed)]
    shards.sort(key=lambda one: one.shard)
    return together(progress["batchId"], shards) if shards else None


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
            observed = {"observedMetrics": progress.observedMetrics, "batchId": progress.batchId}
            found = status_in(observed)
            if found is not None:
                told(found, progress)

        def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
            pass

    listener = Watch()
    spark.streams.addListener(listener)
    return listener
