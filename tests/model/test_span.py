"""How long something is, as people write it."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.model.span import span, span_text


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("90 seconds", timedelta(seconds=90)),
        ("1 second", timedelta(seconds=1)),
        ("  2   Minutes ", timedelta(minutes=2)),
        ("0 hours", timedelta(0)),
        ("5 MILLISECONDS", timedelta(milliseconds=5)),
        ("7 microseconds", timedelta(microseconds=7)),
        ("3 days", timedelta(days=3)),
        ("2 weeks", timedelta(weeks=2)),
        ("5m", timedelta(minutes=5)),
        ("5 min", timedelta(minutes=5)),
        ("10 mins", timedelta(minutes=10)),
        ("3h", timedelta(hours=3)),
        ("90s", timedelta(seconds=90)),
        ("250 ms", timedelta(milliseconds=250)),
        ("40µs", timedelta(microseconds=40)),
        ("5seconds", timedelta(seconds=5)),
        ("1 hour 30 minutes", timedelta(minutes=90)),
        ("1h30m", timedelta(minutes=90)),
        ("1 day, 2 hours", timedelta(hours=26)),
        ("PT5M", timedelta(minutes=5)),
        ("P1DT2H", timedelta(hours=26)),
        ("P2W", timedelta(weeks=2)),
        ("PT0.25S", timedelta(milliseconds=250)),
        ("pt90s", timedelta(seconds=90)),
    ],
)
def test_a_number_and_a_unit_is_a_length_of_time(text, meant):
    assert span(text, "disorder") == meant


@pytest.mark.parametrize("value", [0, 5, timedelta(seconds=3)])
def test_ticks_and_lengths_of_time_stay_as_they_are(value):
    assert span(value, "disorder") is value


REFUSED = """|seconds|5|5 fortnights|-5 seconds|1.5 hours|5M|5 minutes 3|1 hour 2 hours|5 minutes,|P|PT"""


@pytest.mark.parametrize("value", [*REFUSED.split("|"), "PT0.0000001S", "9" * 30 + "s", True, 2.5])
def test_anything_else_is_refused_with_the_units_there_are(value):
    with pytest.raises(ValueError, match=r"^disorder is a number of ticks or a length of time") as error:
        span(value, "disorder")
    assert "'30 seconds'" in error.value.__notes__[0]
    assert "week" in error.value.__notes__[0]


@pytest.mark.parametrize(
    ("text", "unit"),
    [("1 month", "month"), ("2 years", "year"), ("P1M", "month"), ("P1Y2D", "year"), ("3y", "year")],
)
def test_what_has_no_fixed_length_is_refused_by_name(text, unit):
    with pytest.raises(ValueError, match=f"disorder is a length of time, and a {unit} is none") as error:
        span(text, "disorder")
    assert "'30 days'" in error.value.__notes__[0]


@given(st.timedeltas(min_value=timedelta(0)))
def test_a_length_is_read_as_it_is_written(length):
    assert span(span_text(length).replace(",", ""), "disorder") == length


@pytest.mark.parametrize(
    ("length", "text"),
    [
        (timedelta(minutes=1), "1 minute"),
        (timedelta(minutes=5), "5 minutes"),
        (timedelta(hours=26, seconds=1), "1 day 2 hours 1 second"),
        (timedelta(0), "0 seconds"),
        (timedelta(seconds=-90), "-1 minute 30 seconds"),
    ],
)
def test_a_length_is_written_in_words(length, text):
    assert span_text(length) == text
