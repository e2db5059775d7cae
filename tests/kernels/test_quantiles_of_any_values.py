"""Quantiles of nothing, of integers that no float is equal to, and of floats at both ends of their range."""

import sys
from decimal import Decimal
from fractions import Fraction
from random import Random

import pyarrow as pa
import pytest

import anabranch as ab
from anabranch import Insert, Stable, col
from anabranch.expressions.tree import ExpressionError
from anabranch.model.time import FOREVER
from anabranch.oracle.aggregates import at_rank

GREATEST, LEAST, TINIEST = sys.float_info.max, sys.float_info.min, 5e-324
FLOATS = (GREATEST, -GREATEST, GREATEST / 1.001, LEAST, -LEAST, 0.0, -0.0, 1.0, 1e300)
KINDS = {
    pa.float64(): FLOATS,
    pa.int64(): (2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63), 0, 1, 2**62 + 1),
    pa.uint64(): (2**64 - 1, 2**63 + 1, 2**53 + 1, 0),
    pa.decimal128(38, 4): (Decimal("9" * 34 + ".9999"), Decimal("-0.0001"), Decimal(2**53 + 1), Decimal(0)),
}


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("early", [False, True])
def test_a_quantile_is_within_its_error_whatever_the_values_are(kind, early):
    for seed in range(60):
        random = Random(seed)
        error, q = random.choice([1e-6, 0.01, 0.3, 0.999]), random.choice([0.0, 0.5, 1.0])
        values = random.choices([*KINDS[kind], None], k=random.randint(0, 5))
        windows = ab.source("s", {"x": kind}).window(100)
        job = windows.agg(ab.count(), x=col("x").approx_quantile(q, error=error), early=early).open()
        rows = [Insert({} if x is None else {"x": x}, n, n + 1) for n, x in enumerate(values)]
        out = [*job.push("s", rows), *job.push("s", [Stable(FOREVER)])]
        inserted = [one for one in out if isinstance(one, Insert)]
        assert len(inserted) >= bool(values)
        meant = at_rank([x for x in values if x is not None], q)
        if not values:
            continue
        found = inserted[-1].payload.get("x")
        if meant is None:
            assert found is None
        else:
            assert abs(Fraction(found) - Fraction(meant)) <= Fraction(error * (1 + 1e-6)) * abs(
                Fraction(meant)
            )


def test_the_tiniest_floats_stay_themselves_where_the_error_is_small():
    job = ab.source("s", {"x": "float64"}).window(10).agg(col("x").approx_median()).open()
    assert job.push("s", [Insert({"x": TINIEST}, 1, 2), Stable(10)])[0].payload == {"x": TINIEST}


def test_an_error_that_floats_cannot_hold_is_refused():
    with pytest.raises(ExpressionError, match=r"from 0\.000001 to below 1, not 1e-09"):
        col("x").approx_median(error=1e-9)


def test_a_median_of_nulls_alone_is_null_in_both_ways():
    rows = ab.source("s", {"x": "int64"})
    for early in (False, True):
        job = rows.window(10).agg(col("x").approx_median(), early=early).open()
        assert job.push("s", [Insert({}, 1, 2), Stable(10)])[0] == Insert({}, 0, 10)


def test_the_place_of_a_quantile_is_exact_for_all_hundredths():
    parts = {f"q{hundredths}": hundredths for hundredths in range(101)}
    quantiles = {name: col("x").approx_quantile(part / 100, error=0.001) for name, part in parts.items()}
    windows = ab.source("s", {"n": "int64", "x": "int64"}).window(1).group_by("n")
    job = windows.agg(**quantiles).open()
    rows = [Insert({"n": n, "x": x + 1}, 0, 1) for n in range(1, 201) for x in range(n)]
    out = job.push("s", [*rows, Stable(1)])
    assert len(out) == 201
    for one in out[:-1]:
        n = one.payload["n"]
        for name, part in parts.items():
            place = part * (n - 1) // 100
            assert round(one.payload[name]) - 1 == place, f"{name} of {n}"
            assert at_rank(range(n), part / 100) == place
