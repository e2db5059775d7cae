"""Expressions and what they mean, made together: each is written once with `col` and once in plain Python.

A meaning takes a row and gives its value; None is null, and `RefusedError` is raised where the row fails.
Nothing here knows of Arrow but the names of its types.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import floor, inf, isnan, nan
from typing import Any

import numpy as np
from hypothesis import strategies as st

from anabranch.expressions.choice import when
from anabranch.expressions.expression import Expression, call, col, end, lit, start

WIDTHS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
COLUMNS = {
    "a8": "int8",
    "b8": "int8",
    "a16": "int16",
    "a32": "int32",
    "a64": "int64",
    "b64": "int64",
    "x": "double",
    "y": "double",
    "p": "bool",
    "q": "bool",
    "s": "string",
    "t": "string",
}
BY_TYPE = {kind: [name for name, its in COLUMNS.items() if its == kind] for kind in set(COLUMNS.values())}
INTEGERS = list(WIDTHS)


class RefusedError(Exception):
    """A row has no value."""


@dataclass
class Term:
    """An expression, the type of its values, and the value of a row."""

    expression: Expression
    type: str
    of: Callable[[dict[str, Any]], Any]


def values(kind: str) -> st.SearchStrategy[Any]:
    """Values of a type, many of them where things go wrong."""
    if kind in WIDTHS:
        least, greatest = bounds(kind)
        return st.sampled_from([least, least + 1, greatest, -1, 0, 1, 2, 7]) | st.integers(least, greatest)
    if kind == "double":
        return st.sampled_from([0.0, -0.0, 1.5, -2.5, 7.0, 127.9, 2.0**63, -(2.0**63), 1e300, inf, -inf, nan])
    if kind == "bool":
        return st.booleans()
    return st.text("abA ", max_size=4)


def bounds(kind: str) -> tuple[int, int]:
    """The least and the greatest integer of a type."""
    half = 2 ** (WIDTHS[kind] - 1)
    return -half, half - 1


@st.composite
def terms(draw: Any, kind: str | None = None, depth: int = 3) -> Term:
    """Expressions of a type, or of any."""
    kind = kind or draw(st.sampled_from(sorted(BY_TYPE)))
    if depth == 0 or draw(st.integers(0, 5)) == 0:
        return draw(leaves(kind))
    if draw(st.integers(0, 5)) == 0:
        asked, one, other = (
            draw(terms("bool", depth - 1)),
            draw(terms(kind, depth - 1)),
            draw(operand(kind, depth)),
        )
        return Term(
            when(asked.expression).then(one.expression).otherwise(other.expression),
            kind,
            lambda row: one.of(row) if asked.of(row) else other.of(row),
        )
    if draw(st.integers(0, 7)) == 0:
        one, other = draw(terms(kind, depth - 1)), draw(operand(kind, depth))
        return Term(one.expression.fill_null(other.expression), kind, _filled(one.of, other.of))
    return draw({"bool": booleans, "double": floats, "string": texts}.get(kind, integers)(kind, depth))


@st.composite
def leaves(draw: Any, kind: str) -> Term:
    """Columns and lifetimes."""
    if kind == "int64" and draw(st.integers(0, 4)) == 0:
        return draw(
            st.sampled_from(
                [Term(start(), kind, lambda row: row["start"]), Term(end(), kind, lambda row: row["end"])]
            )
        )
    name = draw(st.sampled_from(BY_TYPE[kind]))
    return Term(col(name), kind, lambda row: row[name])


@st.composite
def operand(draw: Any, kind: str, depth: int) -> Term:
    """What stands to the right: an expression or a literal."""
    if draw(st.booleans()):
        return draw(terms(kind, depth - 1))
    value = draw(values(kind) | st.none())
    return Term(lit(value), kind, lambda row: value)


@st.composite
def integers(draw: Any, kind: str, depth: int) -> Term:
    """Arithmetic that stays in a type of integers or is refused."""
    form = draw(st.sampled_from(["+", "-", "*", "//", "%", "neg", "abs", "power", "cast", "widened"]))
    if form == "cast":
        one = draw(terms(draw(st.sampled_from([*INTEGERS, "double"])), depth - 1))
        strict = draw(st.booleans())
        cast = _cast(kind)
        return Term(
            one.expression.cast(kind, strict=strict), kind, _null(cast if strict else _or_null(cast), one.of)
        )
    if form == "widened" and kind != "int8":
        narrow = draw(st.sampled_from(INTEGERS[: INTEGERS.index(kind)]))
        one, other = draw(terms(kind, depth - 1)), draw(terms(narrow, depth - 1))
        return Term(
            one.expression + other.expression, kind, _null(_fits(kind, lambda a, b: a + b), one.of, other.of)
        )
    one = draw(terms(kind, depth - 1))
    if form == "neg":
        return Term(-one.expression, kind, _null(_fits(kind, lambda a: -a), one.of))
    if form == "abs":
        return Term(one.expression.abs(), kind, _null(_fits(kind, abs), one.of))
    if form == "power":
        exponent = draw(st.integers(-1, 3))
        return Term(one.expression**exponent, kind, _null(_fits(kind, lambda a: _power(a, exponent)), one.of))
    other = draw(operand(kind, depth))
    build, mean = {
        "-": (lambda a, b: a - b, lambda a, b: a - b),
        "*": (lambda a, b: a * b, lambda a, b: a * b),
        "//": (lambda a, b: a // b, lambda a, b: a // _divisor(b)),
        "%": (lambda a, b: a % b, lambda a, b: a % _divisor(b)),
    }.get(form, (lambda a, b: a + b, lambda a, b: a + b))
    return Term(build(one.expression, other.expression), kind, _null(_fits(kind, mean), one.of, other.of))


@st.composite
def floats(draw: Any, kind: str, depth: int) -> Term:
    """Arithmetic by IEEE, which never fails."""
    form = draw(st.sampled_from(["+", "-", "*", "/", "//", "%", "int/", "int+", "cast", "floor", "ceil"]))
    if form in ("int/", "int+", "cast"):
        one = draw(terms(draw(st.sampled_from(INTEGERS)), depth - 1))
        if form == "cast":
            return Term(one.expression.cast("float64"), kind, _null(float, one.of))
        if form == "int/":
            two = draw(operand(one.type, depth))
            return Term(
                one.expression / two.expression, kind, _null(_ieee(lambda a, b: a / b), one.of, two.of)
            )
        two = draw(terms("double", depth - 1))
        return Term(one.expression + two.expression, kind, _null(_ieee(lambda a, b: a + b), one.of, two.of))
    one = draw(terms(kind, depth - 1))
    if form in ("floor", "ceil"):
        return Term(getattr(one.expression, form)(), kind, _null(_ieee(getattr(np, form)), one.of))
    other = draw(operand(kind, depth))
    build, mean = {
        "+": (lambda a, b: a + b, lambda a, b: a + b),
        "-": (lambda a, b: a - b, lambda a, b: a - b),
        "*": (lambda a, b: a * b, lambda a, b: a * b),
        "/": (lambda a, b: a / b, lambda a, b: a / b),
        "//": (lambda a, b: a // b, lambda a, b: np.floor(a / b)),
        "%": (lambda a, b: a % b, lambda a, b: a - np.floor(a / b) * b),
    }[form]
    return Term(build(one.expression, other.expression), kind, _null(_ieee(mean), one.of, other.of))


@st.composite
def booleans(draw: Any, kind: str, depth: int) -> Term:
    """Comparisons and what is made of them."""
    form = draw(
        st.sampled_from(["compare", "compare", "&", "|", "~", "is_null", "is_in", "between", "text", "mixed"])
    )
    if form in ("&", "|"):
        one, other = draw(terms(kind, depth - 1)), draw(operand(kind, depth))
        build, mean = (lambda a, b: a & b, _both) if form == "&" else (lambda a, b: a | b, _either)
        return Term(
            build(one.expression, other.expression), kind, lambda row: mean(one.of(row), other.of(row))
        )
    if form == "~":
        one = draw(terms(kind, depth - 1))
        return Term(~one.expression, kind, _null(lambda a: not a, one.of))
    if form == "text":
        one, said = draw(terms("string", depth - 1)), draw(st.text("abA ", min_size=1, max_size=2))
        name, mean = draw(
            st.sampled_from(
                [("starts_with", str.startswith), ("ends_with", str.endswith), ("contains", str.__contains__)]
            )
        )
        return Term(getattr(one.expression.str, name)(said), kind, _null(lambda a: mean(a, said), one.of))
    if form == "mixed":
        one, value = draw(terms(draw(st.sampled_from(INTEGERS)), depth - 1)), draw(values("double"))
        return Term(one.expression < value, kind, _null(lambda a: float(a) < value, one.of))
    sort = draw(st.sampled_from([*INTEGERS, "double", "string"]))
    one = draw(terms(sort, depth - 1))
    if form == "is_null":
        return Term(one.expression.is_null(), kind, lambda row: one.of(row) is None)
    if form == "is_in":
        some = draw(st.lists(values(sort).filter(lambda value: value == value and value != 0), max_size=3))
        return Term(one.expression.is_in(some), kind, _null(lambda a: a in some, one.of))
    other = draw(operand(sort, depth))
    if form == "between":
        low = draw(operand(sort, depth))
        return Term(
            one.expression.is_between(low.expression, other.expression),
            kind,
            lambda row: _both(
                _null(lambda a, b: a >= b, one.of, low.of)(row),
                _null(lambda a, b: a <= b, one.of, other.of)(row),
            ),
        )
    build = draw(
        st.sampled_from(
            [
                lambda a, b: a == b,
                lambda a, b: a != b,
                lambda a, b: a < b,
                lambda a, b: a <= b,
                lambda a, b: a > b,
                lambda a, b: a >= b,
            ]
        )
    )
    return Term(build(one.expression, other.expression), kind, _null(build, one.of, other.of))


@st.composite
def texts(draw: Any, kind: str, depth: int) -> Term:
    """What is made of text."""
    one = draw(terms(kind, depth - 1))
    form = draw(st.sampled_from(["+", "upper", "lower", "slice", "replace", "strip", "greatest"]))
    if form == "+":
        other = draw(operand(kind, depth))
        return Term(one.expression + other.expression, kind, _null(lambda a, b: a + b, one.of, other.of))
    if form == "greatest":
        other = draw(terms(kind, depth - 1))
        built = call("max_element_wise", one.expression, other.expression, skip_nulls=False)
        return Term(built, kind, _null(max, one.of, other.of))
    offset, length = draw(st.integers(-3, 3)), draw(st.none() | st.integers(0, 4))
    build, mean = {
        "upper": (lambda a: a.str.to_uppercase(), str.upper),
        "lower": (lambda a: a.str.to_lowercase(), str.lower),
        "slice": (lambda a: a.str.slice(offset, length), lambda a: _sliced(a, offset, length)),
        "replace": (
            lambda a: a.str.replace_all("(a|A)", "<$1>"),
            lambda a: a.replace("a", "<a>").replace("A", "<A>"),
        ),
        "strip": (lambda a: a.str.strip_chars(), str.strip),
    }[form]
    return Term(build(one.expression), kind, _null(mean, one.of))


def _null(
    mean: Callable[..., Any], *parts: Callable[[dict[str, Any]], Any]
) -> Callable[[dict[str, Any]], Any]:
    """Null where a part is; every part is computed, so that any of them may be refused."""

    def value(row: dict[str, Any]) -> Any:
        given = [part(row) for part in parts]
        return None if None in given else mean(*given)

    return value


def _filled(one: Callable[..., Any], other: Callable[..., Any]) -> Callable[[dict[str, Any]], Any]:
    def value(row: dict[str, Any]) -> Any:
        first, second = one(row), other(row)
        return second if first is None else first

    return value


def _fits(kind: str, mean: Callable[..., int]) -> Callable[..., int]:
    least, greatest = bounds(kind)

    def value(*given: int) -> int:
        found = mean(*given)
        if not least <= found <= greatest:
            raise RefusedError
        return found

    return value


def _ieee(mean: Callable[..., Any]) -> Callable[..., float]:
    def value(*given: float) -> float:
        with np.errstate(all="ignore"):
            return float(mean(*map(np.float64, given)))

    return value


def _cast(kind: str) -> Callable[[float], int]:
    def whole(value: float) -> int:
        if isinstance(value, float) and (isnan(value) or value in (inf, -inf)):
            raise RefusedError
        return floor(value) if value >= 0 else -floor(-value)

    return _fits(kind, whole)


def _or_null(mean: Callable[..., Any]) -> Callable[..., Any]:
    def value(*given: Any) -> Any:
        try:
            return mean(*given)
        except RefusedError:
            return None

    return value


def _power(base: int, exponent: int) -> int:
    if exponent < 0:
        raise RefusedError
    return base**exponent


def _divisor(value: int) -> int:
    if value == 0:
        raise RefusedError
    return value


def _both(one: bool | None, other: bool | None) -> bool | None:
    if one is False or other is False:
        return False
    return None if None in (one, other) else True


def _either(one: bool | None, other: bool | None) -> bool | None:
    if one is True or other is True:
        return True
    return None if None in (one, other) else False


def _sliced(value: str, offset: int, length: int | None) -> str:
    begin = offset if offset >= 0 else len(value) + offset
    stop = len(value) if length is None else begin + length
    return value[max(begin, 0) : max(stop, 0)]
