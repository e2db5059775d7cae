"""The functions of a user's own aggregate, with the types that they have over the columns of a stream."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from anabranch.expressions.aggregates import Aggregate
from anabranch.expressions.tree import ExpressionError


@dataclass(frozen=True, slots=True)
class OwnFunctions:
    """Functions that are known to give an array of one type, a value for each."""

    lift: Callable[[pa.RecordBatch], Any]
    combine: Callable[[pa.Array, pa.Array], Any]
    finish: Callable[[pa.Array], Any]
    remove: Callable[[pa.Array, pa.Array], Any] | None
    state: pa.DataType
    value: pa.DataType

    @classmethod
    def of(cls, one: Aggregate, schema: pa.Schema) -> "OwnFunctions":
        """Those of an aggregate over rows of a schema; raises where they do not go together."""
        lift, combine, finish, remove = (one.option(name) for name in ("lift", "combine", "finish", "remove"))
        none = pa.RecordBatch.from_arrays([pa.array([], field.type) for field in schema], schema=schema)
        states = _asked("lift", lift, none, count=0)
        for name, function in (("combine", combine), ("remove", remove)):
            if function is not None:
                _asked(name, function, states, states, count=0, kind=states.type)
        values = _asked("finish", finish, states, count=0)
        return cls(lift, combine, finish, remove, states.type, values.type)

    def lifted(self, rows: pa.RecordBatch) -> pa.Array:
        """The state of each row."""
        return _array("lift", self.lift(rows), rows.num_rows, self.state)

    def combined(self, one: pa.Array, other: pa.Array) -> pa.Array:
        """The state of each pair."""
        return _asked("combine", self.combine, one, other, count=len(one), kind=self.state)

    def removed(self, one: pa.Array, other: pa.Array) -> pa.Array:
        """Each state without the other."""
        assert self.remove is not None, "what is removed can be taken away"
        return _asked("remove", self.remove, one, other, count=len(one), kind=self.state)

    def finished(self, states: pa.Array) -> pa.Array:
        """The value of each state."""
        return _array("finish", self.finish(states), len(states), self.value)


def _asked(
    name: str, function: Callable[..., Any], *given: Any, count: int, kind: pa.DataType | None = None
) -> pa.Array:
    try:
        answer = function(*given)
    except Exception as reason:
        error = ExpressionError(f"{name} of an aggregate raised {type(reason).__name__}: {reason}")
        error.add_note(f"It was given {len(given[0])} rows; it is asked with none when a plan is made.")
        raise error from reason
    return _array(name, answer, count, kind)


def _array(name: str, answer: Any, count: int, kind: pa.DataType | None) -> pa.Array:
    """What a function gave, as an array of so many values of a type."""
    if isinstance(answer, pa.ChunkedArray):
        answer = answer.combine_chunks()
    if not isinstance(answer, pa.Array):
        raise ExpressionError(f"{name} of an aggregate gives an Arrow array, not {type(answer).__name__}")
    if len(answer) != count:
        raise ExpressionError(f"{name} of an aggregate gives a value for each, not {len(answer)} for {count}")
    if kind is not None and answer.type != kind:
        raise ExpressionError(f"{name} of an aggregate gives {kind}, as before, not {answer.type}")
    return answer
