"""Aggregates by themselves: quantiles to their error, decimals of any size, numbered texts."""

from decimal import Decimal
from random import Random

import pyarrow as pa
import pytest
from quick import cases

import anabranch as ab
from anabranch import Adjust, Insert, PlanError, Stable, col
from anabranch.model.time import FOREVER
from anabranch.oracle.aggregates import at_rank


def said(schema, rows, *aggregates, removed=()):
    """What one window says of rows, some of which are removed again."""
    job = ab.source("s", schema).window(1000).agg(*aggregates).open()
    events = [Insert(row, n, n + 1) for n, row in enumerate(rows)]
    job.push("s", events)
    gone = [Adjust(events[n].payload, n, n + 1, n) for n in removed]
    (found, _) = job.push("s", [*gone, Stable(FOREVER)])
    return found.payload


@pytest.mark.parametrize("seed", range(cases(20)))
def test_a_quantile_is_within_its_error_of_the_value_at_its_place(seed):
    random = Random(seed)
    scale = random.choice([1e-200, 1.0, 1e200])
    values = [random.choice([0.0, random.gauss(0, scale), random.expovariate(1) * scale]) for _ in range(200)]
    removed = random.sample(range(200), random.choice([0, 50, 199]))
    q, error = random.choice([0.0, 0.1, 0.5, 0.99, 1.0]), random.choice([0.01, 0.001])
    left = [value for n, value in enumerate(values) if n not in removed]
    rows = [{"x": value} for value in values]
    found = said({"x": "float64"}, rows, col("x").approx_quantile(q, error=error), removed=removed)["x"]
    meant = at_rank(left, q)
    assert abs(found - meant) <= error * abs(meant) * (1 + 1e-9)


def test_decimals_are_summed_exactly_and_refused_beyond_their_precision():
    schema = pa.schema([("d", pa.decimal128(38, 2))])
    large = Decimal("9" * 36 + ".99")
    found = said(schema, [{"d": large}, {"d": Decimal("0.01")}, {"d": large.copy_negate()}], col("d").sum())
    assert found["d"] == Decimal("0.01")
    mean = said(schema, [{"d": Decimal("0.10")}, {"d": Decimal("0.20")}], col("d").mean())
    assert mean["d"] == 0.15
    with pytest.raises(ab.InvalidElementError, match="does not fit"):
        said(schema, [{"d": large}, {"d": large}], col("d").sum())


def test_texts_that_nobody_needs_are_forgotten():
    job = ab.source("s", {"t": "string"}).window(10).agg(col("t").max()).open()
    node = job.passes.flow.stages[-1]
    for step in range(40):
        rows = [Insert({"t": f"{step} {n}"}, 10 * step, 10 * step + 1) for n in range(100)]
        (found, _) = job.push("s", [*rows, Stable(10 * step + 10)])
        assert found.payload["t"] == f"{step} 99"
    (argument,) = node.kernel.aggregation.arguments.values()
    assert len(argument.codes.values) < 2000


def test_what_cannot_be_a_window_is_refused_with_the_way_out():
    stream = ab.source("s", {"k": "string", "n": "int64"})
    with pytest.raises(PlanError, match="above 0"):
        stream.window(0).agg(ab.count())
    with pytest.raises(PlanError, match="no column 'other'"):
        stream.window(5).group_by("other").agg(ab.count())
    with pytest.raises(PlanError, match="two are called 'n'"):
        stream.window(5).agg(col("n").sum(), col("n").max())
    with pytest.raises(PlanError, match="says aggregates"):
        stream.window(5).agg(col("n"))
    with pytest.raises(PlanError, match="'window' or 'slide'"):
        stream.window(5, lifetime="ever")
