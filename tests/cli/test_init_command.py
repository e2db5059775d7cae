"""A project to begin with: what is written, and that it runs as its README says."""

import json
import shutil
from datetime import datetime, timedelta
from itertools import product
from pathlib import Path

import pytest
from cli.spark_commands import run

from anabranch.cli.main import main

SENSORS = ("hall", "lab", "roof")
MINUTES = range(12)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(f.relative_to(folder)): f.read_bytes() for f in folder.rglob("*") if f.is_file()}


def good_rows(folder: Path) -> list[tuple[str, float, datetime]]:
    """The rows that are whole, have a time, and have a number for a level."""
    rows = []
    for file in sorted(folder.rglob("*.jsonl")):
        for line in file.read_text().splitlines():
            try:
                row = json.loads(line)
                rows.append((row["sensor"], float(row["level"]), datetime.fromisoformat(row["at"])))
            except (ValueError, TypeError):
                continue
    return rows


def readings(rows) -> set[tuple[str, int]]:
    return {(sensor, at.minute) for sensor, _, at in rows}


def test_the_files_are_the_same_every_time(tmp_path, capsys):
    assert main(["init", str(tmp_path / "one")]) == 0
    assert main(["init", str(tmp_path / "two" / "deep")]) == 0
    one = contents(tmp_path / "one")
    assert one == contents(tmp_path / "two" / "deep")
    assert {"job.toml", "README.md", "feeds/east/0001.jsonl", "feeds/west/0001.jsonl"} <= set(one)
    assert len(one["README.md"].splitlines()) <= 25


def test_neither_replica_has_all_and_together_they_do(tmp_path):
    main(["init", str(tmp_path)])
    every = set(product(SENSORS, MINUTES))
    east, west = (good_rows(tmp_path / "feeds" / name) for name in ("east", "west"))
    assert readings(east) < every
    assert readings(west) < every
    assert readings(east) | readings(west) == every
    assert len(east) > len(set(east)), "east repeats itself"
    assert len(west) == len(set(west))
    assert len(set(east) | set(west)) == len(every), "they agree about every level"
    lines = sum(
        text.count(b"\n") + (not text.endswith(b"\n"))
        for text in contents(tmp_path / "feeds").values()
        if text
    )
    assert lines == len(east) + len(west) + 3


def test_what_to_type_next_is_said(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["init", "a project"]) == 0
    said = capsys.readouterr().out
    assert "wrote a project/job.toml" in said
    wanted = ["cd 'a project'", "doctor job.toml", "run job.toml --check", "run job.toml --once"]
    places = [said.index(words) for words in wanted]
    assert places == sorted(places)
    monkeypatch.chdir(tmp_path / "a project")
    assert main(["init", "--force"]) == 0
    assert "cd " not in capsys.readouterr().out
    assert main(["init", "--force", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["folder"] == str(tmp_path / "a project")
    assert set(answer["files"]) == set(contents(tmp_path / "a project"))
    assert answer["next"][-1].endswith("run job.toml --once")


def test_files_that_are_there_are_named_and_nothing_is_written(tmp_path, capsys):
    (tmp_path / "job.toml").write_text("mine")
    (tmp_path / "feeds" / "west").mkdir(parents=True)
    (tmp_path / "feeds" / "west" / "0002.jsonl").symlink_to(tmp_path / "gone")
    assert main(["init", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert "same names: job.toml, feeds/west/0002.jsonl" in said
    assert "--force" in said
    assert contents(tmp_path) == {"job.toml": b"mine"}


def test_force_replaces_its_own_files_and_no_others(tmp_path, capsys):
    (tmp_path / "job.toml").write_text("mine")
    (tmp_path / "feeds" / "east").mkdir(parents=True)
    (tmp_path / "feeds" / "east" / "0009.jsonl").write_text("also mine")
    (tmp_path / "merged").mkdir()
    assert main(["init", str(tmp_path), "--force"]) == 0
    assert "merged is of an earlier run" in capsys.readouterr().out
    assert b"[merge]" in (tmp_path / "job.toml").read_bytes()
    assert (tmp_path / "feeds" / "east" / "0009.jsonl").read_text() == "also mine"


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A project that has run once, as its README says."""
    folder = tmp_path_factory.mktemp("projects") / "pipeline"
    made = run("init", "pipeline", cwd=folder.parent)
    assert made.returncode == 0, made.stderr
    done = run("run", "job.toml", "--once", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder, done.stderr


@pytest.mark.slow
def test_the_merged_stream_has_every_reading_once(project):
    folder, said = project
    lines = [line for file in (folder / "merged").glob("*.jsonl") for line in file.read_text().splitlines()]
    rows = [json.loads(line) for line in lines]
    assert {row["kind"] for row in rows} == {"insert", "stable"}
    merged = [row for row in rows if row["kind"] == "insert"]
    found = [(row["sensor"], row["level"], datetime.fromisoformat(row["start"])) for row in merged]
    assert sorted(found) == sorted(set(good_rows(folder / "feeds")))
    assert readings(found) == set(product(SENSORS, MINUTES))
    for row in merged:
        start, end = map(datetime.fromisoformat, (row["start"], row["end"]))
        assert end - start == timedelta(minutes=1)
    assert "east 0:04:00 behind" in said, "east is down for a while"


@pytest.mark.slow
def test_the_bad_rows_are_in_quarantine_with_their_places(project):
    folder, _ = project
    lines = [
        line for f in (folder / "merged" / "_quarantine").iterdir() for line in f.read_text().splitlines()
    ]
    refused = {tuple(row["place"].split("/")[-2:]): row for row in map(json.loads, lines)}
    assert set(refused) == {("east", "0002.jsonl:5"), ("west", "0002.jsonl:5"), ("west", "0003.jsonl:10")}
    assert '"n/a"' in refused["west", "0002.jsonl:5"]["raw"]
    assert "column 'at' is null" in refused["west", "0003.jsonl:10"]["reason"]


def doctored(folder: Path) -> dict[str, dict]:
    done = run("doctor", "job.toml", "--json", cwd=folder)
    answer = json.loads(done.stdout)
    assert done.returncode == (0 if answer["well"] else 1), done.stderr
    return {check["check"]: check for check in answer["checks"]}


@pytest.mark.slow
def test_a_project_that_has_run_is_well_and_a_torn_checkpoint_is_found(project, tmp_path):
    shutil.copytree(project[0], tmp_path / "copy")
    folder = tmp_path / "copy"
    checks = doctored(folder)
    assert "after micro-batch 3" in checks["checkpoint"]["found"]
    assert "files of this query" in checks["sink"]["found"]
    assert {check["state"] for check in checks.values()} <= {"ok", "note"}

    (folder / "merged" / "_checkpoint" / "offsets" / "3").write_text("v1\n")
    checks = doctored(folder)
    assert checks["checkpoint"]["state"] == "trouble"
    assert "offsets/3" in checks["checkpoint"]["found"]

    shutil.rmtree(folder / "merged" / "_checkpoint")
    checks = doctored(folder)
    assert checks["checkpoint"]["state"] == "ok"
    assert checks["sink"]["state"] == "trouble"
    assert "not of this query" in checks["sink"]["found"]
