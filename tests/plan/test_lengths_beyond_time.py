"""A length that no int64 holds, or that makes no sense, is refused where the plan is built, with its line."""

from datetime import timedelta

import pytest

import anabranch as ab
from anabranch import PlanError, col
from anabranch.expressions.tree import ExpressionError
from anabranch.model.clock import UnitError

LONG = 2**70
ELEMENTS = ab.source("s", {"v": "int64"})


def rows(**options):
    return ab.source("s", {"v": "int64", "at": "int64"}, start="at", **options)


def moments(disorder="1 second"):
    return ab.source("s", {"v": "int64", "at": "timestamp[us, tz=UTC]"}, start="at", disorder=disorder)


@pytest.mark.parametrize(
    "build",
    [
        lambda: ELEMENTS.window(LONG),
        lambda: ELEMENTS.window(4, 2**62),
        lambda: ELEMENTS.session(LONG),
        lambda: ELEMENTS.shift(LONG),
        lambda: ELEMENTS.shift(-LONG),
        lambda: ELEMENTS.lasting(LONG),
        lambda: ELEMENTS.hop(LONG, LONG),
        lambda: ELEMENTS.extend(2**62),
        lambda: ELEMENTS.clip(LONG),
        lambda: ELEMENTS.join(ELEMENTS, within=LONG),
        lambda: ELEMENTS.join(ELEMENTS, within=(-LONG, LONG)),
        lambda: rows(disorder=LONG),
        lambda: rows(disorder=1, duration=LONG),
        lambda: moments(timedelta.max),
        lambda: moments().window("999999999 days"),
    ],
)
def test_a_length_beyond_time_is_refused_with_the_line(build):
    with pytest.raises(UnitError, match=r"is below 2\*\*62 ticks, and .* is not") as refused:
        build()
    assert any(f"In the plan at {__file__}" in note for note in refused.value.__notes__)


def test_counts_of_rows_that_no_int64_holds_are_refused():
    with pytest.raises(
        PlanError, match=r"the size of windows of rows is a number of rows from 1 on and below"
    ):
        ELEMENTS.rows(LONG).agg(ab.count())
    with pytest.raises(ExpressionError, match="a whole number from 1 on and below"):
        col("v").top_k(LONG)


@pytest.mark.parametrize("remember", [LONG, 2**62, -1])
def test_a_merge_that_would_remember_more_than_can_be_counted_is_refused_with_the_line(remember):
    with pytest.raises(PlanError, match=rf"0 final events or more.*2\*\*62, not {remember}") as refused:
        ab.merge(ELEMENTS, remember=remember)
    assert any(f"In the plan at {__file__}" in note for note in refused.value.__notes__)
    with pytest.raises(ValueError, match=rf"0 events or more.*2\*\*62, not {remember}"):
        ab.Merger(remember=remember)


def test_a_row_that_would_be_in_too_many_windows_is_refused_with_the_line():
    with pytest.raises(PlanError, match=r"2\*\*20 windows of rows at most, .* in 1099511627776") as refused:
        ELEMENTS.rows(2**40, 1).agg(ab.count())
    assert any(f"In the plan at {__file__}" in note for note in refused.value.__notes__)
    job = ELEMENTS.rows(2**40).agg(ab.count()).open()
    assert job.push("s", [ab.Insert({"v": 1}, 1, 2), ab.Stable(9)]) == [ab.Stable(1)]


def test_a_time_that_is_never_is_told_in_the_unit_of_the_times():
    with pytest.raises(PlanError, match="from 5 minutes to 0 seconds after left ones, which is never"):
        moments().join(moments(), on="v", within=("-5 minutes", 0))


def test_the_greatest_length_works_at_both_ends_of_time():
    job = ELEMENTS.window(2**62 - 1).agg(ab.count()).open()
    starts = (-(2**63), -(2**63) + 5, 0, 2**63 - 2)
    out = job.push("s", [*(ab.Insert({"v": 1}, at, at + 1) for at in starts), ab.Stable(ab.FOREVER)])
    assert len(out) == 4
