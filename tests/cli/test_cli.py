"""The command line, as a person or a script meets it."""

import json
import subprocess
import sys
from datetime import UTC, datetime
from io import BytesIO, TextIOWrapper
from pathlib import Path
from random import Random

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from anabranch import Insert
from anabranch.cli.main import COMMANDS, main
from anabranch.connectors.files.writing import Target
from anabranch.model.batch import Batch
from anabranch.model.notation import parse
from anabranch.testing.faults import interleave, late_join
from anabranch.testing.presentations import replicas

GOOD = "+ a [3, 9)\n| 5\n~ a [3, 9) -> [3, 7)\n+ b [5, inf)\n"
BAD = "+ a [3, 9)\n| 5\n+ late [4, 9)\n~ gone [7, 9) -> [7, 8)\n+ b [5, 6)\n"


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "good.txt").write_text(GOOD)
    (tmp_path / "bad.txt").write_text(BAD)
    return tmp_path


def stdin(monkeypatch, text: str) -> None:
    monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(text.encode())))


def test_help_loads_nothing_heavy():
    code = (
        "import sys\nfrom anabranch.cli.main import main\n"
        "try: main(['--help'])\nexcept SystemExit: pass\n"
        "heavy = {'numpy', 'pyarrow', 'numba', 'pandas', 'pyspark', 'rich'} & set(sys.modules)\n"
        "sys.exit(str(heavy) if heavy else 0)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert "examples:" in result.stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_examples_and_a_json_answer(command, capsys):
    with pytest.raises(SystemExit) as stopped:
        main([command, "--help"])
    assert stopped.value.code == 0
    text = capsys.readouterr().out
    assert "examples:" in text
    assert f"anabranch {command}" in text
    assert "--json" in text


def test_show_prints_events_with_their_status_and_draws_them(folder, capsys):
    assert main(["show", "good.txt"]) == 0
    out = capsys.readouterr().out
    assert "4 elements, 2 events, stable to 5" in out
    assert "half frozen" in out
    assert "unfrozen" in out
    assert "█" in out
    assert "▶" in out


@pytest.mark.parametrize(
    ("kind", "start", "until"),
    [
        (pa.timestamp("us", "UTC"), "2026-01-01 12:00:00.5", "2026-01-01 12:00:07"),
        (pa.timestamp("us"), "2026-01-01 12:00:00.5", "2026-01-01 12:00:07"),
        (pa.date32(), "2026-01-01", "2026-01-08"),
        (pa.int64(), "5", "7"),
    ],
    ids=str,
)
@pytest.mark.parametrize("form", ["parquet", "jsonl"])
def test_show_has_times_as_the_rows_that_a_sink_wrote_have_them(folder, capsys, kind, start, until, form):
    local = pa.timestamp("us") if pa.types.is_timestamp(kind) else kind
    begin, end = pa.array([start, until]).cast(local).cast(kind).to_pylist()
    rows = [
        {"kind": "insert", "start": begin, "end": end, "old_end": None, "v": "x"},
        {"kind": "stable", "start": end, "end": None, "old_end": None, "v": None},
    ]
    out = folder / "out" / f"0123abcd-000000000-0000.{form}"
    out.parent.mkdir()
    if form == "jsonl":
        out.write_bytes(b"".join(msgspec.json.encode(row) + b"\n" for row in rows))
    else:
        columns = {"kind": pa.string(), "start": kind, "end": kind, "old_end": kind, "v": pa.string()}
        pq.write_table(pa.Table.from_pylist(rows, pa.schema(columns)), out)
    assert main(["show", "out"]) == 0
    said = capsys.readouterr().out
    assert f"stable to {until}" in said
    assert f"[{start}, {until})" in said
    axis = next(line for line in reversed(said.splitlines()) if start in line)
    assert axis.split(" " * 3)[-1].strip() == until
    assert main(["show", "out", "--history"]) == 0
    assert f"[{start}, {until})" in capsys.readouterr().out


def test_show_at_a_prefix_shows_what_that_prefix_denotes(folder, capsys):
    assert main(["show", "good.txt", "--at", "1", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["events"] == [
        {"payload": {"value": "a"}, "start": 3, "end": 9, "count": 1, "freeze": "unfrozen"}
    ]
    assert "frontier" not in answer


def test_show_history_lists_every_version(folder, capsys):
    assert main(["show", "good.txt", "--history", "--json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(row["end"], row["arrived"], row["replaced"]) for row in rows] == [
        (9, 1, 3),
        (7, 3, None),
        (None, 4, None),
    ]


def test_standard_input_is_json_lines(folder, capsys, monkeypatch):
    stdin(monkeypatch, '{"kind":"insert","start":3,"end":null,"payload":{"id":9007199254740993}}\n')
    assert main(["show", "-", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["events"][0]["payload"] == {"id": 9007199254740993}


def test_check_is_silent_about_good_streams_and_names_what_is_wrong_in_bad_ones(folder, capsys):
    assert main(["check", "good.txt"]) == 0
    assert "all valid" in capsys.readouterr().out
    assert main(["check", "bad.txt"]) == 1
    out = capsys.readouterr().out
    assert "5 elements, 2 violations" in out
    assert "element 3 is an insert behind the stable" in out
    assert "element 4 adjusts an event that is not there" in out


def test_check_as_json_has_codes_positions_and_ways_out(folder, capsys):
    assert main(["check", "bad.txt", "--json", "--properties"]) == 1
    answer = json.loads(capsys.readouterr().out)
    assert not answer["valid"]
    (file,) = answer["files"]
    assert [(v["code"], v["position"]) for v in file["violations"]] == [
        ("insert-behind-stable", 3),
        ("no-such-event", 4),
    ]
    assert all(v["way_out"] for v in file["violations"])


def test_quarantined_elements_can_be_read_and_good_ones_are_unaffected(folder, capsys):
    assert main(["show", "bad.txt", "--quarantine", "aside.jsonl", "--json"]) == 0
    events = json.loads(capsys.readouterr().out)["events"]
    assert [event["payload"]["value"] for event in events] == ["a", "b"]
    aside = [json.loads(line) for line in Path("aside.jsonl").read_text().splitlines()]
    assert [row["element"] for row in aside] == ["+ late [4, 9)", "~ gone [7, 9) -> [7, 8)"]


def test_malformed_lines_are_found_by_check_and_stop_the_others(folder, capsys):
    Path("broken.jsonl").write_text(
        '{"kind":"stable","time":1}\n{"kind":"insert","start":3,"end":9,"payload":{},"extra":1}\nnonsense\n'
    )
    assert main(["check", "broken.jsonl"]) == 1
    out = capsys.readouterr().out
    assert "`extra`" in out
    assert "line 2 is malformed" in out
    assert "line 3 is malformed" in out
    assert main(["show", "broken.jsonl"]) == 2
    assert "extra" in capsys.readouterr().err
    assert main(["show", "broken.jsonl", "--on-violation", "drop"]) == 0


def test_diff_says_same_or_where_they_part(folder, capsys):
    Path("same.txt").write_text("+ b [5, ∞)\n+ a [3, 7)\n")
    Path("other.txt").write_text("+ a [3, 9)\n+ b [5, ∞)\n| ∞\n")
    assert main(["diff", "good.txt", "same.txt"]) == 0
    assert "same" in capsys.readouterr().out
    assert main(["diff", "good.txt", "other.txt"]) == 1
    out = capsys.readouterr().out
    assert "a [3, 7)" in out
    assert "1 times in good.txt, 0 times in other.txt" in out
    assert "since element 3" in out
    assert "may still change" in out
    assert main(["diff", "good.txt", "other.txt", "--json"]) == 1
    answer = json.loads(capsys.readouterr().out)
    assert answer["first"] | {"since_element": 3, "more_on": "left"} == answer["first"]
    assert answer["final"] is False


def test_a_difference_that_stables_exclude_is_final(folder, capsys):
    Path("one.txt").write_text("+ a [0, 1)\n| 5\n")
    Path("two.txt").write_text("+ a [0, 2)\n| 5\n")
    assert main(["diff", "one.txt", "two.txt"]) == 1
    assert "this is final" in capsys.readouterr().out


def test_several_files_are_checked_for_mutual_consistency(folder, capsys):
    Path("one.txt").write_text("+ a [0, 1)\n| 5\n")
    Path("two.txt").write_text("+ a [0, 2)\n| 5\n")
    assert main(["check", "one.txt", "two.txt"]) == 1
    assert "not consistent" in capsys.readouterr().out
    Path("two.txt").write_text("+ a [0, 1)\n+ b [7, 8)\n| 6\n")
    assert main(["check", "one.txt", "two.txt"]) == 0
    assert "they can be one stream" in capsys.readouterr().out


def test_an_output_is_checked_for_compatibility(folder, capsys):
    Path("in.txt").write_text("+ a [0, 9)\n| 5\n")
    Path("out.txt").write_text("+ b [1, 2)\n| 5\n")
    assert main(["check", "in.txt", "--output", "out.txt"]) == 1
    assert "C3" in capsys.readouterr().out
    Path("out.txt").write_text("+ a [0, inf)\n| 5\n")
    assert main(["check", "in.txt", "--output", "out.txt"]) == 0


def test_one_file_may_record_several_inputs(folder, capsys):
    random = Random(5)
    events, (stream,) = replicas(random, 1)
    both = interleave({"east": stream, "west": late_join(events, random, guarantee=4)}, random)
    Target.named("both.jsonl").write([Batch.of(both)])
    assert main(["check", "both.jsonl"]) == 0
    capsys.readouterr()
    assert main(["show", "both.jsonl", "--json"]) == 0
    shown = [json.loads(line)["input"] for line in capsys.readouterr().out.splitlines()]
    assert sorted(shown) == ["east", "west"]
    assert main(["convert", "both.jsonl", "east.parquet", "--input", "east"]) == 0
    Target.named("reference.txt").write([Batch.of(stream)])
    assert main(["diff", "east.parquet", "reference.txt"]) == 0
    assert main(["convert", "both.jsonl", "north.jsonl", "--input", "north"]) == 2
    assert "east" in capsys.readouterr().err
    assert not Path("north.jsonl").exists()


@pytest.mark.parametrize("ending", ["jsonl", "txt", "parquet", "arrow"])
def test_a_stream_survives_a_trip_through_every_format(folder, capsys, ending):
    assert main(["convert", "good.txt", f"copy.{ending}"]) == 0
    assert main(["convert", f"copy.{ending}", "back.txt"]) == 0
    assert parse(Path("back.txt").read_text()) == parse(GOOD)
    assert main(["diff", "good.txt", f"copy.{ending}"]) == 0


@pytest.mark.parametrize("dialect", ["modify", "open-close", "cedr", "external-cti"])
def test_a_stream_survives_a_trip_through_every_dialect(folder, capsys, dialect):
    assert main(["convert", "good.txt", "there.jsonl", "--to-dialect", dialect]) == 0
    assert main(["convert", "there.jsonl", "back.txt", "--from-dialect", dialect]) == 0
    assert main(["diff", "good.txt", "back.txt"]) == 0


def test_what_a_dialect_cannot_say_is_an_error_and_leaves_no_file(folder, capsys):
    Path("twice.txt").write_text("+ a [0, 9)\n+ a [0, 9)\n")
    assert main(["convert", "twice.txt", "out.jsonl", "--to-dialect", "open-close"]) == 2
    assert "anabranch: " in capsys.readouterr().err
    assert not Path("out.jsonl").exists()
    assert list(folder.glob(".*")) == []


def test_generate_writes_replicas_that_differ_and_mean_the_same(folder, capsys):
    assert main(["generate", "feed.parquet", "--events", "500", "--replicas", "2", "--revisions", "0.2"]) == 0
    assert Path("feed-0.parquet").read_bytes() != Path("feed-1.parquet").read_bytes()
    assert main(["diff", "feed-0.parquet", "feed-1.parquet"]) == 0
    assert main(["generate", "small.txt", "--case", "R3", "--events", "6", "--replicas", "2"]) == 0
    assert main(["check", "small-0.txt", "small-1.txt"]) == 0


def test_the_same_seed_generates_the_same_file(folder, capsys):
    for name in ("one.jsonl", "two.jsonl"):
        assert main(["generate", name, "--events", "50", "--seed", "3"]) == 0
    assert Path("one.jsonl").read_bytes() == Path("two.jsonl").read_bytes()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["show", "absent.jsonl"], ["absent.jsonl", "No such file"]),
        (["show", "no/such/path"], ["no/such/path: No such file or directory"]),
        (["check", "absent"], ["absent: No such file"]),
        (["diff", "good.txt", "absent"], ["absent: No such file"]),
        (["merge", "good.txt", "absent"], ["absent: No such file"]),
        (["convert", "absent", "out.jsonl"], ["absent: No such file"]),
        (["show", "."], ["is not a folder that anabranch run has written"]),
        (["show", "feed.xyz"], [".xyz", ".jsonl"]),
        (["diff", "-", "-"], ["standard input", "twice"]),
        (["check", "-", "-"], ["standard input", "twice"]),
        (["check", "good.txt", "--quarantine", "good.txt"], ["write over good.txt"]),
        (["check", "good.txt", "--output", "both.txt"], ["both.txt", "several inputs"]),
        (["convert", "both.txt", "out.txt", "--input", "c"], ["'c'", "another stream"]),
        (["generate", "out.jsonl", "--replicas", "0"], ["--replicas", "0"]),
        (["generate", "out.jsonl", "--active", "0"], ["active"]),
        (["generate", "out.jsonl", "--payload-bytes", "100000000"], ["payload_bytes"]),
        (["generate", "out.jsonl", "--max-gap", "9223372036854775807"], ["int64"]),
        (["show", "broken.parquet"], ["broken.parquet"]),
        (["show", "broken.arrow"], ["broken.arrow"]),
        (["diff", "good.txt", "odd.jsonl"], ["column 'v'", "one type"]),
        (["convert", "good.txt", "no/such/folder/out.jsonl"], ["No such file"]),
        (["generate", "-", "--replicas", "2"], ["several replicas"]),
        (["generate", "out.jsonl", "--disorder", "7"], ["disorder", "7"]),
    ],
)
def test_misuse_and_bad_input_give_a_message_and_status_2(folder, capsys, arguments, words):
    Path("broken.parquet").write_bytes(b"PAR1 but not really")
    Path("broken.arrow").write_bytes(b"neither")
    Path("feed.xyz").touch()
    Path("both.txt").write_text("c: + a [1, 2)\nc: detach\nc: attach\nc: + a [1, 2)\n")
    Path("odd.jsonl").write_text(
        '{"kind":"insert","start":1,"end":2,"payload":{"v":1}}\n'
        '{"kind":"insert","start":1,"end":2,"payload":{"v":"x"}}\n'
    )
    assert main(arguments) == 2
    message = capsys.readouterr().err
    assert message.startswith("anabranch: ")
    assert "Traceback" not in message
    for word in words:
        assert word in message


@pytest.mark.parametrize(
    "arguments", [["shwo"], ["show", "good.txt", "--at", "-3"], ["show", "good.txt", "--limit", "x"]], ids=str
)
def test_arguments_that_make_no_sense_are_misuse(capsys, arguments):
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2


def test_an_empty_file_denotes_nothing(folder, capsys):
    Path("empty.txt").write_text("")
    assert main(["show", "empty.txt"]) == 0
    assert "0 elements, 0 events" in capsys.readouterr().out
    assert main(["check", "empty.txt", "--output", "good.txt"]) == 1
    assert "C1" in capsys.readouterr().out
    assert main(["diff", "empty.txt", "empty.txt"]) == 0


def test_what_a_payload_says_is_shown_as_it_is(folder, capsys):
    Path("odd.txt").write_text('+ "[/]" [1, 2)\n+ "[red]x :smile:" [-inf, 5)\n+ b [-inf, inf)\n')
    assert main(["show", "odd.txt"]) == 0
    out = capsys.readouterr().out
    assert "[/]" in out
    assert "[red]x :smile:" in out
    assert "▶" in out


def test_payloads_that_json_has_no_type_for_are_shown_checked_and_quarantined(folder, capsys):
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    rows = [Insert({"at": moment, "raw": b"x"}, 5, 9), Insert({"at": moment}, 7, 7)]
    Target.named("typed.parquet").write([Batch.of(rows)])
    assert main(["check", "typed.parquet", "--quarantine", "aside.jsonl", "--json"]) == 1
    assert "2026-01-01" in json.loads(Path("aside.jsonl").read_text())["element"]
    assert main(["show", "typed.parquet", "--on-violation", "drop"]) == 0
    assert "2026-01-01" in capsys.readouterr().out


def test_a_history_leaves_out_what_is_invalid(folder, capsys):
    assert main(["show", "bad.txt", "--history"]) == 2
    assert "insert-behind-stable" in capsys.readouterr().err
    assert main(["show", "bad.txt", "--history", "--on-violation", "drop"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_the_quarantine_of_a_diff_has_what_both_files_had(folder, capsys):
    Path("fine.txt").write_text("+ a [3, 9)\n| 5\n+ b [5, 6)\n")
    for pair in (["bad.txt", "fine.txt"], ["fine.txt", "bad.txt"]):
        assert main(["diff", *pair, "--quarantine", "aside.jsonl"]) == 0
        aside = [json.loads(line) for line in Path("aside.jsonl").read_text().splitlines()]
        assert [row["file"] for row in aside] == ["bad.txt", "bad.txt"]


def test_properties_are_of_each_input_and_of_its_valid_elements(folder, capsys):
    Path("both.txt").write_text(
        "e: + a [1, 9)\nw: + a [1, 8)\nw: ~ a [1, 8) -> [1, 9)\ne: ~ z [5, 6) -> [5, 9)\n"
    )
    assert main(["check", "both.txt", "--properties", "--json"]) == 1
    (file,) = json.loads(capsys.readouterr().out)["files"]
    assert "insert only" in file["properties"]["e"]
    assert "insert only" not in file["properties"]["w"]


def test_a_late_joiner_is_not_asked_about_what_ended_before_its_guarantee(folder, capsys):
    Path("late.txt").write_text(
        "old: + a [1, 2)\nold: + b [1, 9)\nold: | 5\nnew: attach from 4\nnew: + b [1, 9)\nnew: | 6\n"
    )
    Path("out.txt").write_text("+ a [1, 2)\n+ b [1, 9)\n| 6\n")
    assert main(["check", "late.txt", "--output", "out.txt"]) == 0
    Path("out.txt").write_text("+ b [1, 9)\n| 6\n")
    assert main(["check", "late.txt", "--output", "out.txt"]) == 1


def test_the_same_file_twice_is_two_inputs(folder, capsys):
    assert main(["check", "good.txt", "good.txt"]) == 0
    assert "mutually consistent" in capsys.readouterr().out


def test_a_command_that_is_terminated_leaves_no_part_of_a_file(folder):
    command = [sys.executable, "-m", "anabranch.cli.main", "convert", "-", "out.jsonl"]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
        # More than a pipe holds: once it is written, the command is reading and its file is open.
        process.stdin.write(b'{"kind":"stable","time":1}\n' * 50_000)
        process.stdin.flush()
        assert len(list(folder.glob(".out.jsonl.*"))) == 1
        process.terminate()
        assert process.wait() == 143
    assert sorted(path.name for path in folder.iterdir()) == ["bad.txt", "good.txt"]


def test_a_closed_pipe_ends_the_command_quietly(folder):
    Path("long.txt").write_text("".join(f"+ a [{i}, {i + 1})\n" for i in range(20_000)))
    command = f"{sys.executable} -m anabranch.cli.main convert long.txt - | head -n 1"
    result = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert result.stdout.count("\n") == 1
    assert "Traceback" not in result.stderr
    assert "Broken" not in result.stderr
