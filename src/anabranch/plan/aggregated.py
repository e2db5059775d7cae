"""What all operators have in common that say aggregates of windows, by group."""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import pyarrow as pa

from anabranch.expressions.aggregate_columns import aggregate_columns, columns_read
from anabranch.expressions.aggregates import Aggregate, aggregate_text
from anabranch.expressions.wire import exact_text
from anabranch.model.properties import Fact
from anabranch.model.spelling import did_you_mean
from anabranch.plan.filter import check_ends
from anabranch.plan.node import Node, PlanError, require


@dataclass(frozen=True, kw_only=True, eq=False)
class Aggregated(Node):
    """Of each window and group one event, or one for each rank, which says aggregates."""

    word: ClassVar[str] = "aggregated"
    what: ClassVar[str] = "a window"
    closes: ClassVar[str] = "closes when the stable passes its end"

    columns: tuple[str, ...]
    """The group columns."""
    aggregates: tuple[tuple[str, Aggregate], ...]
    start: str | None = None
    """The column that says when the window starts."""
    end: str | None = None

    def check(self) -> None:
        """Raise where a name is not there or twice, or no window would ever close."""
        require(
            self.inputs[0],
            Fact.PUNCTUATED,
            self.what,
            self.closes,
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
        if len([one for _, one in self.aggregates if one.function == "top_k"]) > 1:
            error = PlanError("a window is said in ranks of one aggregate, and two are given")
            error.add_note("Write a window for each, and join them by group, rank and start.")
            raise error
        names = self.schema.names
        twice = [name for name in names if names.count(name) > 1]
        if twice:
            error = PlanError(f"a name stands for one column, two are called {twice[0]!r}")
            error.add_note("Give one of them another name, with .alias(…) or as a keyword of agg.")
            raise error

    def _check_groups(self) -> None:
        known = self.inputs[0].schema.names
        for name in self.columns:
            if name not in known:
                error = PlanError(f"there is no column {name!r} to group by{did_you_mean(name, known)}")
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
        made = [column for name, one in self.aggregates for column in aggregate_columns(name, one, given)]
        return pa.schema([*groups, *made, *((name, self._bound_type) for name in self._bounds)])

    @property
    def _bound_type(self) -> pa.DataType:
        clock = self.inputs[0].clock
        if clock is None or pa.types.is_integer(clock):
            return pa.int64()
        return pa.date32() if pa.types.is_date(clock) else clock

    @property
    def ranked(self) -> bool:
        """A window and group is said in several rows."""
        return any(one.function == "top_k" for _, one in self.aggregates)

    @property
    def row_key(self) -> tuple[str, ...]:
        """The columns by which what is said of a window is told apart."""
        return (*self.columns, "rank") if self.ranked else self.columns

    def _aggregate_settings(self) -> dict[str, str]:
        made = {f"aggregate {name}": aggregate_text(one) for name, one in self.aggregates}
        for name, one in self.aggregates:
            if one.argument is not None:
                made[f"aggregate {name}, exactly"] = exact_text(one.argument)
        return {"groups": str(list(self.columns)), "bounds": str([self.start, self.end]), **made}

    def meets(self) -> tuple[tuple[str, ...] | None, ...]:
        """Equal groups."""
        return (self.columns,)

    def rests_on_absence(self) -> tuple[bool, ...]:
        """An aggregate of fewer rows is another."""
        return (True,)

    def traced(self, columns: tuple[str, ...]) -> tuple[str, ...] | None:
        """Group columns are those of the input."""
        return columns if {*columns} <= {*self.columns} else None

    @property
    def reads(self) -> tuple[str, ...]:
        """The columns of the input that it looks at."""
        given = self.inputs[0].schema
        read = [name for _, one in self.aggregates for name in columns_read(one, given)]
        return tuple(dict.fromkeys([*self.columns, *read]))

    def _what_is_said(self) -> str:
        by = f" by {', '.join(self.columns)}" if self.columns else ""
        return f"{by}: {', '.join(_words(name, one) for name, one in self.aggregates)}"


def _words(name: str, one: Aggregate) -> str:
    return (
        aggregate_text(one)
        if one.called == name and one.argument is None
        else f"{name} = {aggregate_text(one)}"
    )
