"""The clock, which is among the sources of every query from its beginning, and dormant.

The number of the sources of a query is fixed by its checkpoint, so what may need the time of the system one
day must have it among them from the first day on. A dormant clock has no rows, and its offset never moves:
it makes no micro-batch, and where others make one nothing of it is read. An offset is ``{"now": ticks}``,
microseconds since 1970, 0 where it has slept since the beginning.

It comes in on the first level, behind the sources that are read there, whose numbers in the checkpoint it
leaves as they are.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, SupportsTriggerAvailableNow

from anabranch.engines.spark.columns import IN_PIPELINE
from anabranch.engines.spark.stages import parcel_columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

NAME = "anabranch-clock"


_KNOWN: "WeakSet[SparkSession]" = WeakSet()


def make_known(spark: "SparkSession") -> None:
    """Let a session know the clock; while a pipeline is defined that is too late."""
    from pyspark.errors import AnalysisException

    if spark in _KNOWN:
        return
    try:
        spark.dataSource.register(ClockSource)
    except AnalysisException as reason:
        if reason.getCondition() != IN_PIPELINE:
            raise
        error = ValueError("the session of a pipeline is prepared before its flows are, and this one is not")
        error.add_note("Call anabranch.spark.prepare(SparkSession.active()) where the file begins.")
        raise error from None
    _KNOWN.add(spark)


def clock(spark: "SparkSession") -> "DataFrame":
    """The parcels of the clock."""
    make_known(spark)
    return spark.readStream.format(NAME).load()


class ClockSource(DataSource):
    """The clock as parcels."""

    @classmethod
    def name(cls) -> str:
        """What the format is called."""
        return NAME

    def schema(self) -> "StructType":
        """Rows of parcels."""
        return parcel_columns()

    def streamReader(self, schema: Any) -> "ClockReader":  # noqa: N802
        """A reader of the clock."""
        return ClockReader()


class ClockReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Stays where it is. Where one source cannot say what is there now, Spark reads all of them at once."""

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        """It has not been awake."""
        return {"now": 0}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """There is nothing to limit."""
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """What is there now is nothing."""

    def latestOffset(self, start: Mapping[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802
        """Where it was."""
        return dict(start)

    def partitions(self, start: Mapping[str, int], end: Mapping[str, int]) -> Sequence[InputPartition]:
        """No tasks."""
        return []

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """No rows."""
        return iter(())
