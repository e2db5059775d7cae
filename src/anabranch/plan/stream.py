"""What a user builds plans with: a stream, and the operators over it as methods.

A stream is a frozen description. Nothing runs until it is opened (`Stream.open`), run (`anabranch.run`) or made
a frame of Spark (`anabranch.spark.frame`).
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa

from anabranch.expressions.expression import Expression, expression, name_of
from anabranch.expressions.tree import Column, Tree
from anabranch.kernels.apply import conformed_answer
from anabranch.model.lifetime import Length, Lifetime, Moment
from anabranch.model.output_policy import FirstThenFinal, OutputPolicy, Pace
from anabranch.model.properties import Case, Properties
from anabranch.model.validity import Policy
from anabranch.plan.alter_lifetime import AlterLifetime
from anabranch.plan.apply import Apply
from anabranch.plan.columns import schema_of
from anabranch.plan.filter import Filter
from anabranch.plan.final import Final
from anabranch.plan.line import users_line
from anabranch.plan.merge import Merge
from anabranch.plan.node import Node, PlanError
from anabranch.plan.named import Named
from anabranch.plan.select import Select
from anabranch.plan.sort import Sort
from anabranch.plan.spans import in_ticks

if TYPE_CHECKING:
    from anabranch.engines.embedded.job import Job

Span: TypeAlias = int | timedelta | str
Value: TypeAlias = Expression | Any


@dataclass(frozen=True, slots=True)
class _Rows:
    """Operators that look at one row at a time, which streams and replicas share."""

    node: Node

    def filter(self, predicate: Expression):  # type: ignore[no-untyped-def]
        """The events that a predicate is true of; null is not true."""
        return replace(self, node=Filter(inputs=(self.node,), predicate=_tree(predicate)))

    def select(self, *columns: str | Expression, **named: Value):  # type: ignore[no-untyped-def]
        """Other columns: those named, and those made by expressions."""
        return self._selected([*map(_named, columns), *((name, _tree(value)) for name, value in named.items())])

    def with_columns(self, *columns: Expression, **named: Value):  # type: ignore[no-untyped-def]
        """The same columns, with more, or with others in the place of those of the same name."""
        made = dict([*map(_named, columns), *((name, _tree(value)) for name, value in named.items())])
        kept = [(name, made.pop(name, Column(name))) for name in self.node.schema.names]
        return self._selected([*kept, *made.items()])

    def drop(self, *names: str):  # type: ignore[no-untyped-def]
        """All columns but these."""
        self._known(names)
        return self._selected([(name, Column(name)) for name in self.node.schema.names if name not in names])

    def rename(self, names: Mapping[str, str]):  # type: ignore[no-untyped-def]
        """The same columns under other names."""
        self._known(names)
        return self._selected([(names.get(name, name), Column(name)) for name in self.node.schema.names])

    def apply(  # type: ignore[no-untyped-def]
        self,
        function: Callable[[pa.RecordBatch], Any] | None = None,
        schema: Any = None,
        *,
        rows: Callable[[dict[str, Any]], dict[str, Any]] | None = None,
        keeps: Iterable[str] = (),
        pure: bool = True,
    ):
        """What a function gives for a record batch of payloads, a row for each.

        ``schema`` is what it gives (default: found out with no rows); ``keeps`` are columns that it passes on
        as they are; ``pure=False`` if two calls may differ. ``rows`` is a function of one row, a dict, which
        is slow: a million rows take seconds where a function of batches takes milliseconds.
        """
        if (function is None) == (rows is None):
            raise PlanError("one function is applied, of batches or of rows")
        if rows is not None:
            function = _by_rows(rows, None if schema is None else schema_of(schema))
        assert function is not None
        given = _given_by(function, self.node.schema) if schema is None else schema_of(schema)
        node = Apply(inputs=(self.node,), function=function, given=given, keeps=tuple(keeps), pure=pure)
        return replace(self, node=node)

    def _selected(self, columns: Iterable[tuple[str, Tree]]):  # type: ignore[no-untyped-def]
        return replace(self, node=Select(inputs=(self.node,), columns=tuple(columns)))

    def _known(self, names: Iterable[str]) -> None:
        with users_line().named():
            for name in names:
                if name not in self.node.schema.names:
                    error = PlanError(f"there is no column {name!r}")
                    error.add_note(f"The columns are {', '.join(map(repr, self.node.schema.names))}.")
                    raise error
