"""Means and variances from exact sums, each rounded once.

A mean is divided as floats, and what that loses is computed too; only where both leave it open which float is
the nearest, and for sums of more than two floats, fractions decide. Variances are fractions.
"""

from fractions import Fraction
from math import isqrt, nan
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anabranch.kernels.aggregate.column import Slots
from anabranch.kernels.aggregate.decimals import DecimalSums
from anabranch.kernels.aggregate.floats import FloatSums, nearest
from anabranch.kernels.aggregate.integers import IntegerSums

_SPLIT = 2.0**27 + 1
_PLAIN = 2.0**-900, 2.0**900
"""Between these products do not leave the range in which what they lose is known."""


def means(sums: Any, count: NDArray[np.int64], slots: Slots) -> pa.Array:
    """The sums of slots by their counts."""
    null = count == 0
    found = np.zeros(len(slots))
    open_ = np.ones(len(slots), np.bool_)
    pair = _as_two_floats(sums, slots)
    if pair is not None:
        upper, lower, odd = pair
        found, open_ = _divided(upper, lower, np.where(null, 1, count).astype(np.float64))
        open_[odd] = True
    for place in np.flatnonzero(open_ & ~null).tolist():
        special, exact = _exact(sums, int(slots[place]))
        found[place] = nearest(exact / int(count[place])) if special is None else special
    return pa.array(found, mask=null)


def variances(
    sums: Any, squares: Any, count: NDArray[np.int64], slots: Slots, ddof: int, *, root: bool
) -> pa.Array:
    """The variances of slots, or their roots; null of no more than ``ddof`` values."""
    found: list[float | None] = []
    for slot, many in zip(slots.tolist(), count.tolist(), strict=True):
        if many <= ddof:
            found.append(None)
            continue
        special, whole = _exact(sums, slot)
        odd, squared = _exact(squares, slot)
        if special is not None or odd is not None:
            found.append(nan)
            continue
        variance = (squared - whole * whole / many) / (many - ddof)
        found.append(nearest_root(variance) if root else nearest(variance))
    return pa.array(found, pa.float64())


def nearest_root(value: Fraction) -> float:
    """The float that is nearest to the root of an exact number."""
    if not value:
        return 0.0
    shift = max(0, 220 + value.denominator.bit_length() - value.numerator.bit_length())
    shift += shift & 1
    whole, left = divmod(value.numerator << shift, value.denominator)
    root = isqrt(whole)
    inexact = bool(left) or root * root != whole
    return nearest(Fraction(4 * root + inexact, 1 << (shift // 2 + 2)))


def _exact(sums: Any, slot: int) -> tuple[float | None, Fraction]:
    if isinstance(sums, FloatSums):
        return sums.exact(slot)
    (whole,) = sums.exact(np.array([slot], np.int32))
    if isinstance(sums, DecimalSums):
        return None, Fraction(whole, 10 ** (sums.scale * (2 if sums.squares else 1)))
    return None, Fraction(whole)


def _as_two_floats(sums: Any, slots: Slots) -> tuple[NDArray[np.float64], NDArray[np.float64], Any] | None:
    """Sums as two floats each, and where they are more."""
    if isinstance(sums, FloatSums):
        first, second, odd = sums.pairs(slots)
        upper = first + second
        part = upper - first
        return upper, (first - (upper - part)) + (second - part), odd
    if not isinstance(sums, IntegerSums) or sums.unsigned:
        return None
    values, beyond = sums.words(slots)
    upper = values.astype(np.float64)
    large = beyond | (upper >= 2.0**63)
    lower = (values - np.where(large, 0.0, upper).astype(np.int64)).astype(np.float64)
    return upper, lower, np.flatnonzero(large)


def _divided(
    upper: NDArray[np.float64], lower: NDArray[np.float64], by: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Sums of two floats by whole numbers, and where it is open which float is the nearest."""
    with np.errstate(all="ignore"):
        quotient = upper / by
        product, lost = _product(quotient, by)
        more = (((upper - product) - lost) + lower) / by
        found = quotient + more
        rest = more - (found - quotient)
        unit = np.spacing(np.abs(found))
        size = np.abs(found)
        even = np.frexp(size)[0] != 0.5  # below a power of two floats are twice as dense
        plain = (size > _PLAIN[0]) & (size < _PLAIN[1]) & (np.abs(rest) < unit * 0.499) & even
    return np.where(upper == 0, 0.0, found), ~plain & (upper != 0)


def _product(one: NDArray[np.float64], other: NDArray[np.float64]) -> Any:
    """Products and what they lose, exactly (Dekker)."""
    product = one * other
    high, more = _halves(one), _halves(other)
    low, less = one - high, other - more
    return product, ((high * more - product) + high * less + low * more) + low * less


def _halves(values: NDArray[np.float64]) -> Any:
    large = values * _SPLIT
    return large - (large - values)
