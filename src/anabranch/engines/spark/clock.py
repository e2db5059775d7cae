"""The clock, which is among the sources of every query from its beginning, and dormant.

The number of the sources of a query is fixed by its checkpoint, so what may need the time of the system one
day must have it among them from the first day on. A dormant clock has no rows, and its offset never moves:
it makes no micro-batch, and where others make one nothing of it is read. An offset is ``{"now": ticks}``,
microseconds since 1970, 0 where it has slept since the beginning.

It comes in on the first level, behind the sources that are read there, whose numbers in the checkpoint it
leaves as they are. Flows of pipelines have none: they end when all that is there has been read, and the
command that runs them fails at the end where a source is in Python.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, SupportsTriggerAvailableNow

from anabranch.engines.spark.columns import IN_PIPELINE
from anabranch.engines.spark.parcel_rows import parcel_columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

NAME = "anabranch-clock"


def clock(spark: "SparkSession") -> "DataFrame | None":
    """The parcels of the clock; None while a flow of a pipeline is defined."""
    from pyspark.errors import AnalysisException

    try:
        spark.dataSource.register(ClockSource)
    except AnalysisException as reason:
        if reason.getCondition() != IN_PIPELINE:
            raise
        return None
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
