"""Random schedules that break promises, each judged beside R4; `./run campaign` runs many more."""

from collections import Counter

import pytest
from laws.generalising import Schedule, outcome_of
from quick import cases

from anabranch import text
from anabranch.kernels.merge.trail import Trail

CHUNK = 400


@pytest.mark.parametrize("number", range(cases(4)))
def test_whatever_is_broken_the_end_is_that_of_r4(number):
    seen = Counter()
    for seed in range(number * CHUNK, (number + 1) * CHUNK):
        schedule = Schedule.drawn(seed)
        outcome = outcome_of(schedule)
        assert outcome.wrong is None, f"{schedule.words}\n{outcome.wrong}\n{text(schedule.recording)}"
        seen["moved"] += outcome.moved
        seen["relied"] += outcome.relied
    assert seen["moved"] > CHUNK / 3, "the schedules break promises"
    assert seen["relied"] < CHUNK / 10, "and what was out by then is seldom an excuse"


def test_an_adjust_with_the_columns_of_another_copy_is_noticed(monkeypatch):
    monkeypatch.setattr(Trail, "alike", lambda self, output, identity: output)
    schedules = map(Schedule.drawn, range(CHUNK))
    wrong = [outcome_of(one).wrong for one in schedules if one.carries]
    assert any("names no event that is out" in one for one in wrong if one is not None)
