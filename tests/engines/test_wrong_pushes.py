"""What is pushed in a wrong form, or does not fit, is refused by name and row; the rest is used."""

from datetime import UTC, date, datetime, timedelta

import pyarrow as pa
import pytest

import anabranch as ab
from anabranch import Insert, InvalidElementError, Quarantine, Stable, col
from anabranch.errors import AnabranchError

ELEMENTS = {"room": "string", "level": "int64"}
ROWS = {**ELEMENTS, "at": "int64"}
STAMPED = {**ELEMENTS, "at": "timestamp[us, tz=Europe/Berlin]"}
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def refused(job, source, given):
    with pytest.raises(Exception) as caught:  # noqa: PT011 - which is what is asked
        job.push(source, given)
    return caught.value


def notes(error):
    return "\n".join(error.__notes__)


def of_rows(**more):
    return ab.source("rows", ROWS, start="at", disorder=2, **more)


@pytest.mark.parametrize("given", [None, 3, "abc", b"abc", [None], ["abc"], [3]])
def test_what_is_no_rows_says_so(given):
    error = refused(of_rows().open(), "rows", given)
    assert isinstance(error, TypeError)
    assert "'rows'" in str(error)


@pytest.mark.parametrize("given", [None, 3, "abc"])
def test_what_is_no_elements_says_so(given):
    error = refused(ab.source("rooms", ELEMENTS).open(), "rooms", given)
    assert "elements are pushed to 'rooms'" in str(error)
    assert "anabranch.run" in notes(error)


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        ("int64", 1.5),
        ("int64", float("nan")),
        ("date32", datetime(2026, 1, 1, 12)),
        ("timestamp[ms]", datetime(2026, 1, 1, 12, 0, 0, 5)),
        ("timestamp[us]", 1.5),
        ("list<int64>", [1, 2.5]),
        (pa.struct([("x", pa.int64())]), {"x": 2.5}),
        ("int64", "3"),
        ("int64", 2**70),
        ("string", 3),
    ],
)
def test_a_value_that_would_be_changed_to_fit_its_column_is_refused(dtype, value):
    aside = Quarantine()
    rows = ab.source("rows", {"value": dtype, "at": "int64"}, start="at").open(on_invalid=aside)
    said = rows.push("rows", [{"value": value, "at": 1}, {"value": None, "at": 2}])
    assert [row["start"] for row in said] == [2]
    assert [one.place for one in aside.violations] == ["rows row 1"]
    elements = ab.source("elements", {"value": dtype}).open(on_invalid=aside)
    assert elements.push("elements", [Insert({"value": value}, 1, 2), Stable(1)]) == [Stable(1)]
    assert aside.violations[1].place == "elements element 1"


@pytest.mark.parametrize(
    ("dtype", "value"),
    [("int64", 2.0), ("date32", date(2026, 1, 1)), ("date32", datetime(2026, 1, 1)), ("timestamp[ms]", NOON)],
)
def test_a_value_that_its_column_holds_is_used(dtype, value):
    job = ab.source("elements", {"value": dtype}).open()
    assert job.push("elements", [Insert({"value": value}, 1, 2)])


def test_elements_that_do_not_fit_are_refused_one_by_one():
    aside = Quarantine()
    job = ab.source("rooms", ELEMENTS).open(on_invalid=aside)
    good = Insert({"room": "A", "level": 1}, 1, 2)
    wrong = [Insert({"room": "A", "level": "x"}, 1, 2), Insert({"room": "A", "floor": 2}, 1, 2)]
    assert job.push("rooms", [wrong[0], good, wrong[1], Stable(1)]) == [good, Stable(1)]
    assert [one.place for one in aside.violations] == ["rooms element 1", "rooms element 3"]
    assert "'rooms' has no column 'floor'" in aside.violations[1].message
    error = refused(ab.source("rooms", ELEMENTS).open(), "rooms", [good, wrong[0]])
    assert isinstance(error, AnabranchError)
    assert str(error).startswith("rooms element 2: ")


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"at": "yesterday"}, "column 'at' is timestamp[us, tz=Europe/Berlin], and this row has 'yesterday'"),
        ({"at": NOON, "level": "x"}, "column 'level' is int64, and this row has 'x'"),
        ({"at": NOON, "level": 1.5}, "column 'level' is int64, and this row has 1.5"),
    ],
)
def test_a_row_that_does_not_fit_is_refused_by_its_column_its_value_and_its_replica(row, words):
    aside = Quarantine()
    columns = {**STAMPED, "gateway": "string"}
    source = ab.source("rows", columns, start="at", disorder="1 hour", replica="gateway", lossy=True)
    job = source.merge().open(on_invalid=aside)
    job.push("rows", [{"room": "A", "level": 1, "at": NOON}, row], replica="north")
    (violation,) = aside.violations
    assert (violation.input, violation.place, violation.detail) == ("north", "rows row 2", words)
    assert "an insert, an adjust" not in violation.message
    assert str(refused_of(source.merge().open(), row)) == f"rows row 1: {words}"


def refused_of(job, row):
    with pytest.raises(AnabranchError) as caught:
        job.push("rows", [row], replica="north")
    return caught.value


def test_the_numbers_of_elements_count_those_that_did_not_fit():
    job = ab.source("rooms", ELEMENTS).with_columns(x=col("level") * 2).open(on_invalid=Quarantine())
    job.push("rooms", [Insert({"level": "x"}, 1, 2), Insert({"level": 2}, 1, 2)])
    aside = job.passes.answers.on_invalid
    job.push("rooms", [Insert({"level": "x"}, 1, 2), Insert({"level": 2**62}, 1, 2)])
    assert [one.position or one.place for one in aside.violations] == [
        "rooms element 1",
        4,
        "rooms element 3",
    ]


def test_a_malformed_row_is_named_by_its_source():
    aside = Quarantine()
    of_rows().open(on_invalid=aside).push("rows", [{"room": "A", "level": 1, "at": None}])
    assert aside.violations[0].message.startswith("rows row 1 is malformed")


def test_elements_may_be_pushed_where_rows_are_read():
    job = of_rows().open()
    assert job.push("rows", [Insert({"room": "A", "level": 1}, 7, 9)]) == [
        Insert({"room": "A", "level": 1}, 7, 9),
        Stable(5),
    ]


@pytest.mark.parametrize("word", ["attach", "detach"])
def test_a_source_that_is_of_no_replicas_lets_none_come_or_go(word):
    aside = Quarantine()
    job = ab.source("rows", {**ROWS, "kind": "string"}, start="at", kind="kind").open(on_invalid=aside)
    rows = [{"room": "A", "level": 1, "at": 3, "kind": kind} for kind in (word, "insert", "stable")]
    assert [row["kind"] for row in job.push("rows", rows)] == ["insert", "stable"]
    assert "'rows' is not of replicas" in aside.violations[0].message
    assert aside.violations[0].place == "rows row 1"


def test_times_are_told_as_rows_have_them():
    job = ab.source("rows", STAMPED, start="at", disorder="1 minute").open()
    job.push("rows", [{"room": "A", "level": 1, "at": NOON}])
    late = refused(job, "rows", [{"room": "A", "level": 1, "at": NOON - timedelta(hours=1)}])
    assert "starts at 2026-03-01 12:00:00+01:00, the last stable is 2026-03-01 12:59:00+01:00" in str(late)
    assert "rows: 1 in, stable to 2026-03-01 12:59:00+01:00" in str(job.status())
    assert "output: stable to 2026-03-01 12:59:00+01:00" in str(job.status())


def test_days_are_told_as_days():
    job = ab.source("rows", {"at": "date32"}, start="at", disorder="1 day").open()
    job.push("rows", [{"at": date(2026, 3, 5)}])
    late = refused(job, "rows", [{"at": date(2026, 3, 1)}])
    assert "starts at 2026-03-01, the last stable is 2026-03-04" in str(late)


def test_times_in_the_reason_of_an_operator_are_told_so_too():
    aside = Quarantine()
    stamps = ab.source("rows", STAMPED, start="at", disorder="1 minute").shift("-700000 days")
    stamps.open(on_invalid=aside).push("rows", [{"room": "A", "level": 1, "at": NOON}])
    assert not aside.violations
    taken = ab.source(
        "table", {"id": "int64", "op": "string", "at": "timestamp[us]"}, start="at", op="op", key="id"
    )
    changes = [{"id": 1, "op": "insert", "at": datetime(2026, 3, day)} for day in (1, 2)]
    error = refused(taken.open(), "table", changes)
    assert "has been there since 2026-03-01 00:00:00" in str(error)


def test_an_error_of_an_operator_names_the_line_that_made_it():
    job = of_rows().with_columns(twice=col("level") * 2).open()
    error = refused(job, "rows", [{"level": 2**62, "at": 3}, {"level": 1, "at": 3}])
    assert isinstance(error, InvalidElementError)
    assert "twice=col" in notes(error)
    assert [row["level"] for row in error.output if row["kind"] == "insert"] == [1]


def test_a_null_in_a_key_is_a_value_of_events_and_names_no_row_of_a_table():
    events = ab.source("events", ROWS, start="at", key="room").open()
    assert len(events.push("events", [{"room": None, "level": 1, "at": 1}])) == 1
    aside = Quarantine()
    table = ab.source("table", {**ROWS, "op": "string"}, start="at", op="op", key="room")
    rows = [{"room": room, "level": 1, "at": 1, "op": "insert"} for room in (None, "A")]
    said = table.open(on_invalid=aside).push("table", rows)
    assert [row["room"] for row in said] == ["A"]
    assert "key column 'room' is null" in aside.violations[0].message


def test_a_job_says_what_it_is_of():
    job = of_rows().open()
    assert repr(job) == "<Job: rows to one output>"
    job.close()
    assert repr(job) == "<Job: rows to one output, closed>"
