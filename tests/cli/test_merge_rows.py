"""`anabranch merge` of files of plain rows, as a person or a script meets it."""

import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from anabranch import Relation, read
from anabranch.cli.main import main

AT = "2026-03-01T10:{:02}:00Z"
NORTH = "at,room,level\n" + "".join(f"{AT.format(n)},A,{n}\n" for n in (0, 1, 3, 4, 9))
SOUTH = "at,room,level\n" + "".join(f"{AT.format(n)},A,{n}\n" for n in (0, 2, 3, 4, 9))
ROWS = ["--start", "at", "--duration", "5 minutes", "--disorder", "1 minute"]


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("north.csv").write_text(NORTH)
    Path("south.csv").write_text(SOUTH)
    return tmp_path


def levels(path: str) -> list[int]:
    relation = Relation()
    for batch in read(path):
        relation.apply(batch)
    return sorted(event.payload["level"] for event in relation.events())


def merge(*arguments: str) -> int:
    return main(["merge", *arguments])


def test_rows_that_one_of_two_files_lacks_are_filled_and_counted(folder, capsys):
    assert merge("north.csv", "south.csv", *ROWS, "--lossy", "all", "-o", "merged.parquet") == 0
    assert levels("merged.parquet") == [0, 1, 2, 3, 4, 9]
    assert pq.read_schema("merged.parquet").field("start").type == pa.timestamp("us", "UTC")
    lines = capsys.readouterr().err.splitlines()
    types = "at timestamp[us, tz=UTC], room string, level int64"
    assert lines[0] == f"anabranch: columns of north.csv, south.csv, by their first 1,000 rows: {types}"
    assert any(line.startswith("input") and "holes  filled" in line for line in lines)
    assert merge("north.csv", "south.csv", *ROWS, "--lossy", "all", "--json", "-o", "merged.parquet") == 0
    inputs = json.loads(capsys.readouterr().out)["inputs"]
    assert [(one["holes"], one["filled"]) for one in inputs.values()] == [(1, 1), (1, 1)]


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet", "arrow"])
def test_rows_of_every_format_are_merged(folder, capsys, ending):
    rows = pa.Table.from_pylist([{"at": AT.format(n), "room": "A", "level": n} for n in (0, 2, 3, 4, 9)])
    typed = rows.set_column(0, "at", rows["at"].cast(pa.timestamp("us", "UTC")))
    match ending:
        case "csv":
            Path("south.csv").write_text(SOUTH)
        case "jsonl":
            Path("south.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows.to_pylist()))
        case "parquet":
            pq.write_table(typed, "south.parquet")
        case _:
            with pa.ipc.new_file("south.arrow", typed.schema) as writer:
                writer.write_table(typed)
    assert merge("north.csv", f"south.{ending}", *ROWS, "--lossy", "all", "-o", "merged.jsonl") == 0
    assert levels("merged.jsonl") == [0, 1, 2, 3, 4, 9]


def test_of_complete_replicas_the_one_that_leads_decides(folder, capsys):
    assert merge("north.csv", "south.csv", *ROWS, "--lossy", "none", "-o", "merged.parquet") == 1
    assert levels("merged.parquet") == [0, 1, 3, 4, 9]
    assert "1 event of south that north does not have was removed" in capsys.readouterr().err


def test_replicas_are_called_as_is_written_and_may_be_lossy_by_name(folder, capsys):
    arguments = ["a=north.csv", "b=south.csv", *ROWS, "--lossy", "a", "--json", "-o", "merged.parquet"]
    assert merge(*arguments) == 1
    status = json.loads(capsys.readouterr().out)
    assert [one["complete"] for one in status["inputs"].values()] == [False, True]


def test_rows_that_are_refused_are_told_with_file_and_line(folder, capsys):
    Path("south.csv").write_text(SOUTH + f"{AT.format(9)},B\n")
    assert merge("north.csv", "south.csv", *ROWS, "--lossy", "all", "-o", "merged.parquet") == 2
    error = capsys.readouterr().err
    assert "south.csv:7: a row has 3 cells as the header has, and this one 2" in error
    assert "--on-violation drop" in error
    assert not Path("merged.parquet").exists()
    aside = ["--quarantine", "aside.jsonl"]
    assert merge("north.csv", "south.csv", *ROWS, "--lossy", "all", "-o", "merged.parquet", *aside) == 0
    assert "south.csv:7: a row has 3 cells as the header has, and this one 2" in capsys.readouterr().err
    (record,) = map(json.loads, Path("aside.jsonl").read_text().splitlines())
    assert record["file"] == "south.csv"
    assert record["place"].endswith("south.csv:7")
    assert record["element"] == f"{AT.format(9)},B"


def test_of_many_refused_rows_some_are_shown_and_the_others_counted(folder, capsys):
    Path("south.csv").write_text(SOUTH + "x,y\n" * 9)
    assert (
        merge("north.csv", "south.csv", *ROWS, "--lossy", "all", "--on-violation", "drop", "-o", "m.jsonl")
        == 0
    )
    error = capsys.readouterr().err
    assert "left out of south.csv: 9 malformed" in error
    assert error.endswith("  and 4 more; --quarantine FILE keeps all of them\n")


def test_no_spark_is_in_the_process(folder):
    arguments = ["merge", "north.csv", "south.csv", *ROWS, "--lossy", "all", "-o", "m.parquet"]
    program = (
        f"import sys; from anabranch.cli.main import main; assert main({arguments}) == 0; "
        "assert not [name for name in sys.modules if name.split('.')[0] == 'pyspark']"
    )
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)


ELEMENTS = '{"kind":"insert","start":1,"end":2,"payload":{"a":1}}\n'


@pytest.mark.parametrize(
    ("arguments", "words", "way_out"),
    [
        (["north.csv"], "north.csv holds plain rows, and which column is the start", "--start COLUMN"),
        (["rows.jsonl"], "rows.jsonl holds plain rows, and which column is the start", "--start COLUMN"),
        (["north.csv", "e.jsonl"], "north.csv holds rows and e.jsonl elements", "Merge the files of rows by"),
        (["north.csv", "e.jsonl", *ROWS], "north.csv holds rows and e.jsonl elements", "Merge the files of"),
        (["e.jsonl", *ROWS], "--start is of plain rows, and e.jsonl holds elements", "Leave --start out"),
        (["e.jsonl", "--disorder", "1m"], "--disorder is of plain rows, and --start", "--start"),
        (["north.csv", *ROWS], "--lossy is not given", "--lossy none"),
        (["north.csv", "--start", "at"], "--disorder is not given", "--disorder 0"),
        (
            ["north.csv", *ROWS, "--lossy", "x"],
            "--lossy is about an input, and none is called 'x'",
            "'north'",
        ),
        (["north.csv", *ROWS, "--lossy", "all,x"], "'all' stands for all of the inputs", "--help"),
        (["north.csv", *ROWS, "--lossy", "all", "--start", "att"], "did you mean 'at'", "The columns are"),
        (["north.csv", *ROWS, "--lossy", "all", "--start", "room"], "column 'room' has text", "--schema"),
        (
            ["north.csv", *ROWS, "--lossy", "all", "--format", "csv"],
            "--format is of elements",
            ".csv, .jsonl",
        ),
        (["north.csv", *ROWS, "--lossy", "all", "--schema", "x"], "a type is given as COLUMN=TYPE", "--help"),
        (["north.csv", *ROWS, "--lossy", "all", "--declare", "north=ordered"], "--declare names one", "FACT"),
        (["north.csv", "-", *ROWS, "--lossy", "all"], "north.csv holds rows and - elements", "by themselves"),
    ],
)
def test_misuse_is_refused_with_the_way_out(folder, capsys, arguments, words, way_out):
    Path("e.jsonl").write_text(ELEMENTS)
    Path("rows.jsonl").write_text('{"at":1}\n')
    with pytest.raises(SystemExit, match="2"):
        sys.exit(merge(*arguments))
    error = capsys.readouterr().err
    assert words in error
    assert way_out in error
    assert "In the plan at" not in error


def test_explain_gives_the_plan_and_merges_nothing(folder, capsys):
    assert merge("north.csv", "south.csv", *ROWS, "--lossy", "all", "--explain", "-o", "merged.parquet") == 0
    assert "rows of replicas, at most 1 minute late" in capsys.readouterr().out
    arguments = ["north.csv", "south.csv", *ROWS, "--lossy", "all", "--explain", "--json"]
    assert merge(*arguments, "-o", "merged.parquet") == 0
    told = json.loads(capsys.readouterr().out)
    assert [one["operator"] for one in told["operators"]] == ["source", "merge"]
    assert not Path("merged.parquet").exists()


def test_only_the_columns_that_are_named_are_compared(folder, capsys):
    Path("south.csv").write_text(SOUTH.replace(",A,", ",Z,"))
    assert (
        merge("north.csv", "south.csv", *ROWS, "--lossy", "all", "--payload", "level", "-o", "m.jsonl") == 0
    )
    assert levels("m.jsonl") == [0, 1, 2, 3, 4, 9]


def test_a_column_of_rows_may_be_called_replica(folder, capsys):
    for name in ("north.csv", "south.csv"):
        Path(name).write_text(Path(name).read_text().replace("room", "replica"))
    assert merge("north.csv", "south.csv", *ROWS, "--lossy", "all", "-o", "m.jsonl") == 0
    assert levels("m.jsonl") == [0, 1, 2, 3, 4, 9]


def test_times_without_a_zone_are_in_the_one_that_is_given(folder, capsys):
    Path("south.csv").write_text(SOUTH.replace("T10:", " 11:").replace("Z", ""))
    arguments = ["north.csv", "south.csv", *ROWS, "--lossy", "all", "-o", "m.jsonl"]
    assert merge(*arguments) == 2
    assert "--zone" in capsys.readouterr().err
    assert merge(*arguments, "--zone", "Europe/Berlin") == 0
    assert levels("m.jsonl") == [0, 1, 2, 3, 4, 9]


def test_none_is_lossy_of_elements_unless_it_is_said(folder, capsys):
    Path("e.jsonl").write_text(ELEMENTS)
    assert merge("e.jsonl", "--lossy", "none", "-o", "m.jsonl") == 0


@pytest.mark.parametrize("command", [["show"], ["check"], ["diff", "e.jsonl"], ["convert", "-"]])
def test_rows_given_to_a_command_for_elements_are_refused_with_the_way_out(folder, capsys, command):
    Path("e.jsonl").write_text(ELEMENTS)
    name, *others = command
    assert main([name, "north.csv", *others]) == 2
    error = capsys.readouterr().err
    assert "north.csv holds plain rows, and the elements of a recorded stream are asked for" in error
    assert "anabranch merge north.csv --start COLUMN" in error


@pytest.mark.parametrize("command", [["show"], ["check"], ["diff", "e.jsonl"], ["convert", "out.parquet"]])
def test_the_types_of_elements_in_csv_are_printed_once(folder, capsys, command):
    Path("e.jsonl").write_text(ELEMENTS)
    Path("e.csv").write_text("kind,start,end,a\ninsert,1,2,1\n")
    name, *others = command
    assert main([name, "e.csv", *others]) == 0
    words = "columns of e.csv, by their first 1,000 rows: kind string, start int64, end int64, a int64"
    assert capsys.readouterr().err.count(words) == 1


JOB = """
[source]
path = "feeds"
{schema}
[merge]
start = "at"
duration = "5 minutes"
disorder = "1 minute"
replica = "replica"
lossy = true

[sink]
file = "out.jsonl"
"""


@pytest.mark.parametrize(
    ("schema", "times"), [("", 1), ('schema = "at timestamp, room string, level long"', 0)]
)
def test_a_job_without_a_schema_prints_the_types_of_the_first_rows(folder, capsys, schema, times):
    for name in ("north", "south"):
        Path("feeds", name).mkdir(parents=True)
        Path(f"{name}.csv").rename(Path("feeds", name, "1.csv"))
    Path("job.toml").write_text(JOB.format(schema=schema))
    assert main(["run", "job.toml", "--engine", "embedded"]) == 0
    types = "at timestamp[us, tz=UTC], room string, level int64"
    assert capsys.readouterr().err.count(f"by their first 1,000 rows: {types}") == times
    assert levels("out.jsonl") == [0, 1, 2, 3, 4, 9]


def test_keys_that_the_first_rows_lack_are_told(folder, capsys):
    rows = [{"at": AT.format(n % 60), "room": "A", "level": n} for n in range(1_000)]
    lines = [*rows, {**rows[0], "levle": 7}]
    Path("south.jsonl").write_text("".join(json.dumps(row) + "\n" for row in lines))
    arguments = ["north.csv", "south.jsonl", *ROWS[:-1], "2 hours", "--lossy", "all", "-o", "m.jsonl"]
    assert merge(*arguments) == 0
    remark = "1 of 1,006 rows have 'levle', which is no column, did you mean 'level'?"
    assert remark in capsys.readouterr().err
    assert merge(*arguments, "--json") == 0
    assert json.loads(capsys.readouterr().out)["remarks"] == [remark]
