"""What the sources of a plan are read from: frames and native sources with the columns that it has."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from anabranch.engines.spark.columns import columns_of
from anabranch.engines.spark.merge_checks import check_known
from anabranch.engines.spark.native_source import NativeSource
from anabranch.engines.spark.session.row_types import arrow_schema
from anabranch.model.schema import SchemaError
from anabranch.model.spelling import did_you_mean
from anabranch.plan.graph import Graph
from anabranch.plan.node import Node, PlanError
from anabranch.plan.source import Source
from anabranch.plan.stream import Stream, check_sources, outputs_of
from anabranch.plan.tap import taps_below
from anabranch.rows.layout import Layout
from anabranch.rows.replica_names import named_in

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

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
            error = PlanError(f"the plan reads {name!r}, and nothing is given for it")
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
        if not hasattr(rows, "sparkSession"):
            wrong = TypeError(
                f"{name!r} is read from a DataFrame or a source such as ab.folder, not {rows!r:.100}"
            )
            wrong.add_note("Make a DataFrame of it: spark.createDataFrame(…), or spark.readStream.")
            raise wrong


def _columns(source: Source) -> pa.Schema:
    if source.columns is None:
        error = PlanError(f"rows of Spark's have columns, and those of source {source.name!r} are not said")
        error.add_note("Name them in the plan: source(name, {'room': 'string', …}).")
        with source.line.named():
            raise error
    return source.columns


def as_read(source: Source, rows: "DataFrame | NativeSource") -> Read:
    """A source as it is read; raises where the columns are not those of the plan."""
    in_zone = getattr(rows, "in_zone", None)
    rows = rows if in_zone is None else in_zone(zone_of(source))
    given = columns_of(rows)
    schema = arrow_schema(given.schema, given.zone)
    layout = layout_of(source)
    wanted = _wanted(source, layout)
    columns = pa.schema([_column(source.name, one, schema) for one in wanted])
    ordered = layout.sequence is not None or given.is_native
    channels = given.channels if layout.channel is None else layout.channel != layout.replica
    if layout.replica is not None and layout.replica == given.replica:
        check_known(named_in(source.lossy, source.silent, source.awaited), given.replicas)
    source = replace(
        source,
        declared=source.declared.spread() if channels or not ordered else source.declared,
        awaited=source.awaited or (given.replicas if layout.replica == given.replica else ()),
        by_time=source.by_time or (source.of_changes and not ordered),
        columns=source.columns if source.layout is None else columns,
    )
    if source.layout is not None:
        layout = replace(source.reads, payload=layout.payload, channel=layout.channel)
    return Read(source, rows, layout, columns, ordered, given.is_native, given.is_streaming)


def zone_of(source: Source) -> str | None:
    """The zone of texts of times that name none: that of the columns, on any engine; None: they have none.

    Sources of Spark's have one zone for all columns.
    """
    zones = dict.fromkeys(_zones(one.type) for one in element_columns(source)) if source.columns else {}
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


def _zones(dtype: pa.DataType) -> tuple[str, ...]:
    """The time zones in a type, however deep."""
    if pa.types.is_timestamp(dtype):
        return () if dtype.tz is None else (dtype.tz,)
    return tuple(zone for n in range(dtype.num_fields) for zone in _zones(dtype.field(n).type))


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


def _column(source: str, wanted: pa.Field, given: pa.Schema) -> pa.Field:
    if wanted.name not in given.names:
        error = SchemaError(
            f"source {source!r} has column {wanted.name!r}, and what is given for it has not"
            f"{did_you_mean(wanted.name, given.names)}"
        )
        error.add_note(f"It has {', '.join(map(repr, given.names))}.")
        raise error
    found = given.field(wanted.name)
    if not _alike(found.type, wanted.type):
        error = SchemaError(
            f"column {wanted.name!r} of source {source!r} is {wanted.type}, what is given has {found.type}"
        )
        error.add_note("Cast it in the frame, or say in the plan what it is.")
        raise error
    return pa.field(wanted.name, found.type)


def _alike(one: pa.DataType, other: pa.DataType) -> bool:
    """One type, but for what a time zone is called: it does not matter which instants are shown in."""
    if pa.types.is_timestamp(one) and pa.types.is_timestamp(other):
        return (one.tz is None) == (other.tz is None) and one.unit == other.unit
    return bool(one == other)
