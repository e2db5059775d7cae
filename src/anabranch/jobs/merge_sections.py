"""``[merge]`` and ``[changes]``: what the rows of a job say, and how those of replicas become one stream.

``ab`` is `anabranch.spark`, as in programs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import signature
from typing import TYPE_CHECKING, Any

from msgspec import field

from anabranch.jobs.sections import Names, Section, one_of, section
from anabranch.kernels.merge.settings import Generalise
from anabranch.model.output_policy import POLICIES, FollowLeader, OutputPolicy, Pace, Quorum, policy_named
from anabranch.model.validity import Drop, Quarantine, Raise
from anabranch.rows.change_words import spellings
from anabranch.rows.vouching import IN_FILE, check_answered, is_inferred

if TYPE_CHECKING:
    from anabranch.engines.spark.rows_merge import RowsMerge


ANSWERS = ("on_invalid", "on_broken", "on_late")
_LOSSY = dict.fromkeys(("yes", "true", "all", "on"), "true") | dict.fromkeys(
    ("no", "false", "none", "off"), "false"
)


class ReplicasSection(Section):
    """Whose rows they are and how replicas become one, whatever the rows say."""

    replica: str | None = None
    channel: str | None = None
    sequence: str | None = None
    payload: Names | None = None
    disorder: Any = None
    case: Any = None
    policy: Any = None
    properties: Any = None
    pace: Any = None
    replicas: Names = field(default_factory=list)
    idle: Names = field(default_factory=list)
    on_invalid: Any = None
    on_broken: Any = None
    on_late: Any = None
    remember: int | None = None
    rows_per_parcel: int | None = None

    def arguments(self) -> dict[str, Any]:
        """What the function of the section is called with: names as the values they stand for."""
        given = {name: getattr(self, name) for name in self.__struct_fields__}
        given["policy"] = policy_of(self.policy)
        given["pace"] = one_of("pace", self.pace, {pace.value: pace for pace in Pace})
        for name in ANSWERS:
            given[name] = answer_named(name, given[name])
        return {name: value for name, value in given.items() if value is not None}


class MergeSection(ReplicasSection, kw_only=True):
    """``[merge]``: rows are elements; the keyword arguments of `ab.merge`."""

    start: str
    end: str | None = None
    old_end: str | None = None
    duration: Any = None
    kind: str | None = None
    identity: Names | None = None
    lossy: bool | Names | None = None

    def arguments(self) -> dict[str, Any]:
        """What the function is called with; a word in place of true or false is refused, and no answer."""
        check_lossy_words(self.lossy)
        inferred = is_inferred(replica=self.replica, kind=self.kind, disorder=self.disorder)
        check_answered(self.lossy, inferred=inferred, written=IN_FILE)
        return ReplicasSection.arguments(self)

    def checked(self) -> RowsMerge:
        """Its settings; what is wrong in itself is refused."""
        from anabranch.engines.spark.merge import merge
        from anabranch.engines.spark.rows_merge import merge_of_events

        return merge_of_events(**_completed(merge, self.arguments()))


class ChangesSection(ReplicasSection, kw_only=True):
    """``[changes]``: rows are changes of a table; the keyword arguments of `ab.merge_changes`."""

    key: Names
    time: str
    op: str = "op"
    ops: dict[str, str] = field(default_factory=dict)
    by_time: bool = False

    def arguments(self) -> dict[str, Any]:
        """What the function is called with; a word of ``ops`` that is not known is refused."""
        spellings(self.ops)
        return ReplicasSection.arguments(self)

    def checked(self) -> RowsMerge:
        """Its settings; what is wrong in itself is refused."""
        from anabranch.engines.spark.merge_changes import merge_changes
        from anabranch.engines.spark.rows_merge import merge_of_changes

        return merge_of_changes(**_completed(merge_changes, self.arguments()))


def _completed(function: Callable[..., Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a function, with those that are not given as it has them, but for rows and parcels.

    A job sets aside by itself what is not used.
    """
    bound = signature(function).bind(None, **given)
    bound.apply_defaults()
    found = {name: value for name, value in bound.arguments.items() if not name.startswith("rows")}
    return found | {name: None for name in ANSWERS if found[name] == Quarantine()}


class PolicySection(Section):
    """A policy with its settings, where its name alone does not say them."""

    name: str
    lag: int | str = 0
    fraction: float | None = None
    by: str | None = None


def policy_of(value: Any) -> OutputPolicy | None:
    """A policy by its name, as on the command line, or as a table with its settings."""
    if value is None or isinstance(value, OutputPolicy):
        return value
    if isinstance(value, Mapping):
        asked = section(PolicySection, value, "policy")
        one_of("policy", asked.name, POLICIES)
        settings: dict[str, Any] = {"lag": asked.lag}
        for setting, owner in (("fraction", Quorum), ("by", FollowLeader)):
            value = getattr(asked, setting)
            if value is None:
                continue
            if POLICIES[asked.name] is not owner:
                raise ValueError(f"policy {asked.name!r} has no {setting}, {owner.name} has one")
            settings[setting] = value
        return POLICIES[asked.name](**settings)
    try:
        return policy_named(str(value))
    except ValueError as reason:
        error = ValueError(str(reason))
        error.add_note('With settings, write policy = { name = "final", lag = "5 minutes" }.')
        raise error from None


def check_lossy_words(value: bool | Names | None) -> None:
    """Raise where a word that means all or none would be taken for the name of a replica."""
    meant = _LOSSY.get(value.lower()) if isinstance(value, str) else None
    if meant is not None:
        error = ValueError(
            f"lossy is true, false or names of replicas, and {value!r} would be the name of one"
        )
        error.add_note(f"Write lossy = {meant}.")
        error.add_note(f"A replica that is called so is named in a list: lossy = [{value!r}].")
        raise error


def answer_named(name: str, value: Any) -> Any:
    """What is done with rows, by a word."""
    known: dict[str, Any] = {"raise": Raise(), "drop": Drop(), "quarantine": Quarantine()}
    if name == "on_broken":
        known["generalise"] = Generalise()
    return one_of(name, value, known)
