"""Logical merge by scans obeys the laws of a merge, and wrong listings of it do not."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from laws.merge import FAULTS, LOSSES, POLICIES, Scenario, merges
from quick import cases

from anabranch import Adjust, Case, Insert, Stable, parse, text
from anabranch.model.output_policy import FinalOnly
from anabranch.oracle.indexed_merge import IndexedMerge
from anabranch.oracle.merge import Merge, OrderedMerge


def merge_of(scenario: Scenario) -> Merge:
    if scenario.case in (Case.R3, Case.R4):
        case = Case.R4 if scenario.lossy else scenario.case
        return IndexedMerge(case, policy=scenario.policy)
    return OrderedMerge(scenario.case, policy=scenario.policy)


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("case", Case, ids=lambda case: case.name)
@settings(max_examples=cases(60))
@given(random=st.randoms(use_true_random=False))
def test_the_output_is_valid_compatible_and_right(case, fault, random):
    merges(merge_of, Scenario.drawn(random, case, fault))


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("policy", [p for p in POLICIES if not isinstance(p, FinalOnly)], ids=str)
@settings(max_examples=cases(20))
@given(random=st.randoms(use_true_random=False))
def test_every_policy_gives_the_same_relation(policy, fault, random):
    merges(merge_of, Scenario.drawn(random, random.choice((Case.R3, Case.R4)), fault, policy))


@pytest.mark.parametrize("fault", LOSSES)
@pytest.mark.parametrize("policy", [p for p in POLICIES if not isinstance(p, FinalOnly)], ids=str)
@settings(max_examples=cases(20))
@given(random=st.randoms(use_true_random=False))
def test_what_any_lossy_input_shows_survives(policy, fault, random):
    merges(merge_of, Scenario.drawn(random, random.choice((Case.R3, Case.R4)), fault, policy))


def test_table_two_of_the_paper_comes_out_as_its_third_output():
    merge = IndexedMerge(Case.R3)
    merge.attach("1")
    merge.attach("2")
    for line in (
        "1: + A [6, 10)",
        "2: + A [6, 12)",
        "2: + B [7, 14)",
        "1: ~ A [6, 10) -> [6, 15)",
        "2: ~ A [6, 12) -> [6, 15)",
        "2: | 16",
    ):
        (item,) = parse(line)
        merge.push(item.input, item.element)
    assert text(merge.out).split("\n") == ["+ A [6, 10)", "+ B [7, 14)", "~ A [6, 10) -> [6, 15)", "| 16"]


class ForgetsTheSecondInput(IndexedMerge):
    """The listing's line 10 inside the test for a new node: only the first input is recorded."""

    def _hear(self, name, payload, start, old_end, end):
        known = len(self.nodes)
        super()._hear(name, payload, start, old_end, end)
        if len(self.nodes) == known:
            for node in self.nodes.values():
                if node.start == start and node.payload == payload:
                    node.ledgers.pop(name, None)


class FreezesEndsAtTheStable(IndexedMerge):
    """Nodes are dropped when their end is at the stable, not only before it."""

    def _advance(self, time):
        super()._advance(time)
        self.nodes = {k: n for k, n in self.nodes.items() if any(end > time for end in n.given)}


class LetsAJoinerLeadAtOnce(IndexedMerge):
    """An input that joins late drives the output before its guarantee is reached."""

    def attach(self, name, guarantee=0, *, complete=True):
        out = super().attach(name, guarantee, complete=complete)
        self.sides[name].joined = True
        return out


class RepeatsWhatWasRestarted(OrderedMerge):
    """Counts of an input that left are kept for what comes back, and what was given is forgotten."""

    def _forget(self, name):
        super()._forget(name)
        self.given.clear()


@pytest.mark.parametrize(
    ("wrong", "case"),
    [
        (ForgetsTheSecondInput, Case.R3),
        (FreezesEndsAtTheStable, Case.R3),
        (LetsAJoinerLeadAtOnce, Case.R4),
        (RepeatsWhatWasRestarted, Case.R2),
    ],
    ids=lambda value: getattr(value, "__name__", getattr(value, "name", None)),
)
def test_a_wrong_merge_is_caught(wrong, case):
    with pytest.raises(AssertionError):
        merges_many(wrong, case)


def merges_many(make, case) -> None:
    for seed in range(300):
        for fault in FAULTS:
            merges(lambda scenario: make(scenario.case), Scenario.drawn(Random(seed), case, fault))


def test_a_restarted_input_is_an_input_of_its_own():
    merge = IndexedMerge(Case.R3)
    merge.attach("1")
    merge.push("1", Insert({"value": "A"}, 0, 1))
    merge.detach("1")
    merge.attach("1 again")
    assert merge.push("1 again", Stable(2)) == [Adjust({"value": "A"}, 0, 1, 0), Stable(2)]
