"""All events of several streams."""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from anabranch.kernels.kernel import State
from anabranch.kernels.union import Union as Kernel
from anabranch.model.properties import Fact, Properties
from anabranch.plan.node import Node


@dataclass(frozen=True, kw_only=True, eq=False)
class Union(Node):
    """Every event of every input, as often as it is there."""

    word: ClassVar[str] = "union"

    @property
    def ports(self) -> tuple[str, ...]:
        """Inputs by their numbers."""
        return tuple(str(n) for n in range(len(self.inputs)))

    @cached_property
    def properties(self) -> Properties:
        """What holds of all, but for order and keys."""
        first, *others = (node.properties for node in self.inputs)
        common = first
        for other in others:
            common &= other
        facts = Fact.INSERT_ONLY, Fact.SHRINKING, Fact.KEPT, Fact.PUNCTUATED, Fact.COMPLETE
        return common.keep(*facts) if others else common

    def operator(self, state: State | None = None) -> Kernel:
        """The kernel."""
        return Kernel(self.ports) if state is None else Kernel.load(state)

    def words(self) -> str:
        """How many streams it is of."""
        return f"union of {len(self.inputs)}"
