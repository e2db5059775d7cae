"""Times stay what they are from file to file, and are shown as times."""

import json
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from anabranch.cli.main import main

MOMENTS = [datetime(2026, 3, 1, 10, minute, 0, 500_000, tzinfo=UTC) for minute in range(3)]
DAYS = [date(2026, 3, day) for day in (1, 2, 3)]
INSTANT, LOCAL, DATE = pa.timestamp("us", "UTC"), pa.timestamp("us"), pa.date32()


def recorded(path, kind, times):
    """A stream of an insert, an adjust and a stable, as Parquet."""
    first, middle, last = [time.replace(tzinfo=None) if kind == LOCAL else time for time in times]
    table = {
        "kind": ["insert", "adjust", "stable"],
        "start": pa.array([first, first, middle], kind),
        "end": pa.array([None, last, None], kind),
        "old_end": pa.array([None, None, None], kind),
        "v": [1, 1, None],
    }
    pq.write_table(pa.table(table), path)


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")


@pytest.mark.parametrize(
    "path", [["b.arrow"], ["b.jsonl"], ["b.txt"], ["b.arrow", "c.jsonl", "d.txt"]], ids=str
)
@pytest.mark.parametrize(("kind", "times"), [(INSTANT, MOMENTS), (DATE, DAYS)], ids=str)
def test_what_is_converted_and_back_has_the_times_it_had(path, kind, times):
    recorded("a.parquet", kind, times)
    for source, target in zip(["a.parquet", *path], [*path, "z.parquet"], strict=True):
        assert main(["convert", source, target]) == 0
    before, after = pq.read_table("a.parquet"), pq.read_table("z.parquet")
    assert after.schema.field("start").type == kind
    assert after.select(["kind", "start", "end", "v"]) == before.select(["kind", "start", "end", "v"])


def test_local_times_stay_local_where_columns_have_types():
    recorded("a.parquet", LOCAL, MOMENTS)
    for source, target in (("a.parquet", "b.arrow"), ("b.arrow", "c.parquet")):
        assert main(["convert", source, target]) == 0
    assert pq.read_schema("c.parquet").field("start").type == LOCAL


@pytest.mark.parametrize("name", ["a.parquet", "b.jsonl", "b.txt", "b.arrow"])
def test_times_are_shown_as_times(name, capsys):
    recorded("a.parquet", INSTANT, MOMENTS)
    if name != "a.parquet":
        main(["convert", "a.parquet", name])
    capsys.readouterr()
    assert main(["show", name]) == 0
    assert "stable to 2026-03-01 10:01:00.5" in capsys.readouterr().out
    assert main(["show", name, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["frontier"] == "2026-03-01T10:01:00.5Z"
    assert answer["events"][0]["start"] == "2026-03-01T10:00:00.5Z"
    assert main(["show", name, "--history", "--json"]) == 0
    first, *_ = capsys.readouterr().out.splitlines()
    assert (json.loads(first)["start"], json.loads(first)["end"]) == ("2026-03-01T10:00:00.5Z", None)


def test_what_is_merged_has_the_times_of_its_inputs(capsys):
    for name in ("a.parquet", "b.parquet"):
        recorded(name, INSTANT, MOMENTS)
    assert main(["merge", "a.parquet", "b.parquet", "--out", "m.parquet"]) == 0
    assert pq.read_schema("m.parquet").field("start").type == INSTANT
    assert main(["merge", "a.parquet", "b.parquet", "--lag", "30s", "--out", "l.parquet"]) == 0
    stables = [row["start"] for row in pq.read_table("l.parquet").to_pylist() if row["kind"] == "stable"]
    assert stables[0] == MOMENTS[1] - timedelta(seconds=30)


def test_the_summary_of_a_merge_has_times_as_times(capsys):
    for name in ("a.parquet", "b.parquet"):
        recorded(name, INSTANT, MOMENTS)
    assert main(["merge", "a.parquet", "b.parquet", "--out", "m.parquet"]) == 0
    assert "stable until 2026-03-01 10:01:00.5" in capsys.readouterr().err
    assert main(["merge", "a.parquet", "b.parquet", "--out", "m.parquet", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["frontier"] == answer["inputs"]["a"]["frontier"] == "2026-03-01T10:01:00.5Z"


def test_a_difference_is_told_with_its_times(capsys):
    recorded("a.parquet", INSTANT, MOMENTS)
    recorded("b.parquet", INSTANT, [MOMENTS[0], MOMENTS[1], MOMENTS[1]])
    assert main(["diff", "a.parquet", "b.parquet"]) == 1
    assert "[2026-03-01 10:00:00.5, 2026-03-01 10:01:00.5)" in capsys.readouterr().out
    assert main(["diff", "a.parquet", "b.parquet", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["first"]["end"] == "2026-03-01T10:01:00.5Z"


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        (["a.parquet", "a2.parquet", "--lag", "60"], "--lag is 60 without a unit, and times are instants"),
        (["n.txt", "n2.txt", "--lag", "3h"], "--lag is 3 hours, and times are numbers"),
        (["d.parquet", "d2.parquet", "--lag", "3h"], "Give whole days"),
        (
            ["a.parquet", "n.txt"],
            "the times of a.parquet are microseconds since 1970-01-01 UTC, those of n.txt ticks",
        ),
    ],
)
def test_spans_and_clocks_that_do_not_fit_are_refused(arguments, rule, capsys):
    for name in ("a", "a2"):
        recorded(f"{name}.parquet", INSTANT, MOMENTS)
        recorded(f"{name.replace('a', 'd')}.parquet", DATE, DAYS)
        Path(f"{name.replace('a', 'n')}.txt").write_text("+ a [3, 9)\n| 9\n")
    assert main(["merge", *arguments]) == 2
    assert rule in capsys.readouterr().err


def test_lines_on_two_clocks_are_refused_where_they_meet(capsys):
    Path("a.txt").write_text("| 2026-03-01T10:00:00Z\n| 7\n")
    assert main(["show", "a.txt"]) == 2
    assert "on one clock: microseconds since 1970-01-01 UTC, then ticks" in capsys.readouterr().err
