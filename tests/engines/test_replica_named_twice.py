"""A row that names its replica is never taken for a row of another one."""

import pytest

import anabranch as ab

COLUMNS = {"v": "int64", "at": "int64", "who": "string"}
ROWS = [{"v": 1, "at": 3, "who": "south"}, {"v": 2, "at": 3, "who": "north"}]


def plan():
    return ab.source("g", COLUMNS, start="at", disorder=1, replica="who", lossy=False).merge()


def test_a_row_of_another_replica_than_the_one_that_is_pushed_is_set_aside():
    aside = ab.Quarantine()
    output = plan().open(on_invalid=aside).push("g", ROWS, replica="north")
    assert [row["v"] for row in output if row["kind"] == "insert"] == [2]
    (violation,) = aside.violations
    assert "sent as one of 'north'" in violation.detail
    assert violation.input == "south"


def test_it_is_raised_before_anything_is_used_where_that_is_asked_for():
    job = plan().open()
    with pytest.raises(ValueError, match="sent as one of 'north'"):
        job.push("g", ROWS, replica="north")
    assert job.status().sources["g"].received == 0


def test_rows_of_a_mapping_name_the_replica_that_they_are_given_for():
    with pytest.raises(ValueError, match="sent as one of 'north'"):
        list(ab.run(plan(), {"g": {"north": ROWS[:1]}}))


def test_rows_that_name_the_replica_that_sends_them_are_used():
    output = plan().open().push("g", ROWS[1:], replica="north")
    assert [row["v"] for row in output if row["kind"] == "insert"] == [2]
