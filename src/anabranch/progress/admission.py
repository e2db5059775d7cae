"""What the gate of a source goes by, as a plan has it."""

from dataclasses import dataclass, field

from anabranch.model.properties import Properties
from anabranch.progress.models.model import Progress
from anabranch.progress.models.stated import Stated


@dataclass(frozen=True, slots=True)
class Admission:
    """Which replicas a source has, what they promise, and how they make progress."""

    replicas: bool = False
    """What sends has a name, comes and goes."""
    awaited: tuple[str, ...] = ()
    """Replicas that are attached from the beginning; others with their first element."""
    lossy: frozenset[str] | bool = False
    promised: Properties | None = None
    """What each replica promises."""
    progress: Progress = field(default_factory=Stated)
    """Until when channels are stable by what is seen of them."""
    channels: int = 1
    """How many channels of a replica must have sent something before it is stable until anything."""
    of_changes: bool = False
    """What comes in are changes of a table."""

    def is_complete(self, replica: str) -> bool:
        """The silence of a replica is evidence."""
        return not self.lossy if isinstance(self.lossy, bool) else replica not in self.lossy
