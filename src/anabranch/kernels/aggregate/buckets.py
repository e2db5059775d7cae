"""Quantiles to a relative error: values by the power of a base that they are next to (DDSketch).

With a base of (1 + e) / (1 - e), all values of a bucket are within a relative error of e from its middle
(Masson, Rim and Lee, VLDB 2019). Buckets add up and can be taken from, so a quantile is that of the exact
bag, to the error. Infinities are buckets of their own; NaN is greater than every number, zero is exact.
Integers and decimals that no float is equal to count as the nearest one; no finite value becomes infinite.
"""

import sys
from fractions import Fraction
from math import ceil, exp, inf, isnan, log, log1p, nan
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anabranch.kernels.aggregate.column import Slots, Values
from anabranch.kernels.aggregate.counted import Counted
from anabranch.model.compiled import compiled, inner

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
        bucket = np.empty(len(values.slots), np.int64)
        place_in_buckets(values.floats, self.width, bucket)
        return bucket, bucket

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
        _, bucket, _, count = counted.listed(slots)
        ends = np.cumsum(counted.distinct(slots))
        total = np.diff(np.concatenate([[0], np.cumsum(count)])[ends], prepend=0)
        totals, which = np.unique(total, return_inverse=True)
        parts, whole = part.numerator, part.denominator
        ranks = np.array([parts * (n - 1) // whole for n in totals.tolist()], np.int64)
        chosen = np.zeros(len(slots), np.int64)
        choose_by_rank(ends, bucket, count, ranks[which], chosen)
        buckets, which = np.unique(chosen, return_inverse=True)
        middles = np.array([self.middle(one) for one in buckets.tolist()], np.float64)
        return pa.array(middles[which], mask=total == 0)


@compiled
def place_in_buckets(floats: Any, width: Any, bucket: Any) -> None:
    """Write the bucket of each value."""
    for i in range(len(floats)):
        size = abs(floats[i])
        if isnan(size):
            bucket[i] = _NAN
            continue
        if size == 0:
            bucket[i] = 0
            continue
        power = _INFINITE if size == inf else np.int64(ceil(log(size) / width)) + _SHIFT
        bucket[i] = power if floats[i] > 0 else -power


@compiled
def choose_by_rank(ends: Any, bucket: Any, count: Any, rank: Any, chosen: Any) -> None:
    """Of each slot the bucket whose values have a rank among all of it; what is listed gets its order."""
    begin = np.int64(0)
    for i in range(len(ends)):
        _sort(bucket, count, begin, ends[i])
        before = np.int64(0)
        for at in range(begin, ends[i]):
            before += count[at]
            if before > rank[i]:
                chosen[i] = bucket[at]
                break
        begin = ends[i]


@inner
def _sort(bucket: Any, count: Any, begin: Any, end: Any) -> None:
    """Sort buckets with their counts: a heap, from which the greatest is taken to the end."""
    size = end - begin
    for root in range(size // 2 - 1, -1, -1):
        _sink(bucket, count, begin, root, size)
    for last in range(size - 1, 0, -1):
        one, other = begin, begin + last
        bucket[one], bucket[other] = bucket[other], bucket[one]
        count[one], count[other] = count[other], count[one]
        _sink(bucket, count, begin, np.int64(0), last)


@inner
def _sink(bucket: Any, count: Any, begin: Any, root: Any, size: Any) -> None:
    """Move the value at a place of a heap down to where it belongs."""
    value, copies = bucket[begin + root], count[begin + root]
    at = np.int64(root)
    while 2 * at + 1 < size:
        child = 2 * at + 1
        if child + 1 < size and bucket[begin + child + 1] > bucket[begin + child]:
            child += 1
        if bucket[begin + child] <= value:
            break
        bucket[begin + at], count[begin + at] = bucket[begin + child], count[begin + child]
        at = child
    bucket[begin + at], count[begin + at] = value, copies
