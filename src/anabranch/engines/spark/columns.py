"""What a merge knows of its rows before it reads any: their columns, and what their source says of itself."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from anabranch.engines.spark.session.row_types import arrow_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

    from anabranch.engines.spark.native_source import NativeSource

IN_PIPELINE = "ATTEMPT_ANALYSIS_IN_PIPELINE_QUERY_FUNCTION"


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of rows, whether or not there is a session to read them in."""

    schema: pa.Schema
    """In the types in which Spark hands them to Python."""
    zone: str
    """The time zone of the session."""
    is_native: bool
    """A native source, which knows the order of its rows; else a frame."""
    is_streaming: bool = True
    replica: str | None = None
    """The column in which a native source says who sent a row, if it adds one."""
    replicas: tuple[str, ...] = ()
    """The replicas that a native source knows by name before they send a row."""
    channels: bool = False
    """Replicas of a native source may have several channels, each in its own order."""
    op: str | None = None
    """The column in which a native source says what was done to a row, if it adds one; never stable."""
    struct: "StructType | None" = None
    """The columns as Spark has them, where there is a session."""


def columns_of(rows: "DataFrame | NativeSource") -> Columns:
    """The columns of a frame or a native source."""
    from pyspark.sql import DataFrame

    zone = rows.sparkSession.conf.get("spark.sql.session.timeZone") or "UTC"
    if isinstance(rows, DataFrame):
        streaming = _is_streaming(rows)
        columns = arrow_schema(rows.schema, zone)
        return Columns(columns, zone, is_native=False, is_streaming=streaming, struct=rows.schema)
    return Columns(
        arrow_schema(rows.schema, zone),
        zone,
        is_native=True,
        replica=rows.replica,
        replicas=rows.replicas,
        channels=rows.channels,
        op=rows.op,
        struct=rows.schema,
    )


def _is_streaming(rows: "DataFrame") -> bool:
    """Rows of a frame may come for ever.

    While a pipeline is defined Spark Connect must not be asked; the frame then knows itself what it reads.
    """
    from pyspark.errors import AnalysisException

    try:
        return bool(rows.isStreaming)
    except AnalysisException as error:
        if error.getCondition() != IN_PIPELINE:
            raise
    connected: Any = rows
    return _reads_streams(connected._plan.to_proto(connected.sparkSession.client))


def _reads_streams(message: Any) -> bool:
    """A part of a plan of Spark Connect's, or a part of that, reads a stream."""
    for field, value in message.ListFields():
        if field.name == "is_streaming" and value:
            return True
        kind = field.message_type
        if kind is None or kind.GetOptions().map_entry:
            continue
        if any(map(_reads_streams, value if isinstance(value, Sequence) else [value])):
            return True
    return False
