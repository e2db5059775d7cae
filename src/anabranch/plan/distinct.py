"""Of point events that are equal and start together one."""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from anabranch.kernels.distinct import Distinct as Kernel
from anabranch.kernels.kernel import State
from anabranch.model.properties import Fact, Properties
from anabranch.model.spelling import did_you_mean
from anabranch.plan.node import Node, PlanError, require


@dataclass(frozen=True, kw_only=True, eq=False)
class Distinct(Node):
    """Every group of equal events once at each start."""

    word: ClassVar[str] = "distinct"

    columns: tuple[str, ...]
    """What events are equal on; those that are not named may differ."""

    def check(self) -> None:
        """Raise where events have lifetimes, a column is not there, or nothing would ever be forgotten."""
        given = self.inputs[0]
        for name in self.columns:
            if name not in given.schema.names:
                error = PlanError(f"there is no column {name!r}{did_you_mean(name, given.schema.names)}")
                error.add_note(f"The columns are {', '.join(map(repr, given.schema.names))}.")
                raise error
        if given.properties.longest != 1:
            error = PlanError(
                f"distinct is of points, which are equal or not; events of ({given.words()}) may last longer"
            )
            error.add_note("Write lasting(1) before it: what counts is then when they start.")
            raise error
        require(
            given,
            Fact.PUNCTUATED,
            "distinct",
            "keeps what the stable has not passed",
            "Give the source disorder=…, or stables in its rows.",
        )

    @property
    def _chooses(self) -> bool:
        """Events of a group may differ, in a column that is not named."""
        return {*self.columns} != {*self.schema.names}

    @cached_property
    def properties(self) -> Properties:
        """A key, and no two that overlap; what is left out changes nothing else where nothing is removed.

        Where events of a group may differ, one that comes later may take the place of one that is out.
        """
        known = self.inputs[0].properties
        if Fact.KEPT in known and not self._chooses:
            facts = known.facts | {Fact.INSERT_ONLY}
        else:
            facts = known.keep(Fact.CLOSED, Fact.PUNCTUATED, Fact.COMPLETE).facts | {Fact.SHRINKING}
        return Properties(facts | {Fact.DISJOINT}, self.columns, 1)

    def operator(self, state: State | None = None) -> Kernel:
        """The kernel."""
        removable, schema = Fact.KEPT not in self.inputs[0].properties, self.schema
        if state is None:
            return Kernel(self.columns, schema, removable=removable)
        return Kernel.load(state, self.columns, schema, removable=removable)

    def meets(self) -> tuple[tuple[str, ...] | None, ...]:
        """What is equal on the columns."""
        return (self.columns,)

    def rests_on_absence(self) -> tuple[bool, ...]:
        """Of events that differ another one stays where one is missing."""
        return (self._chooses,)

    def settings(self) -> dict[str, str]:
        """The columns."""
        return {"columns": str(list(self.columns))}

    def words(self) -> str:
        """On which columns, where that is not all."""
        return f"distinct {', '.join(self.columns)}" if self._chooses else "distinct"
