"""Our murmur is MurmurHash3 x64 128, as the mmh3 package computes it."""

from random import Random

import mmh3
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.model.murmur import murmur

SEEDS = [0, 1, 16, 0x9747B28C, 2**32 - 1]
BYTES = Random(0).randbytes(5_000)


def ours(data: bytes, begin: int, end: int, seed: int) -> int:
    low, high = murmur(np.frombuffer(data, np.uint8), begin, end, seed)
    return int(high) << 64 | int(low)


@pytest.mark.parametrize("seed", SEEDS)
def test_it_equals_mmh3_at_every_short_length_and_some_long_ones(seed):
    for length in [*range(71), 127, 128, 1000, 4095, 4096, 4999]:
        assert ours(BYTES, 0, length, seed) == mmh3.hash128(BYTES[:length], seed, x64arch=True)


@given(st.binary(max_size=100), st.data(), st.sampled_from(SEEDS))
def test_only_the_bytes_in_the_range_count(data, choice, seed):
    begin = choice.draw(st.integers(0, len(data)))
    end = choice.draw(st.integers(begin, len(data)))
    assert ours(data, begin, end, seed) == mmh3.hash128(data[begin:end], seed, x64arch=True)


@pytest.mark.parametrize("begin", range(17))
def test_a_range_may_begin_at_any_alignment(begin):
    for end in range(begin, begin + 41):
        assert ours(BYTES, begin, end, 7) == mmh3.hash128(BYTES[begin:end], 7, x64arch=True)


@pytest.mark.parametrize("begin", range(17))
def test_a_range_may_end_where_the_buffer_ends(begin):
    for end in range(begin, begin + 41):
        assert ours(BYTES[:end], begin, end, 7) == mmh3.hash128(BYTES[begin:end], 7, x64arch=True)
