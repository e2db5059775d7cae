"""Aggregates of the events that start in each window, by group."""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import pyarrow as pa

from anabranch.expressions.aggregates import Aggregate, aggregate_text, aggregate_type
from anabranch.expressions.evaluation import type_of
from anabranch.expressions.tree import columns_of
from anabranch.kernels.aggregate.window_times import WindowTimes
from anabranch.kernels.kernel import State
from anabranch.kernels.window import Settings
from anabranch.kernels.window import Window as Kernel
from anabranch.model.clock import length_text
from anabranch.model.clock_columns import clock_of
from anabranch.model.properties import Fact, Properties
from anabranch.plan.filter import check_ends
from anabranch.plan.node import Node, PlanError, require


@dataclass(frozen=True, kw_only=True, eq=False)
class Window(Node):
    """Of each window and group one event, which says the aggregates of what starts in the window."""

    word: ClassVar[str] = "window"

    times: WindowTimes
    columns: tuple[str, ...]
    """The group columns."""
    aggregates: tuple[tuple[str, Aggregate], ...]
    start: str | None = None
    """The column that says when the window starts."""
    end: str | None = None
    early: bool = False
    """What is known of a window is said at once, and corrected until it closes."""

    def check(self) -> None:
        """Raise where windows have no length, a name is not there or twice, or no window would ever close."""
        for length, what in ((self.times.size, "the size of windows"), (self.times.every, "their hop")):
            if length <= 0:
                raise PlanError(f"{what} is a length of time above 0, not {length}")
        require(
            self.inputs[0],
            Fact.PUNCTUATED,
            "a window",
            "closes when the stable passes its end",
            "Give the source disorder=…, or stables in its rows.",
        )
        self._check_groups()
        if not self.aggregates:
            error = PlanError("a window says aggregates, and none is given")
            error.add_note("Write for example .agg(anabranch.count()).")
            raise error
        for _, one in self.aggregates:
            if one.argument is not None:
                check_ends(self.inputs[0], one.argument)
        names = [*self.columns, *(name for name, _ in self.aggregates), *self._bounds]
        twice = [name for name in names if names.count(name) > 1]
        if twice:
            error = PlanError(f"a name stands for one column, two are called {twice[0]!r}")
            error.add_note("Give one of them another name, with .alias(…) or as a keyword of agg.")
            raise error

    def _check_groups(self) -> None:
        known = self.inputs[0].schema.names
        for name in self.columns:
            if name not in known:
                error = PlanError(f"there is no column {name!r} to group by")
                error.add_note(f"The columns are {', '.join(map(repr, known))}.")
                raise error

    @property
    def _bounds(self) -> list[str]:
        return [name for name in (self.start, self.end) if name is not None]

    @cached_property
    def schema(self) -> pa.Schema:
        """Groups, aggregates, and the bounds of the window where they are named."""
        given = self.inputs[0].schema
        groups = [(name, given.field(name).type) for name in self.columns]
        made = [
            (name, aggregate_type(one, None if one.argument is None else type_of(one.argument, given)))
            for name, one in self.aggregates
        ]
        return pa.schema([*groups, *made, *((name, self._bound_type) for name in self._bounds)])

    @property
    def _bound_type(self) -> pa.DataType:
        clock = self.inputs[0].clock
        if clock is None or pa.types.is_integer(clock):
            return pa.int64()
        return pa.date32() if pa.types.is_date(clock) else clock

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
            if not self.columns:
                facts.add(Fact.STRICTLY_INCREASING)
        return Properties(frozenset(facts), self.columns, length)

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
            Fact.KEPT not in self.inputs[0].properties,
        )
        return Kernel(settings) if state is None else Kernel.load(settings, state)

    def settings(self) -> dict[str, str]:
        """Which windows, groups and aggregates."""
        made = {name: aggregate_text(one) for name, one in self.aggregates}
        times = f"size {self.times.size}, every {self.times.every}" + (", slide" if self.times.slide else "")
        removals = {"removals": str(Fact.KEPT not in self.inputs[0].properties)}
        return {"window": times, "groups": ", ".join(self.columns), "early": str(self.early), **removals} | {
            f"aggregate {name}": words for name, words in made.items()
        }

    def meets(self) -> tuple[tuple[str, ...] | None, ...]:
        """Equal groups."""
        return (self.columns,)

    def traced(self, columns: tuple[str, ...]) -> tuple[str, ...] | None:
        """Group columns are those of the input."""
        return columns if {*columns} <= {*self.columns} else None

    @property
    def reads(self) -> tuple[str, ...]:
        """The columns of the input that it looks at."""
        trees = [one.argument for _, one in self.aggregates if one.argument is not None]
        return tuple(dict.fromkeys([*self.columns, *(name for tree in trees for name in columns_of(tree))]))

    def words(self) -> str:
        """The windows, the groups and the aggregates."""
        clock = clock_of(self.inputs[0].clock)
        size, every = (length_text(ticks, clock) for ticks in (self.times.size, self.times.every))
        times = f"window {size}" + ("" if size == every else f" every {every}")
        by = f" by {', '.join(self.columns)}" if self.columns else ""
        made = ", ".join(_words(name, one) for name, one in self.aggregates)
        panes = self.times.size // self.times.pane
        how = f", of {panes} panes" if panes > 1 else ""
        slide = ", said for its last slide" if self.times.slide else ""
        return f"{times}{by}: {made}{how}{slide}{', early' if self.early else ''}"


def _words(name: str, one: Aggregate) -> str:
    return (
        aggregate_text(one)
        if one.called == name and one.argument is None
        else f"{name} = {aggregate_text(one)}"
    )
