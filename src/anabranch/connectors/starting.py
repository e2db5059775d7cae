"""How every sink starts its query: from which checkpoint, under which name, and how often."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter


def check_trigger(*, available_now: bool, trigger: str | None) -> None:
    """Raise where a query should both end and go on."""
    if available_now and trigger is not None:
        raise ValueError(f"a query reads what is there or every {trigger}, not both")


def started(
    writer: "DataStreamWriter",
    checkpoint: Path,
    *,
    available_now: bool,
    trigger: str | None,
    name: str | None,
) -> "StreamingQuery":
    """The query of a writer, which reads what is there, or goes on every so often or at once."""
    writer = writer.option("checkpointLocation", str(checkpoint))
    if name is not None:
        writer = writer.queryName(name)
    if available_now:
        writer = writer.trigger(availableNow=True)
    elif trigger is not None:
        writer = writer.trigger(processingTime=trigger)
    return writer.start()
