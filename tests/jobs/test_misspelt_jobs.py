"""Every word of a job that stands for something, misspelt: the job is refused, or the word is reported."""

import json
import re

import pytest

import anabranch as ab
from anabranch.cli.main import main
from anabranch.jobs.beforehand import check_job
from anabranch.jobs.job_file import read_job
from anabranch.jobs.sampled_keys import remarks

REPLICAS = """
[sources.readings]
path = "feeds"
columns = { room = "string", level = "float64", note = "string", at = "int64", replica = "string" }
start = "at"
duration = 5
disorder = 10
properties = "keyed"
replica = "replica"
replicas = ["north", "south"]
idle = ["south"]
lossy = ["north"]
on_late = "drop"

[plan]
from = "readings"
steps = [
  { filter = "level.abs() > 3 and room.is_not_null()" },
  { merge = { policy = { name = "final", lag = 2 }, pace = "slowest", identity = ["room", "level"] } },
  { sort = true },
]

[sink]
path = "merged"
format = "jsonl"
"""

WINDOWS = """
[sources.readings]
path = "readings.jsonl"
columns = { room = "string", level = "float64", at = "int64" }
start = "at"
disorder = 20

[sources.rooms]
path = "rooms.parquet"
columns = { room = "string", floor = "int64", at = "int64" }
start = "at"
disorder = 20

[plan.warm]
from = "readings"
steps = [{ distinct = ["room", "level"] }, { rename = { level = "heat" } }]

[plan.last]
from = "warm"
steps = [
  { join = { right = "rooms", on = "room", within = [10, 0], suffix = "_of" } },
  { window = { size = 10, every = 5 } },
  { group_by = ["floor"] },
  { agg = { most = "heat.max()" } },
]

[sink]
file = "out.jsonl"
"""

MERGE = """
[source]
path = "feeds"
schema = "room string, level double, note string, at timestamp"

[merge]
start = "at"
duration = "5 minutes"
disorder = "10 minutes"
replica = "replica"
replicas = ["north", "south"]
idle = ["south"]
lossy = ["north"]
identity = ["room"]
policy = "final"
pace = "slowest"
on_late = "drop"
properties = "keyed"

[sink]
path = "merged"
format = "jsonl"
trigger = "10 seconds"

[spark]
shards = 2
"""

FREE = {"most", "last", "_of", "merged", "out", "jsonl"}
"""Words that a person chooses, and the name of a place that is made."""
WORD = re.compile(r"[A-Za-z_]{2,}")


def misspelt(word):
    """The word with its middle letter doubled and its last gone, which is no word of any job."""
    middle = len(word) // 2
    return word[:middle] + word[middle - 1] + word[middle:-1] if len(word) > 3 else word + "x"


def variants(text):
    """Every job that has one word of another misspelt, with that word."""
    for found in WORD.finditer(text):
        word = found[0]
        if word not in FREE and word != misspelt(word):
            line = text.count("\n", 0, found.start()) + 1
            wrong = misspelt(word)
            yield pytest.param(
                text[: found.start()] + wrong + text[found.end() :], wrong, id=f"{line} {wrong}"
            )


@pytest.fixture
def place(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = [{"room": room, "level": 5.0, "note": "x", "at": at} for room, at in (("A", 1), ("B", 40))]
    for replica in ("north", "south"):
        (tmp_path / "feeds" / replica).mkdir(parents=True)
        (tmp_path / "feeds" / replica / "1.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    bare = [{name: row[name] for name in ("room", "level", "at")} for row in rows]
    (tmp_path / "readings.jsonl").write_text("".join(json.dumps(row) + "\n" for row in bare))
    floors = pa.Table.from_pylist([{"room": "A", "floor": 1, "at": 0}, {"room": "B", "floor": 2, "at": 39}])
    pq.write_table(floors, tmp_path / "rooms.parquet")
    return tmp_path


def run(place, text):
    (place / "job.toml").write_text(text)
    return main(["run", str(place / "job.toml"), "--engine", "embedded"])


@pytest.mark.parametrize("text", [REPLICAS, WINDOWS], ids=["replicas", "windows"])
def test_as_they_are_written_they_run_and_nothing_is_remarked(text, place, capsys):
    assert run(place, text) == 0
    told = capsys.readouterr().err
    assert "did you mean" not in told
    assert "no column" not in told


@pytest.mark.parametrize(("text", "wrong"), [*variants(REPLICAS), *variants(WINDOWS)])
def test_a_plan_with_a_misspelt_word_is_refused_or_the_word_is_reported(text, wrong, place, capsys):
    status = run(place, text)
    told = capsys.readouterr().err
    assert status == 2 or f"{wrong!r}" in told, told
    assert status == 2 or "no column" in told, told


def test_as_it_is_written_a_merge_would_run(place):
    (place / "job.toml").write_text(MERGE)
    job = read_job(str(place / "job.toml"))
    check_job(job)
    assert remarks(job) == []


@pytest.mark.parametrize(("text", "wrong"), [*variants(MERGE)])
def test_a_merge_with_a_misspelt_word_is_refused_or_reported_before_spark_starts(text, wrong, place):
    (place / "job.toml").write_text(text)
    try:
        job = read_job(str(place / "job.toml"))
        check_job(job)
    except (ValueError, TypeError, OSError):
        return
    assert any(f"has column {wrong!r}" in words for words in remarks(job))


@pytest.mark.parametrize(
    "given",
    [
        {"start": "att"},
        {"start": "at", "replica": "whoo"},
        {"start": "at", "payload": ["rom"]},
        {"start": "at", "key": "rom"},
        {"start": "at", "properties": "kyed"},
        {"start": "at", "disorder": "10 minuts"},
        {"start": "at", "dsorder": 10},
        {"start": "at", "replica": "who", "replicas": ["a"], "idle": ["b"]},
        {"start": "at", "op": "what", "key": "room", "ops": {"+": "isnert"}},
    ],
)
def test_a_misspelt_argument_of_a_source_is_refused(given):
    columns = {"room": "string", "at": "int64", "who": "string", "what": "string"}
    with pytest.raises((ValueError, TypeError)):
        ab.source("s", columns, **{"disorder": 5, "lossy": False, **given})


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (MERGE.replace("shards = 2", "shards = 0"), "at least 1 shard, and shards is 0"),
        (MERGE.replace("shards = 2", "master = 'lokal[2]'"), "and it is 'lokal[2]'"),
        (WINDOWS + 'trigger = "1 minute"\n', "trigger is for what Spark writes"),
        (WINDOWS + "available_now = true\n", "available_now is for what Spark writes"),
    ],
    ids=["no shard", "no master", "a trigger beside a file", "available_now beside a file"],
)
def test_what_nothing_would_follow_is_refused_where_the_job_is_read(tmp_path, wrong, said):
    (tmp_path / "job.toml").write_text(wrong)
    with pytest.raises(ValueError, match=re.escape(said)):
        read_job(str(tmp_path / "job.toml"))
