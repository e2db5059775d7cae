"""The same payloads with other lifetimes."""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from anabranch.kernels.alter_lifetime import AlterLifetime as AlterLifetimeStep
from anabranch.kernels.kernel import State
from anabranch.model.lifetime import Lifetime
from anabranch.model.properties import Properties
from anabranch.plan.node import Node


@dataclass(frozen=True, kw_only=True, eq=False)
class AlterLifetime(Node):
    """Every event with the lifetime that is made of its own."""

    word: ClassVar[str] = "alter_lifetime"
    stateless: ClassVar[bool] = True

    lifetime: Lifetime
    called: str
    """How the user said it, such as ``tumble('1 minute')``."""

    @cached_property
    def properties(self) -> Properties:
        """What becomes of facts about times."""
        return self.lifetime.properties(self.inputs[0].properties)

    def operator(self, state: State | None = None) -> AlterLifetimeStep:
        """The step."""
        return AlterLifetimeStep(self.lifetime)

    def settings(self) -> dict[str, str]:
        """The lifetime."""
        return {"lifetime": str(self.lifetime)}

    def words(self) -> str:
        """How the user said it, and what that is."""
        return self.called
