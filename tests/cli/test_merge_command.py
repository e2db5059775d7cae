"""`anabranch merge`, as a person or a script meets it."""

import json
import signal
import subprocess
import sys
from io import BytesIO, TextIOWrapper
from pathlib import Path
from random import Random

import pytest

from anabranch import Case, Insert, Stable, parse
from anabranch.cli.main import main
from anabranch.connectors.files.writing import Target
from anabranch.model.batch import Batch
from anabranch.model.output_policy import POLICIES
from anabranch.testing.faults import interleave, late_join, restart
from anabranch.testing.presentations import Habits, present, replicas

EAST = "+ a [1, 4)\n+ c [3, 8)\n+ d [6, 9)\n| inf\n"
WEST = "+ a [1, 4)\n+ b [2, 6)\n+ c [3, 8)\n| inf\n"
UNION = "+ a [1, 4)\n+ b [2, 6)\n+ c [3, 8)\n+ d [6, 9)\n| inf\n"


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("east.txt").write_text(EAST)
    Path("west.txt").write_text(WEST)
    Path("union.txt").write_text(UNION)
    return tmp_path


@pytest.fixture
def feeds(folder) -> list[str]:
    """Three replicas with disorder and revisions."""
    assert main(["generate", "feed.parquet", "--events", "400", "--replicas", "3", "--revisions", "0.2"]) == 0
    return ["feed-0.parquet", "feed-1.parquet", "feed-2.parquet"]


def status(capsys) -> dict:
    return json.loads(capsys.readouterr().out)


def test_the_union_of_replicas_with_holes_is_complete(folder, capsys):
    assert main(["merge", "east.txt", "west.txt", "--lossy", "all", "--out", "-"]) == 0
    captured = capsys.readouterr()
    Path("merged.jsonl").write_text(captured.out)
    assert main(["diff", "merged.jsonl", "union.txt"]) == 0
    table = [line.split() for line in captured.err.splitlines()]
    assert ["east", "∞", "0", "4", "60%", "0", "1", "1", "0", "0", "0", "lossy"] in table


@pytest.mark.parametrize("ending", ["jsonl", "txt", "parquet", "arrow"])
def test_files_of_every_format_are_merged_into_every_format(feeds, capsys, ending):
    assert main(["convert", "feed-1.parquet", "second.jsonl"]) == 0
    assert main(["convert", "feed-2.parquet", "third.arrow"]) == 0
    assert main(["merge", "feed-0.parquet", "second.jsonl", "third.arrow", "--out", f"merged.{ending}"]) == 0
    assert main(["check", *feeds, "--output", f"merged.{ending}"]) == 0
    assert main(["diff", f"merged.{ending}", "feed-0.parquet"]) == 0


@pytest.mark.parametrize("policy", [*POLICIES, "quorum=0.7", "leader=latest", "leader=unfrozen"])
@pytest.mark.parametrize("lag", ["0", "5000"])
def test_every_policy_gives_the_same_relation(feeds, capsys, policy, lag):
    assert main(["merge", *feeds, "--policy", policy, "--lag", lag, "--out", "merged.parquet"]) == 0
    assert main(["diff", "merged.parquet", "feed-0.parquet"]) == 0


def test_final_only_has_no_adjusts(feeds, capsys):
    assert main(["merge", *feeds, "--policy", "final", "--out", "merged.txt"]) == 0
    assert "~" not in Path("merged.txt").read_text()


def test_the_same_files_give_the_same_stream_every_time(feeds, capsys):
    for name in ("one.jsonl", "two.jsonl"):
        assert main(["merge", *feeds, "--out", name]) == 0
    assert Path("one.jsonl").read_bytes() == Path("two.jsonl").read_bytes()


@pytest.mark.parametrize("case", list(Case))
def test_streams_of_every_case_are_merged_in_it(folder, capsys, case):
    _, streams = replicas(Random(7), 2, case=case)
    for name, stream in zip(("one.txt", "two.txt"), streams, strict=True):
        Target.named(name).write([Batch.of(stream)])
    assert main(["merge", "one.txt", "two.txt", "--case", case.name, "--json", "--out", "m.txt"]) == 0
    assert status(capsys)["case"] == case.name
    assert main(["diff", "m.txt", "one.txt"]) == 0


def test_a_recording_is_played_with_the_inputs_that_come_and_go(folder, capsys):
    random = Random(5)
    events, (stream, again) = replicas(random, 2)
    inputs = {
        "east": stream,
        "west": restart(stream, again, random),
        "north": late_join(events, random, guarantee=4),
    }
    Target.named("all.jsonl").write([Batch.of(interleave(inputs, random))])
    Target.named("reference.txt").write([Batch.of(stream)])
    assert main(["merge", "all.jsonl", "--json", "--out", "merged.jsonl"]) == 0
    assert set(status(capsys)["inputs"]) == {"east", "west", "north"}
    assert main(["diff", "merged.jsonl", "reference.txt"]) == 0
    assert main(["check", "all.jsonl", "--output", "merged.jsonl"]) == 0


def test_what_is_asked_for_an_input_holds_in_a_recording(folder, capsys):
    lines = [f"{name}: {line}\n" for name, text in (("e", EAST), ("w", WEST)) for line in text.splitlines()]
    Path("both.txt").write_text("w: attach from 3\n" + "".join(lines))
    assert main(["merge", "both.txt", "--lossy", "e,w", "--out", "m.txt"]) == 0
    assert main(["diff", "m.txt", "union.txt"]) == 0
    assert main(["merge", "both.txt", "--lossy", "e,x", "--out", "n.txt"]) == 2
    assert "none is called 'x'" in capsys.readouterr().err
    assert not Path("n.txt").exists()


def test_speech_after_a_detach_is_refused_as_it_is_by_check(folder, capsys):
    Path("gone.txt").write_text(
        "e: detach\ne: attach\ne: attach\ne: + a [1, 2)\ne: detach\ne: + b [2, 3)\ne: | inf\n"
    )
    assert main(["merge", "gone.txt"]) == 2
    assert "detached-input" in capsys.readouterr().err
    assert main(["merge", "gone.txt", "--quarantine", "aside.jsonl", "--out", "m.txt"]) == 0
    aside = [json.loads(line) for line in Path("aside.jsonl").read_text().splitlines()]
    codes = [(row["code"], row["element"], row["file"]) for row in aside]
    assert codes == [
        ("detached-input", "detach", "gone.txt"),
        ("already-attached", "attach", "gone.txt"),
        ("detached-input", "+ b [2, 3)", "gone.txt"),
        ("detached-input", "| ∞", "gone.txt"),
    ]
    assert parse(Path("m.txt").read_text()) == parse("+ a [1, 2)")


def test_replicas_that_disagree_are_merged_with_status_1_and_named(folder, capsys):
    assert main(["merge", "east.txt", "west.txt", "--to", "text"]) == 1
    captured = capsys.readouterr()
    assert parse(captured.out)
    assert "west has" in captured.err
    assert main(["merge", "east.txt", "west.txt", "--json", "--out", "m.txt"]) == 1
    answer = status(capsys)
    assert answer["inputs"]["west"]["disagreements"] == 2
    event = {"payload": {"value": "d"}, "start": 6, "end": 9}
    assert {"input": "west", "shown": None, "given": event, "since": None} in answer["disagreements"]


def test_infinite_times_are_null_and_those_that_never_were_are_left_out(folder, capsys):
    Path("open.txt").write_text("+ a [1, 4)\n")
    assert main(["merge", "open.txt", "--json", "--out", "m.txt"]) == 0
    answer = status(capsys)
    assert "frontier" not in answer
    assert "frontier" not in answer["inputs"]["open"]
    assert main(["merge", "east.txt", "--json", "--out", "m.txt"]) == 0
    answer = status(capsys)
    assert answer["frontier"] is None
    assert answer["inputs"]["east"]["frontier"] is None


def test_the_stream_is_alone_on_standard_output(folder, capsys):
    assert main(["merge", "east.txt", "west.txt", "--lossy", "all", "--json"]) == 0
    captured = capsys.readouterr()
    assert {json.loads(line)["kind"] for line in captured.out.splitlines()} == {"insert", "stable"}
    assert json.loads(captured.err)["inserts"] == 4


def test_one_input_may_come_from_standard_input(folder, capsys, monkeypatch):
    main(["convert", "west.txt", "west.jsonl"])
    monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(Path("west.jsonl").read_bytes())))
    main(["convert", "east.txt", "east.jsonl"])
    capsys.readouterr()
    assert main(["merge", "east.jsonl", "-", "--lossy", "stdin,east", "--json", "--out", "m.txt"]) == 0
    assert list(status(capsys)["inputs"]) == ["east", "stdin"]


@pytest.mark.parametrize(
    ("files", "names"),
    [
        (["east.txt", "west.txt"], ["east", "west"]),
        (["one=east.txt", "west.txt"], ["one", "west"]),
        (["east.txt", "east.jsonl"], ["east.txt", "east.jsonl"]),
        (["east.txt", "sub/east.txt"], ["east.txt", "sub/east.txt"]),
        (["a=east.txt", "b=east.txt"], ["a", "b"]),
        (["x=y.txt", "east.txt"], ["x=y", "east"]),
    ],
)
def test_inputs_are_called_as_little_as_tells_them_apart(folder, capsys, files, names):
    main(["convert", "east.txt", "east.jsonl"])
    Path("sub").mkdir()
    for copy in ("sub/east.txt", "x=y.txt"):
        Path(copy).write_text(EAST)
    capsys.readouterr()
    assert main(["merge", *files, "--explain", "--json"]) == 0
    assert status(capsys)["inputs"] == names


def test_explain_says_which_case_and_why_and_merges_nothing(folder, capsys):
    files = ["east.txt", "west.txt", "--out", "m.txt", "--explain"]
    assert main(["merge", *files]) == 0
    assert "R4: keyed is not declared for east" in capsys.readouterr().out
    assert main(["merge", *files, "--declare", "perfect", "--declare", "west=keyed"]) == 0
    out = capsys.readouterr().out
    assert "R2, counting repeats" in out
    assert "west: complete, declared insert only, ordered, keyed" in out
    assert main(["merge", *files, "--declare", "insert-only,strictly_increasing", "--policy", "leader"]) == 0
    assert "R3" in capsys.readouterr().out
    assert not Path("m.txt").exists()
    Path("both.txt").write_text("e: + a [1, 2)\nw: | 5\n")
    assert main(["merge", "both.txt", "--lossy", "w", "--explain"]) == 0
    assert "w: lossy" in capsys.readouterr().out


@pytest.mark.parametrize(("on_broken", "code"), [("raise", 2), ("generalise", 0), ("drop", 0)])
def test_an_input_that_breaks_what_is_declared_is_dealt_with_as_asked(folder, capsys, on_broken, code):
    disorder = "+ b [2, 6)\n+ a [1, 4)\n| inf\n"
    for name in ("one.txt", "two.txt"):
        Path(name).write_text(disorder)
    arguments = ["merge", "one.txt", "two.txt", "--declare", "perfect,keyed", "--out", "m.txt"]
    assert main([*arguments, "--on-broken", on_broken, "--quarantine", "aside.jsonl"]) == code
    message = capsys.readouterr().err
    if on_broken == "raise":
        assert "broken-property" in message
        assert not Path("m.txt").exists()
    elif on_broken == "generalise":
        assert "R2 to R3" in message
        assert main(["diff", "m.txt", "one.txt"]) == 0
    else:
        aside = [json.loads(line) for line in Path("aside.jsonl").read_text().splitlines()]
        assert [(row["code"], row["file"]) for row in aside] == [
            ("broken-property", "one.txt"),
            ("broken-property", "two.txt"),
        ]


def test_invalid_elements_and_lines_are_left_out_and_can_be_read(folder, capsys):
    Path("bad.txt").write_text("+ a [1, 4)\n| 2\n+ late [1, 4)\nnonsense\n+ c [3, 8)\n| inf\n")
    assert main(["merge", "bad.txt", "--out", "m.txt"]) == 2
    capsys.readouterr()
    assert main(["merge", "bad.txt", "--out", "m.txt", "--on-violation", "drop"]) == 0
    assert "left out of bad.txt: 1 malformed, 1 insert-behind-stable" in capsys.readouterr().err
    assert main(["merge", "bad.txt", "--out", "m.txt", "--quarantine", "aside.jsonl"]) == 0
    aside = [json.loads(line) for line in Path("aside.jsonl").read_text().splitlines()]
    assert {(row["code"], row["file"]) for row in aside} == {
        ("insert-behind-stable", "bad.txt"),
        ("malformed", "bad.txt"),
    }
    assert parse(Path("m.txt").read_text()) == parse("+ a [1, 4)\n| 2\n+ c [3, 8)\n| inf")


@pytest.mark.parametrize("option", ["--out", "--quarantine"])
def test_an_input_is_not_written_over_however_its_path_is_spelled(folder, option, capsys):
    Path("sub").mkdir()
    Path("sub/in.txt").write_text("+ a [1, 4)\n| inf\n")
    Path("link").symlink_to("sub")
    for path in ("link/in.txt", "sub/../sub/in.txt"):
        assert main(["merge", "sub/in.txt", option, path]) == 2
    assert "would write over" in capsys.readouterr().err
    assert Path("sub/in.txt").read_text() == "+ a [1, 4)\n| inf\n"


def test_a_merge_that_nobody_can_lead_says_so_and_fails(folder, capsys):
    Path("joiner.txt").write_text("+ a [7, 9)\n| 8\n")
    assert main(["merge", "joiner.txt", "--guarantee", "joiner=6", "--out", "m.txt"]) == 1
    assert "stuck: nobody who is attached shows the events before 6" in capsys.readouterr().err


def test_what_comes_too_late_from_a_lossy_input_can_be_read(folder, capsys):
    Path("fast.txt").write_text("+ a [1, 4)\n| 5\n")
    Path("slow.txt").write_text("+ b [2, 4)\n| 3\n")
    arguments = ["merge", "fast.txt", "slow.txt", "--lossy", "all", "--pace", "fastest"]
    assert main([*arguments, "--out", "m.txt", "--quarantine", "aside.jsonl"]) == 0
    (row,) = [json.loads(line) for line in Path("aside.jsonl").read_text().splitlines()]
    assert (row["code"], row["file"], row["element"]) == ("late", "slow.txt", "+ b [2, 4)")


def test_events_are_told_apart_by_the_columns_that_are_named(folder, capsys):
    for name, strength in (("one", -40), ("two", -62)):
        rows = [Insert({"sensor": "s", "strength": strength}, 1, 2), Stable(2**63 - 1)]
        Target.named(f"{name}.jsonl").write([Batch.of(rows)])
    arguments = ["merge", "one.jsonl", "two.jsonl", "--to", "text"]
    assert main(arguments) == 1
    capsys.readouterr()
    assert main([*arguments, "--identity", "sensor"]) == 0
    assert parse(capsys.readouterr().out)[0].payload == {"sensor": "s", "strength": -40}


def test_an_input_that_joined_late_is_not_asked_about_what_it_cannot_know(folder, capsys):
    events, (stream,) = replicas(Random(3), 1)
    Target.named("old.txt").write([Batch.of(stream)])
    known = [event for event in events if event.end >= 4]
    Target.named("new.txt").write([Batch.of(present(known, Random(4)))])
    assert main(["merge", "old.txt", "new.txt", "--guarantee", "new=4", "--out", "m.txt"]) == 0
    assert main(["diff", "m.txt", "old.txt"]) == 0


def test_an_input_that_ends_early_leaves_the_others_to_go_on(folder, capsys):
    events, (stream,) = replicas(Random(8), 1)
    early = present(events, Random(9), habits=Habits(closed=False))
    Target.named("whole.txt").write([Batch.of(stream)])
    Target.named("early.txt").write([Batch.of(early[: len(early) // 2])])
    for lossy in ([], ["--lossy", "all"]):
        assert main(["merge", "early.txt", "whole.txt", *lossy, "--out", "m.txt"]) == 0
        assert main(["diff", "m.txt", "whole.txt"]) == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["absent.jsonl", "east.txt"], ["absent.jsonl", "No such file"]),
        (["east.txt", "east.txt"], ["east.txt is given twice", "one=east.txt"]),
        (["a=east.txt", "a=west.txt"], ["'a'", "name of its own"]),
        (["-", "x=-"], ["standard input", "twice"]),
        (["east.txt", "both.txt"], ["both.txt", "by itself", "--input NAME"]),
        (["east.txt", "west.txt", "--lossy", "north"], ["--lossy", "'north'", "'east', 'west'"]),
        (["east.txt", "west.txt", "--guarantee", "north=3"], ["--guarantee", "'north'"]),
        (["east.txt", "west.txt", "--declare", "north=keyed"], ["--declare", "'north'"]),
        (["east.txt", "--lossy", "all", "--guarantee", "east=3"], ["lossy", "guarantee"]),
        (["east.txt", "west.txt", "--lossy", "all", "--case", "R3"], ["R3", "lossy", "R4"]),
        (["east.txt", "west.txt", "--case", "R1", "--policy", "leader"], ["R1", "leader"]),
        (["east.txt", "west.txt", "--identity", "sensor"], ["'sensor'", "'value'"]),
        (["east.txt", "west.txt", "--out", "east.txt"], ["--out", "write over east.txt"]),
        (["east.txt", "--quarantine", "q.jsonl", "--out", "q.jsonl"], ["write over q.jsonl"]),
        (["east.txt", "--out", "m.xyz"], [".xyz"]),
    ],
)
def test_misuse_gives_a_message_and_status_2(folder, capsys, arguments, words):
    Path("both.txt").write_text("e: + a [1, 2)\nw: | 5\n")
    before = sorted(folder.iterdir())
    assert main(["merge", *arguments]) == 2
    message = capsys.readouterr().err
    assert message.startswith("anabranch: ")
    for word in words:
        assert word in message
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--policy", "sometimes"], ["half-frozen", "'sometimes'"]),
        (["--policy", "first=2"], ["quorum=SHARE"]),
        (["--policy", "leader=loudest"], ["stable, latest or unfrozen", "'loudest'"]),
        (["--policy", "quorum=7"], ["above 0 and at most 1", "'7'"]),
        (["--declare", "sorted"], ["strictly-increasing", "'sorted'"]),
        (["--declare", ""], ["strictly-increasing"]),
        (["--guarantee", "5"], ["NAME=TICK"]),
        (["--guarantee", "a=soon"], ["NAME=TICK", "soon"]),
        (["--lag", "-3"], ["'-3'"]),
    ],
)
def test_arguments_that_make_no_sense_say_what_would(capsys, arguments, words):
    with pytest.raises(SystemExit) as stopped:
        main(["merge", "a.jsonl", "b.jsonl", *arguments])
    assert stopped.value.code == 2
    message = capsys.readouterr().err
    for word in words:
        assert word in message


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_merge_that_is_stopped_leaves_no_part_of_a_file(folder, sent, code):
    command = [sys.executable, "-m", "anabranch.cli.main", "merge", "-", "east.txt", "--out", "out.jsonl"]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
        # More than a pipe holds: once it is written, the command is reading and its file is open.
        process.stdin.write(b'{"kind":"stable","time":1}\n' * 50_000)
        process.stdin.flush()
        assert len(list(folder.glob(".out.jsonl.*"))) == 1
        process.send_signal(sent)
        assert process.wait() == code
    assert not list(folder.glob("*out*"))


def test_nothing_merged_is_nothing(folder, capsys):
    Path("empty.txt").write_text("")
    Path("blank.txt").write_text("")
    assert main(["merge", "empty.txt", "blank.txt"]) == 0
    assert capsys.readouterr().out == ""
    assert main(["merge", "empty.txt", "--out", "m.parquet"]) == 0
