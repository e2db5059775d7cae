"""Operators that look at one row at a time, which streams and replicas share."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import pyarrow as pa

from anabranch.expressions.expression import Expression, col, expression, name_of
from anabranch.expressions.tree import Column, Tree
from anabranch.kernels.apply import AnswerError, conformed_answer
from anabranch.model.spelling import did_you_mean
from anabranch.model.zones import zoned_value
from anabranch.plan.apply import Apply
from anabranch.plan.columns import schema_of
from anabranch.plan.filter import Filter
from anabranch.plan.line import users_line
from anabranch.plan.node import Node, PlanError
from anabranch.plan.select import Select


@dataclass(frozen=True, slots=True)
class RowOperators:
    """A node, and what may be made of each of its rows."""

    node: Node

    def filter(self, predicate: Expression, *others: Expression) -> Self:
        """The events that a predicate, or each of several, is true of; null is not true."""
        with users_line().named():
            whole = expression(predicate)
            for one in others:
                whole = whole & expression(one)
        return self._over(Filter(inputs=(self.node,), predicate=whole.tree))

    def select(self, *columns: str | Expression | Sequence[str | Expression], **named: Any) -> Self:
        """Other columns: those that are named, one by one or in a list, and those that expressions make."""
        with users_line().named():
            chosen = [*map(_column, _flat(columns)), *_columns(named)]
        return self._selected(chosen)

    def with_columns(self, *columns: Expression | Sequence[Expression], **named: Any) -> Self:
        """The same columns and more; one of the same name takes the place of the one that was there."""
        with users_line().named():
            made = dict([*map(_column, _flat(columns)), *_columns(named)])
        kept = [(name, made.pop(name, Column(name))) for name in self.node.schema.names]
        return self._selected([*kept, *made.items()])

    def drop(self, *names: str | Sequence[str]) -> Self:
        """All columns but these."""
        dropped = _flat(names)
        self._check_known(dropped)
        return self._selected(
            [(name, Column(name)) for name in self.node.schema.names if name not in dropped]
        )

    def rename(self, names: Mapping[str, str]) -> Self:
        """The same columns under other names."""
        self._check_known(names)
        return self._selected([(names.get(name, name), Column(name)) for name in self.node.schema.names])

    def apply(
        self,
        function: Callable[[pa.RecordBatch], Any] | None = None,
        schema: Any = None,
        *,
        rows: Callable[[dict[str, Any]], Mapping[str, Any]] | None = None,
        keeps: Iterable[str] = (),
        pure: bool = True,
    ) -> Self:
        """What a function gives for a record batch of payloads, a row for each.

        ``schema`` is what it gives (default: what it answers to no rows); ``keeps`` are columns that it
        passes on as they are; ``pure=False`` if two calls may differ. ``rows`` is a function of one row, a
        dict, in the place of one of batches: it is slow, about a microsecond for each value.
        """
        with users_line().named():
            if (function is None) == (rows is None):
                raise PlanError("what is applied is one function, of batches or of rows")
            if rows is not None:
                function = _by_rows(rows, schema)
            assert function is not None
            given = _answer_to_no_rows(function, self.node.schema) if schema is None else schema_of(schema)
        node = Apply(inputs=(self.node,), function=function, given=given, keeps=tuple(keeps), pure=pure)
        return self._over(node)

    def _over(self, node: Node) -> Self:
        return replace(self, node=node)

    def _selected(self, columns: Iterable[tuple[str, Tree]]) -> Self:
        return self._over(Select(inputs=(self.node,), columns=tuple(columns)))

    def _check_known(self, names: Iterable[str]) -> None:
        with users_line().named():
            for name in names:
                if name not in self.node.schema.names:
                    known = self.node.schema.names
                    error = PlanError(f"there is no column {name!r}{did_you_mean(name, known)}")
                    error.add_note(f"The columns are {', '.join(map(repr, known))}.")
                    raise error


def _flat(given: Iterable[Any]) -> list[Any]:
    """What is given one by one or in lists."""
    return [one for item in given for one in (item if isinstance(item, list | tuple) else (item,))]


def _column(given: str | Expression) -> tuple[str, Tree]:
    one = col(given) if isinstance(given, str) else expression(given)
    return name_of(one), one.tree


def _columns(named: Mapping[str, Any]) -> list[tuple[str, Tree]]:
    return [(name, expression(value).tree) for name, value in named.items()]


def _answer_to_no_rows(function: Callable[[pa.RecordBatch], Any], schema: pa.Schema) -> pa.Schema:
    """The columns that a function gives, asked with no rows."""
    nothing = pa.RecordBatch.from_arrays([pa.array([], one.type) for one in schema], schema=schema)
    try:
        return conformed_answer(function(nothing), 0, None).schema.remove_metadata()
    except AnswerError:
        raise
    except Exception as reason:  # whatever a user's function raises
        error = PlanError(f"what columns a function gives is asked with no rows, and it raised {reason!r}")
        error.add_note("Say what it gives: apply(function, {'name': 'type', …}).")
        raise error from reason


def _by_rows(
    function: Callable[[dict[str, Any]], Mapping[str, Any]], schema: Any
) -> Callable[[pa.RecordBatch], pa.RecordBatch]:
    if schema is None:
        error = PlanError("a function of rows says nothing of the columns it gives, and schema is not given")
        error.add_note("Write apply(rows=function, schema={'name': 'type', …}).")
        raise error
    given = schema_of(schema)
    kind = pa.struct(list(given))

    def by_rows(batch: pa.RecordBatch) -> pa.RecordBatch:
        rows = [zoned_value(dict(function(row)), kind) for row in batch.to_pylist()]
        return pa.RecordBatch.from_pylist(rows, schema=given)

    by_rows.__qualname__ = getattr(function, "__qualname__", "rows")
    return by_rows
