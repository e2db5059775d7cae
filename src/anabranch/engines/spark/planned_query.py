"""A plan as Spark runs it: how its sources are packed, what each level is given, and what comes out."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import msgspec
import pyarrow as pa

from anabranch.engines.flow import Flow
from anabranch.engines.spark.assignment import Assignment, dealing_of, level_settings
from anabranch.engines.spark.columns import Columns
from anabranch.engines.spark.frame_metadata import CLOCK, LEVELS, OWN, SETTINGS, SHARDS
from anabranch.engines.spark.plan_sources import Read, check_reads, read_of, with_sources
from anabranch.engines.spark.query.provenance import Provenance, of_sources
from anabranch.engines.spark.refused_rows import RefusedRows
from anabranch.engines.spark.session.row_types import spark_type
from anabranch.engines.spark.stages import OBSERVED
from anabranch.engines.spark.transport.before_shuffle import steps_to_bytes
from anabranch.engines.spark.transport.packing import ROWS, Packing
from anabranch.engines.spark.transport.unpacking import Unpacking
from anabranch.kernels.answers import Answers
from anabranch.model.validity import Policy, Quarantine, check_policy
from anabranch.plan.graph import Graph
from anabranch.plan.levels import OUTPUT, Edge, Level, levels
from anabranch.plan.node import Node
from anabranch.plan.source import Source
from anabranch.plan.stream import Stream
from anabranch.rows.element_columns import REFUSED, TIMES
from anabranch.rows.refusal import FIELDS, ONLY

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


@dataclass(slots=True)
class PlannedQuery:
    """A query in the making."""

    parts: tuple[Level, ...]
    reads: Mapping[str, Read]
    ids: tuple[int, ...]
    answers: Answers
    rows_per_parcel: int = ROWS
    mark: str = ""
    has_clock: bool = False

    def __post_init__(self) -> None:
        self.mark = str(uuid4())

    def is_last(self, level: Level) -> bool:
        """What comes out of a level is what the query gives."""
        return level is self.parts[-1]

    def observed(self, level: Level) -> str:
        """The name under which Spark's progress carries what the shards of a level say."""
        return OBSERVED if self.is_last(level) else f"{OBSERVED} level {level.number}"

    def always(self, level: Level) -> bool:
        """Its shards are called in every micro-batch: no source comes in behind it, and none is a frame."""
        native = all(read.is_native for read in self.reads.values())
        return native and level.number >= max(
            part.number for part in self.parts for edge in part.edges if edge.source is not None
        )

    def packing(self, edge: Edge, level: Level) -> Packing:
        """How the rows of a source become parcels for the shards of a level."""
        assert edge.source is not None, "what comes from a level is packed there"
        read = self.reads[edge.source.name]
        steps = [step.operator() for step in edge.steps]
        return Packing(
            read.layout,
            len(self.ids),
            self.rows_per_parcel,
            ordered=read.ordered,
            edge=edge.name,
            dealing=dealing_of(edge, level),
            steps=steps_to_bytes(steps, self._refused_rows(edge)),  # type: ignore[arg-type]
        )

    def _refused_rows(self, edge: Edge) -> RefusedRows:
        """How refused rows of an edge are told."""
        if edge.source is None:
            return RefusedRows(edge.name, clock=edge.inlet.clock)
        read = self.reads[edge.source.name]
        roles = read.layout.roles()
        others = len(self.entrances) > 1
        return RefusedRows(
            edge.name, edge.inlet.replicas, roles, not read.ordered, _clock(edge.inlet), others
        )

    @property
    def entrances(self) -> tuple[Edge, ...]:
        """The edges by which rows come in from outside."""
        return tuple(edge for part in self.parts for edge in part.edges if edge.source is not None)

    def provenance(self) -> dict[str, Provenance]:
        """Where rows are from, by the edge that they come in by."""
        found = {}
        for edge in self.entrances:
            assert edge.source is not None, "rows come in from a source"
            read = self.reads[edge.source.name]
            if read.is_native and read.rows is not None:
                name = edge.name if len(self.entrances) > 1 else ONLY
                found[name] = read.rows.provenance(read.layout)
        return found

    def assignment(self, level: Level) -> Assignment:
        """What the shards of a level are given to run."""
        into = {edge.name: (part, edge) for part in self.parts for edge in part.edges}
        later = tuple(into[name][1] for name in level.outputs if name != OUTPUT)
        silent = [(edge.name, name) for edge in level.edges for name in edge.inlet.silent]
        return Assignment(
            level,
            len(self.ids),
            self.answers,
            {edge.name: self._refused_rows(edge) for edge in level.edges},
            later,
            {edge.name: into[edge.name][0].number for edge in later},
            {edge.name: dealing_of(edge, into[edge.name][0]) for edge in later},
            self.parts[-1].number,
            tuple(silent),
            self.mark,
        )

    def unpacking(self) -> Unpacking:
        """How what comes out becomes rows."""
        out = self.output
        held = any(kernel.held for _, _, kernel in Flow(self.parts[-1].outputs).kernels())
        payload = pa.schema([one.with_nullable(True) for one in out.schema])
        return Unpacking(payload, _clock(out), self._quarantines(), len(self.ids), held)

    def _quarantines(self) -> bool:
        """Some of what is not used is told."""
        nodes = [node for part in self.parts for node in Graph(part.outputs.values()).nodes]
        names = ("on_invalid", "on_broken", "on_late")
        said = [getattr(owner, name, None) for owner in (self.answers, *nodes) for name in names]
        return any(isinstance(one, Quarantine) for one in said)

    @property
    def output(self) -> Node:
        """The last operator."""
        return self.parts[-1].outputs[OUTPUT]

    def schema(self) -> "StructType":
        """The columns of the rows; that of the kind says what the state depends on."""
        from pyspark.sql import types as t
        from pyspark.sql.pandas.types import from_arrow_type

        root, unpacking, known = self.output, self.unpacking(), self._known_fields()
        told: dict[str, Any] = {
            SETTINGS: msgspec.json.encode(self.settings()).decode(),
            SHARDS: len(self.ids),
            CLOCK: self.has_clock,
            **of_sources(self.provenance()),
        }
        told |= {f"{OWN}{name}": value for name, value in root.for_sinks().items()}
        time = from_arrow_type(unpacking.clock)
        fields = [
            t.StructField("kind", t.StringType(), True, told),
            *(t.StructField(name, time) for name in TIMES),
        ]
        own = [
            known.get(one.name)
            or t.StructField(one.name, spark_type(one.type, f"column {one.name!r} of the result"))
            for one in root.schema
        ]
        fields += [t.StructField("payload", t.StructType(own))] if unpacking.nested else own
        if unpacking.refusals:
            texts = t.StructType([t.StructField(name, t.StringType()) for name in FIELDS])
            fields.append(t.StructField(REFUSED, texts))
        return t.StructType(fields)

    def _known_fields(self) -> dict[str, Any]:
        """Columns of the output that are columns of the one source, as Spark knows them."""
        from pyspark.sql import types as t

        if len(self.reads) != 1:
            return {}
        (read,) = self.reads.values()
        if read.schema is None:
            return {}
        root = self.output
        known = {name: read.schema[name] for name in root.schema.names if name in read.columns.names}
        return {
            name: t.StructField(name, one.dataType, True, one.metadata)
            for name, one in known.items()
            if read.columns.field(name).type == root.schema.field(name).type
        }

    def settings(self) -> dict[str, str]:
        """What the state depends on, by level where there are several."""
        found = {LEVELS: str(len(self.parts))}
        for part in self.parts:
            where = "" if len(self.parts) == 1 else f"level {part.number}, "
            found |= {f"{where}{name}": value for name, value in level_settings(part).items()}
        return found


def answers_of(
    *, on_invalid: Policy | None = None, on_broken: Policy | None = None, on_late: Policy | None = None
) -> Answers:
    """What is done with rows that are not used where neither source nor operator says it: set aside."""
    given = {"on_invalid": on_invalid, "on_broken": on_broken, "on_late": on_late}
    for name, policy in given.items():
        check_policy(name, policy)
    return Answers(*(policy or Quarantine() for policy in given.values()))


def query_of_columns(
    stream: Stream, sources: Mapping[str, Columns], **on_refused: Policy | None
) -> PlannedQuery:
    """A query as far as the columns of its sources say what it is."""
    nodes = {node.name: node for node in Graph([stream.node]).nodes if isinstance(node, Source)}
    reads = {name: read_of(node, sources[name]) for name, node in nodes.items()}
    root = with_sources(stream.node, reads)
    check_reads(root, reads)
    return PlannedQuery(levels(root), reads, (0,), answers_of(**on_refused))


def _clock(node: Node) -> pa.DataType:
    return pa.int64() if node.clock is None else node.clock
