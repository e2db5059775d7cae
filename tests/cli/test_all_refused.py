"""What the end of a run on Spark reports: that all was refused, replicas without rows, rows in no window."""

from types import SimpleNamespace

import pytest

from anabranch.cli.run_spark import outside, unmet
from anabranch.engines.spark.query.follow import Totals
from anabranch.jobs.job_file import read_job


@pytest.mark.parametrize(
    ("counts", "is_all"),
    [
        ({}, False),
        ({"quarantined": 3}, True),
        ({"received": 3, "quarantined": 3}, True),
        ({"received": 3, "quarantined": 1, "dropped": 2}, True),
        ({"received": 4, "quarantined": 3}, False),
        ({"received": 3, "quarantined": 3, "emitted": 1}, False),
        ({"received": 3, "quarantined": 3, "advanced": True}, False),
    ],
)
def test_all_was_refused_where_rows_were_and_none_came_out_or_moved_the_stable(counts, is_all):
    assert Totals(**counts).all_refused is is_all


def test_a_replica_that_only_rows_could_be_of_is_reported_after_a_merge(tmp_path):
    (tmp_path / "job.toml").write_text(
        "[source]\npath = 'feed'\nby_replica = false\nschema = 'at long, who string, v long'\n"
        "[merge]\nstart = 'at'\nreplica = 'who'\ndisorder = 2\nlossy = ['nort']\n"
        "[sink]\npath = 'out'\n"
    )
    met = {"north": SimpleNamespace(elements=300), "south": SimpleNamespace(elements=40)}
    totals = Totals(received=340, last=SimpleNamespace(replicas=met))
    (tmp_path / "feed").mkdir()
    job = read_job(str(tmp_path / "job.toml"))
    assert unmet(list(job.sources.values()), totals) == [
        "lossy names replica 'nort', and none of 340 rows is of it, did you mean 'north'? They are of "
        "'north', 'south'"
    ]


def test_events_in_no_window_are_reported_after_a_run():
    counted = {"level 2: window": {"live": 3, "in_no_window": 28}, "level 1: merge": {"live": 2}}
    totals = Totals(received=340, last=SimpleNamespace(operators=counted))
    assert outside(totals) == [
        "level 2: window: 28 events are in no window, as every is greater than size or they start before the "
        "first"
    ]
    assert outside(Totals()) == []
