"""Logical merge of the replicas that the rows of a streaming frame name."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import timedelta
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import msgspec
import pyarrow as pa

from anabranch.engines.spark.assignment import Assignment
from anabranch.engines.spark.columns import Columns, columns_of
from anabranch.engines.spark.frame_metadata import CLOCK, POLICY, SETTINGS, SHARDS, policy_kind
from anabranch.engines.spark.hidden_rows import hidden
from anabranch.engines.spark.merge_checks import (
    check_case,
    check_known,
    check_names,
    check_progress,
    check_replica,
    has_channels,
    replicas_of,
)
from anabranch.engines.spark.merging import REMEMBER, Merging, merging_of
from anabranch.engines.spark.native_source import NativeSource
from anabranch.engines.spark.one_row import SEVERAL
from anabranch.engines.spark.parcel_rows import packed
from anabranch.engines.spark.query.provenance import of_sources
from anabranch.engines.spark.replica_frames import in_one_frame
from anabranch.engines.spark.session.row_types import arrow_schema, check_forms
from anabranch.engines.spark.session.session import shards_of
from anabranch.engines.spark.shard import IDLE
from anabranch.engines.spark.stages import OBSERVED, run_level
from anabranch.engines.spark.telling import Telling
from anabranch.engines.spark.transport.packing import ROWS, Packing
from anabranch.engines.spark.transport.shards import shard_ids
from anabranch.engines.spark.transport.unpacking import Unpacking
from anabranch.kernels.merge.settings import Generalise
from anabranch.model.identity import identities
from anabranch.model.output_policy import FinalOnly, OutputPolicy, Pace
from anabranch.model.properties import Case, Fact, Properties
from anabranch.model.span import span, span_or_none
from anabranch.model.validity import Policy
from anabranch.plan.levels import OUTPUT, Level, levels
from anabranch.plan.merge import Merge
from anabranch.plan.merge_changes import MergeChanges
from anabranch.plan.node import Node
from anabranch.plan.one_row import several_open_rows
from anabranch.plan.source import Source
from anabranch.rows.element_columns import REFUSED, TIMES
from anabranch.rows.layout import Layout, names_of
from anabranch.rows.refusal import FIELDS, ONLY
from anabranch.rows.replica_names import named_in
from anabranch.rows.vouching import Lossy, check_answered, is_inferred

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType


ROWS_EDGE = "rows"
"""What the rows of a merge are called in its plan."""


def merge(
    rows: "DataFrame | NativeSource | Mapping[str, DataFrame]",
    *,
    start: str,
    end: str | None = None,
    old_end: str | None = None,
    duration: int | timedelta | str | None = None,
    kind: str | None = None,
    replica: str | None = None,
    channel: str | None = None,
    sequence: str | None = None,
    payload: str | Iterable[str] | None = None,
    identity: str | Iterable[str] | None = None,
    disorder: int | timedelta | str | None = None,
    case: Case | str | None = None,
    policy: OutputPolicy | None = None,
    properties: Properties | Fact | str | Iterable[Fact | str] | None = None,
    lossy: Lossy | None = None,
    pace: Pace = Pace.SLOWEST,
    replicas: Iterable[str] = (),
    idle: Iterable[str] = (),
    on_invalid: Policy | None = None,
    on_broken: Policy | Generalise | None = None,
    on_late: Policy | None = None,
    remember: int = REMEMBER,
    rows_per_parcel: int = ROWS,
) -> "DataFrame":
    """The rows of several replicas as one stream of element rows.

    ``rows`` are a frame, a source such as `folder`, or frames by the names of their replicas.
    ``start`` and ``end`` name the columns of the lifetime (or ``duration``; neither: a point); ``replica``
    the column that says who sent a row; ``payload`` what an event is (default: all other columns) and
    ``identity`` what of it tells events apart. How far a replica has come is known from rows whose ``kind``
    column says stable, or from ``disorder``, a bound on how late its rows are. ``channel`` and ``sequence``
    say in which order a replica meant its rows; without them a micro-batch is one instant.

    ``replicas`` are awaited from the beginning (default: those that the source knows by name), but for those
    in ``idle`` while they are silent. What ``properties`` promise holds for each channel of a replica.
    ``lossy`` says whether replicas, or which, may have lost rows: it is asked for where how far they have
    come is inferred (`vouching.py`); those that say stable themselves are complete unless it says otherwise.

    Out come the columns kind, start, end, old_end and the payload, with at most one stable per micro-batch
    after all it covers, and ``refused`` for rows that were not used (null for elements).
    """
    rows, replica, replicas = in_one_frame(rows, replica, replicas)
    static = kind is None and disorder is None and _is_static(rows)
    inferred = is_inferred(replica=replica, kind=kind, disorder=disorder, static=static)
    check_answered(lossy, inferred=inferred)
    layout, merging = merge_parts(
        start=start,
        end=end,
        old_end=old_end,
        duration=duration,
        kind=kind,
        replica=replica,
        channel=channel,
        sequence=sequence,
        payload=payload,
        identity=identity,
        disorder=disorder,
        case=case,
        policy=policy,
        properties=properties,
        lossy=lossy,
        pace=pace,
        replicas=replicas,
        idle=idle,
        on_invalid=on_invalid,
        on_broken=on_broken,
        on_late=on_late,
        remember=remember,
    )
    return merged(rows, layout, merging, rows_per_parcel)


def merge_parts(
    *,
    start: str,
    end: str | None,
    old_end: str | None,
    duration: int | timedelta | str | None,
    kind: str | None,
    replica: str | None,
    channel: str | None,
    sequence: str | None,
    payload: str | Iterable[str] | None,
    identity: str | Iterable[str] | None,
    disorder: int | timedelta | str | None,
    lossy: Lossy | None,
    **settings: Any,
) -> tuple[Layout, Merging]:
    """What the arguments of `merge` say of the rows, and of the merge; what is wrong in itself is refused."""
    layout = Layout(
        start,
        end,
        old_end,
        span_or_none(duration, "duration"),
        kind,
        replica,
        channel,
        sequence,
        names_of(payload),
        names_of(identity),
        span_or_none(disorder, "disorder"),
    )
    return layout, merging_of(identity=layout.identity, lossy=lossy or False, **settings)


def merged(
    rows: "DataFrame | NativeSource", layout: Layout, merging: Merging, rows_per_parcel: int
) -> "DataFrame":
    """What a merge of rows says, as rows."""
    from pyspark.sql import DataFrame

    from anabranch.engines.spark.clock import clock

    _check_rows(rows)
    columns = columns_of(rows)
    layout, merging, schema = planned(columns, layout, merging)
    payload_names = layout.payload_of(schema.names)
    ids = shard_ids(shards_of(rows.sparkSession))
    unpacking = _unpacking(layout, merging, schema, len(ids))
    native = not isinstance(rows, DataFrame)
    ordered = layout.sequence is not None or native
    packing = Packing(layout, len(ids), rows_per_parcel, ordered=ordered, edge=ROWS_EDGE)
    parcels = packed(rows, packing, ids) if isinstance(rows, DataFrame) else rows.parcels(packing, ids)
    sleeping = clock(rows.sparkSession) if columns.is_streaming else None
    if sleeping is not None:
        parcels = parcels.unionAll(sleeping)
    out = spark_schema(rows.schema, unpacking, layout.start, payload_names, merging.policy)
    out["kind"].metadata[SETTINGS] = msgspec.json.encode(merging.settings()).decode()
    out["kind"].metadata[SHARDS] = len(ids)
    out["kind"].metadata[CLOCK] = sleeping is not None
    if merging.key is not None:
        several = several_open_rows(merging.policy, merging.case, merging.properties)
        out["kind"].metadata.update({} if several is None else {SEVERAL: several})
    if not isinstance(rows, DataFrame):
        out["kind"].metadata.update(of_sources({ONLY: rows.provenance(layout)}))
    assignment = assignment_of(layout, merging, schema, len(ids))
    said = run_level(parcels, assignment, ids, OBSERVED, unpacking, out, always=native)
    return hidden(said, out) if unpacking.held else said


def assignment_of(layout: Layout, merging: Merging, schema: pa.Schema, shards: int) -> Assignment:
    """What a merge of rows is as a plan of one node, for the shards of its one level."""
    known = [Fact.PUNCTUATED, *([] if merging.lossy else [Fact.COMPLETE])]
    promised = (merging.promised() or Properties()) | Properties.of(*known)
    source = Source(
        name=ROWS_EDGE,
        columns=schema,
        layout=replace(layout, identity=None, duration=None, disorder=None),
        replicas=True,
        awaited=merging.replicas,
        silent=merging.idle,
        lossy=merging.lossy,
        declared=promised,
        by_time=merging.by_time,
    )
    kind = Merge if merging.key is None else MergeChanges
    node = kind(
        inputs=(source,),
        case=merging.case,
        policy=merging.policy,
        pace=merging.pace,
        identity=merging.identity,
        remember=merging.remember,
        generalise=isinstance(merging.on_broken, Generalise),
    )
    (level,) = levels(node, shards)
    level = _as_promised(level, promised, merging.channels or 1)
    telling = Telling(ROWS_EDGE, True, dict(merging.roles), merging.by_task, merging.clock)
    idle = tuple(f"{ROWS_EDGE}{IDLE}{name}" for name in merging.idle)
    return Assignment(
        level,
        shards,
        merging.answers(),
        {ROWS_EDGE: telling},
        idle=idle,
        mark=str(uuid4()),
        known_as=merging.settings(),
    )


def _as_promised(level: Level, promised: Properties, channels: int) -> Level:
    """A level whose replicas promise what is said of them and nothing more."""
    (edge,), (merge,) = level.edges, level.outputs.values()
    inlet = replace(edge.inlet, known=promised, channels=channels)
    outputs: dict[str, Node] = {OUTPUT: replace(merge, inputs=(inlet,))}
    return replace(level, edges=(replace(edge, inlet=inlet),), outputs=outputs)


def planned(rows: Columns, layout: Layout, merging: Merging) -> tuple[Layout, Merging, pa.Schema]:
    """How rows of these columns are read and merged, and their columns; what they do not fit is refused."""
    schema = arrow_schema(rows.schema, rows.zone)
    layout.check(schema)
    check_progress(rows, layout)
    check_names(layout, merging)
    known = replicas_of(rows, layout.replica)
    check_known(named_in(merging.lossy, merging.idle, merging.replicas), known)
    if rows.is_native:
        check_replica(rows, layout)
    merging = replace(
        merging,
        replicas=merging.replicas or replicas_of(rows, layout.replica),
        by_channel=has_channels(rows, layout.channel, layout.replica),
    )
    check_case(merging)
    layout = _in_ticks(layout, schema)
    payload = layout.payload_of(schema.names)
    check_forms(rows.schema, layout.identity or payload)
    _ = identities(pa.RecordBatch.from_pylist([], pa.schema([schema.field(name) for name in payload])))
    unordered = layout.sequence is None and not rows.is_native
    lag = span(merging.policy.lag, "the lag of the policy")
    layout.check_unit(lag, schema, "the lag of the policy")
    merging = replace(
        merging,
        policy=replace(merging.policy, lag=layout.ticks(lag, schema, "the lag of the policy") or 0),
        columns=(*layout.settings(schema).items(), ("policy", str(merging.policy))),
        roles=tuple(layout.roles().items()),
        by_task=unordered,
        clock=_clock(schema.field(layout.start).type),
        by_time=merging.by_time or (merging.key is not None and unordered),
    )
    return layout, merging, schema


def _unpacking(layout: Layout, merging: Merging, schema: pa.Schema, shards: int) -> Unpacking:
    return Unpacking(
        pa.schema([schema.field(name).with_nullable(True) for name in layout.payload_of(schema.names)]),
        merging.clock,
        merging.quarantines(),
        shards,
        isinstance(merging.policy, FinalOnly),
    )


def merged_columns(rows: Columns, layout: Layout, merging: Merging, schema: pa.Schema) -> "StructType":
    """The columns that come of what was `planned`."""
    payload = layout.payload_of(schema.names)
    unpacking = _unpacking(layout, merging, schema, 1)
    return spark_schema(rows.schema, unpacking, layout.start, payload, merging.policy)


def spark_schema(
    rows: "StructType", unpacking: Unpacking, start: str, payload: list[str], policy: OutputPolicy
) -> "StructType":
    """The columns of the output: the payload exactly as Spark knows it; the kind knows the policy."""
    from pyspark.sql import types as t

    time = rows[start].dataType
    if isinstance(time, t.IntegralType):
        time = t.LongType()
    told = {POLICY: policy_kind(policy)}
    fields = [
        t.StructField("kind", t.StringType(), True, told),
        *(t.StructField(name, time) for name in TIMES),
    ]
    own = [t.StructField(name, rows[name].dataType, True, rows[name].metadata) for name in payload]
    fields += [t.StructField("payload", t.StructType(own))] if unpacking.nested else own
    if unpacking.refusals:
        texts = t.StructType([t.StructField(name, t.StringType()) for name in FIELDS])
        fields.append(t.StructField(REFUSED, texts))
    return t.StructType(fields)


def _is_static(rows: object) -> bool:
    from pyspark.sql import DataFrame

    return isinstance(rows, DataFrame) and not rows.isStreaming


def _check_rows(rows: object) -> None:
    from pyspark.sql import DataFrame

    if isinstance(rows, DataFrame) or hasattr(rows, "parcels"):
        return
    error = TypeError(
        f"what is merged is a DataFrame or a source such as ab.folder, {rows!r:.200} is neither"
    )
    if isinstance(rows, str | PathLike):
        error.add_note(f"Read it first: ab.folder(spark, {fspath(rows)!r}), or spark.readStream.")
    else:
        error.add_note("Make a DataFrame of it: spark.createDataFrame(…), or spark.readStream.")
    raise error


def _clock(dtype: pa.DataType) -> pa.DataType:
    return pa.int64() if pa.types.is_integer(dtype) else dtype


def _in_ticks(layout: Layout, schema: pa.Schema) -> Layout:
    return replace(
        layout,
        duration=layout.ticks(layout.duration, schema, "duration"),
        disorder=layout.ticks(layout.disorder, schema, "disorder"),
    )
