"""A calendar gives what a sorted list gives, wherever its times are."""

from random import Random

import numpy as np
import pytest
from quick import cases

from anabranch.kernels.store.calendar import Calendar
from anabranch.model.time import BEGINNING, FOREVER

REACHES = (3, 40, 300, 70_000, 2**33, 2**62)


def drawn(random: Random, base: int, count: int) -> list[int]:
    """Times at or after a base, near and far."""
    reach = [random.choice(REACHES) for _ in range(count)]
    return [min(max(base, -(2**62)) + random.randrange(one), FOREVER - 1) for one in reach]


def noted(calendar: Calendar, rows: list[tuple[int, int]]) -> Calendar:
    calendar = calendar.with_room(len(rows))
    times, places = np.array(rows, np.int64).reshape(-1, 2).T
    calendar.add(np.ascontiguousarray(times), np.ascontiguousarray(places))
    return calendar


def pairs(columns) -> list[tuple[int, int]]:
    times, places = columns
    return sorted(zip(times.tolist(), places.tolist(), strict=True))


@pytest.mark.parametrize("seed", range(cases(60)))
def test_what_is_before_a_time_comes_out_of_it_and_of_a_sorted_list_alike(seed):
    random = Random(seed)
    calendar, rows, base, place = Calendar.empty(), [], BEGINNING, 0
    for _ in range(60):
        new = [(time, place + n) for n, time in enumerate(drawn(random, base, random.choice([0, 1, 3, 90])))]
        place += len(new)
        calendar, rows = noted(calendar, new), sorted(rows + new)
        base = random.choice([base, *drawn(random, base, 2), *(time for time, _ in rows[:40])])
        assert pairs(calendar.take_before(base)) == [row for row in rows if row[0] < base]
        rows = [row for row in rows if row[0] >= base]
        assert pairs(calendar.all()) == rows
        assert calendar.size == len(rows)
    assert pairs(calendar.take_before(FOREVER)) == rows
    assert calendar.size == calendar.pool.used == 0


def test_a_thing_moves_as_often_as_times_have_bytes():
    random = np.random.default_rng(1)
    times = random.integers(0, 2**40, 20_000)
    calendar = Calendar.empty().with_room(len(times))
    calendar.add(times, np.arange(len(times)))
    for time in np.sort(random.integers(0, 2**40, 500)).tolist():
        calendar.take_before(time)
    calendar.take_before(2**40)
    assert calendar.size == 0
    assert calendar.moved[0] <= 7 * len(times)


def test_times_that_pass_nothing_move_nothing():
    calendar = noted(Calendar.empty(), [(1_000_000 + n, n) for n in range(5_000)])
    calendar.take_before(0)
    before = int(calendar.moved[0])
    for time in range(0, 60_000, 7):
        calendar.take_before(time)
    assert calendar.moved[0] == before


def test_blocks_follow_what_there_is():
    calendar, width = Calendar.empty(), 4_000
    for turn in range(50):
        calendar = noted(calendar, [(width * turn + n, n) for n in range(width)])
        assert len(calendar.take_before(width * turn + width // 2)[0]) == width - (turn == 0) * width // 2
    assert calendar.nbytes <= 1_200_000
