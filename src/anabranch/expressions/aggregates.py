"""What users write of many rows: aggregates, spelled as Polars spells them.

``col("price").sum()`` computes nothing. It is a value that a plan holds, shows, and runs over windows.

Nulls are as in SQL: they are not looked at, and of nothing but nulls the aggregate is null (a count is 0).
Sums, means and variances are those of the exact numbers, rounded once, so that neither order nor grouping of
rows is seen in them. NaN is greater than every number, and ``-0.0`` is ``0.0``.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any

import pyarrow as pa

from anabranch.expressions.text import text
from anabranch.expressions.tree import ExpressionError, Tree, root_name
from anabranch.expressions.wire import from_wire, to_wire

_t = pa.types


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One value of many rows, to be computed.

    >>> from anabranch.expressions.expression import col
    >>> (col("price") * col("count")).sum().alias("worth")
    (price * count).sum() as worth
    """

    function: str
    argument: Tree | None = None
    """What it is of; None: of the rows themselves."""
    options: tuple[tuple[str, Any], ...] = ()
    name: str | None = None
    """What its column is called; None: as the leftmost column of its argument."""

    def __post_init__(self) -> None:
        if self.function not in _TYPES:
            error = ExpressionError(f"there is no aggregate {self.function!r}")
            error.add_note(f"There are: {', '.join(_TYPES)}.")
            raise error
        if self.argument is None and self.function not in ("count", "aggregate"):
            raise ExpressionError(f"{self.function} is of an expression, and none is given")
        for name, value in self.options:
            _check_option(self.function, name, value)

    def __repr__(self) -> str:
        words = aggregate_text(self)
        return words if self.name is None else f"{words} as {self.name}"

    def alias(self, name: str) -> "Aggregate":
        """The same under another name."""
        return replace(self, name=name)

    @property
    def called(self) -> str:
        """What its column is called."""
        if self.name is not None:
            return self.name
        return self.function if self.argument is None else root_name(self.argument)

    def option(self, name: str) -> Any:
        """What it was told."""
        return dict(self.options)[name]


class Aggregating:
    """The aggregates of an expression, as methods."""

    __slots__ = ()

    tree: Tree
    name: str | None

    def _aggregate(self, function: str, **options: Any) -> Aggregate:
        return Aggregate(function, self.tree, tuple(sorted(options.items())), self.name)

    def count(self) -> Aggregate:
        """How many values there are."""
        return self._aggregate("count")

    def sum(self) -> Aggregate:
        """Their sum: exact for integers and decimals, and of floats the exact sum rounded once."""
        return self._aggregate("sum")

    def mean(self) -> Aggregate:
        """Their sum by their count, rounded once."""
        return self._aggregate("mean")

    def var(self, ddof: int = 1) -> Aggregate:
        """Their variance, rounded once; null of no more than ``ddof`` values."""
        return self._aggregate("var", ddof=ddof)

    def std(self, ddof: int = 1) -> Aggregate:
        """The root of their variance."""
        return self._aggregate("std", ddof=ddof)

    def min(self) -> Aggregate:
        """The least."""
        return self._aggregate("min")

    def max(self) -> Aggregate:
        """The greatest."""
        return self._aggregate("max")

    def first(self) -> Aggregate:
        """The value of the earliest start, and of several at one start the least."""
        return self._aggregate("first")

    def last(self) -> Aggregate:
        """The value of the latest start, and of several at one start the greatest."""
        return self._aggregate("last")

    def n_unique(self) -> Aggregate:
        """How many values differ."""
        return self._aggregate("n_unique")

    def approx_quantile(self, quantile: float, *, error: float = 0.01) -> Aggregate:
        """The value at the place ``quantile * (n - 1)``, rounded down, of all ``n`` in order, from place 0.

        It is within a relative ``error`` of that value. Of two values, the median is the lesser.
        """
        return self._aggregate("approx_quantile", q=quantile, error=error)

    def approx_median(self, *, error: float = 0.01) -> Aggregate:
        """The value in the middle, of an even number the lesser of two, to a relative ``error``."""
        return self.approx_quantile(0.5, error=error)

    def top_k(self, k: int, *, carry: Iterable[str] = ()) -> Aggregate:
        """The ``k`` greatest, in a row each, with their ``rank`` from 1 and carried columns of theirs.

        Of equal values the order is that of the identity of what they carry. Other aggregates beside it are
        said in each row.
        """
        names = (carry,) if isinstance(carry, str) else tuple(carry)
        return self._aggregate("top_k", k=k, carry=names)


def count() -> Aggregate:
    """How many events there are."""
    return Aggregate("count")


def aggregate(
    *,
    lift: Callable[[pa.RecordBatch], Any],
    combine: Callable[[pa.Array, pa.Array], Any],
    finish: Callable[[pa.Array], Any],
    remove: Callable[[pa.Array, pa.Array], Any] | None = None,
) -> Aggregate:
    """An aggregate of one's own, of functions over Arrow arrays.

    ``lift`` gives a state for each row of a record batch, an array of any type; ``combine`` one for each pair
    of states of two arrays, and ``finish`` a value for each state. ``remove`` gives the first of each pair
    without the second, which windows of time need where events may be removed. ``combine`` is associative,
    and over windows of time it does not matter which of a pair is the first. All are pure, and are asked with
    no rows when the plan is made, to know their types.
    """
    given = {"lift": lift, "combine": combine, "finish": finish, "remove": remove}
    return Aggregate("aggregate", None, tuple(given.items()), None)


def aggregate_type(given: Aggregate, kind: pa.DataType | None) -> pa.DataType:
    """The type of an aggregate of values of a type; raises where it has no meaning on them.

    >>> from anabranch.expressions.expression import col
    >>> aggregate_type(col("price").sum(), pa.int32())
    DataType(int64)
    """
    if kind is None:
        return pa.int64()
    decoded = kind.value_type if _t.is_dictionary(kind) else kind
    found = _TYPES[given.function](decoded)
    if found is None:
        error = ExpressionError(
            f"{aggregate_text(given)} is of {_WANTED[given.function]}, and this is {kind}"
        )
        error.add_note("Cast it, for example .cast('float64').")
        raise error
    return found


def aggregate_text(given: Aggregate) -> str:
    """An aggregate in words, without its name."""
    options = ", ".join(_option_text(name, value) for name, value in _said(given))
    if given.argument is None:
        return f"{given.function}({options})"
    words = text(given.argument)
    whole = words.isidentifier() or (words.endswith(")") and words.split("(", 1)[0].isidentifier())
    return f"{words if whole else f'({words})'}.{given.function}({options})"


def aggregate_to_wire(given: Aggregate) -> dict[str, Any]:
    """An aggregate as values that JSON has."""
    if given.function == "aggregate":
        raise ExpressionError("an aggregate of one's own is of functions, which are not written as values")
    said: dict[str, Any] = {"aggregate": given.function}
    if given.argument is not None:
        said["of"] = to_wire(given.argument)
    if given.options:
        said["options"] = dict(given.options)
    return said if given.name is None else said | {"name": given.name}


def aggregate_from_wire(data: Any) -> Aggregate:
    """The aggregate that was written."""
    match data:
        case {"aggregate": str(function), **rest} if not set(rest) - {"of", "options", "name"}:
            said: dict[Any, Any] = dict(rest)
            argument = from_wire(said["of"]) if "of" in said else None
            given = said.get("options", {}).items()
            options = tuple(sorted((name, _listed(value)) for name, value in given))
            return Aggregate(function, argument, options, said.get("name"))
    forms = ", ".join(map(repr, data)) if isinstance(data, dict) else repr(data)
    raise ExpressionError(f"an aggregate has its word, what it is of, options and a name, not {forms}")


def _said(given: Aggregate) -> Iterable[tuple[str, Any]]:
    """The options that are not what they are by themselves, the one without a name first."""
    usual = {"ddof": 1, "error": 0.01, "carry": (), "remove": None}
    said = [one for one in given.options if one[0] not in usual or usual[one[0]] != one[1]]
    return sorted(said, key=lambda one: one[0] not in _FIRST)


_FIRST = ("q", "k")


def _option_text(name: str, value: Any) -> str:
    if callable(value):
        return f"{name}={getattr(value, '__qualname__', type(value).__name__)}"
    said = list(value) if isinstance(value, tuple) else value
    return repr(said) if name in _FIRST else f"{name}={said!r}"


def _listed(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _check_option(function: str, name: str, value: Any) -> None:
    match name:
        case "ddof" if function in ("var", "std"):
            if type(value) is not int or value < 0:
                raise ExpressionError(f"ddof is a whole number from 0 on, not {value!r}")
        case "q" if function == "approx_quantile":
            if not _number(value) or not 0 <= value <= 1:
                raise ExpressionError(f"a quantile is a part from 0 to 1, not {value!r}")
        case "error" if function == "approx_quantile":
            if not _number(value) or not 1e-6 <= value < 1:
                raise ExpressionError(
                    f"the relative error of a quantile is from 0.000001 to below 1, not {value!r}"
                )
        case "k" if function == "top_k":
            if type(value) is not int or not 1 <= value < 2**62:
                raise ExpressionError(
                    f"top_k takes how many, a whole number from 1 on and below 2**62, not {value!r}"
                )
        case "carry" if function == "top_k":
            if not isinstance(value, tuple) or not all(isinstance(one, str) for one in value):
                raise ExpressionError(f"what top_k carries is columns by their names, not {value!r}")
        case "lift" | "combine" | "finish" | "remove" if function == "aggregate":
            if not callable(value) and not (name == "remove" and value is None):
                raise ExpressionError(f"{name} is a function over Arrow arrays, not {value!r}")
        case _:
            raise ExpressionError(f"{function} is not told {name!r}")


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)


def _sum_type(kind: pa.DataType) -> pa.DataType | None:
    if _t.is_integer(kind):
        return pa.uint64() if _t.is_uint64(kind) else pa.int64()
    if _t.is_floating(kind):
        return pa.float64()
    if _t.is_decimal(kind):
        return pa.decimal256(76, kind.scale) if _t.is_decimal256(kind) else pa.decimal128(38, kind.scale)
    return kind if _t.is_duration(kind) else None


def _float_type(kind: pa.DataType) -> pa.DataType | None:
    number = _t.is_integer(kind) or _t.is_floating(kind) or _t.is_decimal(kind)
    return pa.float64() if number else None


def _same_type(kind: pa.DataType) -> pa.DataType | None:
    text_like = _t.is_string(kind) or _t.is_large_string(kind) or _t.is_string_view(kind)
    bytes_like = _t.is_binary(kind) or _t.is_large_binary(kind) or _t.is_binary_view(kind)
    number = _t.is_integer(kind) or _t.is_floating(kind) or _t.is_decimal(kind) or _t.is_boolean(kind)
    timed = _t.is_temporal(kind) and not _t.is_interval(kind)
    return kind if text_like or bytes_like or number or timed else None


def _count_type(kind: pa.DataType) -> pa.DataType | None:
    return pa.int64()


_TYPES: dict[str, Callable[[pa.DataType], pa.DataType | None]] = {
    "count": _count_type,
    "sum": _sum_type,
    "mean": _float_type,
    "var": _float_type,
    "std": _float_type,
    "min": _same_type,
    "max": _same_type,
    "first": _same_type,
    "last": _same_type,
    "n_unique": _count_type,
    "approx_quantile": _float_type,
    "top_k": _same_type,
    "aggregate": _count_type,
}
_NUMBERS, _ORDERED = "numbers", "numbers, truths, times, texts or bytes"
_WANTED = {
    "sum": "numbers or durations",
    "mean": _NUMBERS,
    "var": _NUMBERS,
    "std": _NUMBERS,
    "approx_quantile": _NUMBERS,
    "min": _ORDERED,
    "max": _ORDERED,
    "first": _ORDERED,
    "last": _ORDERED,
    "top_k": _ORDERED,
}
