"""Equivalence, mutual consistency and compatibility are what futures say they are."""

from functools import cache

import pytest
from hypothesis import given
from laws.consistency import decides_compatibility, decides_consistency, relation_of

from anabranch import FOREVER, Relation
from anabranch.model.consistency import contradiction, difference, incompatibility
from anabranch.model.notation import parse
from anabranch.oracle import conditions
from anabranch.oracle.relation import equivalent
from anabranch.testing.assertions import assert_compatible, assert_consistent
from anabranch.testing.strategies import replica_sets, streams

relation_at = cache(relation_of)


def relation(text: str) -> Relation:
    built = Relation()
    built.apply(parse(text))
    return built


def test_inputs_are_consistent_exactly_when_they_have_a_common_future():
    decides_consistency(
        lambda inputs: contradiction({str(i): relation_at(p) for i, p in enumerate(inputs)}) is None
    )


@pytest.mark.parametrize(("most_inputs", "most_events"), [(1, 2), (2, 1)])
def test_an_output_is_compatible_exactly_when_it_can_follow_its_inputs(most_inputs, most_events):
    decides_compatibility(
        lambda output, inputs: (
            incompatibility(relation_at(output), {str(i): relation_at(p) for i, p in enumerate(inputs)})
            is None
        ),
        most_inputs=most_inputs,
        most_events=most_events,
    )


def test_c1_to_c3_as_corrected_say_the_same_of_events_that_occur_once():
    def one(prefix):
        bag, stable = prefix
        return (bag[0] if bag else None), stable

    decides_compatibility(
        lambda output, inputs: conditions.compatible(1, one(output), [one(p) for p in inputs]),
        most_events=1,
    )


@given(replica_sets(3))
def test_prefixes_of_replicas_are_consistent_and_each_is_compatible_with_a_longer_one(replicas):
    _, copies = replicas
    prefixes = {str(i): copy[: len(copy) * (i + 1) // 3] for i, copy in enumerate(copies)}
    assert_consistent(prefixes)
    whole = max(prefixes.values(), key=lambda p: relation_of_elements(p).frontier)
    for cut in range(len(whole)):
        assert_compatible(whole[:cut], {"whole": whole})


def relation_of_elements(elements) -> Relation:
    built = Relation()
    built.apply(elements)
    return built


@given(streams(), streams())
def test_a_difference_is_found_exactly_where_the_oracle_sees_one(one, other):
    found = difference(relation_of_elements(one), relation_of_elements(other))
    assert (found is None) == equivalent(one, other)


I1 = "+ A [2, 16)\n+ B [3, 10)\n+ C [4, 18)\n+ D [15, 20)\n| 14"
I2 = "+ A [2, 12)\n+ B [3, 10)\n+ C [4, 18)\n+ E [17, 21)\n| 11"


@pytest.mark.parametrize(
    ("output", "condition"),
    [
        ("+ A [2, ∞)\n+ B [3, 10)\n+ C [4, ∞)\n| 11", None),
        ("+ A [2, 16)\n+ B [3, 10)\n+ C [4, 18)\n+ D [15, 20)\n+ E [17, 21)\n| 14", None),
        ("+ A [2, 12)\n+ C [4, 18)\n+ D [15, 20)\n| 13", "C2"),
        ("+ A [2, 16)\n+ C [4, 18)\n| 13", "C3"),
        ("| 15", "C1"),
    ],
)
def test_the_outputs_of_the_paper_are_judged_as_it_judges_them(output, condition):
    found = incompatibility(relation(output), {"I1": relation(I1), "I2": relation(I2)})
    assert (found and found.condition) == condition
    assert condition is None or str(found).startswith(condition)


def test_what_printed_c2_rejects_is_compatible():
    assert incompatibility(relation("+ A [2, 3)\n| 3"), {"in": relation("+ A [2, 4)\n| 4")}) is None


def test_containing_all_frozen_events_is_not_enough():
    found = incompatibility(relation("+ A [2, 3)\n| 4"), {"in": relation("| 4")})
    assert found is not None
    assert found.condition == "C2"


def test_an_input_with_a_guarantee_vouches_for_nothing_that_ends_before_it():
    inputs = {"old": relation("+ A [0, 1)\n+ B [0, 9)\n| 5"), "new": relation("+ B [0, 9)\n| 5")}
    assert contradiction(inputs) is not None
    assert contradiction(inputs, {"new": 2}) is None
    assert contradiction(inputs, {"new": 1}) is not None


def test_a_difference_names_the_event_its_counts_and_what_made_it():
    found = difference(
        relation("+ A [0, 9)\n+ A [0, 9)\n| ∞"), relation("+ B [3, 9)\n+ A [0, 9)\n~ B [3, 9) -> [3, 7)")
    )
    assert (found.event.payload, found.event.start, found.event.end) == ({"value": "A"}, 0, 9)
    assert (found.left, found.right, found.events, found.arrived) == (2, 1, 2, 1)


def test_contradictions_name_both_inputs_the_event_and_the_stable():
    inputs = {"a": relation("+ A [0, 3)\n| 5"), "b": relation("+ A [0, 4)\n| ∞")}
    found = contradiction(inputs)
    assert (found.input, found.other, found.stable) == ("a", "b", 5)
    assert "'a'" in str(found)
    assert "[0, 3)" in str(found)
    assert inputs["b"].frontier == FOREVER
