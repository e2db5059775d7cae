"""The replicas that a job knows by name are awaited until they come."""

import json
import shutil

from cli.spark_commands import run


def readings(folder):
    files = (folder / "merged").glob("*.jsonl")
    rows = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    return [(row["sensor"], row["start"]) for row in rows if row["kind"] == "insert"]


def test_what_only_one_replica_heard_is_there_though_its_files_come_later(tmp_path):
    assert run("init", ".", cwd=tmp_path).returncode == 0
    away, feeds = tmp_path / "away", tmp_path / "feeds" / "west"
    shutil.move(feeds, away)
    feeds.mkdir()
    first = run("run", "job.toml", "--once", cwd=tmp_path)
    assert first.returncode == 0, first.stderr
    for file in away.iterdir():
        shutil.move(file, feeds / file.name)
    second = run("run", "job.toml", "--once", cwd=tmp_path)
    assert second.returncode == 0, second.stderr
    assert len(readings(tmp_path)) == len(set(readings(tmp_path))) == 36
    quarantined = [f.read_text() for f in (tmp_path / "merged" / "_quarantine").iterdir()]
    assert "late" not in "".join(quarantined)
