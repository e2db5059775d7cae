"""A plan as a frame of Spark's, over whatever its sources are read from."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from anabranch.connectors.native import DESCRIPTIONS, native
from anabranch.engines.spark.frame import frame as frame_of
from anabranch.engines.spark.frame import sources_of
from anabranch.engines.spark.plan_sources import check_named
from anabranch.engines.spark.transport.packing import ROWS
from anabranch.model.validity import Policy
from anabranch.plan.stream import Stream

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def frame(
    stream: Stream,
    sources: Mapping[str, Any],
    *,
    on_invalid: Policy | None = None,
    on_broken: Policy | None = None,
    on_late: Policy | None = None,
    rows_per_parcel: int = ROWS,
) -> "DataFrame":
    """What comes of a plan over frames and native sources, as one streaming frame of element rows.

    ``sources`` has for every source of the plan a frame; a source such as `anabranch.spark.folder`; what
    `anabranch.folder`, `anabranch.kafka` and `anabranch.delta_changes` describe, as `anabranch.run` takes it;
    or the path of a folder. One with a layout takes rows of its columns; one of elements takes rows with the
    columns kind, start, end and old_end beside its own (and replica, where it is of replicas). Rows that are
    not used are set aside, with the reason, in the column ``refused``, unless ``on_invalid``, ``on_broken``
    and ``on_late`` say otherwise; sources and merges may say it for themselves.

    Out come the columns kind, start, end, old_end and those of the stream, with at most one stable for each
    micro-batch after all it covers. Where shards are at frontiers of their own (`final`, `FinalOnly`), the
    stable is the least of all, and only `write_folder`, `write_table` and `write_kafka` say it, given this
    frame as it is; whoever reads it otherwise gets none.
    """
    check_named(stream, sources)
    given, nodes = dict(sources), sources_of(stream.node)
    for name, one in sources.items():
        if isinstance(one, DESCRIPTIONS):
            given[name] = native(_session(sources), nodes[name], one)
    return frame_of(
        stream,
        given,
        on_invalid=on_invalid,
        on_broken=on_broken,
        on_late=on_late,
        rows_per_parcel=rows_per_parcel,
    )


def _session(sources: Mapping[str, Any]) -> "SparkSession":
    """The session of what has one, or the one that is there."""
    from pyspark.sql import SparkSession

    known = [one.sparkSession for one in sources.values() if hasattr(one, "sparkSession")]
    return known[0] if known else SparkSession.active()
