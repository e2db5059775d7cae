"""What Spark would refuse of a plan, its sink or its checkpoint is told by --check, without Spark."""

import pytest
from cli.test_beforehand import begin

from anabranch.cli.main import main
from anabranch.jobs.beforehand import foreseen
from anabranch.jobs.job_file import read_job
from anabranch.jobs.opened_sources import known_columns

JOB = """
[sources.readings]
path = "feeds"
columns = { room = "string", level = "float64", at = "timestamp[us, tz=UTC]", replica = "string" }
start = "at"
disorder = "10 minutes"
replica = "replica"
lossy = true

[plan]
steps = [
  { filter = "level > 3" },
  { merge = { policy = "final" } },
  { window = "1 minute" },
  { group_by = "room" },
  { agg = { most = "level.max()" } },
]

[sink]
path = "out"

[spark]
master = "local[2]"
"""
TOPIC = 'kafka = { topic = "out", servers = "localhost:1", key = "rom" }'
TABLE = 'table = { path = "t", kind = "elements", format = "parquet", '


@pytest.fixture
def place(tmp_path):
    for name in ("east", "west"):
        (tmp_path / "feeds" / name).mkdir(parents=True)
    return tmp_path


def job_of(place, text):
    (place / "job.toml").write_text(text)
    return read_job(str(place / "job.toml"))


def check(place, text):
    (place / "job.toml").write_text(text)
    return main(["run", str(place / "job.toml"), "--check"])


def replaced(*changes):
    text = JOB
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return text


def test_a_plan_that_would_run_is_let_through_and_nothing_is_made(place):
    there = sorted(place.rglob("*"))
    assert check(place, JOB) == 0
    assert sorted(place.rglob("*")) == [*there, place / "job.toml"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (JOB.replace("[sink]", '[sink]\ntrigger = "1 minut"'), "'1 minut' is none that Spark knows"),
        (replaced(('path = "out"', TOPIC)), "is column 'rom', and there is none, did you mean 'room'?"),
        (
            replaced(('path = "out"', TABLE.replace("elements", "current") + 'key = "rom" }')),
            "by a key of payload columns, and 'rom' is none",
        ),
        (replaced(('path = "out"', TABLE + 'keep = "7 dayz" }')), "7 dayz"),
        (replaced(('path = "out"', TABLE + "compact_every = 0 }")), "compact_every is 1 or more"),
        (
            replaced(('level = "float64"', 'level = "uint64"')),
            "column 'level' of source 'readings' is uint64, a type that Spark has not",
        ),
        (
            replaced(
                (
                    '"level.max()" } },',
                    """"level.max()" } },\n  { with_columns = { n = "1 + most.cast('uint64')" } },""",
                )
            ),
            "column 'n' of the result is uint64, a type that Spark has not",
        ),
        (
            replaced(('path = "out"', 'path = "out"\ntrigger = "-1 second"')),
            "'-1 second' is none that Spark knows",
        ),
        (replaced(('path = "out"', 'path = "out"\ntrigger = "10 seconsd"')), "did you mean 'second'?"),
        (
            replaced(('master = "local[2]"', 'config = { "spark.sql.shuffle.partitions" = "many" }')),
            "spark.sql.shuffle.partitions is a whole number, and it is 'many'",
        ),
        (
            replaced(('master = "local[2]"', 'config = { "spark.sql.session.timeZone" = "Europe/Brelin" }')),
            "did you mean 'Europe/Berlin'?",
        ),
        (
            replaced(
                ('{ filter = "level > 3" }', '{ apply = { function = "textwrap:wrapp", keeps = "room" } }')
            ),
            "module 'textwrap' has no function 'wrapp', did you mean 'wrap'?",
        ),
        (
            replaced(
                ('{ filter = "level > 3" }', '{ apply = { function = "no_module:f", keeps = "room" } }')
            ),
            "function 'no_module:f' is of a module that cannot be imported",
        ),
        (
            replaced(('"level > 3"', '"level.round(99999999999999999999) > 3"')),
            "round does not take ndigits=99999999999999999999",
        ),
        (
            replaced(('level = "float64"', 'level = "float64", more = "time64[us]"')),
            "column 'more' of source 'readings' is time64[us]",
        ),
        (
            replaced(('replica = "string"', 'who = "string"'), ('replica = "replica"', 'replica = "who"')),
            "on Spark the names of replicas are in the column 'replica', not 'who'",
        ),
    ],
)
def test_what_spark_would_refuse_is_told_by_check(place, capsys, text, words):
    assert check(place, text) == 2
    assert words in capsys.readouterr().err
    assert not (place / "job-checkpoint").exists()


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("level > 3", "level > 4", "begun with"),
        ('"1 minute"', '"2 minutes"', "begun with level 2, window: window size"),
        ("level.max()", "level.min()", "begun with"),
        ("lossy = true", "lossy = false", "lossy True, this query has False"),
        ("local[2]", "local[3]", "begun with 2 shards, and this query has 3"),
        ('path = "out"', 'path = "out"\nformat = "jsonl"', "is format parquet, and"),
    ],
)
def test_a_plan_that_its_checkpoint_refuses_is_refused_by_check(place, capsys, old, new, words):
    job = job_of(place, JOB)
    begin(job, foreseen(job, known_columns(job)).settings)
    assert check(place, JOB) == 0
    assert check(place, replaced(('disorder = "10 minutes"', 'disorder = "20 minutes"'))) == 0
    assert check(place, replaced((old, new))) == 2
    assert words in capsys.readouterr().err
