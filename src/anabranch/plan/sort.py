"""Elements in the order of their sync times."""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from anabranch.kernels.kernel import State
from anabranch.kernels.sort import Sort as Kernel
from anabranch.model.properties import Fact, Properties
from anabranch.plan.node import Node, require


@dataclass(frozen=True, kw_only=True, eq=False)
class Sort(Node):
    """The same events, each once the stable has passed its start, in order."""

    word: ClassVar[str] = "sort"

    def check(self) -> None:
        """Raise where nothing would ever come out."""
        require(
            self.inputs[0],
            Fact.PUNCTUATED,
            "a sort",
            "gives out what the stable has passed",
            "Give the source disorder=…, or stables in its rows.",
        )

    @cached_property
    def properties(self) -> Properties:
        """Order, with ties told apart by identity."""
        known = self.inputs[0].properties
        made = {Fact.ORDERED, Fact.DETERMINISTIC_TIES}
        return Properties(known.facts | made, known.key, known.longest)

    def operator(self, state: State | None = None) -> Kernel:
        """The kernel."""
        return Kernel() if state is None else Kernel.load(state)

    def meets(self) -> tuple[tuple[str, ...] | None, ...]:
        """All rows: order is of the whole stream."""
        return ((),)
