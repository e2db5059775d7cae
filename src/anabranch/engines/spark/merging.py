"""How the replicas that rows name are merged, as one value: what `merge` and `merge_changes` are told."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from anabranch.kernels.answers import Answers
from anabranch.kernels.merge.merge import Merge
from anabranch.kernels.merge.settings import Generalise, case_named, checked, note_value
from anabranch.model.output_policy import FirstThenFinal, OutputPolicy, Pace
from anabranch.model.properties import Case, Fact, Properties
from anabranch.model.validity import Drop, Policy, Quarantine, Raise
from anabranch.rows.layout import names_of
from anabranch.rows.vouching import Lossy

REMEMBER = 4_096
"""Final events that a shard keeps to compare slower replicas with; they are part of every snapshot."""


@dataclass(frozen=True, slots=True)
class Merging:
    """The settings of a merge by itself, checked; a plan of one node is made of it."""

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

    def answers(self) -> Answers:
        """What is done with what is refused; a merge that generalises refuses nothing for a property."""
        broken = Quarantine() if isinstance(self.on_broken, Generalise) else self.on_broken
        return Answers(self.on_invalid, broken, self.on_late)

    def check(self) -> None:
        """Raise where a setting is not one."""
        Merge(self.case, self.policy, pace=self.pace, identity=self.identity, remember=self.remember)
        kinds = (Raise, Drop, Quarantine)
        checked("on_invalid", self.on_invalid, *kinds)
        checked("on_broken", self.on_broken, *kinds, Generalise)
        checked("on_late", self.on_late, *kinds)
        if self.policy.needs_all:
            error = ValueError(
                f"every shard follows the same replica, and the policy {str(self.policy)!r} goes by what a "
                "replica has shown in all of them"
            )
            error.add_note(
                "Follow the one whose stable is furthest, FollowLeader(): shards are told all stables."
            )
            error.add_note("Or merge in a plan (anabranch.merge), which runs this policy on one shard.")
            raise error

    def promised(self) -> Properties | None:
        """What holds of a replica, of all its channels together."""
        if self.properties is None or not self.by_channel:
            return self.properties
        return self.properties.spread()

    def settings(self) -> dict[str, str]:
        """What the state depends on, so that it holds for as long as a checkpoint does."""
        names = ("case", "policy", "pace", "identity", "properties", "lossy", "channels", "key", "by_time")
        values = {name: getattr(self, name) for name in names}
        values["lossy"] = self.lossy if isinstance(self.lossy, bool) else sorted(self.lossy)
        return {name: str(value) for name, value in values.items()} | dict(self.columns)

    def quarantines(self) -> bool:
        """Some of what is not used is told."""
        answers = (self.on_invalid, self.on_broken, self.on_late)
        return any(isinstance(answer, Quarantine) for answer in answers)


def merging_of(
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
) -> Merging:
    """A merge with settings as people write them; those that do not go together are refused here."""
    merging = Merging(
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
        merging.check()  # which checks its settings, here and not in a worker
    except TypeError as error:
        for name in ("policy", "pace", "on_invalid", "on_broken", "on_late"):
            note_value(error, name, getattr(merging, name))
        raise
    return merging


def declared_properties(value: Any) -> Properties | None:
    """Properties as people write them."""
    if value is None or isinstance(value, Properties):
        return value
    return Properties.of(*([value] if isinstance(value, str | Fact) else value))
