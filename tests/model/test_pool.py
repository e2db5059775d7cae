"""Pools of places, after every operation, beside a list and a set."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from anabranch.model.pool import Pool, grown


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 9), st.randoms(use_true_random=False)), max_size=30))
def test_a_place_is_taken_by_one_at_a_time(operations):
    pool, taken = Pool.of_capacity(2), []
    for takes, count, random in operations:
        if takes:
            pool = pool.with_room(count)
            assert pool.height[0] >= count
            taken += pool.take(count).tolist()
        else:
            random.shuffle(taken)
            pool.give_back(np.array(taken[:count], np.int32))
            del taken[:count]
        assert len(set(taken)) == len(taken) == pool.used
        assert sorted(taken + pool.free.tolist()) == list(range(pool.capacity))


def test_a_larger_pool_gives_out_first_what_was_free_then_the_least_new_places():
    pool = Pool.of_capacity(4)
    pool.take(4)
    pool.give_back(np.array([2, 0]))
    larger = pool.with_room(4)
    assert [int(larger.take(1)[0]) for _ in range(6)] == [0, 2, 4, 5, 6, 7]


def test_a_pool_grows_to_the_next_power_of_two_and_no_further():
    pool = Pool.of_capacity(4)
    pool.take(3)
    assert pool.with_room(1) is pool
    assert pool.with_room(2).capacity == 8
    assert pool.with_room(6).capacity == 16


def test_new_places_of_a_column_are_empty():
    cells = np.array([[1, 2], [3, 4]])
    assert grown(cells, 3, -1).tolist() == [[1, 2], [3, 4], [-1, -1]]
    assert grown(cells, 3).tolist() == [[1, 2], [3, 4], [0, 0]]
    assert grown(cells, 2) is cells
