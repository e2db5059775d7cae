"""The replicas that a job knows by name are awaited until they come."""

import json
import shutil

import pytest
from cli.spark_commands import run_job

from anabranch.cli.main import main


def readings(folder):
    files = (folder / "merged").glob("*.jsonl")
    rows = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    return [(row["sensor"], row["start"]) for row in rows if row["kind"] == "insert"]


@pytest.mark.slow
def test_what_only_one_replica_heard_is_there_though_its_files_come_later(spark, tmp_path):
    assert main(["init", str(tmp_path)]) == 0
    away, feeds = tmp_path / "away", tmp_path / "feeds" / "west"
    shutil.move(feeds, away)
    feeds.mkdir()
    assert run_job(spark, str(tmp_path / "job.toml"), "--once") == 0
    for file in away.iterdir():
        shutil.move(file, feeds / file.name)
    assert run_job(spark, str(tmp_path / "job.toml"), "--once") == 0
    assert len(readings(tmp_path)) == len(set(readings(tmp_path))) == 36
    quarantined = [f.read_text() for f in (tmp_path / "merged" / "_quarantine").iterdir()]
    assert "late" not in "".join(quarantined)
