"""Quantiles to a relative error: values by the power of a base that they are next to (DDSketch).

With a base of (1 + e) / (1 - e), all values of a bucket are within a relative error of e from its middle
(Masson, Rim and Lee, VLDB 2019). Buckets add up and can be taken from, so a quantile is that of the exact
bag, to the error. Infinities are buckets of their own; NaN is greater than every number, zero is exact.
Integers and decimals that no float is equal to count as the nearest one; no finite value becomes infinite.
"""

import sys
from fractions import Fraction
from itertools import pairwise
from math import exp, inf, log, log1p, nan
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anabranch.kernels.aggregate.column import Slots, Values
from anabranch.kernels.aggregate.counted import Counted

_INFINITE, _NAN = 2**40, 2**41
_SHIFT = 2**30
"""Powers are below it for every error that is allowed; with it added, they are above zero."""
_GREATEST = sys.float_info.max


def exact_part(quantile: float) -> Fraction:
    """A quantile as it is written: 0.3 is three tenths, of which no float is the exact value.

    >>> exact_part(0.3) * 10, int(0.29 * 100), int(exact_part(0.29) * 100)
    (Fraction(3, 1), 28, 29)
    """
    return Fraction(str(float(quantile)))


class Buckets:
    """The buckets of a relative error."""

    def __init__(self, error: float) -> None:
        self.error = error
        self.width = log((1 + error) / (1 - error))

    def read(self, values: Values) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The bucket of each value, in the order of values."""
        floats = values.floats
        size = np.abs(floats)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            power = np.ceil(np.log(size) / self.width)
            power = np.where(np.isfinite(power), power, 0).astype(np.int64) + _SHIFT
        power = np.where(np.isinf(size), _INFINITE, np.where(size == 0, 0, power))
        bucket = np.where(np.isnan(floats), _NAN, np.where(floats < 0, -power, power))
        return bucket.astype(np.int64), np.zeros(len(bucket), np.int64)

    def middle(self, bucket: int) -> float:
        """The value that all of a bucket are next to."""
        if bucket == _NAN:
            return nan
        size = abs(bucket)
        if size == 0:
            return 0.0
        if size == _INFINITE:
            return inf if bucket > 0 else -inf
        power = (size - _SHIFT) * self.width + log1p(-self.error)
        found = exp(power) if power < log(_GREATEST) else _GREATEST
        return found if bucket > 0 else -found

    def quantiles(self, counted: Counted, slots: Slots, part: Fraction) -> pa.Array:
        """Of each slot the value whose place in order is that part of the last place, rounded down."""
        place, bucket, _, count = counted.listed(slots)
        found: list[Any] = [None] * len(slots)
        order = np.lexsort((bucket, place))
        place, bucket, count = place[order], bucket[order], count[order]
        cuts = [*np.flatnonzero(np.diff(place, prepend=-1)).tolist(), len(place)]
        for begin, end in pairwise(cuts):
            upto = np.cumsum(count[begin:end])
            rank = part.numerator * (int(upto[-1]) - 1) // part.denominator
            at = int(np.searchsorted(upto, rank, side="right"))
            found[int(place[begin])] = self.middle(int(bucket[begin + at]))
        return pa.array(found, pa.float64())
