"""Values that are written into expressions, and the types they take.

A literal takes the type of what it meets, so that ``col("small") + 1`` is as small as the column: integers
take a type of integers, floats or decimals that holds them, floats the width of floats they meet (rounded as
those are), text and bytes the width, moments and lengths of time the unit and zone. A value that does not fit
keeps its own type, and the column is widened instead; so does one whose type was asked for.
"""

from decimal import Decimal
from math import isinf
from typing import Any

import pyarrow as pa

from anabranch.expressions.tree import ExpressionError, Literal
from anabranch.expressions.types import type_named
from anabranch.model.schema import sort_of


def literal(value: Any, dtype: pa.DataType | str | None = None) -> Literal:
    """The literal of a Python value or an Arrow scalar."""
    try:
        if isinstance(value, pa.Scalar):
            asked = value.type if dtype is None else type_named(dtype)
            scalar = value.cast(asked)
        else:
            asked = None if dtype is None else type_named(dtype)
            scalar = _inferred(value) if asked is None else pa.scalar(value, asked)
    except (pa.ArrowException, OverflowError, TypeError, ValueError) as reason:
        if isinstance(reason, ExpressionError):
            raise
        what = "no type of Arrow holds" if dtype is None else f"{dtype} does not hold"
        error = ExpressionError(f"a literal is a value of a type, and {what} {value!r}")
        error.add_note(f"Arrow says: {reason}")
        raise error from None
    if pa.types.is_dictionary(scalar.type):
        scalar = scalar.cast(scalar.type.value_type)
    return Literal(_plain(scalar), scalar.type, asked is None)


def _inferred(value: Any) -> pa.Scalar:
    try:
        return pa.scalar(value)
    except OverflowError:
        unsigned = pa.uint64() if isinstance(value, int) else pa.list_(pa.uint64())
        return pa.scalar(value, unsigned)


def _plain(scalar: pa.Scalar) -> Any:
    """The value of a scalar in Python's plain types, without loss."""
    if not scalar.is_valid:
        return None
    kind = scalar.type
    if pa.types.is_map(kind):
        return tuple((_plain(pair["key"]), _plain(pair["value"])) for pair in scalar.values)
    if sort_of(kind) == "list":
        return tuple(map(_plain, scalar.values))
    if pa.types.is_struct(kind):
        return tuple(_plain(scalar[name]) for name in kind.names)
    if pa.types.is_temporal(kind) and hasattr(scalar, "value"):
        return scalar.value
    return scalar.as_py()


def adapted(scalar: pa.Scalar, met: pa.DataType) -> pa.Scalar:
    """The value in the type of what it meets where that holds it, else as it is.

    >>> adapted(pa.scalar(7), pa.int8()).type, adapted(pa.scalar(700), pa.int8()).type
    (DataType(int8), DataType(int64))
    """
    if pa.types.is_decimal(met) and pa.types.is_integer(scalar.type):
        return pa.scalar(Decimal(scalar.as_py())) if scalar.is_valid else scalar.cast(met)
    goal = _goal(scalar.type, met)
    if goal is None or goal == scalar.type:
        return scalar
    try:
        found = scalar.cast(goal)
    except pa.ArrowInvalid:
        finer = pa.types.is_timestamp(scalar.type) and pa.types.is_timestamp(met)
        return scalar.cast(pa.timestamp(scalar.type.unit, met.tz)) if finer else scalar
    narrowed = pa.types.is_floating(goal) and found.is_valid
    return scalar if narrowed and isinf(found.as_py()) and not isinf(scalar.as_py()) else found


def _goal(dtype: pa.DataType, met: pa.DataType) -> pa.DataType | None:
    """The type that a literal would take, if it fits; None: its own."""
    types = pa.types
    own, other = sort_of(dtype), sort_of(met)
    if types.is_null(dtype):
        return met
    if types.is_integer(dtype) and other == "number":
        return met
    if types.is_floating(dtype) and types.is_floating(met):
        return met
    if own == "duration" and types.is_timestamp(met):
        return pa.duration(met.unit)
    alike = own == other and own in ("text", "binary", "local time", "instant", "duration", "time of day")
    return met if alike else None
