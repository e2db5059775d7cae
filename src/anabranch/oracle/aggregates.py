"""Aggregates of values in plain Python: numbers as fractions, everything sorted, rounded once."""

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from math import inf, isinf, isnan, isqrt, nan
from typing import Any

from anabranch.oracle.payload import value_key


def total(values: Sequence[Any]) -> Any:
    """The exact sum; of floats rounded once; None of nothing."""
    if not values:
        return None
    if all(isinstance(value, int) for value in values):
        return sum(values)
    special = _special(values)
    return _rounded(sum(map(Fraction, values), Fraction(0))) if special is None else special


def mean(values: Sequence[Any]) -> float | None:
    """The exact mean, rounded once."""
    if not values:
        return None
    special = _special(values)
    return _rounded(_exact_sum(values) / len(values)) if special is None else special


def variance(values: Sequence[Any], ddof: int = 1) -> float | None:
    """The exact variance, rounded once; None of no more than ``ddof`` values."""
    if len(values) <= ddof:
        return None
    if _special(values) is not None:
        return nan
    return _rounded(_exact_variance(values, ddof))


def deviation(values: Sequence[Any], ddof: int = 1) -> float | None:
    """The root of the exact variance, rounded once."""
    if len(values) <= ddof:
        return None
    if _special(values) is not None:
        return nan
    return _root(_exact_variance(values, ddof))


def least(values: Sequence[Any]) -> Any:
    """The least, where NaN is greater than every number."""
    return _plain(min(values, key=_ordered)) if values else None


def greatest(values: Sequence[Any]) -> Any:
    """The greatest, where NaN is greater than every number."""
    return _plain(max(values, key=_ordered)) if values else None


def first(values: Sequence[tuple[int, Any]]) -> Any:
    """The value of the earliest start, of several the least."""
    begin = min((start for start, _ in values), default=None)
    return least([value for start, value in values if start == begin])


def last(values: Sequence[tuple[int, Any]]) -> Any:
    """The value of the latest start, of several the greatest."""
    begin = max((start for start, _ in values), default=None)
    return greatest([value for start, value in values if start == begin])


def n_unique(values: Sequence[Any]) -> int:
    """How many values differ."""
    return len({value_key(value) for value in values})


def at_rank(values: Sequence[Any], quantile: float) -> Any:
    """The value whose place in order is that part, as it is written, of the last place, rounded down."""
    part = Decimal(repr(float(quantile)))
    return sorted(values, key=_ordered)[int(Fraction(part) * (len(values) - 1))] if values else None


def top_k(values: Sequence[tuple[Any, Any]], k: int) -> list[tuple[Any, Any]]:
    """The greatest values that are not null, first the greatest, each with its tie; of equal ones by tie."""
    ordered = sorted((one for one in values if one[0] is not None), key=lambda one: one[1])
    return sorted(ordered, key=lambda one: _ordered(one[0]), reverse=True)[:k]


def _exact_sum(values: Sequence[Any]) -> Fraction:
    return sum(map(Fraction, values), Fraction(0))


def _exact_variance(values: Sequence[Any], ddof: int) -> Fraction:
    middle = _exact_sum(values) / len(values)
    return sum(((Fraction(value) - middle) ** 2 for value in values), Fraction(0)) / (len(values) - ddof)


def _special(values: Sequence[Any]) -> float | None:
    """What infinities and NaN make of a sum; None where there are none."""
    odd = [value for value in values if isinstance(value, float) and (isnan(value) or isinf(value))]
    if not odd:
        return None
    return nan if any(isnan(value) for value in odd) or len(set(odd)) > 1 else odd[0]


def _rounded(value: Fraction) -> float:
    try:
        return float(value)
    except OverflowError:
        return inf if value > 0 else -inf


def _root(value: Fraction) -> float:
    """The root of a fraction, rounded once, from a whole root with many bits more than a float has."""
    if not value:
        return 0.0
    shift = max(0, 240 - value.numerator.bit_length() + value.denominator.bit_length())
    shift += shift % 2
    scaled = (value.numerator << shift) // value.denominator
    root = isqrt(scaled)
    exact = root * root == scaled and scaled * value.denominator == value.numerator << shift
    return _rounded(Fraction(2 * root + (not exact), 2 << (shift // 2)))


def _ordered(value: Any) -> Any:
    if isinstance(value, float) and isnan(value):
        return (1, 0)
    return (0, value)


def _plain(value: Any) -> Any:
    return value + 0.0 if isinstance(value, float) else value
