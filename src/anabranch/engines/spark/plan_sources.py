"""What the sources of a plan are read from: frames and native sources with the columns that it has."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from anabranch.engines.spark.columns import Columns, columns_of
from anabranch.engines.spark.native_source import NativeSource
from anabranch.engines.spark.session.row_types import check_forms, in_types
from anabranch.model.identity import identities
from anabranch.model.schema import SchemaError
from anabranch.model.spelling import did_you_mean
from anabranch.model.zones import in_zones, local_where
from anabranch.plan.columns import zones_in
from anabranch.plan.graph import Graph
from anabranch.plan.node import Node, PlanError
from anabranch.plan.source import Source
from anabranch.plan.stream import Stream, check_sources, outputs_of
from anabranch.plan.tap import taps_below
from anabranch.rows.layout import Layout
from anabranch.rows.replica_names import Named, check_in_replicas, check_replicas, named_in

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

_ONE_EACH = "Each frame is a query of its own, with its own checkpoint and sink; `run` has several outputs."
_ELEMENTS = ("kind", "start", "end", "old_end")


@dataclass(frozen=True, slots=True)
class Read:
    """A source of a plan, and what it is read from."""

    source: Source
    rows: Any
    """A frame or a native source."""
    layout: Layout
    """How its rows are read, with lengths of time in ticks."""
    columns: pa.Schema
    """The columns that are read."""
    ordered: bool
    """Rows have places in their channels."""
    is_native: bool
    is_streaming: bool = True
    schema: "StructType | None" = None
    """Its columns as Spark knows them; None: there is no session."""
    by_channels: bool = False
    """A replica may send through several channels, each in its own order."""
    instants: Mapping[str, pa.DataType] = field(default_factory=dict)
    """The columns in which there are local times as instants of their zones, with the types of the plan."""


def check_one_output(stream: Stream) -> None:
    """Raise where more comes out of a plan than one stream: a query has one frame, and one sink."""
    given: Any = stream
    if isinstance(given, Mapping):
        names = ", ".join(map(repr, given))
        error = PlanError(
            f"a frame is of one stream, and {names or 'no streams'} are given: make a frame of each"
        )
        error.add_note(_ONE_EACH)
        raise error
    outputs_of(stream)
    for name, node in taps_below(stream.node):
        error = PlanError(
            f"a frame is of one stream, and tap({name!r}) is another output: make a frame of each"
        )
        error.add_note(f"Leave tap({name!r}) out, and make a frame of what it taps as well.")
        error.add_note(_ONE_EACH)
        with node.line.named():
            raise error


def check_all_stream(reads: Iterable[Read]) -> None:
    """Raise where some sources are static frames and others stream: Spark has no query of both."""
    reads = list(reads)
    still, streaming = ([one.source for one in reads if one.is_streaming is kind] for kind in (False, True))
    if not still or not streaming:
        return
    error = PlanError(
        f"the sources of a query are all static or all streaming frames, {still[0].name!r} is static and "
        f"{streaming[0].name!r} is streaming: read {still[0].name!r} with spark.readStream"
    )
    error.add_note(
        "Where its rows are in files, spark.readStream or a folder's path reads them, all in the first "
        "micro-batches; else write them to files first."
    )
    with still[0].line.named():
        raise error


def check_named(stream: Stream, sources: Mapping[str, Any]) -> None:
    """Raise where a source of the plan is not given, or one is given that it does not have."""
    check_one_output(stream)
    check_sources([stream.node])
    names = [node.name for node in Graph([stream.node]).nodes if isinstance(node, Source)]
    for name in names:
        if name not in sources:
            meant = did_you_mean(name, [one for one in sources if one not in names])
            error = PlanError(f"the plan reads {name!r}, and nothing is given for it{meant}")
            error.add_note(f"Give a frame or a source for each of {', '.join(map(repr, names))}.")
            raise error
    for name in sources:
        if name not in names:
            error = PlanError(f"the plan has no source {name!r}{did_you_mean(name, names)}")
            error.add_note(f"Its sources are {', '.join(map(repr, names))}.")
            raise error


def check_given(stream: Stream, sources: Mapping[str, Any]) -> None:
    """Raise where a source of the plan is not given, or not as something that Spark reads."""
    check_named(stream, sources)
    for name, rows in sources.items():
        check_readable(name, rows)


def check_readable(name: str, rows: Any) -> None:
    """Raise where what is given for a source is nothing that Spark reads."""
    if hasattr(rows, "sparkSession"):
        return
    error = TypeError(
        f"{name!r} is read from a DataFrame or a source such as ab.folder, and {rows!r:.200} is neither"
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


def check_known(named: Named, there: Sequence[str]) -> None:
    """Raise where replicas are named that a source, which knows its replicas by name, does not have."""
    check_in_replicas(named)
    if there:
        later = "One that sends nothing yet has its folder, topic or table all the same."
        check_replicas(named, there, "its source", later)


def _columns(source: Source) -> pa.Schema:
    if source.columns is None:
        error = PlanError(f"rows of Spark's have columns, and those of source {source.name!r} are not said")
        error.add_note("Name them in the plan: source(name, {'room': 'string', …}).")
        with source.line.named():
            raise error
    return source.columns


def as_read(source: Source, rows: "DataFrame | NativeSource") -> Read:
    """A source as it is read; raises where the columns are not those of the plan."""
    from pyspark.sql import DataFrame

    if isinstance(rows, DataFrame):
        return replace(read_of(source, columns_of(rows)), rows=rows)
    instants = read_of(source, columns_of(rows)).instants
    rows = rows.in_zone(zone_of(source), instants)
    return replace(read_of(source, columns_of(rows)), rows=rows)


def read_of(source: Source, given: Columns) -> Read:
    """A source as rows of these columns are read, which are not there yet."""
    schema = given.schema
    layout = layout_of(source)
    wanted = _wanted(source, layout)
    columns = pa.schema([_column(source.name, one, schema, given.zone) for one in wanted])
    instants = {one.name: one.type for one in wanted if _holds_local_times(one, schema)}
    if given.op is not None and layout.kind == given.op and source.progress is None:
        check_progress(given, layout)
    ordered = layout.sequence is not None or given.is_native
    channels = given.channels if layout.channel is None else layout.channel != layout.replica
    of_source = layout.replica is not None and layout.replica == given.replica
    if of_source:
        check_known(named_in(source.lossy, source.silent, source.awaited), given.replicas)
    source = replace(
        source,
        declared=source.declared.spread() if channels or not ordered else source.declared,
        awaited=source.awaited or (given.replicas if of_source else ()),
        by_time=source.by_time or (source.of_changes and not ordered),
        columns=source.columns if source.layout is None else columns,
    )
    if source.layout is not None:
        layout = replace(source.reads, payload=layout.payload, channel=layout.channel)
    return Read(
        source,
        None,
        layout,
        columns,
        ordered,
        given.is_native,
        given.is_streaming,
        None if given.struct is None else in_types(given.struct, instants),
        by_channels=channels,
        instants=instants,
    )


def check_reads(root: Node, reads: Mapping[str, Read]) -> None:
    """Raise where replicas cannot be compared as a plan does: by the columns or the order of their rows."""
    for node in Graph([root]).nodes:
        if not node.compares:
            continue
        source = node.inputs[0]
        while not isinstance(source, Source) and len(source.inputs) == 1:
            source = source.inputs[0]
        if not isinstance(source, Source) or not source.replicated:
            continue
        with node.line.named():
            if reads[source.name].by_channels:
                node.check_channels()
            _check_forms(node, reads[source.name])


def _check_forms(node: Node, read: Read) -> None:
    """Raise where a column that tells events apart can hold one value in several forms."""
    payload = node.inputs[0].schema
    if read.schema is not None:
        kept = [one.name for one in payload if one in read.columns]
        check_forms(read.schema, [name for name in node.told_apart_by or payload.names if name in kept])
    _ = identities(pa.RecordBatch.from_pylist([], payload))


def zone_of(source: Source) -> str | None:
    """The zone of texts of times that name none: that of the columns, on any engine; None: they have none.

    Sources of Spark's have one zone for all columns.
    """
    zones = dict.fromkeys(zones_in(one.type) for one in element_columns(source)) if source.columns else {}
    named = sorted({zone for several in zones for zone in several})
    if len(named) > 1:
        error = PlanError(
            f"a text of a time that names no zone is in that of its column, and on Spark those of source "
            f"{source.name!r} are in one zone, not in {' and '.join(named)}"
        )
        error.add_note("Give all of its timestamp columns one zone: an instant is the same in any.")
        with source.line.named():
            raise error
    return named[0] if named else None


def with_sources(root: Node, reads: Mapping[str, Read]) -> Node:
    """The plan over its sources as they are read."""
    graph, nodes = Graph([root]), list[Node]()
    for node, inputs in zip(graph.nodes, graph.inputs, strict=True):
        if isinstance(node, Source):
            nodes.append(reads[node.name].source)
        else:
            nodes.append(replace(node, inputs=tuple(nodes[one] for one in inputs)))
    return nodes[graph.roots[0]]


def layout_of(source: Source) -> Layout:
    """What the columns of rows mean; those of elements have names that are given."""
    payload = tuple(source.schema.names)
    if source.layout is not None:
        return replace(source.reads, payload=payload)
    return Layout(
        "start",
        "end",
        "old_end",
        kind="kind",
        replica="replica" if source.replicas else None,
        payload=payload,
    )


def element_columns(source: Source) -> pa.Schema:
    """The columns of the rows of a source; those of elements have names that are given."""
    if source.layout is not None:
        return _columns(source)
    return pa.schema(_wanted(source, layout_of(source)))


def _wanted(source: Source, layout: Layout) -> list[pa.Field]:
    if source.layout is not None:
        names = dict.fromkeys([*layout.roles().values(), *source.schema.names])
        return [_columns(source).field(name) for name in names]
    own = [pa.field("kind", pa.string()), *(pa.field(name, pa.int64()) for name in _ELEMENTS[1:])]
    return [*own, *([pa.field("replica", pa.string())] if source.replicas else []), *_columns(source)]


def _holds_local_times(wanted: pa.Field, given: pa.Schema) -> bool:
    """Some times in a column name no zone, and those of the plan have one."""
    return local_where(given.field(wanted.name).type, wanted.type) != wanted.type


def _column(source: str, wanted: pa.Field, given: pa.Schema, zone: str) -> pa.Field:
    if wanted.name not in given.names:
        error = SchemaError(
            f"source {source!r} has column {wanted.name!r}, and what is given for it has not"
            f"{did_you_mean(wanted.name, given.names)}"
        )
        error.add_note(f"It has {', '.join(map(repr, given.names))}.")
        raise error
    found = given.field(wanted.name)
    kept = local_where(found.type, wanted.type)
    if not _alike(found.type, kept):
        error = SchemaError(
            f"column {wanted.name!r} of source {source!r} is {wanted.type}, what is given has {found.type}"
        )
        error.add_note("Cast it in the frame, or say in the plan what it is.")
        raise error
    return pa.field(wanted.name, found.type if kept == wanted.type else in_zones(wanted.type, lambda _: zone))


def _alike(one: pa.DataType, other: pa.DataType) -> bool:
    """One type, but for what a time zone is called: it does not matter which instants are shown in."""
    return bool(in_zones(one, lambda _: "UTC") == in_zones(other, lambda _: "UTC"))
