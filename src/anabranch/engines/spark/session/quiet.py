"""What Spark logs of every query of ours though nothing is wrong, kept out of its log.

All else that Spark logs stays, whatever its level. The lines that its first Python worker prints are left out
where it is started (`worker_python.sh`).
"""

from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LINES = (
    # Adaptive execution is for batches, and no query that streams has it.
    r".*spark\.sql\.adaptive\.enabled is not supported in streaming.*",
    r"Disabling AQE since AQE is not supported in stateful workloads.*",
    # A shard begins without a state, and a task ends.
    r"Value state \w+ doesn't contain a value.*",
    r"No more data to read from the socket.*",
)
_PATTERN = f"(?s){'|'.join(_LINES)}"


def quiet(spark: "SparkSession") -> None:
    """Keep these lines out of the log of a session's JVM; one that does not log with Log4j keeps them."""
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]

    log4j: Any = spark.sparkContext._jvm.org.apache.logging.log4j  # type: ignore[union-attr]
    with suppress(Py4JError):
        configuration = log4j.LogManager.getContext(False).getConfiguration()
        there = configuration.getFilter()
        if there is not None and _PATTERN in there.toString():
            return
        result = getattr(log4j.core, "Filter$Result")
        lines = log4j.core.filter.RegexFilter.createFilter(_PATTERN, None, False, result.DENY, result.NEUTRAL)
        configuration.addFilter(lines)
