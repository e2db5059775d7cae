"""Merges of the replicas of a source as plans of one level, with settings that only tests give."""

from dataclasses import dataclass, field, replace
from uuid import uuid4

import pyarrow as pa

from anabranch.engines.spark.assignment import Assignment
from anabranch.engines.spark.refused_rows import RefusedRows
from anabranch.engines.spark.rows_merge import REMEMBER, ROWS_SOURCE
from anabranch.kernels.answers import Answers
from anabranch.kernels.merge.settings import Generalise
from anabranch.model.output_policy import FirstThenFinal, OutputPolicy, Pace
from anabranch.model.properties import Case, Fact, Properties
from anabranch.model.validity import Policy, Quarantine
from anabranch.plan.levels import OUTPUT, levels
from anabranch.plan.merge import Merge
from anabranch.plan.merge_changes import MergeChanges
from anabranch.plan.source import Source
from anabranch.rows.layout import Layout


@dataclass(frozen=True)
class Merging:
    """Settings of a merge."""

    case: Case | None = None
    policy: OutputPolicy = field(default_factory=FirstThenFinal)
    pace: Pace = Pace.SLOWEST
    identity: tuple[str, ...] | None = None
    properties: Properties | None = None
    lossy: frozenset[str] | bool = False
    replicas: tuple[str, ...] = ()
    idle: tuple[str, ...] = ()
    channels: int | None = None
    """How many channels of a replica must have sent before it is stable; None: one."""
    by_channel: bool = False
    """The properties are those of each channel."""
    on_invalid: Policy = field(default_factory=Quarantine)
    on_broken: Policy | Generalise = field(default_factory=Quarantine)
    on_late: Policy = field(default_factory=Quarantine)
    remember: int = REMEMBER
    by_time: bool = False
    clock: pa.DataType | None = None
    """The type of the times in messages."""


def assignment_of(layout: Layout, merging: Merging, schema: pa.Schema, shards: int) -> Assignment:
    """A merge of rows for the shards of its one level; the layout of changes has a key."""
    properties = merging.properties or Properties()
    channel = layout.channel if merging.by_channel else layout.replica
    source = Source(
        name=ROWS_SOURCE,
        columns=schema,
        layout=replace(layout, identity=merging.identity, channel=channel),
        replicas=True,
        awaited=merging.replicas,
        silent=merging.idle,
        lossy=merging.lossy,
        declared=properties | Properties.of(Fact.PUNCTUATED),
        by_time=merging.by_time,
    )
    generalises = isinstance(merging.on_broken, Generalise)
    node = (MergeChanges if source.of_changes else Merge)(
        inputs=(source,),
        case=merging.case,
        policy=merging.policy,
        pace=merging.pace,
        identity=merging.identity,
        remember=merging.remember,
        generalise=generalises,
    )
    (level,) = levels(node, shards)
    (edge,) = level.edges
    inlet = replace(edge.inlet, channels=merging.channels or 1)
    merge = replace(level.outputs[OUTPUT], inputs=(inlet,))
    level = replace(level, edges=(replace(edge, inlet=inlet),), outputs={OUTPUT: merge})
    answers = Answers(merging.on_invalid, Quarantine() if generalises else merging.on_broken, merging.on_late)
    refused_rows = RefusedRows(ROWS_SOURCE, True, clock=merging.clock)
    idle = tuple((ROWS_SOURCE, name) for name in merging.idle)
    return Assignment(level, shards, answers, {ROWS_SOURCE: refused_rows}, idle=idle, mark=str(uuid4()))
