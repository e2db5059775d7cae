"""``[merge]`` and ``[changes]`` are short for one source and a plan of one merge."""

import pytest

from anabranch import spark as ab
from anabranch.engines.spark.planned_query import query_of_columns
from anabranch.jobs.job import Job
from anabranch.jobs.job_file import read_job
from anabranch.jobs.opened_sources import known_columns

EVENTS = (
    "room string, level long, at timestamp",
    'room = "string", level = "int64", at = "timestamp[us, tz=UTC]"',
)
TABLE = (
    "op string, at long, id long, price double",
    'op = "string", at = "int64", id = "int64", price = "float64"',
)
SHORT = """
[source]
path = "feeds"
by_replica = true
schema = "{columns}"

[{section}]
{of_source}
{of_merge}

[sink]
path = "out"
"""
LONG = """
[sources.rows]
path = "feeds"
by_replica = true
columns = {{ {columns}, replica = "string" }}
{of_source}

[plan]
steps = [{{ merge = {{ {of_merge} }} }}]

[sink]
path = "out"
"""


def job(folder, text) -> Job:
    for replica in ("east", "west"):
        (folder / "feeds" / replica).mkdir(parents=True, exist_ok=True)
    (folder / "job.toml").write_text(text)
    return read_job(str(folder / "job.toml"))


def settings(stream, columns):
    return query_of_columns(stream, columns).settings()


@pytest.mark.parametrize(
    ("section", "columns", "short", "long", "of_merge"),
    [
        ("merge", EVENTS, 'start = "at"', 'start = "at"', 'policy = "final"'),
        ("merge", EVENTS, *2 * ('start = "at"\nduration = "5 minutes"\nidle = "west"',), 'pace = "fastest"'),
        ("merge", EVENTS, *2 * ('start = "at"\nproperties = "keyed"',), 'case = "R4"'),
        (
            "changes",
            TABLE,
            'key = "id"\ntime = "at"\nops = { "+" = "insert" }',
            'key = "id"\nstart = "at"\nop = "op"\nops = { "+" = "insert" }',
            'policy = "every-change"',
        ),
    ],
)
def test_short_and_long_are_one_plan(tmp_path, section, columns, short, long, of_merge):
    both = 'replica = "replica"\ndisorder = "10 minutes"' + ("\nlossy = true" if section == "merge" else "")
    if section == "changes":
        both = both.replace('"10 minutes"', "10")
    ddl, arrow = columns
    one = job(
        tmp_path,
        SHORT.format(section=section, columns=ddl, of_source=f"{short}\n{both}", of_merge=of_merge),
    )
    known = known_columns(one)
    two = job(tmp_path, LONG.format(columns=arrow, of_source=f"{long}\n{both}", of_merge=of_merge))
    assert list(one.ends) == list(two.ends) == ["rows"]
    assert settings(one.stream, known) == settings(two.stream, known)
    assert one.stream.explain() == two.stream.explain()
    assert one.stream.schema == two.stream.schema


def test_a_job_gives_the_query_of_the_function_that_its_section_is_named_for(tmp_path, spark):
    section = 'start = "at"\nreplica = "replica"\ndisorder = "1 minute"\nlossy = ["west"]\nidentity = "room"'
    one = job(tmp_path, SHORT.format(section="merge", columns=EVENTS[0], of_source=section, of_merge=""))
    rows = ab.folder(spark, tmp_path / "feeds", schema=EVENTS[0], by_replica=True)
    merged = ab.merge(
        rows, start="at", replica="replica", disorder="1 minute", lossy=["west"], identity="room"
    )
    _, frame = one.frame(spark)
    assert frame.schema == merged.schema
    assert [field.metadata for field in frame.schema] == [field.metadata for field in merged.schema]
