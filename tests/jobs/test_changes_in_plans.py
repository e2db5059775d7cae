"""Replicas of the changes of a table in job files: merged by a step, and nothing else before it."""

from pathlib import Path

import pytest

import anabranch as ab
from anabranch.jobs.job import Job
from anabranch.jobs.job_file import read_job

COLUMNS = {"op": "string", "at": "int64", "who": "string", "id": "int64", "v": "string"}
SOURCE = """
[sources.people]
path = "people.jsonl"
columns = { op = "string", at = "int64", who = "string", id = "int64", v = "string" }
start = "at"
op = "op"
key = "id"
replica = "who"
replicas = ["a", "b"]
"""
MERGED = '[{ merge = { policy = "every-change", remember = 9 } }, { filter = "v == \'x\'" }]'


def job(folder: Path, steps: str) -> Job:
    (folder / "people.jsonl").touch()
    (folder / "job.toml").write_text(f"{SOURCE}\n[plan]\nsteps = {steps}\n")
    found = read_job(str(folder / "job.toml"))
    assert isinstance(found, Job)
    return found


def test_they_are_merged_by_a_step_with_its_settings(tmp_path):
    heard = ab.source(
        "people", COLUMNS, start="at", op="op", key="id", replica="who", replicas=["a", "b"]
    ).merge(policy=ab.EveryChange(), remember=9)
    meant = heard.filter(ab.col("v") == "x")
    made = job(tmp_path, MERGED).stream
    assert made.explain() == meant.explain()
    rows = [{"op": "insert", "at": 3, "who": who, "id": 1, "v": "x"} for who in "ab"]
    found = [one.open().push("people", rows) for one in (made, meant)]
    assert found[0] == found[1]
    assert [(row["kind"], row["id"], row["start"]) for row in found[0]] == [("insert", 1, 3)]


@pytest.mark.parametrize(
    ("steps", "words"),
    [
        ("[]", ["the result of a plan is one stream", 'Add "merge" to the steps']),
        ('[{ filter = "id > 3" }, "merge"]', ["filter is of one stream", 'step "merge" before it', "step 1"]),
        ("[{ lasting = 3 }]", ["lasting is of one stream", 'step "merge" before it']),
        ('[{ merge = { identity = "v" } }]', ["told apart by its key", "Leave identity out"]),
        ('[{ merge = { case = "R1" } }]', ["rows of a table end by adjusts", "R3 or R4"]),
    ],
)
def test_what_cannot_be_done_with_them_is_told_with_the_way_out(tmp_path, steps, words):
    with pytest.raises(ab.PlanError) as raised:
        job(tmp_path, steps)
    told = "\n".join([str(raised.value), *raised.value.__notes__])
    for word in [*words, "job.toml"]:
        assert word in told
