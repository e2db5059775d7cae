"""A source of several replicas of the changes of a table, which only a merge makes rows."""

from dataclasses import dataclass
from typing import NoReturn

from anabranch.kernels.merge.settings import REMEMBER, OnBroken
from anabranch.model.other_names import OF_STREAMS, no_attribute
from anabranch.model.output_policy import OutputPolicy, Pace
from anabranch.model.properties import Case
from anabranch.model.validity import Policy
from anabranch.plan.line import users_line
from anabranch.plan.merge_changes import MergeChanges
from anabranch.plan.merge_settings import merge_settings
from anabranch.plan.node import PlanError
from anabranch.plan.one_row import policy_of_changes
from anabranch.plan.source import Source
from anabranch.plan.stream import Stream


@dataclass(frozen=True, slots=True, repr=False)
class ReplicasOfChanges:
    """What several replicas say of one table. Its rows are not there yet: operators come after the merge."""

    node: Source

    def __repr__(self) -> str:
        return f"<ReplicasOfChanges: {self.node.words()}>"

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_") or not callable(getattr(Stream, name, None)):
            raise AttributeError(no_attribute("what replicas send", name, dir(ReplicasOfChanges), OF_STREAMS))
        error = PlanError(
            f"operators are run on rows of a table, and {self.node.name!r} has changes of several replicas"
        )
        error.add_note(f"Merge them first: .merge().{name}(…)")
        with users_line().named():
            raise error

    def merge(
        self,
        *,
        case: Case | str | None = None,
        policy: OutputPolicy | str | None = None,
        pace: Pace = Pace.SLOWEST,
        remember: int = REMEMBER,
        on_broken: OnBroken | None = None,
        on_late: Policy | None = None,
    ) -> Stream:
        """The rows of the table, each from the commit that brought it to the one that changed or deleted it.

        A replica may begin with rows of a snapshot: they are there at its time, and since when is for other
        replicas to say. Without a ``policy`` it is the soonest that shows at most one open row for each key:
        `EveryChange`, or of keyed replicas `FollowLeader`.

        >>> import anabranch as ab
        >>> columns = {"op": "string", "at": "int64", "who": "string", "id": "int64", "v": "string"}
        >>> people = ab.source("people", columns, start="at", op="op", key="id", replica="who").merge()
        >>> job, row = people.open(), {"op": "insert", "at": 3, "id": 1, "v": "x"}
        >>> [(one["kind"], one["start"], one["v"]) for one in job.push("people", [row | {"who": "a"}])]
        [('insert', 3, 'x')]
        >>> job.push("people", [row | {"who": "b"}])
        []
        """
        with users_line().named():
            settings = merge_settings(
                case=case,
                policy=policy,
                pace=pace,
                remember=remember,
                on_broken=on_broken,
                on_late=on_late,
            )
            if policy is None:
                settings["policy"] = policy_of_changes(settings["case"], self.node.of_events)
        return Stream(MergeChanges(inputs=(self.node,), **settings))
