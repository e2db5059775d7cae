"""Every state partition of Spark's has one shard, and every event one of them."""

import mmh3
import numpy as np
import pyarrow as pa
import pytest

from anabranch.engines.spark.transport.shards import _spark_hash, shard_ids, shard_of
from anabranch.model.identity import identities


@pytest.mark.parametrize("count", [*range(1, 40), 200])
def test_the_ids_of_shards_cover_all_partitions(count):
    ids = shard_ids(count)
    assert [_spark_hash(one) % count for one in ids] == list(range(count))


def test_ids_are_small():
    """The search for them ends soon: about n log n candidates."""
    assert max(shard_ids(200)) < 5_000


def test_the_hash_of_an_id_is_murmur_of_its_four_bytes():
    for number in (0, 1, 2, 42, 1000, 2**31 - 1):
        assert _spark_hash(number) == mmh3.hash(number.to_bytes(4, "little"), 42)
    assert [_spark_hash(0), _spark_hash(1)] == [933211791, -559580957]  # SELECT hash(0), hash(1)


@pytest.mark.parametrize("count", [0, -1])
def test_a_level_has_a_shard(count):
    with pytest.raises(ValueError, match="1 shard or more"):
        shard_ids(count)


@pytest.mark.parametrize("count", [1, 2, 3, 7, 200])
def test_identities_are_spread_over_all_shards(count):
    words = identities(pa.RecordBatch.from_pydict({"id": range(20_000)}))
    held = np.bincount(shard_of(words, count), minlength=count)
    assert len(held) == count
    assert held.min() > 0.5 * 20_000 / count
    assert held.max() < 1.6 * 20_000 / count


def test_the_shard_of_an_event_depends_on_nothing_else():
    words = identities(pa.RecordBatch.from_pydict({"id": range(100)}))
    alone = [int(shard_of(words[row : row + 1], 5)[0]) for row in range(100)]
    assert shard_of(words, 5).tolist() == alone
    assert shard_of(words[::-1], 5).tolist() == alone[::-1]


def test_the_low_word_is_left_to_the_tables_of_a_shard():
    words = np.array([[low, 7 << 32] for low in range(50)], np.uint64)
    assert len(set(shard_of(words, 5).tolist())) == 1
