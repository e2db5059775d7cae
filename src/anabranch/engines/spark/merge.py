"""Logical merge of the replicas that the rows of a streaming frame name."""

import re
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
from anabranch.engines.spark.fragment import REMEMBER, Fragment
from anabranch.engines.spark.level_shard import IDLE
from anabranch.engines.spark.level_stages import run_level
from anabranch.engines.spark.native_source import NativeSource
from anabranch.engines.spark.one_row import SEVERAL
from anabranch.engines.spark.replica_frames import in_one_frame
from anabranch.engines.spark.session.row_types import arrow_schema, check_forms
from anabranch.engines.spark.session.session import shards_of
from anabranch.engines.spark.stages import OBSERVED, packed
from anabranch.engines.spark.telling import Telling
from anabranch.engines.spark.transport.packing import ROWS, Packing
from anabranch.engines.spark.transport.shards import shard_ids
from anabranch.engines.spark.transport.unpacking import Unpacking
from anabranch.kernels.merge.settings import Generalise, case_named
from anabranch.model.identity import identities
from anabranch.model.output_policy import POLICIES, FinalOnly, FirstThenFinal, OutputPolicy, Pace
from anabranch.model.properties import Case, Fact, Properties
from anabranch.model.span import span, span_or_none
from anabranch.model.validity import Drop, Policy, Quarantine, Raise
from anabranch.plan.levels import OUTPUT, Level, levels
from anabranch.plan.merge import Merge
from anabranch.plan.merge_changes import MergeChanges
from anabranch.plan.node import Node
from anabranch.plan.one_row import several_open_rows
from anabranch.plan.source import Source
from anabranch.rows.element_columns import REFUSED, TIMES
from anabranch.rows.layout import SINGLE, Layout, names_of
from anabranch.rows.refusal import FIELDS
from anabranch.rows.vouching import Lossy, check_answered, is_inferred

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType


ROWS_EDGE = "rows"
"""What the rows of a merge are called in its plan."""
POLICY, SETTINGS, SHARDS = "anabranch.policy", "anabranch.settings", "anabranch.shards"
"""Where the schema of a merged frame says how: what its state depends on, and in how many parts it is."""


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
    layout, fragment = merge_parts(
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
    return merged(rows, layout, fragment, rows_per_parcel)


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
) -> tuple[Layout, Fragment]:
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
    return layout, fragment_of(identity=layout.identity, lossy=lossy or False, **settings)


def fragment_of(
    *,
    identity: tuple[str, ...] | None = None,
    key: tuple[str, ...] | None = None,
    by_time: bool = False,
    case: Case | str | None,
    policy: OutputPolicy | None,
    properties: Properties | Fact | str | Iterable[Fact | str] | None,
    lossy: Lossy,
    pace: Pace,
    replicas: Iterable[str],
    idle: Iterable[str],
    on_invalid: Policy | None,
    on_broken: Policy | Generalise | None,
    on_late: Policy | None,
    remember: int,
) -> Fragment:
    """A merge with settings as people write them; those that do not go together are refused here."""
    fragment = Fragment(
        case=case_named(case),
        policy=policy or FirstThenFinal(),
        pace=pace,
        identity=identity,
        properties=declared_properties(properties),
        lossy=lossy if isinstance(lossy, bool) else frozenset(names_of(lossy) or ()),
        replicas=tuple(names_of(replicas) or ()),
        idle=tuple(names_of(idle) or ()),
        on_invalid=on_invalid or Quarantine(),
        on_broken=on_broken or Quarantine(),
        on_late=on_late or Quarantine(),
        remember=remember,
        key=key,
        by_time=by_time,
    )
    try:
        fragment.check()  # which checks its settings, here and not in a worker
    except TypeError as error:
        for name in ("policy", "pace", "on_invalid", "on_broken", "on_late"):
            _tell_value(error, name, getattr(fragment, name))
        raise
    return fragment


def _tell_value(error: TypeError, name: str, given: object) -> None:
    """Where a setting is a word, note the value that it stands for in job files, or all there are."""
    if not isinstance(given, str):
        return
    answers = (Raise, Drop, Quarantine, Generalise) if name == "on_broken" else (Raise, Drop, Quarantine)
    kinds = POLICIES if name == "policy" else {kind.__name__.lower(): kind for kind in answers}
    values = {word: f"{kind.__name__}()" for word, kind in kinds.items()}
    if name == "pace":
        values = {pace.value: str(pace) for pace in Pace}
    meant = values.get(given.lower())
    if meant is None:
        error.add_note(f"{name} is one of {', '.join(values.values())}, all of them names of anabranch.")
    else:
        error.add_note(f"Write {name}={meant}, after: from anabranch import {re.split('[(.]', meant)[0]}")


def merged(
    rows: "DataFrame | NativeSource", layout: Layout, fragment: Fragment, rows_per_parcel: int
) -> "DataFrame":
    """What a merge of rows says, as rows."""
    from pyspark.sql import DataFrame

    _check_rows(rows)
    layout, fragment, schema = planned(columns_of(rows), layout, fragment)
    payload_names = layout.payload_of(schema.names)
    ids = shard_ids(shards_of(rows.sparkSession))
    unpacking = _unpacking(layout, fragment, schema, len(ids))
    native = not isinstance(rows, DataFrame)
    ordered = layout.sequence is not None or native
    packing = Packing(layout, len(ids), rows_per_parcel, ordered=ordered, edge=ROWS_EDGE)
    parcels = packed(rows, packing, ids) if isinstance(rows, DataFrame) else rows.parcels(packing, ids)
    out = spark_schema(rows.schema, unpacking, layout.start, payload_names, fragment.policy)
    out["kind"].metadata[SETTINGS] = msgspec.json.encode(fragment.settings()).decode()
    out["kind"].metadata[SHARDS] = len(ids)
    if fragment.key is not None:
        several = several_open_rows(fragment.policy, fragment.case, fragment.properties)
        out["kind"].metadata.update({} if several is None else {SEVERAL: several})
    if not isinstance(rows, DataFrame):
        out["kind"].metadata.update(rows.told(layout))
    assignment = assignment_of(layout, fragment, schema, len(ids))
    return run_level(parcels, assignment, ids, OBSERVED, unpacking, out, always=native)


def assignment_of(layout: Layout, fragment: Fragment, schema: pa.Schema, shards: int) -> Assignment:
    """What a merge of rows is as a plan of one node, for the shards of its one level."""
    known = [Fact.PUNCTUATED, *([] if fragment.lossy else [Fact.COMPLETE])]
    promised = (fragment.promised() or Properties()) | Properties.of(*known)
    source = Source(
        name=ROWS_EDGE,
        columns=schema,
        layout=replace(layout, identity=None, duration=None, disorder=None),
        replicas=True,
        awaited=fragment.replicas,
        silent=fragment.idle,
        lossy=fragment.lossy,
        declared=promised,
        by_time=fragment.by_time,
    )
    kind = Merge if fragment.key is None else MergeChanges
    node = kind(
        inputs=(source,),
        case=fragment.case,
        policy=fragment.policy,
        pace=fragment.pace,
        identity=fragment.identity,
        remember=fragment.remember,
        generalise=isinstance(fragment.on_broken, Generalise),
    )
    (level,) = levels(node, shards)
    level = _as_promised(level, promised, fragment.channels or 1)
    telling = Telling(ROWS_EDGE, True, dict(fragment.roles), fragment.by_task, fragment.clock)
    idle = tuple(f"{ROWS_EDGE}{IDLE}{name}" for name in fragment.idle)
    return Assignment(
        level,
        shards,
        fragment.answers(),
        {ROWS_EDGE: telling},
        idle=idle,
        mark=str(uuid4()),
        known_as=fragment.settings(),
    )


def _as_promised(level: Level, promised: Properties, channels: int) -> Level:
    """A level whose replicas promise what is said of them and nothing more."""
    (edge,), (merge,) = level.edges, level.outputs.values()
    inlet = replace(edge.inlet, known=promised, channels=channels)
    outputs: dict[str, Node] = {OUTPUT: replace(merge, inputs=(inlet,))}
    return replace(level, edges=(replace(edge, inlet=inlet),), outputs=outputs)


def planned(rows: Columns, layout: Layout, fragment: Fragment) -> tuple[Layout, Fragment, pa.Schema]:
    """How rows of these columns are read and merged, and their columns; what they do not fit is refused."""
    schema = arrow_schema(rows.schema, rows.zone)
    layout.check(schema)
    check_progress(rows, layout)
    _check_names(layout, fragment)
    if rows.is_native:
        _check_replica(rows, layout)
    fragment = replace(
        fragment,
        replicas=fragment.replicas or replicas_of(rows, layout.replica),
        by_channel=has_channels(rows, layout.channel, layout.replica),
    )
    _check_case(fragment)
    layout = _in_ticks(layout, schema)
    payload = layout.payload_of(schema.names)
    check_forms(rows.schema, layout.identity or payload)
    _ = identities(pa.RecordBatch.from_pylist([], pa.schema([schema.field(name) for name in payload])))
    unordered = layout.sequence is None and not rows.is_native
    lag = span(fragment.policy.lag, "the lag of the policy")
    layout.check_unit(lag, schema, "the lag of the policy")
    fragment = replace(
        fragment,
        policy=replace(fragment.policy, lag=layout.ticks(lag, schema, "the lag of the policy") or 0),
        columns=(*layout.settings(schema).items(), ("policy", str(fragment.policy))),
        roles=tuple(layout.roles().items()),
        by_task=unordered,
        clock=_clock(schema.field(layout.start).type),
        by_time=fragment.by_time or (fragment.key is not None and unordered),
    )
    return layout, fragment, schema


def _unpacking(layout: Layout, fragment: Fragment, schema: pa.Schema, shards: int) -> Unpacking:
    return Unpacking(
        pa.schema([schema.field(name).with_nullable(True) for name in layout.payload_of(schema.names)]),
        fragment.clock,
        fragment.quarantines(),
        None if isinstance(fragment.policy, FinalOnly) else shards - 1,
    )


def merged_columns(rows: Columns, layout: Layout, fragment: Fragment, schema: pa.Schema) -> "StructType":
    """The columns that come of what was `planned`."""
    payload = layout.payload_of(schema.names)
    unpacking = _unpacking(layout, fragment, schema, 1)
    return spark_schema(rows.schema, unpacking, layout.start, payload, fragment.policy)


def spark_schema(
    rows: "StructType", unpacking: Unpacking, start: str, payload: list[str], policy: OutputPolicy
) -> "StructType":
    """The columns of the output: the payload exactly as Spark knows it; the kind knows the policy."""
    from pyspark.sql import types as t

    time = rows[start].dataType
    if isinstance(time, t.IntegralType):
        time = t.LongType()
    told = {POLICY: type(policy).__name__}
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


def check_progress(rows: Columns, layout: Layout) -> None:
    """Raise where nothing says how far a stream has come."""
    if rows.is_native:
        progress = layout.kind not in (None, rows.op)
    else:
        progress = layout.kind is not None or not rows.is_streaming
    if progress or layout.disorder is not None:
        return
    known = "its kind column or from disorder, and neither is given"
    if layout.kind is not None:
        known = "disorder where its source never says stable, and disorder is not given"
    error = ValueError(
        f"how far a stream has come is known from {known}; "
        "nothing would ever become stable, and the state would grow for ever"
    )
    error.add_note("Say how late rows may be, such as disorder='10 minutes'.")
    if layout.kind is None:
        error.add_note("Where rows say stable themselves, name the column in which they do: kind='kind'.")
    raise error


def _check_names(layout: Layout, fragment: Fragment) -> None:
    lossy = frozenset[str]() if isinstance(fragment.lossy, bool) else fragment.lossy
    if layout.replica is None:
        for name in sorted({*lossy, *fragment.replicas, *fragment.idle} - {SINGLE}):
            error = ValueError(f"{name!r} is named as a replica, and no column says whose a row is")
            error.add_note("Name the column in replica, or leave the names out.")
            raise error
    for name in sorted(lossy.difference(fragment.replicas)) if fragment.replicas else ():
        names = ", ".join(map(repr, fragment.replicas))
        error = ValueError(f"a lossy replica is one of those in replicas, {name!r} is none of {names}")
        error.add_note("Spell it as its rows do, add it to replicas, or leave replicas out.")
        raise error


def replicas_of(rows: Columns, replica: str | None) -> tuple[str, ...]:
    """The replicas that a source knows by name, where it is the one that says whose a row is."""
    return () if replica is None or replica != rows.replica else rows.replicas


def has_channels(rows: Columns, channel: str | None, replica: str | None) -> bool:
    """Whether a replica may speak through several channels, each in its own order."""
    return rows.channels if channel is None else channel != replica


def _check_case(fragment: Fragment) -> None:
    """Raise where a case is forced that needs the order of rows that come by several channels."""
    if fragment.case is None or not fragment.by_channel:
        return
    if not fragment.case.admits(fragment.case.value.spread()):
        error = ValueError(
            f"{fragment.case.name} is forced, and needs the rows of a replica in one order; "
            "they come by several channels, and are in order within each"
        )
        error.add_note("Let the case be picked, or force R3 or R4.")
        raise error


def _check_replica(source: Columns, layout: Layout) -> None:
    """Raise where who sent a row would be a part of it, so that replicas never agree."""
    named = {*(layout.identity or ()), *(layout.key or ()), *layout.roles().values()}
    if source.replica is None or layout.replica is not None or layout.payload is not None:
        return
    if source.replica not in named:
        error = ValueError(f"column {source.replica!r} says who sent a row, and replica is not given")
        error.add_note(f"Give replica={source.replica!r}; without it, it would be a part of the row.")
        error.add_note("If it is meant to be one, or should be left out, name the columns in payload.")
        raise error


def _clock(kind: pa.DataType) -> pa.DataType:
    return pa.int64() if pa.types.is_integer(kind) else kind


def _in_ticks(layout: Layout, schema: pa.Schema) -> Layout:
    return replace(
        layout,
        duration=layout.ticks(layout.duration, schema, "duration"),
        disorder=layout.ticks(layout.disorder, schema, "disorder"),
    )


def declared_properties(value: Any) -> Properties | None:
    """Properties as people write them."""
    if value is None or isinstance(value, Properties):
        return value
    return Properties.of(*([value] if isinstance(value, str | Fact) else value))
