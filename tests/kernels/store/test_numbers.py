"""Numbers of keys, after every operation, beside a dict."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

from anabranch.kernels.store.numbers import Numbers, give_back

compiled = njit(_nrt=False)
"""Without a cache: one below tests would outlive changes of what these loops call."""
KEYS = st.tuples(st.sampled_from([0, 1, 2, 1 << 31, 1 << 32, (1 << 64) - 1]), st.integers(0, 12))
OPERATIONS = st.lists(st.tuples(st.booleans(), st.lists(KEYS, max_size=20)), max_size=20)


@compiled
def _give_back_all(numbers, some):
    for number in some:
        give_back(numbers, number)


def _words(keys):
    return np.array(keys, np.uint64).reshape(-1, 2)


@given(OPERATIONS)
def test_a_key_keeps_its_number_until_it_is_given_back(operations):
    numbers, known = Numbers.of_capacity(1), {}
    most = 1
    for removes, keys in operations:
        if removes:
            gone = [known.pop(key) for key in dict.fromkeys(keys) if key in known]
            _give_back_all(numbers, np.array(gone, np.int64))
        else:
            numbers, found, rows = numbers.number(_words(keys))
            strange = [key for key in dict.fromkeys(keys) if key not in known]
            assert [keys[row] for row in rows] == strange
            assert all(known.setdefault(key, n) == n for key, n in zip(keys, found.tolist(), strict=True))
        assert len(set(known.values())) == len(known) == numbers.used
        assert all(tuple(numbers.words[n].tolist()) == key for key, n in known.items())
        most = max(most, len(known))
        assert numbers.capacity < 2 * most or numbers.capacity == most


@given(st.lists(KEYS, min_size=1, max_size=20), st.integers(1, 4))
def test_pieces_of_a_batch_have_the_numbers_of_the_whole(keys, size):
    whole = Numbers.of_capacity(1).number(_words(keys))[1]
    numbers, parts = Numbers.of_capacity(1), []
    for begin in range(0, len(keys), size):
        numbers, found, _ = numbers.number(_words(keys[begin : begin + size]))
        parts += found.tolist()
    assert parts == whole.tolist()
