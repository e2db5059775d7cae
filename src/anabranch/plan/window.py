"""Aggregates of the events that start in each window, by group."""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from anabranch.expressions.aggregates import aggregate_text
from anabranch.kernels.aggregate.window_times import WindowTimes
from anabranch.kernels.kernel import State
from anabranch.kernels.window import Settings
from anabranch.kernels.window import Window as Kernel
from anabranch.model.clock import length_text
from anabranch.model.clock_columns import clock_of
from anabranch.model.properties import Fact, Properties
from anabranch.plan.aggregated import Aggregated
from anabranch.plan.node import PlanError


@dataclass(frozen=True, kw_only=True, eq=False)
class Window(Aggregated):
    """Of each window and group one event, which says the aggregates of what starts in the window."""

    word: ClassVar[str] = "window"

    times: WindowTimes
    early: bool = False
    """What is known of a window is said at once, and corrected until it closes."""

    def check(self) -> None:
        """Raise where windows have no length, or what is removed cannot be taken back."""
        for length, what in ((self.times.size, "the size of windows"), (self.times.every, "their hop")):
            if length <= 0:
                raise PlanError(f"{what} is a length of time above 0, not {length}")
        super().check()
        for name, one in self.aggregates:
            if one.function == "aggregate" and one.option("remove") is None and self._removals:
                error = PlanError(
                    f"events may be removed here, and {name} = {aggregate_text(one)} cannot take them back"
                )
                error.add_note(
                    "Give it remove=…, or aggregate where none is: after final(), or a source of inserts."
                )
                raise error

    @property
    def _removals(self) -> bool:
        return Fact.KEPT not in self.inputs[0].properties

    @cached_property
    def properties(self) -> Properties:
        """A key, and how long windows are; at the end of a window an insert for each group, in order.

        Without groups no two inserts have one time. Early results are removed and come anew.
        """
        known = self.inputs[0].properties
        facts = {fact for fact in (Fact.PUNCTUATED, Fact.COMPLETE) if fact in known}
        length = self.times.every if self.times.slide else self.times.size
        facts |= {Fact.KEYED, Fact.SHRINKING}
        if length <= self.times.every:
            facts.add(Fact.DISJOINT)
        if not self.early:
            facts |= {Fact.INSERT_ONLY, Fact.ORDERED}
            if not self.row_key:
                facts.add(Fact.STRICTLY_INCREASING)
        return Properties(frozenset(facts), self.row_key, length)

    def operator(self, state: State | None = None) -> Kernel:
        """The kernel."""
        settings = Settings(
            self.times,
            self.columns,
            self.aggregates,
            self.inputs[0].schema,
            self.schema,
            (self.start is not None, self.end is not None),
            self.early,
            self._removals,
        )
        return Kernel(settings) if state is None else Kernel.load(settings, state)

    def settings(self) -> dict[str, str]:
        """Which windows, groups and aggregates."""
        times = f"size {self.times.size}, every {self.times.every}" + (", slide" if self.times.slide else "")
        made = self._aggregate_settings()
        return {"window": times, "early": str(self.early), "removals": str(self._removals), **made}

    def words(self) -> str:
        """The windows, the groups and the aggregates."""
        clock = clock_of(self.inputs[0].clock)
        size, every = (length_text(ticks, clock) for ticks in (self.times.size, self.times.every))
        times = f"window {size}" + ("" if size == every else f" every {every}")
        panes = self.times.panes_in_window
        how = f", of {panes} panes" if panes > 1 else ""
        slide = ", said for its last slide" if self.times.slide else ""
        return f"{times}{self._what_is_said()}{how}{slide}{', early' if self.early else ''}"
