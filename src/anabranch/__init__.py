"""Many unreliable physical streams, one correct logical stream."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from anabranch.errors import AnabranchError
from anabranch.model.elements import Adjust, Attach, Detach, Event, Insert, Stable, Tagged
from anabranch.model.freeze import Freeze
from anabranch.model.notation import parse, text
from anabranch.model.output_policy import (
    EveryChange,
    FinalOnly,
    FirstThenFinal,
    FollowLeader,
    HalfFrozen,
    OutputPolicy,
    Pace,
    Quorum,
)
from anabranch.model.properties import Case, Fact, Properties
from anabranch.model.time import BEGINNING, FOREVER, ticks, timestamp
from anabranch.model.validity import Drop, InvalidElementError, Quarantine, Raise, Rule, Violation

if TYPE_CHECKING:
    from anabranch.connectors.columns import columns as columns
    from anabranch.connectors.delta.embedded import delta_changes as delta_changes
    from anabranch.connectors.files.files import read as read
    from anabranch.connectors.files.files import write as write
    from anabranch.connectors.folder.embedded import folder as folder
    from anabranch.connectors.kafka.embedded import kafka as kafka
    from anabranch.connectors.running import run as run
    from anabranch.engines.embedded.in_step import in_step as in_step
    from anabranch.engines.embedded.job import Job as Job
    from anabranch.engines.embedded.job import open as open  # noqa: A004
    from anabranch.engines.embedded.merger import Merger as Merger
    from anabranch.expressions.aggregates import Aggregate as Aggregate
    from anabranch.expressions.aggregates import aggregate as aggregate
    from anabranch.expressions.aggregates import count as count
    from anabranch.expressions.choice import when as when
    from anabranch.expressions.expression import Expression as Expression
    from anabranch.expressions.expression import call as call
    from anabranch.expressions.expression import col as col
    from anabranch.expressions.expression import end as end
    from anabranch.expressions.expression import lit as lit
    from anabranch.expressions.expression import start as start
    from anabranch.kernels.merge.settings import Generalise as Generalise
    from anabranch.model.batch import Batch as Batch
    from anabranch.model.consistency import contradiction as contradiction
    from anabranch.model.consistency import difference as difference
    from anabranch.model.consistency import incompatibility as incompatibility
    from anabranch.model.events import Events as Events
    from anabranch.model.history import history as history
    from anabranch.model.lifetime import END as END
    from anabranch.model.lifetime import START as START
    from anabranch.model.observation import observe as observe
    from anabranch.model.recording import Recording as Recording
    from anabranch.model.relation import Relation as Relation
    from anabranch.model.validity import BrokenPropertyError as BrokenPropertyError
    from anabranch.plan.build import merge as merge
    from anabranch.plan.build import source as source
    from anabranch.plan.build import union as union
    from anabranch.plan.node import PlanError as PlanError
    from anabranch.plan.replicas import Replicas as Replicas
    from anabranch.plan.replicas_of_changes import ReplicasOfChanges as ReplicasOfChanges
    from anabranch.plan.stream import Stream as Stream

# Imported when first used: NumPy, Arrow and Numba take half a second that `anabranch --help` need not wait.
_HEAVY = {
    "Aggregate": "anabranch.expressions.aggregates",
    "aggregate": "anabranch.expressions.aggregates",
    "END": "anabranch.model.lifetime",
    "Expression": "anabranch.expressions.expression",
    "Job": "anabranch.engines.embedded.job",
    "PlanError": "anabranch.plan.node",
    "Replicas": "anabranch.plan.replicas",
    "ReplicasOfChanges": "anabranch.plan.replicas_of_changes",
    "START": "anabranch.model.lifetime",
    "Stream": "anabranch.plan.stream",
    "call": "anabranch.expressions.expression",
    "col": "anabranch.expressions.expression",
    "end": "anabranch.expressions.expression",
    "lit": "anabranch.expressions.expression",
    "open": "anabranch.engines.embedded.job",
    "source": "anabranch.plan.build",
    "start": "anabranch.expressions.expression",
    "union": "anabranch.plan.build",
    "when": "anabranch.expressions.choice",
    "Batch": "anabranch.model.batch",
    "BrokenPropertyError": "anabranch.model.validity",
    "Generalise": "anabranch.kernels.merge.settings",
    "Merger": "anabranch.engines.embedded.merger",
    "Events": "anabranch.model.events",
    "Recording": "anabranch.model.recording",
    "Relation": "anabranch.model.relation",
    "columns": "anabranch.connectors.columns",
    "contradiction": "anabranch.model.consistency",
    "count": "anabranch.expressions.aggregates",
    "delta_changes": "anabranch.connectors.delta.embedded",
    "difference": "anabranch.model.consistency",
    "folder": "anabranch.connectors.folder.embedded",
    "history": "anabranch.model.history",
    "in_step": "anabranch.engines.embedded.in_step",
    "incompatibility": "anabranch.model.consistency",
    "kafka": "anabranch.connectors.kafka.embedded",
    "merge": "anabranch.plan.build",
    "observe": "anabranch.model.observation",
    "read": "anabranch.connectors.files.files",
    "run": "anabranch.connectors.running",
    "write": "anabranch.connectors.files.files",
}

__all__ = [
    "BEGINNING",
    "END",
    "FOREVER",
    "START",
    "Adjust",
    "Aggregate",
    "AnabranchError",
    "Attach",
    "Batch",
    "BrokenPropertyError",
    "Case",
    "Detach",
    "Drop",
    "Event",
    "Events",
    "EveryChange",
    "Expression",
    "Fact",
    "FinalOnly",
    "FirstThenFinal",
    "FollowLeader",
    "Freeze",
    "Generalise",
    "HalfFrozen",
    "Insert",
    "InvalidElementError",
    "Job",
    "Merger",
    "OutputPolicy",
    "Pace",
    "PlanError",
    "Properties",
    "Quarantine",
    "Quorum",
    "Raise",
    "Recording",
    "Relation",
    "Replicas",
    "ReplicasOfChanges",
    "Rule",
    "Stable",
    "Stream",
    "Tagged",
    "Violation",
    "aggregate",
    "call",
    "col",
    "columns",
    "contradiction",
    "count",
    "delta_changes",
    "difference",
    "end",
    "folder",
    "history",
    "in_step",
    "incompatibility",
    "kafka",
    "lit",
    "merge",
    "observe",
    "open",
    "parse",
    "read",
    "run",
    "source",
    "start",
    "text",
    "ticks",
    "timestamp",
    "union",
    "when",
    "write",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return import_module("importlib.metadata").version("anabranch")
    if name == "spark":
        return import_module("anabranch.spark")
    if name in _HEAVY:
        return getattr(import_module(_HEAVY[name]), name)
    from anabranch.model.other_names import OF_THE_PACKAGE, no_attribute

    raise AttributeError(no_attribute(f"module {__name__!r}", name, __all__, OF_THE_PACKAGE))
