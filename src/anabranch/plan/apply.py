"""Other payloads by a function of the user's."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import pyarrow as pa

from anabranch.kernels.apply import Apply as ApplyStep
from anabranch.kernels.kernel import State
from anabranch.model.properties import Fact, Properties
from anabranch.model.spelling import did_you_mean
from anabranch.plan.node import Node, PlanError


@dataclass(frozen=True, kw_only=True, eq=False)
class Apply(Node):
    """What a function gives for the rows of a batch, a row for each."""

    word: ClassVar[str] = "apply"
    stateless: ClassVar[bool] = True

    function: Callable[[pa.RecordBatch], Any]
    given: pa.Schema
    keeps: tuple[str, ...] = ()
    """Columns that it passes on as they are."""
    pure: bool = True
    """It gives the same for the same rows, whenever and however they are cut."""

    def check(self) -> None:
        """Raise where it is said to keep columns that there are not, or may answer an adjust otherwise."""
        for name in self.keeps:
            if name not in self.inputs[0].schema.names or name not in self.given.names:
                both = [one for one in self.inputs[0].schema.names if one in self.given.names]
                meant = did_you_mean(name, both)
                raise PlanError(f"a column that is kept is there before and after, {name!r} is not{meant}")
        if not self.pure and Fact.INSERT_ONLY not in self.inputs[0].properties:
            error = PlanError(
                "a function that may answer otherwise each time makes other events of their adjusts"
            )
            error.add_note(
                "Apply it where the stream has no adjusts: after final(), or to a source of inserts."
            )
            raise error

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns that the function gives."""
        return self.given

    @cached_property
    def properties(self) -> Properties:
        """All that is not about equal payloads; a key where it is kept."""
        known = self.inputs[0].properties
        lost = (
            {Fact.KEYED, Fact.DISJOINT} if self.pure else {Fact.KEYED, Fact.DISJOINT, Fact.DETERMINISTIC_TIES}
        )
        if known.key is not None and {*known.key} <= {*self.keeps}:
            return Properties(known.facts - (lost - {Fact.KEYED}), known.key, known.longest)
        return known.keep(*(fact for fact in known if fact not in lost))

    def operator(self, state: State | None = None) -> ApplyStep:
        """The step."""
        return ApplyStep(self.function, self.schema)

    def settings(self) -> dict[str, str]:
        """The name of the function, as what it does is not known, and what it is declared to give."""
        columns = ", ".join(f"{one.name}: {one.type}" for one in self.given)
        return {
            "function": self._name(),
            "columns": columns,
            "keeps": str(list(self.keeps)),
            "pure": str(self.pure),
        }

    def traced(self, columns: tuple[str, ...]) -> tuple[str, ...] | None:
        """Columns that are kept."""
        return columns if {*columns} <= {*self.keeps} else None

    def words(self) -> str:
        """The name of the function."""
        return f"apply {self._name()}" + ("" if self.pure else ", which may answer otherwise each time")

    def _name(self) -> str:
        return getattr(self.function, "__qualname__", type(self.function).__name__)
