"""Aggregates of sessions: what starts less than a gap after another, by group."""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from anabranch.kernels.fold import Settings
from anabranch.kernels.kernel import State
from anabranch.kernels.session import Session as Kernel
from anabranch.kernels.session import Sessions
from anabranch.model.clock import length_text
from anabranch.model.clock_columns import clock_of
from anabranch.model.properties import Fact, Properties
from anabranch.plan.aggregated import Aggregated
from anabranch.plan.node import PlanError


@dataclass(frozen=True, kw_only=True, eq=False)
class Session(Aggregated):
    """Of each session of a group one event, which says the aggregates of its events."""

    word: ClassVar[str] = "session"
    what: ClassVar[str] = "a session"

    sessions: Sessions

    def check(self) -> None:
        """Raise where the gap has no length."""
        if self.sessions.gap <= 0:
            raise PlanError(f"the gap of sessions is a length of time above 0, not {self.sessions.gap}")
        super().check()

    @cached_property
    def properties(self) -> Properties:
        """A key; inserts, whose lifetimes do not overlap in a group; without groups in order.

        A short session of one group is said before a long one of another that began earlier.
        """
        known = self.inputs[0].properties
        facts = {fact for fact in (Fact.PUNCTUATED, Fact.COMPLETE) if fact in known}
        facts |= {Fact.INSERT_ONLY, Fact.DISJOINT}
        if not self.columns:
            facts.add(Fact.ORDERED)
            if not self.ranked:
                facts.add(Fact.STRICTLY_INCREASING)
        return Properties(frozenset(facts), self.row_key)

    def operator(self, state: State | None = None) -> Kernel:
        """The kernel."""
        settings = Settings(
            self.columns,
            self.aggregates,
            self.inputs[0].schema,
            self.schema,
            (self.start is not None, self.end is not None),
            self._waits,
        )
        return (
            Kernel(settings, self.sessions) if state is None else Kernel.load(settings, self.sessions, state)
        )

    @property
    def _waits(self) -> bool:
        """Rows may be removed, or are looked at in order."""
        own = any(one.function == "aggregate" for _, one in self.aggregates)
        return own or Fact.KEPT not in self.inputs[0].properties

    def settings(self) -> dict[str, str]:
        """The gap, groups and aggregates."""
        revisions = str(Fact.INSERT_ONLY not in self.inputs[0].properties)
        made = self._aggregate_settings()
        return {"gap": str(self.sessions.gap), "revisions": revisions, "waits": str(self._waits), **made}

    def words(self) -> str:
        """The gap, the groups and the aggregates."""
        gap = length_text(self.sessions.gap, clock_of(self.inputs[0].clock))
        return f"session by gaps of {gap}{self._what_is_said()}"
