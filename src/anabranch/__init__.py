"""Many unreliable physical streams, one correct logical stream."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from anabranch.model.elements import Adjust, Attach, Detach, Event, Insert, Stable, Tagged
from anabranch.model.freeze import Freeze
from anabranch.model.time import BEGINNING, FOREVER, ticks, timestamp

if TYPE_CHECKING:
    from anabranch.model.batch import Batch as Batch
    from anabranch.model.relation import Relation as Relation

# Imported when first used: NumPy, Arrow and Numba take half a second that `anabranch --help` need not wait.
_HEAVY = {"Batch": "anabranch.model.batch", "Relation": "anabranch.model.relation"}

__all__ = [
    "BEGINNING",
    "FOREVER",
    "Adjust",
    "Attach",
    "Batch",
    "Detach",
    "Event",
    "Freeze",
    "Insert",
    "Relation",
    "Stable",
    "Tagged",
    "ticks",
    "timestamp",
]


def __getattr__(name: str) -> Any:
    if name in _HEAVY:
        return getattr(import_module(_HEAVY[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
