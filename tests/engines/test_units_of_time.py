"""Columns of seconds and milliseconds: times that come out may be finer, and are in microseconds."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from random import Random

import pyarrow as pa
import pytest

import anabranch as ab
from anabranch import col
from anabranch.plan.stream import Stream

OPERATORS: dict[str, Callable[[Stream, Stream], Stream]] = {
    "filter": lambda one, other: one.filter(col("n") > 1),
    "select": lambda one, other: one.select("k", "n", seen=ab.start()),
    "sort": lambda one, other: one.sort(),
    "final": lambda one, other: one.final(),
    "shift": lambda one, other: one.shift("500 milliseconds"),
    "lasting": lambda one, other: one.lasting("1 millisecond"),
    "distinct": lambda one, other: one.distinct(),
    "union": ab.union,
    "merge": ab.merge,
    "join": lambda one, other: one.join(other, on="k", within="1500 milliseconds"),
    "window": lambda one, other: one.window("1500 milliseconds", start="ws").group_by("k").agg(ab.count()),
    "early window": lambda one, other: one.window("1 second", "300 milliseconds").agg(
        n=ab.count(), early=True
    ),
    "session": lambda one, other: one.session("1500 milliseconds", end="we").agg(col("n").sum()),
    "rows": lambda one, other: one.rows(3).agg(col("n").sum()),
    "top_k": lambda one, other: one.window("2 seconds").agg(col("n").top_k(2, carry=["at_too"])),
}
SECOND = timedelta(seconds=1)
BEGIN = datetime(2026, 3, 1, tzinfo=UTC)


def table(seed: int, dtype: pa.DataType) -> pa.Table:
    random = Random(seed)
    at = [BEGIN + SECOND * (n // 2 + random.randint(0, 2)) for n in range(30)]
    if dtype.tz is None:
        at = [moment.replace(tzinfo=None) for moment in at]
    columns = {"k": [random.choice("ab") for _ in at], "n": [random.randint(0, 4) for _ in at]}
    return pa.table({**columns, "at": pa.array(at, dtype), "at_too": pa.array(at, dtype)})


def out(plan: Callable[[Stream, Stream], Stream], dtype: pa.DataType, seed: int, form: Callable) -> pa.Table:
    """All that comes out of a plan over two sources, pushed in a form piece by piece."""
    given = {name: table(seed + n, dtype) for n, name in enumerate(("one", "other"))}
    one, other = (
        ab.source(name, rows.schema, start="at", payload=["k", "n", "at_too"], disorder="3 seconds")
        for name, rows in given.items()
    )
    job = plan(one, other).open()
    parts = []
    for begin in range(0, 30, 10):
        for name in job.passes.sources:
            said = job.push(name, form(given[name].slice(begin, 10)))
            parts += said if isinstance(said, list) else said.to_pylist()
    said = job.close()
    return parts + (said if isinstance(said, list) else said.to_pylist())


def in_microseconds(rows: list) -> list:
    """Rows with every time as a moment, so that units do not matter."""
    return [
        {name: value if isinstance(value, datetime) else str(value) for name, value in row.items()}
        for row in rows
    ]


@pytest.mark.parametrize("zone", ["UTC", None])
@pytest.mark.parametrize("unit", ["s", "ms"])
@pytest.mark.parametrize("name", OPERATORS)
def test_a_unit_of_time_changes_no_answer(name, unit, zone):
    for form in (lambda rows: rows, lambda rows: rows.to_batches()[0], lambda rows: rows.to_pylist()):
        coarse = out(OPERATORS[name], pa.timestamp(unit, zone), 7, form)
        fine = out(OPERATORS[name], pa.timestamp("us", zone), 7, form)
        assert coarse
        assert in_microseconds(coarse) == in_microseconds(fine)


def test_a_payload_stays_in_its_own_unit_and_lifetimes_are_in_microseconds():
    seconds = pa.timestamp("s", "UTC")
    rows = table(1, seconds)
    source = ab.source("s", rows.schema, start="at", payload=["at_too"], disorder="1 second")
    said = source.open().push("s", rows)
    assert said.schema.field("at_too").type == seconds
    assert {said.schema.field(name).type for name in ("start", "end", "old_end")} == {
        pa.timestamp("us", "UTC")
    }


def test_sources_in_different_units_meet():
    north, south = (
        ab.source(
            name, pa.schema([("at", pa.timestamp(unit, "UTC")), ("k", "string")]), start="at", disorder="1 s"
        )
        for name, unit in (("north", "s"), ("south", "ms"))
    )
    job = ab.union(north, south).open()
    rows = pa.table({"at": pa.array([BEGIN], pa.timestamp("ms", "UTC")), "k": ["a"]})
    assert job.push("south", rows).num_rows == 1


def test_nanoseconds_that_are_no_microseconds_are_refused_by_row():
    stamps = pa.timestamp("ns", "UTC")
    rows = pa.table({"at": pa.array([5_000, 5_001, 7_000], stamps), "k": ["a", "b", "c"]})
    aside: list = []
    source = ab.source(
        "s", rows.schema, start="at", disorder="1 second", on_invalid=ab.Quarantine(aside.append)
    )
    said = source.open().push("s", rows).to_pylist()
    assert [row["k"] for row in said if row["kind"] == "insert"] == ["a", "c"]
    assert [one.rule for one in aside] == [ab.Rule.MALFORMED]
    assert "a time is a microsecond of 64 bits, that of column 'at' is none" in str(aside[0])


def test_seconds_beyond_the_calendar_of_microseconds_are_refused_by_row():
    rows = pa.table({"at": pa.array([1, 2**60, -(2**60), 3], pa.timestamp("s")), "k": list("abcd")})
    aside: list = []
    source = ab.source(
        "s", rows.schema, start="at", disorder="1 second", on_invalid=ab.Quarantine(aside.append)
    )
    said = source.open().push("s", rows).to_pylist()
    assert [row["k"] for row in said if row["kind"] == "insert"] == ["a", "d"]
    assert len(aside) == 2
