"""A source of several replicas, which only a merge makes one stream."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

from anabranch.kernels.merge.settings import Generalise, case_named, checked
from anabranch.model.output_policy import FirstThenFinal, OutputPolicy, Pace
from anabranch.model.properties import Case
from anabranch.model.validity import Drop, Policy, Quarantine, Raise
from anabranch.plan.line import users_line
from anabranch.plan.merge import Merge
from anabranch.plan.node import Node
from anabranch.plan.row_operators import RowOperators
from anabranch.plan.stream import Stream
from anabranch.rows.layout import names_of

OnBroken: TypeAlias = Policy | Generalise
REMEMBER = 16_384
"""Final events that are kept to be compared with slower inputs."""


@dataclass(frozen=True, slots=True, repr=False)
class Replicas(RowOperators):
    """What several replicas send; operators are run on the rows of each."""

    def __repr__(self) -> str:
        return f"<Replicas: {self.node.words()}>"

    def __getattr__(self, name: str) -> Any:
        error = AttributeError(f"{type(self).__name__!r} has no {name!r}", name=name, obj=self)
        if hasattr(Stream, name):
            error.add_note(f"Replicas are merged before that: write .merge() before .{name}.")
        raise error

    def merge(
        self,
        *,
        case: Case | str | None = None,
        policy: OutputPolicy | None = None,
        pace: Pace = Pace.SLOWEST,
        identity: str | Iterable[str] | None = None,
        remember: int = REMEMBER,
        on_broken: OnBroken | None = None,
        on_late: Policy | None = None,
    ) -> Stream:
        """What the replicas mean together."""
        return merged(
            (self.node,),
            (),
            case=case,
            policy=policy,
            pace=pace,
            identity=identity,
            remember=remember,
            on_broken=on_broken,
            on_late=on_late,
        )


def merged(
    inputs: tuple[Node, ...],
    names: tuple[str, ...],
    *,
    case: Case | str | None,
    policy: OutputPolicy | None,
    pace: Pace,
    identity: str | Iterable[str] | None,
    remember: int,
    on_broken: OnBroken | None,
    on_late: Policy | None,
) -> Stream:
    """A merge with its settings as people write them."""
    with users_line().named():
        settings = merge_settings(
            case=case,
            policy=policy,
            pace=pace,
            identity=identity,
            remember=remember,
            on_broken=on_broken,
            on_late=on_late,
        )
    return Stream(Merge(inputs=inputs, names=names, **settings))


def merge_settings(
    *,
    case: Case | str | None,
    policy: OutputPolicy | None,
    pace: Pace,
    identity: str | Iterable[str] | None,
    remember: int,
    on_broken: OnBroken | None,
    on_late: Policy | None,
) -> dict[str, Any]:
    """What people write of a merge, as its node has it."""
    answers = (Raise, Drop, Quarantine)
    if on_broken is not None:
        checked("on_broken", on_broken, *answers, Generalise)
    if on_late is not None:
        checked("on_late", on_late, *answers)
    if policy is not None:
        checked("policy", policy, OutputPolicy)
    generalises = isinstance(on_broken, Generalise)
    return {
        "case": case_named(case),
        "policy": policy or FirstThenFinal(),
        "pace": checked("pace", pace, Pace),
        "identity": names_of(identity),
        "remember": checked("remember", remember, int),
        "generalise": generalises,
        "on_broken": None if generalises else on_broken,
        "on_late": on_late,
    }
