"""Replicas of the changes of a table as one stream of its rows: those of each, merged."""

from dataclasses import dataclass
from typing import Any, ClassVar

from anabranch.kernels.kernel import State
from anabranch.kernels.merge.choice import ORDERED, Side
from anabranch.kernels.merge.merge import Merge as MergeKernel
from anabranch.kernels.merge_changes import MergeChanges as Kernel
from anabranch.model.properties import Fact
from anabranch.plan.merge import Merge
from anabranch.plan.node import PlanError
from anabranch.plan.one_row import several_open_rows
from anabranch.plan.source import Source


@dataclass(frozen=True, kw_only=True, eq=False)
class MergeChanges(Merge):
    """The rows of the table whose changes the replicas of a source send."""

    word: ClassVar[str] = "merge_changes"

    @property
    def source(self) -> Source:
        """The source of the changes."""
        node = self.inputs[0]
        assert isinstance(node, Source), "changes are read where they enter"
        return node

    @property
    def table_key(self) -> tuple[str, ...]:
        """The columns that name a row of the table."""
        assert self.source.layout is not None
        return self.source.layout.key or ()

    @property
    def told_apart_by(self) -> tuple[str, ...]:
        """The columns that name a row of the table."""
        return self.table_key

    def for_sinks(self) -> dict[str, Any]:
        """The kind of the policy, and why there may be several open rows of a key, if there may."""
        several = several_open_rows(self.policy, self.case, self.source.of_events)
        return super().for_sinks() | ({} if several is None else {"several_open_rows": several})

    def check(self) -> None:
        """Raise where rows of a table cannot be merged so."""
        if self.case in ORDERED:
            error = PlanError(f"rows of a table end by adjusts, and {self.case.name} has none")
            error.add_note("Let the case be picked, or force R3 or R4.")
            raise error
        super().check()

    def _sides(self) -> dict[str, Side]:
        known = self.source.of_events
        return {"every replica": Side(known, Fact.COMPLETE in known)}

    def operator(self, state: State | None = None) -> Kernel:
        """The kernel."""
        by_time, numbered = self.source.by_time, self.source.is_numbered
        if state is not None:
            return Kernel.load(state, by_time=by_time, numbered=numbered, generalise=self.generalise)
        merge = MergeKernel(
            self.case,
            self.policy_in_ticks,
            pace=self.pace,
            remember=self.remember,
            generalise=self.generalise,
        )
        return Kernel(self.table_key, merge, by_time=by_time, numbered=numbered)

    def settings(self) -> dict[str, str]:
        """What a merge goes by, the key, and what order changes count in."""
        return super().settings() | {"key": str(self.table_key), "by_time": str(self.source.by_time)}

    def meets(self) -> tuple[tuple[str, ...] | None, ...]:
        """The changes of one row; nothing where who leads is told by all changes together."""
        return ((),) if self.policy.needs_all else (self.table_key,)

    def words(self) -> str:
        """The key, the policy and the case."""
        return f"rows of a table by {', '.join(self.table_key)}: {super().words()}"
