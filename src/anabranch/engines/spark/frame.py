"""A plan as a frame of Spark's: one query, one stateful operator for each level, one checkpoint.

Sources are frames or native sources, by the names that the plan has for them. Their rows are packed where
they are read, after the steps right behind them; a source that only a later level reads comes in there. The
state of all levels is one commit of Spark's.
"""

from collections.abc import Mapping
from functools import reduce
from typing import TYPE_CHECKING

from anabranch.engines.spark.hidden_rows import hidden
from anabranch.engines.spark.native_source import NativeSource
from anabranch.engines.spark.parcel_rows import packed
from anabranch.engines.spark.plan_sources import (
    Read,
    as_read,
    check_all_stream,
    check_given,
    check_reads,
    with_sources,
)
from anabranch.engines.spark.planned_query import PlannedQuery, answers_of
from anabranch.engines.spark.session.session import shards_of
from anabranch.engines.spark.stages import level_parcels, run_level
from anabranch.engines.spark.transport.packing import ROWS
from anabranch.engines.spark.transport.shards import shard_ids
from anabranch.kernels.answers import Answers
from anabranch.model.validity import Policy
from anabranch.plan.graph import Graph
from anabranch.plan.levels import Edge, Level, levels
from anabranch.plan.node import Node
from anabranch.plan.source import Source
from anabranch.plan.stream import Stream

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def frame(
    stream: Stream,
    sources: "Mapping[str, DataFrame | NativeSource]",
    *,
    on_invalid: Policy | None = None,
    on_broken: Policy | None = None,
    on_late: Policy | None = None,
    rows_per_parcel: int = ROWS,
) -> "DataFrame":
    """What comes of a plan over frames and native sources, as one streaming frame of element rows."""
    check_given(stream, sources)
    answers = answers_of(on_invalid=on_invalid, on_broken=on_broken, on_late=on_late)
    reads = {name: as_read(source, sources[name]) for name, source in sources_of(stream.node).items()}
    root = with_sources(stream.node, reads)
    check_reads(root, reads)
    return planned_frame(root, reads, answers, rows_per_parcel)


def planned_frame(
    root: Node, reads: Mapping[str, Read], answers: Answers, rows_per_parcel: int
) -> "DataFrame":
    """What comes of a plan whose sources are known."""
    from pyspark.sql import DataFrame

    from anabranch.engines.spark.clock import clock

    check_all_stream(reads.values())
    session = next(iter(reads.values())).rows.sparkSession
    ids = shard_ids(shards_of(session))
    parts = levels(root, len(ids))
    sleeping = clock(session) if any(read.is_streaming for read in reads.values()) else None
    query = PlannedQuery(parts, reads, ids, answers, rows_per_parcel, has_clock=sleeping is not None)
    frame: DataFrame | None = None
    for level in parts:
        mine = [_parcels(query, edge, level) for edge in level.edges if edge.source is not None]
        if frame is None and sleeping is not None:
            mine.append(_for_level(query, sleeping, level))
        given = reduce(_united, [*([] if frame is None else [frame]), *mine])
        frame = run_level(
            given,
            query.assignment(level),
            ids,
            query.observed(level),
            query.unpacking() if query.is_last(level) else None,
            query.schema() if query.is_last(level) else None,
            several=len(parts) > 1,
            always=query.always(level),
        )
    assert frame is not None, "a plan has a level"
    return hidden(frame, query.schema()) if query.unpacking().held else frame


def _united(one: "DataFrame", other: "DataFrame") -> "DataFrame":
    return one.unionAll(other)


def _parcels(query: PlannedQuery, edge: Edge, level: Level) -> "DataFrame":
    """The rows of a source as parcels for the shards of a level."""
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

    assert edge.source is not None, "what comes from a level is packed there"
    read, packing = query.reads[edge.source.name], query.packing(edge, level)
    if isinstance(read.rows, DataFrame):
        columns = StructType([read.rows.schema[name] for name in read.columns.names])
        rows = read.rows.select(*map(_quoted, columns.names)).to(columns)
        parcels = packed(rows, packing, query.ids, read.instants)
    else:
        parcels = read.rows.parcels(packing, query.ids)
    return _for_level(query, parcels, level)


def _for_level(query: PlannedQuery, parcels: "DataFrame", level: Level) -> "DataFrame":
    return parcels if len(query.parts) == 1 else level_parcels(parcels, level.number)


def sources_of(root: Node) -> dict[str, Source]:
    """The sources of a plan."""
    return {node.name: node for node in Graph([root]).nodes if isinstance(node, Source)}


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
