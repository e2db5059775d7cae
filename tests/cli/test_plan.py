"""What a plan says about time has units."""

import pytest

from anabranch.cli.plan import time_of_events
from anabranch.jobs.merge_sections import MergeSection


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            {"duration": "PT5M", "disorder": "90s"},
            "an event lasts 5 minutes; a row comes at most 1 minute 30 seconds after rows that start later",
        ),
        (
            {"duration": 60, "disorder": 60},
            "an event lasts 60 ticks; a row comes at most 60 ticks after rows that start later",
        ),
        (
            {"end": "until", "kind": "word"},
            "an event lasts until its until; rows whose word is stable say how far a replica has come",
        ),
        (
            {"disorder": "1 hour"},
            "an event is a point, one tick long; a row comes at most 1 hour after rows that start later",
        ),
    ],
)
def test_spans_of_a_plan_are_told_with_their_units(given, said):
    merge = MergeSection(start="at", **given).checked()
    assert time_of_events(merge.layout) == said
