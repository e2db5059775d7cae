"""A source of several replicas, which only a merge makes one stream."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from anabranch.kernels.merge.settings import REMEMBER, OnBroken
from anabranch.model.other_names import OF_STREAMS, no_attribute
from anabranch.model.output_policy import OutputPolicy, Pace
from anabranch.model.properties import Case
from anabranch.model.validity import Policy
from anabranch.plan.line import users_line
from anabranch.plan.merge import Merge
from anabranch.plan.merge_settings import merge_settings
from anabranch.plan.row_operators import RowOperators
from anabranch.plan.stream import Stream


@dataclass(frozen=True, slots=True, repr=False)
class Replicas(RowOperators):
    """What several replicas send; operators are run on the rows of each."""

    def __repr__(self) -> str:
        return f"<Replicas: {self.node.words()}>"

    def __getattr__(self, name: str) -> Any:
        if not hasattr(Stream, name):
            raise AttributeError(no_attribute("what replicas send", name, dir(Replicas), OF_STREAMS))
        raise AttributeError(
            f"what replicas send has no {name!r} before they are merged; write .merge() before .{name}"
        )

    def merge(
        self,
        *,
        case: Case | str | None = None,
        policy: OutputPolicy | str | None = None,
        pace: Pace = Pace.SLOWEST,
        identity: str | Iterable[str] | None = None,
        remember: int = REMEMBER,
        on_broken: OnBroken | None = None,
        on_late: Policy | None = None,
    ) -> Stream:
        """What the replicas mean together."""
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
        return Stream(Merge(inputs=(self.node,), **settings))
