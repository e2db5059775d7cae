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
    from anabranch.connectors.files.files import read as read
    from anabranch.connectors.files.files import write as write
    from anabranch.engines.embedded.in_step import in_step as in_step
    from anabranch.engines.embedded.merge import merge as merge
    from anabranch.engines.embedded.merger import Merger as Merger
    from anabranch.kernels.merge.settings import Generalise as Generalise
    from anabranch.model.batch import Batch as Batch
    from anabranch.model.consistency import contradiction as contradiction
    from anabranch.model.consistency import difference as difference
    from anabranch.model.consistency import incompatibility as incompatibility
    from anabranch.model.events import Events as Events
    from anabranch.model.history import history as history
    from anabranch.model.observation import observe as observe
    from anabranch.model.recording import Recording as Recording
    from anabranch.model.relation import Relation as Relation
    from anabranch.model.validity import BrokenPropertyError as BrokenPropertyError

# Imported when first used: NumPy, Arrow and Numba take half a second that `anabranch --help` need not wait.
_HEAVY = {
    "Batch": "anabranch.model.batch",
    "BrokenPropertyError": "anabranch.model.validity",
    "Generalise": "anabranch.kernels.merge.settings",
    "Merger": "anabranch.engines.embedded.merger",
    "Events": "anabranch.model.events",
    "Recording": "anabranch.model.recording",
    "Relation": "anabranch.model.relation",
    "contradiction": "anabranch.model.consistency",
    "difference": "anabranch.model.consistency",
    "history": "anabranch.model.history",
    "in_step": "anabranch.engines.embedded.in_step",
    "incompatibility": "anabranch.model.consistency",
    "merge": "anabranch.engines.embedded.merge",
    "observe": "anabranch.model.observation",
    "read": "anabranch.connectors.files.files",
    "write": "anabranch.connectors.files.files",
}

__all__ = [
    "BEGINNING",
    "FOREVER",
    "Adjust",
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
    "Fact",
    "FinalOnly",
    "FirstThenFinal",
    "FollowLeader",
    "Freeze",
    "Generalise",
    "HalfFrozen",
    "Insert",
    "InvalidElementError",
    "Merger",
    "OutputPolicy",
    "Pace",
    "Properties",
    "Quarantine",
    "Quorum",
    "Raise",
    "Recording",
    "Relation",
    "Rule",
    "Stable",
    "Tagged",
    "Violation",
    "contradiction",
    "difference",
    "history",
    "in_step",
    "incompatibility",
    "merge",
    "observe",
    "parse",
    "read",
    "text",
    "ticks",
    "timestamp",
    "write",
]


def __getattr__(name: str) -> Any:
    if name in _HEAVY:
        return getattr(import_module(_HEAVY[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
