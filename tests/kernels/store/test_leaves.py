"""Leaves, after every operation, beside a dict of sorted lists."""

from bisect import bisect_left, bisect_right

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernels.store.trees import check_trees
from numba import njit

from anabranch.kernels.store.leaves import (
    BREADTH,
    TIME,
    Leaves,
    clear,
    drop_before,
    first,
    following,
    has_room,
    insert,
    preceding,
    remove,
    seek,
    seek_last,
)
from anabranch.model.slots import NONE
from anabranch.model.time import BEGINNING, FOREVER

compiled = njit(_nrt=False)
"""Without a cache: one below tests would outlive changes of what these loops call."""
ITEM = 1
NUMBERS = 3


@compiled
def _insert_all(leaves, number, times, begin):
    """Insert points that are not there yet, each with its time as its item; how many are done."""
    for i in range(begin, len(times)):
        if not has_room(leaves):
            return i
        row = insert(leaves, number, times[i])
        leaves.cells[row, ITEM] = times[i]
    return len(times)


@compiled
def _remove_all(leaves, number, times):
    for time in times:
        remove(leaves, number, seek(leaves, number, time))


@compiled
def _drop_before(leaves, number, time):
    drop_before(leaves, number, time)


@compiled
def _clear(leaves, number):
    clear(leaves, number)


@compiled
def _rows(leaves, number, forwards, found):
    row = first(leaves, number) if forwards else seek_last(leaves, number, FOREVER)
    count = 0
    while row >= 0:
        found[count] = row
        count += 1
        row = following(leaves, row) if forwards else preceding(leaves, row)
    return count


@compiled
def _seek(leaves, number, time):
    return seek(leaves, number, time), seek_last(leaves, number, time)


class Points:
    """Leaves as a test works with them."""

    def __init__(self):
        self.leaves = Leaves.of_capacity(1, keys=1, width=2).with_numbers(NUMBERS)

    def insert(self, number, times):
        times, done = np.array(times, np.int64), 0
        while (done := _insert_all(self.leaves, number, times, done)) < len(times):
            self.leaves = self.leaves.with_room()

    def remove(self, number, times):
        _remove_all(self.leaves, number, np.array(times, np.int64))

    def all(self, number, *, forwards=True):
        found = np.empty(len(self.leaves.cells), np.int64)
        rows = found[: _rows(self.leaves, number, forwards, found)]
        assert (self.leaves.cells[rows, ITEM] == self.leaves.cells[rows, TIME]).all(), "rows move whole"
        return self.leaves.cells[rows, TIME].tolist()

    def at(self, row):
        return None if row == NONE else int(self.leaves.cells[row, TIME])


TIMES = st.one_of(st.integers(0, 60), st.sampled_from([BEGINNING, FOREVER, -7]))
OPERATIONS = st.lists(
    st.tuples(
        st.sampled_from(["insert", "insert", "insert", "remove", "drop", "clear"]),
        st.integers(0, NUMBERS - 1),
        st.one_of(
            st.lists(TIMES, max_size=40, unique=True),
            st.builds(
                lambda low, step: list(range(low, low + 60 * step, step)),
                TIMES.filter(lambda t: 0 <= t < 61),
                st.integers(1, 3),
            ),
        ),
        TIMES,
    ),
    max_size=25,
)


@given(OPERATIONS)
def test_leaves_have_the_points_of_a_sorted_list_after_every_operation(operations):
    points, known = Points(), {number: [] for number in range(NUMBERS)}
    for word, number, times, time in operations:
        mine = known[number]
        if word == "insert":
            new = [one for one in times if one not in mine]
            points.insert(number, new)
            known[number] = sorted(mine + new)
        elif word == "remove":
            gone = [one for one in times if one in mine]
            points.remove(number, gone)
            known[number] = [one for one in mine if one not in gone]
        elif word == "drop":
            _drop_before(points.leaves, number, np.int64(time))
            known[number] = mine[bisect_left(mine, time) :]
        else:
            _clear(points.leaves, number)
            known[number] = []
        check_trees(points.leaves)
        for one, expected in known.items():
            assert points.all(one) == expected
            assert points.all(one, forwards=False) == expected[::-1]
            at, last = bisect_left(expected, time), bisect_right(expected, time) - 1
            rows = _seek(points.leaves, one, np.int64(time))
            assert points.at(rows[0]) == (expected[at] if at < len(expected) else None)
            assert points.at(rows[1]) == (expected[last] if last >= 0 else None)


@pytest.mark.parametrize("order", ["ascending", "descending", "shuffled", "from both ends"])
def test_a_tree_of_many_levels_gives_back_all_its_nodes(order):
    times = np.arange(20_000)
    match order:
        case "descending":
            times = times[::-1]
        case "shuffled":
            times = np.random.default_rng(1).permutation(times)
        case "from both ends":
            times = np.stack([times[:10_000], times[:9_999:-1]], axis=1).ravel()
    points = Points()
    points.insert(1, times)
    assert points.all(1) == list(range(20_000))
    assert points.leaves.levels[1] >= 3
    points.remove(1, np.random.default_rng(2).permutation(times)[:19_000])
    assert len(points.all(1)) == 1_000
    check_trees(points.leaves)
    assert points.leaves.pool.used <= 700, "small leaves are joined"
    _drop_before(points.leaves, 1, np.int64(10_000))
    assert all(one >= 10_000 for one in points.all(1))
    points.remove(1, points.all(1))
    assert points.leaves.pool.used == 0


def test_leaves_stay_full_where_all_is_added_at_the_end():
    points = Points()
    points.insert(0, np.arange(100 * BREADTH))
    assert points.leaves.pool.used <= 100 + 100 // 4
