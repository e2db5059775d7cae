"""How long something is, as people write it."""

from datetime import timedelta

import pytest

from anabranch.engines.spark.span import span


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
    ],
)
def test_a_number_and_a_unit_is_a_length_of_time(text, meant):
    assert span(text, "disorder") == meant


@pytest.mark.parametrize("value", [None, 0, 5, timedelta(seconds=3)])
def test_ticks_and_lengths_of_time_stay_as_they_are(value):
    assert span(value, "disorder") is value


@pytest.mark.parametrize(
    "value", ["", "seconds", "5", "5 fortnights", "-5 seconds", "1.5 hours", "5seconds", True, 2.5]
)
def test_anything_else_is_refused_with_the_units_there_are(value):
    with pytest.raises(ValueError, match=r"^disorder is a number of ticks or a length of time") as error:
        span(value, "disorder")
    assert "'30 seconds'" in error.value.__notes__[0]
    assert "week" in error.value.__notes__[0]
