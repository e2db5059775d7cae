"""A job file with a plan means the same on Spark and without."""

import json

import pytest
from cli.spark_commands import run

from anabranch import Relation, read
from anabranch.cli.main import main

JOB = """
[sources.readings]
path = "feeds"
columns = { room = "string", level = "int64", at = "timestamp[us, tz=UTC]", replica = "string" }
start = "at"
duration = "5 minutes"
disorder = "10 minutes"
replica = "replica"
lossy = true

[plan]
steps = [{ filter = "level > 3" }, "merge", { with_columns = { excess = "level - 3" } }]

[sink]
path = "PLACE"

[spark]
master = "local[2]"
"""


def events(path):
    relation = Relation()
    for batch in read(str(path)):
        relation.apply(batch)
    return {(e.payload["room"], e.payload["excess"], e.start, e.end) for e in relation.events()}


@pytest.mark.slow
def test_a_job_file_with_a_plan_gives_the_same_events_on_both_engines(tmp_path):
    for replica, rooms in {"east": "ABD", "west": "ACD"}.items():
        (tmp_path / "feeds" / replica).mkdir(parents=True)
        rows = [
            {"room": room, "level": 2 + ord(room) - ord("A"), "at": f"2026-03-01T12:0{ord(room) - 65}:00Z"}
            for room in rooms
        ]
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (tmp_path / "feeds" / replica / "1.jsonl").write_text(f"{text}no row\n")
    for engine in ("spark", "embedded"):
        (tmp_path / f"{engine}.toml").write_text(JOB.replace("PLACE", f"{engine}-out"))
    assert main(["run", str(tmp_path / "embedded.toml"), "--engine", "embedded"]) == 0
    done = run("run", "spark.toml", "--once", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "2 quarantined" in done.stderr
    assert main(["run", str(tmp_path / "spark.toml"), "--check"]) == 0
    (tmp_path / "other.toml").write_text(JOB.replace("PLACE", "spark-out").replace("level > 3", "level > 4"))
    assert main(["run", str(tmp_path / "other.toml"), "--check"]) == 2
    assert events(tmp_path / "spark-out") == events(tmp_path / "embedded-out")
    assert {room for room, *_ in events(tmp_path / "spark-out")} == {"C", "D"}
