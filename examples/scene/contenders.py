"""What people use in place of a merge, on the same rows: leader election, and de-duplication on Spark.

Leader election follows one replica until it is silent for too long. It is for replicas that are whole while
they live, where a gap at each failover is affordable; it keeps nothing.

De-duplication lets the first row through of those that are equal in some columns: all that the replicas sent,
or a key. ``dropDuplicates`` never forgets. ``dropDuplicatesWithinWatermark`` forgets a row when the watermark
has passed it, and leaves out rows that come behind the watermark, which is one for all replicas. Both are for
rows that arrive twice and happen once.
"""

from collections.abc import Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from anabranch.testing.leader_election import TIMEOUT, leader_election
from scene.feed import Heard, stream
from scene.readings import Reading, seconds
from scene.verdict import Result

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, Row, SparkSession

KEY = ("sensor", "at")
ROWS_ARE_COUNTED = "spark.sql.streaming.stateStore.rocksdb.trackTotalNumberOfRows"


def contenders(
    spark: "SparkSession", place: Path, heard: Sequence[Heard], *, delays: Sequence[str]
) -> dict[str, Result]:
    """What each makes of what was said, which is also in the files of ``place / "in"``."""
    signal = any(one.signal is not None for one in heard)
    whole = [*KEY, "value", *(["signal"] if signal else [])]

    def rows(*, at_once: bool = False) -> "DataFrame":
        return stream(spark, place / "in", signal=signal, at_once=at_once)

    frames = {
        "dropDuplicates, the whole row": rows(at_once=True).dropDuplicates(whole),
        "dropDuplicates, sensor and time": rows(at_once=True).dropDuplicates(list(KEY)),
    }
    for delay in delays:
        frames[f"dropDuplicatesWithinWatermark, {delay}"] = (
            rows().withWatermark("at", delay).dropDuplicatesWithinWatermark(list(KEY))
        )
    said = {name: [(one.said, one.reading) for one in heard if one.replica == name] for name in _names(heard)}
    followed = Result(leader_election(said))
    with _counting_rows(spark):
        results = {name: _run(frame, place / f"other-{n}") for n, (name, frame) in enumerate(frames.items())}
    return {f"leader election, {TIMEOUT} s": followed, **results}


def reading(row: "Row") -> Reading:
    """The reading that a row is."""
    return Reading(seconds(row["at"]), row["sensor"], row["value"])


def _names(heard: Sequence[Heard]) -> list[str]:
    return list(dict.fromkeys(one.replica for one in heard))


def _run(frame: "DataFrame", place: Path) -> Result:
    """What a query lets through, and how many rows it remembers at the end."""
    query = (
        frame.writeStream.format("parquet")
        .option("checkpointLocation", str(place / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(place / "out"))
    )
    query.awaitTermination()
    found = frame.sparkSession.read.parquet(str(place / "out")).collect()
    [state] = query.recentProgress[-1]["stateOperators"]
    return Result([reading(row) for row in found], state["numRowsTotal"])


@contextmanager
def _counting_rows(spark: "SparkSession") -> "Iterator[None]":
    before = spark.conf.get(ROWS_ARE_COUNTED)
    spark.conf.set(ROWS_ARE_COUNTED, "true")
    try:
        yield
    finally:
        spark.conf.set(ROWS_ARE_COUNTED, str(before))
