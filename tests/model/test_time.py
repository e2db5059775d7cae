"""Ticks are int64, timestamps are microseconds since 1970-01-01 UTC, and the ends of time are no moments."""

from calendar import timegm
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch import BEGINNING, FOREVER, ticks, timestamp
from anabranch.model.clock import tick_text
from anabranch.model.time import checked_tick

zones = st.integers(-23, 23).map(lambda hours: timezone(timedelta(hours=hours, minutes=30)))
moments = st.datetimes(datetime(2, 1, 1), datetime(9998, 12, 31), timezones=zones)


@given(moments)
def test_ticks_are_microseconds_since_1970_in_utc(moment):
    assert ticks(moment) == timegm(moment.utctimetuple()) * 10**6 + moment.microsecond


@given(moments)
def test_the_timestamp_of_ticks_is_the_moment_they_came_from(moment):
    assert timestamp(ticks(moment)) == moment
    assert timestamp(ticks(moment)).tzinfo is UTC


@pytest.mark.parametrize("end_of_time", [FOREVER, BEGINNING])
def test_the_ends_of_time_are_no_moments(end_of_time):
    assert timestamp(end_of_time) is None


def test_a_naive_datetime_is_refused_with_the_way_out():
    with pytest.raises(
        ValueError, match=r"needs a time zone.*datetime\(2026, 1, 1, 0, 0\) has none"
    ) as caught:
        ticks(datetime(2026, 1, 1))
    assert "timezone.utc" in caught.value.__notes__[0]


@given(moments)
def test_the_ticks_of_iso_text_are_those_of_its_moment(moment):
    assert ticks(moment.isoformat()) == ticks(moment)


@pytest.mark.parametrize(
    ("given", "kind", "rule"),
    [
        ("2026-03-01T10:00:00", ValueError, "needs a time zone .* '2026-03-01T10:00:00' has none"),
        ("yesterday", ValueError, "is ISO 8601, 'yesterday' is not"),
        (1772359200, TypeError, "a datetime or ISO 8601 text, not 1772359200"),
        (None, TypeError, "a datetime or ISO 8601 text, not None"),
    ],
)
def test_what_is_no_point_in_time_is_refused_with_the_way_out(given, kind, rule):
    with pytest.raises(kind, match=rule) as caught:
        ticks(given)
    assert "2026" in caught.value.__notes__[-1]


@given(st.integers(BEGINNING, FOREVER))
def test_every_int64_is_a_tick(tick):
    assert checked_tick(tick, "a start") == tick


@pytest.mark.parametrize("number", [np.int8(-3), np.uint16(7), np.int64(FOREVER), np.uint64(5)])
def test_numpy_integers_become_plain_ints(number):
    tick = checked_tick(number, "a start")
    assert type(tick) is int
    assert tick == number


@pytest.mark.parametrize("number", [FOREVER + 1, BEGINNING - 1, 10**30, np.uint64(2**63)])
def test_a_number_beyond_int64_is_refused_by_name(number):
    with pytest.raises(OverflowError, match=f"^a start is an int64 of ticks, {number} does not fit$"):
        checked_tick(number, "a start")


@pytest.mark.parametrize(
    "wrong", [3.0, True, np.True_, np.float64(3), Decimal(3), "3", None, datetime(2026, 1, 1, tzinfo=UTC)]
)
def test_what_is_no_integer_is_refused_with_the_way_out(wrong):
    with pytest.raises(TypeError, match=r"^a start is an int of ticks, not ") as caught:
        checked_tick(wrong, "a start")
    assert repr(wrong) in str(caught.value)
    assert "anabranch.ticks(moment)" in caught.value.__notes__[0]


@pytest.mark.parametrize(("tick", "text"), [(FOREVER, "∞"), (BEGINNING, "-∞"), (0, "0"), (-7, "-7")])
def test_people_read_infinity_where_time_has_no_end(tick, text):
    assert tick_text(tick) == text
