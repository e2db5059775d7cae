"""The tests of the tests: a law that a wrong variant passes is no law."""

from random import Random

import pytest
from laws.consistency import decides_compatibility
from laws.relation import agrees_with_the_oracle_after_every_element
from laws.wrong import WRONG_RELATIONS, c2_as_printed, contains_all_frozen

from anabranch.oracle.relation import World
from anabranch.testing.faults import noise
from anabranch.testing.presentations import replicas


def check_on_many_streams(make) -> None:
    for seed in range(400):
        random = Random(seed)
        _, (stream,) = replicas(random, 1)
        agrees_with_the_oracle_after_every_element(make, noise(stream, random))


def test_the_oracle_passes_its_own_laws():
    check_on_many_streams(World)


@pytest.mark.parametrize("wrong", WRONG_RELATIONS, ids=lambda wrong: wrong.__name__)
def test_a_wrong_relation_is_caught(wrong):
    with pytest.raises(AssertionError):
        check_on_many_streams(wrong)


def test_condition_c2_as_printed_is_caught():
    with pytest.raises(AssertionError):
        decides_compatibility(c2_as_printed, most_events=1)


def test_the_multiset_rule_as_printed_is_caught():
    with pytest.raises(AssertionError):
        decides_compatibility(contains_all_frozen, most_inputs=1)
