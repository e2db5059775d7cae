"""Aggregates of windows of rows: of each group so many in a row."""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from anabranch.kernels.fold import Settings
from anabranch.kernels.kernel import State
from anabranch.kernels.rows import Rows as Kernel
from anabranch.kernels.rows import RowWindows
from anabranch.model.properties import Fact, Properties
from anabranch.model.time import LONGEST_SPAN
from anabranch.plan.aggregated import Aggregated
from anabranch.plan.node import PlanError

MOST_WINDOWS = 2**20
"""In so many windows of its group a row may be: each is kept, and each is computed."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Rows(Aggregated):
    """Of each window of rows of a group one event, which says their aggregates."""

    word: ClassVar[str] = "rows"
    what: ClassVar[str] = "a window of rows"
    closes: ClassVar[str] = "is filled in the order of times, as the stable passes them"

    windows: RowWindows

    def check(self) -> None:
        """Raise where windows have no rows."""
        for given, what in (
            (self.windows.size, "the size of windows of rows"),
            (self.windows.every, "their hop"),
        ):
            if type(given) is not int or not 1 <= given < LONGEST_SPAN:
                error = PlanError(f"{what} is a number of rows from 1 on and below 2**62, not {given!r}")
                error.add_note("Windows of a length of time are .window(…).")
                raise error
        if self.windows.overlap > MOST_WINDOWS:
            error = PlanError(
                f"a row is in 2**20 windows of rows at most, and with windows of {self.windows.size} from "
                f"every {self.windows.every} rows on it would be in {self.windows.overlap}"
            )
            error.add_note("Each takes memory for each group. Give a greater every, or smaller windows.")
            raise error
        super().check()

    @cached_property
    def properties(self) -> Properties:
        """Inserts, and without groups in order; two windows of a group may begin with rows of one start."""
        known = self.inputs[0].properties
        facts = {fact for fact in (Fact.PUNCTUATED, Fact.COMPLETE) if fact in known} | {Fact.INSERT_ONLY}
        return Properties(frozenset(facts if self.columns else facts | {Fact.ORDERED}))

    def operator(self, state: State | None = None) -> Kernel:
        """The kernel."""
        settings = Settings(
            self.columns,
            self.aggregates,
            self.inputs[0].schema,
            self.schema,
            (self.start is not None, self.end is not None),
        )
        return Kernel(settings, self.windows) if state is None else Kernel.load(settings, self.windows, state)

    def settings(self) -> dict[str, str]:
        """The sizes, groups and aggregates."""
        revisions = str(Fact.INSERT_ONLY not in self.inputs[0].properties)
        sizes = f"size {self.windows.size}, every {self.windows.every}"
        return {"rows": sizes, "revisions": revisions, **self._aggregate_settings()}

    def words(self) -> str:
        """The sizes, the groups and the aggregates."""
        size, every = self.windows.size, self.windows.every
        return f"rows {size}" + ("" if size == every else f" every {every}") + self._what_is_said()
