"""Panes are where windows begin and end: every window is whole ones, and no more than two a slide."""

from random import Random

import numpy as np
import pytest
from quick import cases

from anabranch.kernels.aggregate.window_times import WindowTimes
from anabranch.model.time import BEGINNING, FOREVER

TIMES = [WindowTimes(size, every) for size in range(1, 13) for every in range(1, 13)]


@pytest.mark.parametrize("times", TIMES, ids=lambda one: f"{one.size} every {one.every}")
def test_a_time_is_in_the_windows_of_its_pane_and_in_no_other(times):
    starts = np.arange(-60, 60)
    inside = times.inside(starts)
    for start, pane in zip(starts[inside].tolist(), times.panes(starts[inside]).tolist(), strict=True):
        windows = {w for w in range(-200, 200) if times.bounds(w)[0] <= start < times.bounds(w)[1]}
        assert set(times.windows_of(pane)) == windows
        assert all(pane in times.panes_of(window) for window in windows)


@pytest.mark.parametrize("times", TIMES, ids=lambda one: f"{one.size} every {one.every}")
def test_a_window_is_at_most_two_panes_a_slide_and_panes_ascend(times):
    assert times.panes_in_window <= 2 * (times.size // times.every) + 1
    panes = times.panes(np.arange(-60, 60))
    assert (np.diff(panes) >= 0).all()


@pytest.mark.parametrize("seed", range(cases(40)))
def test_panes_hold_at_both_ends_of_time(seed):
    random = Random(seed)
    every = random.choice([1, 2, 3, 7, 3_333_333, 2**31, 2**61])
    times = WindowTimes(random.randint(1, 5 * every), every)
    ends = [BEGINNING + n for n in range(4)] + [FOREVER - n for n in range(1, 5)]
    starts = np.array(ends + [random.randint(BEGINNING, FOREVER - 1) for _ in range(20)])
    starts = starts[times.inside(starts)]
    for start, pane in zip(starts.tolist(), times.panes(starts).tolist(), strict=True):
        for window in times.windows_of(pane)[:3]:
            assert window * every <= start < window * every + times.size
