"""Changes of a table as events: a row is there from the commit that brought it to the one that ended it."""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from anabranch.kernels.changes import Changes as Kernel
from anabranch.kernels.kernel import State
from anabranch.model.properties import Fact, Properties
from anabranch.plan.node import Node
from anabranch.plan.source import Source


@dataclass(frozen=True, kw_only=True, eq=False)
class Changes(Node):
    """The rows of the table whose changes a source is of."""

    word: ClassVar[str] = "changes"
    looks_up: ClassVar[bool] = True

    @property
    def source(self) -> Source:
        """The source of the changes."""
        node = self.inputs[0]
        assert isinstance(node, Source), "changes are read where they enter"
        return node

    @property
    def table_key(self) -> tuple[str, ...]:
        """The columns that name a row of the table."""
        assert self.source.layout is not None
        return self.source.layout.key or ()

    @property
    def told_apart_by(self) -> tuple[str, ...]:
        """The columns that name a row of the table."""
        return self.table_key

    @cached_property
    def properties(self) -> Properties:
        """Rows end by adjusts; what was declared is of them, and not of their changes."""
        known = self.source.of_events
        return Properties(known.facts | {Fact.SHRINKING}, known.key, self.source.declared.longest)

    def operator(self, state: State | None = None) -> Kernel:
        """The kernel."""
        by_time, numbered = self.source.by_time, self.source.is_numbered
        if state is not None:
            return Kernel.load(state, by_time=by_time, numbered=numbered)
        return Kernel(self.table_key, by_time=by_time, numbered=numbered)

    def settings(self) -> dict[str, str]:
        """The key, and what order changes count in."""
        return {"key": str(self.table_key), "by_time": str(self.source.by_time)}

    def meets(self) -> tuple[tuple[str, ...] | None, ...]:
        """The changes of one row."""
        return (self.table_key,)

    def words(self) -> str:
        """The key."""
        return f"rows of a table by {', '.join(self.table_key)}"
