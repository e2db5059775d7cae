"""``anabranch explain``: a plan in words, and as a picture."""

import json

import pytest

from anabranch.cli.main import main

PLAN = """
[sources.readings]
path = "feeds"
columns = { room = "string", level = "int64", at = "int64", replica = "string" }
start = "at"
disorder = 2
replica = "replica"
lossy = true

[plan]
steps = [{ filter = "level > 3" }, "merge"]
"""


@pytest.fixture
def job(tmp_path):
    (tmp_path / "job.toml").write_text(PLAN)
    return str(tmp_path / "job.toml")


def test_a_plan_is_told_without_reading_anything(job, capsys):
    assert main(["explain", job]) == 0
    told = capsys.readouterr().out
    assert "filter level > 3" in told
    assert "R4" in told


def test_a_picture_is_written_beside_the_words(job, tmp_path, capsys):
    assert main(["explain", job, "--picture", str(tmp_path / "plan.svg")]) == 0
    assert (tmp_path / "plan.svg").read_text().startswith("<svg")
    assert "filter" in capsys.readouterr().out


def test_programs_are_told_in_json(job, capsys):
    assert main(["explain", job, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["sources"] == ["readings"]
    assert told["columns"] == {"room": "string", "level": "int64"}


def test_the_operators_of_a_plan_are_data_in_json(job, capsys):
    assert main(["explain", job, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    source, kept, merged = told["operators"]
    assert told["outputs"] == {"": 2}
    assert [one["operator"] for one in (source, kept, merged)] == ["source", "filter", "merge"]
    assert [one["inputs"] for one in (source, kept, merged)] == [[], [0], [1]]
    assert source["name"] == "readings"
    assert merged["case"] == "R4"
    assert merged["columns"] == {"room": "string", "level": "int64"}
    assert "punctuated" in merged["facts"]
    assert (source["of_replicas"], merged["of_replicas"]) == (True, False)
    assert (kept["keeps_state"], merged["keeps_state"]) == (False, True)
    assert kept["line"] == f"{job}:11"


def test_a_plan_that_means_nothing_is_told_as_misuse(job, tmp_path, capsys):
    (tmp_path / "job.toml").write_text(PLAN.replace("level > 3", "levle > 3"))
    assert main(["explain", job]) == 2
    told = capsys.readouterr().err
    assert told.startswith("anabranch: ")
    assert "levle" in told
    assert "job.toml" in told


MERGE = """
[merge]
start = "at"
disorder = 2
replica = "replica"
lossy = true

[sink]
path = "out"
"""
SCHEMA = '[source]\npath = "feeds"\nby_replica = true\nschema = "room string, level long, at long"\n'


def explained(folder, text, capsys):
    (folder / "job.toml").write_text(text)
    assert main(["explain", str(folder / "job.toml"), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_a_merge_is_explained_as_the_plan_of_one_source_and_one_merge(tmp_path, capsys):
    (tmp_path / "feeds").mkdir()
    merge = explained(tmp_path, SCHEMA + MERGE, capsys)
    assert {one["line"] for one in merge["operators"]} == {None}
    plan = explained(tmp_path, PLAN.replace('{ filter = "level > 3" }, ', ""), capsys)
    assert merge.pop("sources") == ["rows"]
    assert plan.pop("sources") == ["readings"]
    named = [line.replace("readings", "rows") for line in plan.pop("plan")]
    assert [line.split() for line in merge.pop("plan")] == [line.split() for line in named]
    for told, name in ((merge, "rows"), (plan, "readings")):
        assert told["operators"][0].pop("name") == name
        for one in told["operators"]:
            del one["line"]
            one["words"] = one["words"].replace("readings", "rows")
    assert merge == plan


def test_columns_that_only_spark_knows_are_asked_of_it_by_a_check(tmp_path, capsys):
    (tmp_path / "job.toml").write_text('[source]\nformat = "rate"\n' + MERGE)
    assert main(["explain", str(tmp_path / "job.toml")]) == 2
    told = capsys.readouterr().err
    assert "the columns of format 'rate' are known to Spark alone" in told
    assert "--check starts Spark" in told
