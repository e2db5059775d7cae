"""Rows that our sinks read and nobody else: a frame without them, which knows the one that has them.

A frame that is made of it, by ``where`` or ``withColumn``, is another, and does not.
"""

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from anabranch.engines.spark.transport.frontier_rows import WORD

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

_WHOLE: "WeakKeyDictionary[DataFrame, DataFrame]" = WeakKeyDictionary()


def hidden(whole: "DataFrame", schema: "StructType") -> "DataFrame":
    """A frame of elements and what was refused, without the frontiers that shards tell."""
    from pyspark.sql import functions as f

    kind = f.col("kind")
    rows = whole.where(kind.isNull() | ~kind.startswith(WORD)).to(schema)
    _WHOLE[rows] = whole
    return rows


def whole(rows: "DataFrame") -> "DataFrame":
    """The frame with all its rows, for a sink."""
    return _WHOLE.get(rows, rows)
