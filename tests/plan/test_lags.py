"""The lag of a policy in a plan is in the unit of its times: a length of time, or a number where they are."""

from datetime import UTC, datetime

import pytest

import anabranch as ab
from anabranch.model.clock import UnitError

NINE = datetime(2026, 1, 1, 9, tzinfo=UTC)


def merged(kind: str, lag: object) -> ab.Stream:
    columns = {"at": kind, "who": "string", "v": "string", "word": "string"}
    return ab.source("rows", columns, start="at", kind="word", replica="who").merge(
        policy=ab.HalfFrozen(lag=lag)
    )


def test_a_lag_is_a_length_of_time_where_times_are_timestamps():
    job = merged("timestamp[us, tz=UTC]", "5 minutes").open()
    rows = [
        {"at": NINE.replace(minute=at), "who": "a", "v": "x", "word": word}
        for at, word in ((1, "insert"), (7, "insert"), (9, "stable"))
    ]
    out = job.push("rows", rows)
    assert [(one["kind"], one["start"].minute) for one in out] == [("insert", 1), ("stable", 4)]


def test_a_lag_is_a_number_where_times_are_numbers():
    out = merged("int64", 3).open().push("rows", [{"at": 8, "who": "a", "word": "stable"}])
    assert [(one["kind"], one["start"]) for one in out] == [("stable", 5)]


@pytest.mark.parametrize(
    ("kind", "lag", "words"),
    [
        ("timestamp[us, tz=UTC]", 5, "the lag of the policy is 5 without a unit"),
        ("int64", "5 minutes", "the lag of the policy is 5 minutes, and times are numbers"),
        ("date32", "5 minutes", "the lag of the policy is 5 minutes, and times are days"),
    ],
)
def test_a_lag_in_another_unit_is_refused_where_the_plan_is_made(kind, lag, words):
    with pytest.raises(UnitError, match=words):
        merged(kind, lag)
