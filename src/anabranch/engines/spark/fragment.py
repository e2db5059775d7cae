"""What a shard runs: the kernels of one fragment, as a value that travels to the executors."""

from dataclasses import dataclass, field

import pyarrow as pa

from anabranch.kernels.answers import Answers
from anabranch.kernels.kernel import State
from anabranch.kernels.merge.merge import Merge
from anabranch.kernels.merge.settings import Generalise, checked
from anabranch.kernels.merge_changes import MergeChanges
from anabranch.model.output_policy import FirstThenFinal, OutputPolicy, Pace
from anabranch.model.properties import Case, Properties
from anabranch.model.validity import Drop, Policy, Quarantine, Raise

REMEMBER = 4_096
"""Final events that a shard keeps to compare slower replicas with; they are part of every snapshot."""


@dataclass(frozen=True, slots=True)
class Fragment:
    """Logical merge of replicas that the rows name."""

    case: Case | None = None
    policy: OutputPolicy = field(default_factory=FirstThenFinal)
    pace: Pace = Pace.SLOWEST
    identity: tuple[str, ...] | None = None
    """The payload columns that tell events apart; None: all."""
    properties: Properties | None = None
    """What every replica promises."""
    lossy: frozenset[str] | bool = False
    """The replicas that may have holes, or whether all may."""
    replicas: tuple[str, ...] = ()
    """Replicas that are waited for from the beginning; others join with their first row."""
    idle: tuple[str, ...] = ()
    """Replicas that nobody waits for while they are silent; the next run of a query may say others."""
    channels: int | None = None
    """How many channels every replica has; None: those that have spoken."""
    by_channel: bool = False
    """What is promised holds for each channel of a replica by itself, and there may be several."""
    on_invalid: Policy = field(default_factory=Quarantine)
    on_broken: Policy | Generalise = field(default_factory=Quarantine)
    on_late: Policy = field(default_factory=Quarantine)
    remember: int = REMEMBER
    key: tuple[str, ...] | None = None
    """What names the rows of a table that the replicas send changes of; None: they send elements."""
    by_time: bool = False
    """Changes of a key count by commit time, not in the order of their channel."""
    columns: tuple[tuple[str, str], ...] = ()
    """What the columns of the rows were read as, by role, as far as the state depends on it."""
    roles: tuple[tuple[str, str], ...] = ()
    """The columns of the rows that are not payload, by role; none: refused rows are told in our own words."""
    by_task: bool = False
    """Rows have no order of their own, and are numbered by the task that read them."""
    clock: pa.DataType | None = None
    """The type of the times of the rows, for people; None: ticks."""

    def merge(self) -> Merge:
        """A merge at its beginning."""
        return Merge(
            self.case,
            self.policy,
            pace=self.pace,
            identity=self.identity,
            remember=self.remember,
            generalise=isinstance(self.on_broken, Generalise),
        )

    def answers(self) -> Answers:
        """What is done with what is refused; a merge that generalises refuses nothing for a property."""
        broken = Quarantine() if isinstance(self.on_broken, Generalise) else self.on_broken
        return Answers(self.on_invalid, broken, self.on_late)

    def check(self) -> None:
        """Raise where a setting is not one."""
        self.merge()
        kinds = (Raise, Drop, Quarantine)
        checked("on_invalid", self.on_invalid, *kinds)
        checked("on_broken", self.on_broken, *kinds, Generalise)
        checked("on_late", self.on_late, *kinds)

    def promised(self) -> Properties | None:
        """What holds of a replica, of all its channels together."""
        if self.properties is None or not self.by_channel:
            return self.properties
        return self.properties.spread()

    def merge_changes(self) -> MergeChanges | None:
        """A merge of changes at its beginning, where replicas send changes."""
        return None if self.key is None else MergeChanges(self.key, self.merge(), by_time=self.by_time)

    def loaded(self, state: State) -> Merge | MergeChanges:
        """What merges, as it was saved."""
        generalise = isinstance(self.on_broken, Generalise)
        if self.key is None:
            return Merge.load(state, generalise=generalise)
        return MergeChanges.load(state, by_time=self.by_time, generalise=generalise)

    def settings(self) -> dict[str, str]:
        """What the state depends on, so that it holds for as long as a checkpoint does."""
        names = ("case", "policy", "pace", "identity", "properties", "lossy", "channels", "key", "by_time")
        values = {name: getattr(self, name) for name in names}
        values["lossy"] = self.lossy if isinstance(self.lossy, bool) else sorted(self.lossy)
        return {name: str(value) for name, value in values.items()} | dict(self.columns)

    def is_complete(self, replica: str) -> bool:
        """The silence of a replica is evidence."""
        return not self.lossy if isinstance(self.lossy, bool) else replica not in self.lossy

    def quarantines(self) -> bool:
        """Some of what is not used is told."""
        answers = (self.on_invalid, self.on_broken, self.on_late)
        return any(isinstance(answer, Quarantine) for answer in answers)
