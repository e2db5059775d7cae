"""How every sink starts its query: of which rows, from which checkpoint, under which name, and how often.

A checkpoint is held by one query at a time, and looked at before Spark goes on from it.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from anabranch.engines.spark.query.begun_with import BegunWith, keep_begun_with
from anabranch.engines.spark.query.check import check_sound
from anabranch.engines.spark.query.failure import failure
from anabranch.engines.spark.query.lock import held
from anabranch.model.span import unit_meant
from anabranch.rows.element_columns import TIMES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter


def check_elements(rows: "DataFrame", kind: type[ValueError] = ValueError) -> None:
    """Raise an error of this kind where rows are not what a merge gives."""
    absent = [name for name in ("kind", *TIMES) if name not in rows.schema.names]
    if absent:
        error = kind(f"a sink writes element rows, and these have no column {absent[0]!r}")
        error.add_note("Pass what ab.merge or ab.merge_changes gives.")
        raise error


def check_streaming(rows: "DataFrame") -> None:
    """Raise where there is no stream for a query to follow."""
    if not rows.isStreaming:
        error = ValueError(
            "a sink starts a query of a stream, and these rows are a frame that is not streaming"
        )
        error.add_note("Write them as any frame: rows.write.parquet(…), or ab.table(rows).write….")
        error.add_note("For a query, merge what ab.folder, ab.kafka or spark.readStream reads.")
        raise error


_UNITS = "week|day|hour|minute|second|millisecond|microsecond"
_SPAN = re.compile(rf"(interval\s+)?([+-]?\d+(\.\d+)?\s+({_UNITS})s?(\s+|$))+", re.IGNORECASE)
"""How Spark writes a length of time."""


def check_trigger(*, available_now: bool, trigger: str | None) -> None:
    """Raise where a query should both end and go on, or go on every so often in words Spark does not know."""
    if available_now and trigger is not None:
        raise ValueError(f"a query reads what is there or every {trigger}, not both")
    if trigger is not None and (not _SPAN.fullmatch(trigger.strip()) or "-" in trigger):
        error = ValueError(
            f"a trigger is a length of time, and {trigger!r} is none that Spark knows{unit_meant(trigger)}"
        )
        error.add_note("Write it as '10 seconds' or '1 minute'.")
        raise error


def started(
    writer: "DataStreamWriter",
    checkpoint: Path,
    *,
    available_now: bool,
    trigger: str | None,
    name: str | None,
    settings: BegunWith,
    first: Callable[[], None] = lambda: None,
) -> "StreamingQuery":
    """The query of a writer, which reads what is there, or goes on every so often or at once.

    ``first`` is what the sink has to see to before, when no other query can be at it any more.
    """
    writer = writer.option("checkpointLocation", str(checkpoint))
    if name is not None:
        writer = writer.queryName(name)
    if available_now:
        writer = writer.trigger(availableNow=True)
    elif trigger is not None:
        writer = every(writer, trigger)
    connected = type(writer).__module__.startswith("pyspark.sql.connect")
    hold = held(checkpoint)
    try:
        check_sound(checkpoint)
        keep_begun_with(checkpoint, settings)
        first()
        if not connected:
            _make_active(writer)
        query = _begun(writer)
    except BaseException:
        hold.release()
        raise
    if connected:
        hold.release()  # the server runs the query, whatever becomes of this process
    else:
        hold.until_the_end_of(query)
    return query


def _make_active(writer: "DataStreamWriter") -> None:
    """Let this thread know the session: Spark looks there for sinks, and only who made it knows it."""
    spark = writer._spark
    spark._get_j_spark_session_class(spark._jvm).setActiveSession(spark._jsparkSession)


def _begun(writer: "DataStreamWriter") -> "StreamingQuery":
    from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    try:
        return writer.start()
    except (PySparkException, Py4JJavaError) as error:
        raise failure(error) from None


def every(writer: "DataStreamWriter", trigger: str) -> "DataStreamWriter":
    """A writer with a micro-batch every so often, in words that Spark knows."""
    from pyspark.errors import PySparkException

    try:
        return writer.trigger(processingTime=trigger)
    except PySparkException as reason:
        error = ValueError(f"a trigger is a length of time, and {trigger!r} is none that Spark knows")
        error.add_note(f"Write it as '10 seconds' or '1 minute'. Spark says: {str(reason).splitlines()[0]}")
        raise error from None
