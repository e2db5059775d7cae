"""The laws of merges on a few random cases each, for faults: a case that fails is found among the first."""

import pytest
from engines.spark import micro_batches
from laws import campaign

CASES, MERGES = 10, 2


@pytest.mark.parametrize("number", range(4))
def test_a_merge_gives_what_the_oracle_gives(number):
    assert not campaign.failures(range(number * CASES, (number + 1) * CASES))


@pytest.mark.parametrize("number", range(4))
def test_shards_give_what_the_replicas_mean(number):
    assert not micro_batches.failures(range(number * MERGES, (number + 1) * MERGES))
