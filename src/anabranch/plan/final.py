"""Only what can never change again."""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from anabranch.kernels.cleanse import Cleanse
from anabranch.kernels.kernel import State
from anabranch.model.properties import Fact, Properties
from anabranch.plan.node import Node, require


@dataclass(frozen=True, kw_only=True, eq=False)
class Final(Node):
    """Every event once its end is final, as an insert."""

    word: ClassVar[str] = "final"
    looks_up: ClassVar[bool] = True

    ordered: bool = False
    """In order of start over the whole stream."""

    def check(self) -> None:
        """Raise where nothing would ever come out."""
        require(
            self.inputs[0],
            Fact.PUNCTUATED,
            "final",
            "gives out what the stable has passed",
            "Give the source disorder=…, or stables in its rows.",
        )

    @cached_property
    def properties(self) -> Properties:
        """No adjusts; in order, and with one order of ties, where that is wanted.

        It is not closed: an end that equals the last stable is not final, and holds the stable at its start.
        """
        known = self.inputs[0].properties
        made = {Fact.INSERT_ONLY}
        if self.ordered:
            made |= {Fact.ORDERED, Fact.DETERMINISTIC_TIES}
        order = {Fact.ORDERED, Fact.STRICTLY_INCREASING, Fact.DETERMINISTIC_TIES, Fact.PERFECT}
        facts = known.facts if self.ordered else known.facts - order
        return Properties(facts - {Fact.CLOSED} | made, known.key, known.longest)

    def operator(self, state: State | None = None) -> Cleanse:
        """The kernel."""
        return Cleanse(ordered=self.ordered) if state is None else Cleanse.load(state)

    def settings(self) -> dict[str, str]:
        """Whether in order."""
        return {"ordered": str(self.ordered)}

    def meets(self) -> tuple[tuple[str, ...] | None, ...]:
        """What is said of one event; all rows where order is of the whole stream."""
        return (() if self.ordered else tuple(self.schema.names),)

    def words(self) -> str:
        """Whether in order."""
        return "final, in order" if self.ordered else "final"
