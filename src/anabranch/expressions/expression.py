"""What users write: expressions of columns, spelled as Polars spells them.

``col("price") > 100`` computes nothing. It is written down as a tree, which a plan holds, shows and runs.

Arithmetic is checked: a row whose value does not fit, or whose divisor is zero, is refused with the reason.
Floats follow IEEE, so ``/`` of integers, which gives floats, has no such rows. Null is that nobody knows:
arithmetic and comparisons with null are null, ``&`` and ``|`` are where null decides. NaN equals nothing.
"""

import builtins
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, NoReturn

import pyarrow as pa

from anabranch.expressions.aggregates import Aggregating
from anabranch.expressions.functions import arrow_call, checked_call
from anabranch.expressions.literals import literal
from anabranch.expressions.namespaces import Lists, Structs, Texts, Times
from anabranch.expressions.text import text
from anabranch.expressions.tree import Column, End, ExpressionError, Literal, Start, Tree, root_name
from anabranch.expressions.types import type_named
from anabranch.model.other_names import OF_COLUMNS, no_attribute

_CLOSED = {
    "both": ("greater_equal", "less_equal"),
    "left": ("greater_equal", "less"),
    "right": ("greater", "less_equal"),
    "none": ("greater", "less"),
}


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Expression(Aggregating):
    """A value of each row, to be computed. Its operators make expressions of it.

    >>> col("price") * col("count") > 100
    price * count > 100
    """

    tree: Tree
    name: builtins.str | None = None
    """What its column is called; None: as its leftmost column."""

    def __repr__(self) -> builtins.str:
        return text(self.tree) if self.name is None else f"{text(self.tree)} as {self.name}"

    def __bool__(self) -> NoReturn:
        error = TypeError(f"whether {text(self.tree)} is true is known of a row, not of the expression")
        error.add_note("Use & for and, | for or, ~ for not, each comparison in parentheses;")
        error.add_note("is_in([…]) for in, is_between(a, b) for a <= x <= b, when(…).then(…) for if.")
        raise error

    def __getattr__(self, name: builtins.str) -> NoReturn:
        raise AttributeError(no_attribute("a column", name, dir(Expression), OF_COLUMNS))

    def applied(self, function: builtins.str, *others: Any, **options: Any) -> "Expression":
        """A function of this and others, called as this is."""
        args = (self.tree, *(expression(other).tree for other in others))
        return Expression(checked_call(function, args, options), self.name)

    def _onto(self, function: builtins.str, left: Any) -> "Expression":
        return expression(left).applied(function, self)

    def alias(self, name: builtins.str) -> "Expression":
        """The same under another name."""
        return Expression(self.tree, name)

    def cast(self, dtype: pa.DataType | builtins.str, *, strict: bool = True) -> "Expression":
        """The value in another type; fractions and parts of units are cut off.

        A row whose value does not fit is refused, or null where this is not strict.
        """
        return self.applied("cast", to=type_named(dtype), strict=strict)

    def is_null(self) -> "Expression":
        """Whether there is no value."""
        return self.applied("is_null")

    def is_not_null(self) -> "Expression":
        """Whether there is a value."""
        return self.applied("is_valid")

    def fill_null(self, value: Any) -> "Expression":
        """The value, or another where there is none."""
        return self.applied("coalesce", value)

    def is_in(self, other: Collection[Any]) -> "Expression":
        """Whether the value is one of some; null of null."""
        if isinstance(other, builtins.str | bytes | Expression) or not isinstance(other, Collection):
            error = ExpressionError(f"is_in takes a collection of values, not {other!r}")
            error.add_note("Compare columns of a row with == and |.")
            raise error
        values = sorted(other, key=repr) if isinstance(other, set | frozenset) else builtins.list(other)
        return self.applied("one_of", literal(values))

    def is_between(self, lower: Any, upper: Any, closed: builtins.str = "both") -> "Expression":
        """Whether the value is within bounds, of which both, left, right or none belong to it."""
        if closed not in _CLOSED:
            raise ValueError(f"closed is one of {', '.join(_CLOSED)}, not {closed!r}")
        above, below = _CLOSED[closed]
        return self.applied(above, unquoted(lower)).applied(
            "and_kleene", self.applied(below, unquoted(upper))
        )

    def abs(self) -> "Expression":
        """The value without its sign."""
        return self.applied("abs_checked")

    def round(self, decimals: int = 0, mode: builtins.str = "half_to_even") -> "Expression":
        """The value rounded to so many decimals; modes are Arrow's, and two of them Polars'."""
        mode = {"half_away_from_zero": "half_towards_infinity"}.get(mode, mode)
        return self.applied("round", ndigits=decimals, round_mode=mode)

    def floor(self) -> "Expression":
        """The greatest whole number that is not greater."""
        return self.applied("floor")

    def ceil(self) -> "Expression":
        """The least whole number that is not less."""
        return self.applied("ceil")

    def sqrt(self) -> "Expression":
        """The square root; NaN of a number below zero."""
        return self.applied("sqrt")

    @property
    def dt(self) -> Times:
        """Dates and times."""
        return Times(self)

    @property
    def struct(self) -> Structs:
        """Structs."""
        return Structs(self)

    def __add__(self, other: Any) -> "Expression":
        return self.applied("add_checked", other)

    def __radd__(self, other: Any) -> "Expression":
        return self._onto("add_checked", other)

    def __sub__(self, other: Any) -> "Expression":
        return self.applied("subtract_checked", other)

    def __rsub__(self, other: Any) -> "Expression":
        return self._onto("subtract_checked", other)

    def __mul__(self, other: Any) -> "Expression":
        return self.applied("multiply_checked", other)

    def __rmul__(self, other: Any) -> "Expression":
        return self._onto("multiply_checked", other)

    def __truediv__(self, other: Any) -> "Expression":
        return self.applied("true_divide", other)

    def __rtruediv__(self, other: Any) -> "Expression":
        return self._onto("true_divide", other)

    def __floordiv__(self, other: Any) -> "Expression":
        return self.applied("floor_divide", other)

    def __rfloordiv__(self, other: Any) -> "Expression":
        return self._onto("floor_divide", other)

    def __mod__(self, other: Any) -> "Expression":
        return self.applied("floor_modulo", other)

    def __rmod__(self, other: Any) -> "Expression":
        return self._onto("floor_modulo", other)

    def __pow__(self, other: Any) -> "Expression":
        return self.applied("power_checked", other)

    def __rpow__(self, other: Any) -> "Expression":
        return self._onto("power_checked", other)

    def __neg__(self) -> "Expression":
        return self.applied("negate_checked")

    def __invert__(self) -> "Expression":
        return self.applied("invert")

    def __and__(self, other: Any) -> "Expression":
        return self.applied("and_kleene", other)

    def __rand__(self, other: Any) -> "Expression":
        return self._onto("and_kleene", other)

    def __or__(self, other: Any) -> "Expression":
        return self.applied("or_kleene", other)

    def __ror__(self, other: Any) -> "Expression":
        return self._onto("or_kleene", other)

    def __eq__(self, other: Any) -> "Expression":  # type: ignore[override]
        return self.applied("equal", other)

    def __ne__(self, other: Any) -> "Expression":  # type: ignore[override]
        return self.applied("not_equal", other)

    def __lt__(self, other: Any) -> "Expression":
        return self.applied("less", other)

    def __le__(self, other: Any) -> "Expression":
        return self.applied("less_equal", other)

    def __gt__(self, other: Any) -> "Expression":
        return self.applied("greater", other)

    def __ge__(self, other: Any) -> "Expression":
        return self.applied("greater_equal", other)

    __hash__ = None  # type: ignore[assignment]

    # Last: within the class these names are no longer those of the types.

    @property
    def list(self) -> Lists:
        """Lists."""
        return Lists(self)

    @property
    def str(self) -> Texts:
        """Text."""
        return Texts(self)


def col(name: str) -> Expression:
    """The value of a column."""
    if not isinstance(name, str):
        raise ExpressionError(f"a column has a name that is text, not {name!r}")
    return Expression(Column(name))


def lit(value: Any, dtype: pa.DataType | str | None = None) -> Expression:
    """A value that is the same for all rows; it takes the type of what it meets, or has the one given."""
    return Expression(literal(value, dtype))


def start() -> Expression:
    """The start of the event, in ticks."""
    return Expression(Start())


def end() -> Expression:
    """The end of the event, in ticks; only where no end can change."""
    return Expression(End())


def call(function: str, *args: Any, **options: Any) -> Expression:
    """Any scalar function of Arrow, with options as ``pyarrow.compute`` has them.

    >>> call("max_element_wise", col("a"), 0, skip_nulls=False)
    max_element_wise(a, 0, skip_nulls=False)
    """
    given = [unquoted(arg) for arg in args]
    trees = tuple(one.tree for one in given)
    return Expression(arrow_call(function, trees, options), given[0].name if given else None)


def expression(value: Any) -> Expression:
    """An expression as it is, or the literal of a value."""
    if isinstance(value, Expression):
        return value
    return Expression(value if isinstance(value, Literal) else literal(value))


def unquoted(value: Any) -> Expression:
    """The same where text might be meant as a column: it says which."""
    if isinstance(value, str):
        error = ExpressionError(f"text is a column to some and a value to others here: {value!r}")
        error.add_note(f"Write col({value!r}) or lit({value!r}).")
        raise error
    return expression(value)


def name_of(given: Expression) -> str:
    """What the column of an expression is called: its alias, else as its leftmost column.

    >>> name_of(col("price") + 1), name_of((col("price") + 1).alias("more"))
    ('price', 'more')
    """
    return root_name(given.tree) if given.name is None else given.name
