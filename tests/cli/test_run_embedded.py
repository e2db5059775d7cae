"""``anabranch run --engine embedded``: a plan in this process, written as whole files."""

import json
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from anabranch import FOREVER, Insert, Relation, read
from anabranch.cli.main import main

SOURCE = """
[sources.readings]
path = "feeds"
columns = { room = "string", level = "int64", at = "timestamp[us, tz=UTC]", replica = "string" }
start = "at"
duration = "5 minutes"
disorder = "10 minutes"
replica = "replica"
lossy = true

[plan]
steps = [{ filter = "level > 3" }, "merge"]
"""


@pytest.fixture
def place(tmp_path):
    for replica, rooms in {"east": "AB", "west": "AC"}.items():
        (tmp_path / "feeds" / replica).mkdir(parents=True)
        rows = [{"room": room, "level": 5, "at": f"2026-03-01T12:0{n}:00Z"} for n, room in enumerate(rooms)]
        rows.append({"room": "low", "level": 1, "at": "2026-03-01T12:05:00Z"})
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (tmp_path / "feeds" / replica / "1.jsonl").write_text(f"{text}no row\n")
    return tmp_path


def run(place, sink, *options):
    (place / "job.toml").write_text(f"{SOURCE}\n[sink]\n{sink}\n")
    return main(["run", str(place / "job.toml"), "--engine", "embedded", *options])


def rooms(*paths):
    relation = Relation()
    for path in paths:
        for batch in read(str(path)):
            relation.apply(batch)
    return sorted(event.payload["room"] for event in relation.events())


@pytest.mark.parametrize("form", ["parquet", "jsonl", "arrow"])
def test_a_folder_has_what_the_plan_means_and_is_read_as_what_a_run_has_written(place, form, capsys):
    assert run(place, f'path = "out"\nformat = "{form}"') == 0
    assert rooms(place / "out") == ["A", "B", "C"]
    told = capsys.readouterr().err
    assert "all was read: 8 in, 3 out, 2 malformed; stable to ∞" in told
    assert f"what came out is in {place / 'out'}" in told
    assert main(["show", str(place / "out")]) == 0


@pytest.mark.parametrize("file", ["out.parquet", "out.jsonl", "out.txt", "out.arrow"])
def test_a_file_has_what_the_plan_means_in_the_format_of_its_ending(place, file):
    assert run(place, f'file = "{file}"') == 0
    assert rooms(place / file) == ["A", "B", "C"]


def test_without_a_sink_elements_go_to_standard_output_and_the_summary_does_not(place, capfdbinary):
    assert run(place, "") == 0
    found = capfdbinary.readouterr()
    kinds = [json.loads(line) for line in found.out.splitlines()]
    assert len(kinds) > 3
    assert b"all was read" in found.err


def test_refused_rows_are_in_the_quarantine_with_file_and_line(place, capsys):
    assert run(place, 'path = "out"') == 0
    (kept,) = (place / "out/_quarantine").iterdir()
    rows = [json.loads(line) for line in kept.read_text().splitlines()]
    assert sorted(row["place"] for row in rows) == [
        f"{place}/feeds/{name}/1.jsonl:4" for name in ("east", "west")
    ]
    assert {row["raw"] for row in rows} == {"no row"}
    assert str(kept) in capsys.readouterr().err


def test_strict_is_not_satisfied_with_refused_rows(place):
    assert run(place, 'path = "out"', "--strict") == 1


def test_programs_are_told_the_end_in_json(place, capsys):
    assert run(place, 'path = "out"', "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["in"], told["out"], told["refused"]) == (8, 3, {"malformed": 2})


def test_check_says_what_would_be_done_and_does_nothing(place, capsys):
    assert run(place, 'path = "out"', "--check") == 0
    told = capsys.readouterr().out
    assert "filter level > 3" in told
    assert "east 1 file, west 1 file" in told
    assert str(place / "out") in told
    assert not (place / "out").exists()


def test_check_finds_what_is_missing(place, capsys):
    assert run(place, 'path = "no/such/folder/out"', "--check") == 0
    (place / "feeds/east/1.jsonl").rename(place / "feeds/east/1.xml")
    assert run(place, 'path = "out"', "--check") == 2
    assert "tells no format" in capsys.readouterr().err


def test_a_folder_that_was_written_before_is_not_written_again(place, capsys):
    assert run(place, 'path = "out"') == 0
    assert run(place, 'path = "out"') == 2
    assert "has files already" in capsys.readouterr().err


def test_an_interrupt_leaves_whole_files_only(tmp_path, capsys):
    (tmp_path / "job.py").write_text(
        "import anabranch as ab\n"
        "stream = ab.source('rows', {'room': 'string', 'at': 'int64'}, start='at', disorder=0)\n"
        "def rows():\n"
        "    for n in range(0, 100_000, 1000):\n"
        "        yield [{'room': 'A', 'at': at} for at in range(n, n + 1000)]\n"
        "    raise KeyboardInterrupt\n"
        "SOURCES = {'rows': rows()}\n"
        "SINK = {'path': 'out'}\n"
    )
    assert main(["run", str(tmp_path / "job.py"), "--engine", "embedded"]) == 130
    assert "whole files" in capsys.readouterr().err
    files = sorted((tmp_path / "out").iterdir())
    assert [file.name.split("-", 1)[1] for file in files] == [
        "000000000-0000.parquet",
        "000000000-stable.parquet",
    ]
    assert pq.read_metadata(files[0]).num_rows >= 65_536
    inserts = [e for batch in read(str(tmp_path / "out")) for e in batch.elements() if isinstance(e, Insert)]
    assert [e.start for e in inserts] == list(range(len(inserts)))


def test_a_single_file_is_not_there_where_the_run_was_interrupted(tmp_path):
    (tmp_path / "job.py").write_text(
        "import anabranch as ab\n"
        "stream = ab.source('rows', {'room': 'string', 'at': 'int64'}, start='at', disorder=0)\n"
        "def rows():\n"
        "    yield [{'room': 'A', 'at': 1}]\n"
        "    raise KeyboardInterrupt\n"
        "SOURCES = {'rows': rows()}\n"
        "SINK = {'file': 'out.parquet'}\n"
    )
    assert main(["run", str(tmp_path / "job.py"), "--engine", "embedded"]) == 130
    assert [file.name for file in tmp_path.iterdir() if file.suffix not in (".py",)] == []


MERGE = """
[source]
path = "feeds"
schema = "room string, level long, at timestamp"

[merge]
start = "at"
duration = "5 minutes"
disorder = "10 minutes"
replica = "replica"
lossy = true
"""


def merged(place, text, sink='path = "merged"', *options):
    (place / "merge.toml").write_text(f"{text}\n[sink]\n{sink}\n")
    return main(["run", str(place / "merge.toml"), "--engine", "embedded", *options])


def test_a_merge_gives_what_its_plan_gives(place, capsys):
    assert merged(place, MERGE) == 0
    told = capsys.readouterr().err
    assert "all was read: 8 in, 4 out, 2 malformed; stable to ∞" in told
    (place / "job.toml").write_text(
        SOURCE.replace('{ filter = "level > 3" }, ', "") + '[sink]\npath = "out"\n'
    )
    assert main(["run", str(place / "job.toml"), "--engine", "embedded"]) == 0
    assert rooms(place / "merged") == rooms(place / "out") == ["A", "B", "C", "low"]
    refused = [
        sorted(
            (row["rule"], row["place"], row["raw"]) for row in map(json.loads, file.read_text().splitlines())
        )
        for file in (*place.glob("merged/_quarantine/*"), *place.glob("out/_quarantine/*"))
    ]
    assert len(refused) == 2
    assert refused[0] == refused[1]


def test_changes_are_merged_as_the_rows_of_a_table(tmp_path):
    rows = {
        "east": [
            ("c", 1, 1, 3),
            ("c", 2, 2, 1),
            ("u", 5, 1, 4),
            ("d", 6, 2, None),
            ("stable", None, None, None),
        ],
        "west": [("c", 2, 2, 1), ("c", 1, 1, 3), ("stable", 4, None, None)],
    }
    for replica, changes in rows.items():
        (tmp_path / "feeds" / replica).mkdir(parents=True)
        lines = [dict(zip(("op", "at", "id", "price"), one, strict=True)) for one in changes]
        text = "".join(
            json.dumps({key: v for key, v in one.items() if v is not None}) + "\n" for one in lines
        )
        (tmp_path / "feeds" / replica / "1.jsonl").write_text(text)
    text = (
        '[source]\npath = "feeds"\nschema = "op string, at long, id long, price long"\n'
        '[changes]\nkey = "id"\ntime = "at"\nreplica = "replica"\n'
    )
    assert merged(tmp_path, text) == 0
    relation = Relation()
    for batch in read(str(tmp_path / "merged")):
        relation.apply(batch)
    found = sorted((one.payload["id"], one.payload["price"], one.start, one.end) for one in relation.events())
    assert found == [(1, 3, 1, 5), (1, 4, 5, FOREVER), (2, 1, 2, 6)]


def test_a_merge_does_with_refused_rows_what_it_says(place, capsys):
    assert merged(place, MERGE + 'on_invalid = "drop"\n', 'path = "merged"', "--strict") == 0
    assert not (place / "merged" / "_quarantine").exists()
    assert merged(place, MERGE + 'on_invalid = "raise"\n', 'path = "other"') == 2
    assert "1.jsonl:4" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "sink", "words"),
    [
        (
            '[source]\nformat = "rate"\n' + MERGE[MERGE.index("[merge]") :],
            'path = "o"',
            "format 'rate' of Spark",
        ),
        (
            MERGE,
            'table = { path = "t", kind = "history", format = "parquet" }',
            "[sink.table] is written by Spark",
        ),
        (
            MERGE.replace("at timestamp", "at timestamp, who string").replace(
                'replica = "replica"', 'replica = "who"'
            ),
            'path = "o"',
            "replicas are named by what they are read from, in column 'replica', and replica is 'who'",
        ),
    ],
)
def test_a_piece_of_a_merge_that_needs_spark_is_named(place, capsys, text, sink, words):
    assert merged(place, text, sink) == 2
    told = capsys.readouterr().err
    assert words in told
    assert "--engine" in told


def test_rows_of_a_program_that_spark_reads_are_named(tmp_path, capsys):
    (tmp_path / "job.py").write_text(
        "def rows(spark): return 'feeds'\nMERGE = {'start': 'at', 'disorder': 1}\nSINK = {'path': 'out'}\n"
    )
    assert main(["run", str(tmp_path / "job.py"), "--engine", "embedded"]) == 2
    assert "is read by a function of Spark's session" in capsys.readouterr().err


def test_no_spark_is_in_the_process(place):
    (place / "job.toml").write_text(f'{SOURCE}\n[sink]\npath = "out"\n')
    program = (
        "import sys\nfrom anabranch.cli.main import main\n"
        f"main(['run', {str(place / 'job.toml')!r}, '--engine', 'embedded'])\n"
        "sys.exit(any(name.split('.')[0] in ('pyspark', 'py4j') for name in sys.modules))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True)
    assert done.returncode == 0, done.stderr


WINDOWS = """
[sources.readings]
path = "readings.jsonl"
columns = { room = "string", level = "int64", at = "int64" }
start = "at"
disorder = 20

[sources.rooms]
path = "rooms.jsonl"
columns = { room = "string", floor = "int64", at = "int64" }
start = "at"
disorder = 20

[plan.once]
from = "readings"
steps = [{ distinct = ["room", "level"] }]

[plan.out]
from = "once"
steps = [
  { join = { right = "rooms", on = "room", within = [10, 0] } },
  { window = { size = 10, every = 5, start = "since" } },
  { group_by = "floor" },
  { agg = { n = "count()", most = "level.max()" } },
]

[sink]
file = "out.jsonl"
"""


def test_a_file_with_a_join_distinct_events_and_windows_is_checked_told_and_run(tmp_path, capsys):
    (tmp_path / "job.toml").write_text(WINDOWS)
    rows = [("A", 5, 12), ("B", 2, 3), ("A", 5, 12), ("A", 7, 4), ("B", 9, 13)]
    for name, lines in {
        "readings": [{"room": room, "level": level, "at": at} for room, level, at in rows],
        "rooms": [{"room": room, "floor": 1, "at": at} for room in "AB" for at in (0, 10)],
    }.items():
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    job = str(tmp_path / "job.toml")
    assert main(["run", job, "--engine", "embedded", "--check"]) == 0
    assert main(["explain", job]) == 0
    told = capsys.readouterr().out
    assert all(word in told for word in ("distinct", "join", "level.max()"))
    assert main(["run", job, "--engine", "embedded"]) == 0
    relation = Relation()
    for batch in read(str(tmp_path / "out.jsonl")):
        relation.apply(batch)
    said = sorted((row["since"], row["n"], row["most"]) for row in (one.payload for one in relation.events()))
    assert said == [(-5, 2, 7), (0, 2, 7), (5, 2, 9), (10, 2, 9)]


def test_an_aggregate_that_is_none_stops_it_with_the_line_of_the_file(tmp_path, capsys):
    (tmp_path / "job.toml").write_text(WINDOWS.replace("level.max()", "levle.max()"))
    assert main(["run", str(tmp_path / "job.toml"), "--engine", "embedded", "--check"]) == 2
    told = capsys.readouterr().err
    number = WINDOWS.splitlines().index('  { agg = { n = "count()", most = "level.max()" } },') + 1
    assert f"job.toml:{number}: {{ agg = " in told
    assert "levle" in told


def bad_rows(place):
    for replica in ("east", "west"):
        (place / "feeds" / replica / "1.jsonl").write_text('no row\n{"room": 5, "at": "never"}\n')


def test_a_run_in_which_every_row_was_refused_ends_with_status_1(place, capsys):
    bad_rows(place)
    assert run(place, 'path = "out"') == 1
    assert "every row was refused" in capsys.readouterr().err
    assert run(place, 'path = "other"', "--json") == 1


def test_a_run_that_uses_one_row_or_reads_none_ends_with_status_0(place):
    bad_rows(place)
    good = json.dumps({"room": "A", "level": 1, "at": "2026-03-01T12:00:00Z"})
    (place / "feeds" / "east" / "2.jsonl").write_text(f"{good}\n")
    assert run(place, 'path = "out"') == 0  # it is filtered, and was used
    for file in (place / "feeds").glob("*/*.jsonl"):
        file.unlink()
    assert run(place, 'path = "other"') == 0


def test_what_the_silence_of_a_complete_replica_removed_is_reported_with_the_way_out(place, capsys):
    (place / "job.toml").write_text(
        SOURCE.replace("lossy = true", "lossy = false") + '[sink]\npath = "out"\n'
    )
    rows = [f"2026-03-01T12:{minute:02}:00Z" for minute in range(0, 60, 2)]
    for replica, some in {"east": rows, "west": [*rows[::2], "2026-03-01T14:00:00Z"]}.items():
        lines = [json.dumps({"room": "A", "level": 5, "at": at}) for at in some]
        (place / "feeds" / replica / "1.jsonl").write_text("\n".join(lines) + "\n")
    job = [str(place / "job.toml"), "--engine", "embedded"]
    assert main(["run", *job]) == 0
    told = capsys.readouterr().err
    assert "events of east that west does not have were removed" in told
    assert "if replicas may lose rows, they are lossy" in told


LATE_WINDOWS = """
[sources.readings]
path = "feeds"
columns = { room = "string", level = "int64", at = "timestamp[us, tz=UTC]", replica = "string" }
start = "at"
disorder = "2 minutes"
replica = "replica"
lossy = true

[plan]
steps = ["merge", { window = "1 minute" }, { agg = { n = "count()" } }]

[sink]
file = "out.jsonl"
"""


def counted(place, *options):
    (place / "job.toml").write_text(LATE_WINDOWS)
    status = main(["run", str(place / "job.toml"), "--engine", "embedded", *options])
    return status, [] if status else (place / "out.jsonl").read_text().splitlines()


def test_windows_close_at_the_end_of_the_inputs_unless_the_run_is_not_to_finish(place, capsys):
    """Rows of 12:00, 12:01 and 12:05, at most two minutes late: the last window is open."""
    status, lines = counted(place)
    assert status == 0
    assert sum('"insert"' in line for line in lines) == 3
    assert "the end of the inputs was taken for the end of the stream" in capsys.readouterr().err
    status, lines = counted(place, "--no-finish")
    assert status == 0
    assert sum('"insert"' in line for line in lines) == 2
    told = capsys.readouterr().err
    assert "still open: " in told
    assert "window holds 1" in told
    _, _ = counted(place, "--no-finish", "--json")
    end = json.loads(capsys.readouterr().out)
    assert (end["finished"], end["open"]) == (False, {"merge": 1, "window": 1})


def test_a_query_on_spark_is_not_finished(place, capsys):
    (place / "job.toml").write_text(LATE_WINDOWS.replace('file = "out.jsonl"', 'path = "out"'))
    assert main(["run", str(place / "job.toml"), "--once", "--finish"]) == 2
    assert "goes on from its checkpoint: leave --finish out" in capsys.readouterr().err


def test_a_header_with_a_column_that_a_job_does_not_read_needs_no_name_for_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("feeds").mkdir()
    Path("feeds/1.csv").write_text("at,level,\n1,5,\n2,6,\n")
    Path("plan.py").write_text(
        "import anabranch as ab\n"
        'stream = ab.source("feed", {"at": "int64", "level": "int64"}, start="at", disorder=0)\n'
        'SOURCES = {"feed": "feeds"}\n'
        'SINK = {"file": "out.jsonl"}\n'
    )
    assert main(["run", "plan.py", "--engine", "embedded"]) == 0
    rows = [json.loads(line) for line in Path("out.jsonl").read_text().splitlines()]
    assert [row["payload"]["level"] for row in rows if row["kind"] == "insert"] == [5, 6]
