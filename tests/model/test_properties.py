"""Facts imply one another, and what is observed of a stream is what is true of it."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch import Adjust, Insert, Stable
from anabranch.model.batch import Batch
from anabranch.model.elements import sync
from anabranch.model.notation import parse
from anabranch.model.observation import Observation, observe
from anabranch.model.properties import Case, Fact, Properties
from anabranch.oracle.relation import World
from anabranch.testing.presentations import replicas

facts = st.frozensets(st.sampled_from(Fact))
randoms = st.randoms(use_true_random=False)


@given(facts, facts)
def test_properties_are_ordered_by_what_they_imply(some, others):
    one, other = Properties(some), Properties(others)
    assert one | other >= one
    assert one >= one & other
    assert Properties(one.facts) == one
    assert (one >= other and other >= one) == (one == other)


def test_the_cases_of_the_paper_imply_one_another_as_it_says():
    assert Case.R0.value >= Case.R1.value
    assert Case.R0.value >= Case.R2.value >= Case.R3.value >= Case.R4.value
    assert not Case.R1.value >= Case.R2.value


@pytest.mark.parametrize(
    ("inputs", "case"),
    [
        ([Properties.of(Fact.INSERT_ONLY, Fact.STRICTLY_INCREASING)] * 2, Case.R0),
        ([Properties.of(Fact.PERFECT, Fact.DETERMINISTIC_TIES)] * 2, Case.R1),
        ([Properties.of(Fact.PERFECT, Fact.KEYED), Case.R0.value], Case.R2),
        ([Properties.of(Fact.KEYED), Case.R0.value], Case.R3),
        ([Properties.of(Fact.PERFECT), Case.R0.value], Case.R4),
        ([], Case.R0),
    ],
)
def test_the_narrowest_case_that_admits_all_inputs_is_picked(inputs, case):
    assert Case.narrowest(inputs) is case


def observed_by_definition(stream) -> set[Fact]:
    """Each fact written out over the whole stream."""
    data = [e for e in stream if not isinstance(e, Stable)]
    adjusts = [e for e in data if isinstance(e, Adjust)]
    times = [sync(e) for e in data]
    holds = {
        Fact.INSERT_ONLY: not adjusts,
        Fact.ORDERED: all(a <= b for a, b in pairwise(times)),
        Fact.STRICTLY_INCREASING: all(a < b for a, b in pairwise(times)),
        Fact.SHRINKING: all(e.end <= e.old_end for e in adjusts),
        Fact.KEPT: not any(e.removes for e in adjusts),
    }
    world, keyed = World(), True
    for element in stream:
        world.apply(element)
        keyed &= len({row[:2] for row in world.rows}) == len(world.rows)
    reached = [t for e in data for t in (e.start, e.end, sync(e))]
    holds[Fact.KEYED] = keyed
    holds[Fact.CLOSED] = world.stable >= max(reached, default=world.stable)
    return {fact for fact, true in holds.items() if true}


@given(randoms, st.sampled_from(Case), st.integers(1, 5))
def test_what_is_observed_is_what_is_true(random, case, step):
    _, (stream,) = replicas(random, 1, case=case)
    stream = stream[: random.randint(0, len(stream))]
    observation = Observation()
    for cut in range(0, len(stream), step):
        observation.look_at(Batch.of(stream[cut : cut + step]))
    assert observation.properties() == Properties(frozenset(observed_by_definition(stream)))


@given(randoms, st.sampled_from(Case))
def test_every_fact_that_is_broken_is_broken_at_the_element_named(random, case):
    _, (stream,) = replicas(random, 1, case=case)
    for fact, position in observe([Batch.of(stream)]).broken_at.items():
        assert fact in observed_by_definition(stream[: position - 1])
        assert fact not in observed_by_definition(stream[:position])


def test_keys_behind_the_stable_are_forgotten():
    observation = Observation()
    for begin in range(0, 200_000, 1000):
        rows = [Insert({"value": i % 7}, i, i + 5) for i in range(begin, begin + 1000)]
        observation.look_at(Batch.of([*rows, Stable(begin + 1000)]))
    assert Fact.KEYED in observation.properties()
    assert observation.keys.capacity <= 4096


def test_a_key_may_be_used_again_once_its_event_is_gone():
    stream = parse("+ a [0, 9)\n~ a [0, 9) -> [0, 0)\n+ a [0, 5)")
    assert Fact.KEYED in observe([Batch.of(stream)]).properties()


columns = st.sets(st.sampled_from("abc")).map(lambda names: tuple(sorted(names)))


@given(facts, facts, columns, columns, st.integers(1, 9), st.integers(1, 9))
def test_what_two_streams_share_is_true_of_both(some, others, key, other_key, longest, other_longest):
    one, other = Properties(some, key, longest), Properties(others, other_key, other_longest)
    both = one & other
    assert one >= both
    assert other >= both
    assert both.longest == max(longest, other_longest)
    assert Properties(some, key, longest).spread().key == key


def test_a_key_is_one_as_long_as_its_fact_is():
    keyed = Properties(key=("id",))
    assert Fact.KEYED in keyed
    assert keyed.without(Fact.KEYED).key is None
    assert keyed.keep(Fact.INSERT_ONLY).key is None
