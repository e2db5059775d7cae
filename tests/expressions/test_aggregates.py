"""Aggregates are values: they are written and read back, and refuse what has no meaning."""

import json

import pyarrow as pa
import pytest

from anabranch import col, count
from anabranch.expressions.aggregates import (
    Aggregate,
    aggregate_from_wire,
    aggregate_to_wire,
    aggregate_type,
)
from anabranch.expressions.tree import ExpressionError

SOME = [
    count(),
    count().alias("many"),
    col("x").sum(),
    (col("x") * 2 + 1).mean().alias("middle"),
    col("x").var(ddof=0),
    col("x").approx_quantile(0.9, error=0.001),
    col("x").approx_median(),
    col("x").first(),
]


@pytest.mark.parametrize("one", SOME, ids=repr)
def test_what_is_read_back_is_what_was_written(one):
    assert aggregate_from_wire(json.loads(json.dumps(aggregate_to_wire(one)))) == one


def test_they_are_written_as_they_are_said():
    words = ["count()", "count() as many", "x.sum()", "(x * 2 + 1).mean() as middle", "x.var(ddof=0)"]
    assert [repr(one) for one in SOME[:5]] == words
    assert repr(SOME[5]) == "x.approx_quantile(0.9, error=0.001)"


def test_a_column_is_called_as_what_it_is_of_or_as_is_said():
    assert [one.called for one in SOME[:4]] == ["count", "many", "x", "middle"]


@pytest.mark.parametrize(
    ("kind", "found"),
    [
        (pa.int8(), pa.int64()),
        (pa.uint64(), pa.uint64()),
        (pa.float32(), pa.float64()),
        (pa.decimal128(5, 2), pa.decimal128(38, 2)),
        (pa.duration("ms"), pa.duration("ms")),
    ],
)
def test_sums_are_in_the_widest_type_of_their_kind(kind, found):
    assert aggregate_type(col("x").sum(), kind) == found


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: aggregate_type(col("x").sum(), pa.string()), "x.sum.. is of numbers or durations"),
        (lambda: aggregate_type(col("x").min(), pa.list_(pa.int64())), "is of numbers, truths, times"),
        (lambda: Aggregate("product"), "no aggregate 'product'"),
        (lambda: Aggregate("sum"), "sum is of an expression"),
        (lambda: col("x").approx_quantile(2), "from 0 to 1, not 2"),
        (lambda: col("x").approx_quantile(0.5, error=0), "from 0.000001 to below 1, not 0"),
        (lambda: col("x").var(ddof=-1), "from 0 on, not -1"),
        (lambda: aggregate_from_wire({"call": "sum"}), "an aggregate has its word"),
    ],
)
def test_what_has_no_meaning_is_refused(make, words):
    with pytest.raises(ExpressionError, match=words):
        make()
