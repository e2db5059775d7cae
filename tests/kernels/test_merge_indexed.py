"""The compiled merges of R3 and R4 give the very elements that the scans of the oracle give."""

from dataclasses import replace
from itertools import groupby
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernels.merging import Named, by_identity
from laws.merge import FAULTS, LOSSES, POLICIES, Scenario, merges, played
from quick import cases

from anabranch import (
    BEGINNING,
    FOREVER,
    Adjust,
    Attach,
    Batch,
    Case,
    Drop,
    FirstThenFinal,
    Insert,
    Merger,
    Pace,
    Quarantine,
    Raise,
    Stable,
    Tagged,
)
from anabranch.kernels.merge.broken import Broken
from anabranch.kernels.merge.r3 import R3
from anabranch.kernels.merge.r4 import R4
from anabranch.model.consistency import difference
from anabranch.model.elements import Element
from anabranch.model.output_policy import (
    EveryChange,
    FinalOnly,
    FollowLeader,
    HalfFrozen,
    OutputPolicy,
    Quorum,
)
from anabranch.model.properties import Fact
from anabranch.model.relation import Relation
from anabranch.model.validity import BrokenPropertyError, Policy
from anabranch.oracle.indexed_merge import IndexedMerge
from anabranch.testing.presentations import replicas
from anabranch.testing.references import Shape
from anabranch.testing.workload import Workload

randoms = st.randoms(use_true_random=False)


def kernel_of(scenario: Scenario) -> Named:
    if scenario.case is Case.R3 and not scenario.lossy:
        return Named(lambda sides: R3(sides, scenario.policy))
    return Named(lambda sides: R4(sides, scenario.policy))


def oracle_of(scenario: Scenario) -> IndexedMerge:
    return IndexedMerge(Case.R4 if scenario.lossy else scenario.case, by_identity, scenario.policy)


@pytest.mark.parametrize("fault", FAULTS + LOSSES)
@pytest.mark.parametrize("case", [Case.R3, Case.R4], ids=lambda case: case.name)
@settings(max_examples=cases(40))
@given(random=randoms)
def test_they_give_the_elements_of_the_oracle_one_by_one(case, fault, random):
    scenario = Scenario.drawn(random, case, fault, random.choice(POLICIES))
    steps = zip(played(kernel_of(scenario), scenario), played(oracle_of(scenario), scenario), strict=True)
    for (ours, _), (theirs, _) in steps:
        assert ours == theirs


@pytest.mark.parametrize("fault", FAULTS + LOSSES)
@pytest.mark.parametrize("case", [Case.R3, Case.R4], ids=lambda case: case.name)
@settings(max_examples=cases(15))
@given(random=randoms)
def test_the_output_is_valid_compatible_and_right(case, fault, random):
    policy = random.choice([policy for policy in POLICIES if not isinstance(policy, FinalOnly)])
    merges(kernel_of, Scenario.drawn(random, case, fault, policy))


@pytest.mark.parametrize("case", [Case.R3, Case.R4], ids=lambda case: case.name)
@settings(max_examples=cases(60))
@given(random=randoms)
def test_replicas_that_agree_are_never_said_to_disagree(case, random):
    fault = random.choice(("none", "detach", "restart", "late join"))
    scenario = Scenario.drawn(random, case, fault, random.choice(POLICIES))
    kernel = kernel_of(scenario)
    for _ in played(kernel, scenario):
        assert not kernel.sides.disagreements.any()


@pytest.mark.parametrize("fault", ["none", "detach", "gap"])
@pytest.mark.parametrize("case", [Case.R3, Case.R4], ids=lambda case: case.name)
@settings(max_examples=cases(40))
@given(random=randoms)
def test_what_the_input_that_leads_never_showed_is_counted_for_those_who_show_it(case, fault, random):
    drawn = Scenario.drawn(random, case, fault, random.choice(POLICIES))
    attached = [Tagged(name, Attach()) for name in "abc"]
    scenario = replace(drawn, recording=attached + drawn.recording)
    kernel, oracle = kernel_of(scenario), oracle_of(scenario)
    for _ in zip(played(kernel, scenario), played(oracle, scenario), strict=True):
        for name, number in kernel.numbers.items():
            assert kernel.sides.removed[number] == oracle.removals.count(name)


@pytest.mark.parametrize("case", [Case.R3, Case.R4], ids=lambda case: case.name)
@settings(max_examples=cases(60))
@given(random=randoms)
def test_of_replicas_that_agree_nothing_is_removed_in_the_end(case, random):
    fault = random.choice(("none", "detach", "restart", "late join"))
    scenario = Scenario.drawn(random, case, fault, random.choice(POLICIES))
    kernel = kernel_of(scenario)
    for _ in played(kernel, scenario):
        pass
    assert not kernel.sides.removed[kernel.sides.attached].any()


@pytest.mark.parametrize("make", [R3, R4])
def test_replicas_of_a_workload_merge_to_what_each_of_them_means(make):
    workload = Workload(events=20_000, active=500, payload_bytes=20, revisions=0.2, stable_freq=0.02)
    merge, merged, alone = Named(make), Relation(), Relation()
    for number in range(3):
        merge.attach(str(number))
    most = 0
    for step in zip(*(workload.replica(number) for number in range(3)), strict=True):
        for number, batch in enumerate(step):
            merged.apply(merge.kernel.push(number, batch))
            most = max(most, merge.kernel.nodes.used)
        alone.apply(step[0])
    assert merge.kernel.stable == FOREVER
    assert merge.kernel.nodes.used == 0
    assert most < 20_000
    assert not merge.sides.disagreements.any()
    assert difference(merged, alone) is None


@pytest.mark.parametrize("make", [R3, R4])
def test_more_inputs_than_there_was_room_for_are_taken(make):
    merge = Named(make)
    for number in range(9):
        merge.attach(str(number))
    stream = [Insert({"value": "a"}, 1, 5), Stable(3), Stable(FOREVER)]
    out = [e for number in range(9) for e in merge.push_all(str(number), stream)]
    assert out == stream
    assert np.count_nonzero(merge.sides.attached) == 9
    assert merge.kernel.nodes.used == 0


@pytest.mark.parametrize("make", [R3, R4])
def test_nothing_is_held_after_the_end_of_time(make):
    merge = Named(make)
    merge.attach("a")
    merge.push_all("a", [Insert({"value": "a"}, 1, FOREVER), Insert({"value": "b"}, 1, 9), Stable(5)])
    assert merge.push("a", Stable(FOREVER)) == [Stable(FOREVER)]
    assert merge.kernel.nodes.used == 0


def test_a_second_event_of_a_payload_and_start_breaks_the_key():
    merge = Named(R3)
    merge.attach("a")
    twice = [Insert({"value": "a"}, 1, 5), Insert({"value": "a"}, 1, 7), Stable(2)]
    with pytest.raises(Broken) as broken:
        merge.push_all("a", twice)
    assert broken.value.fact is Fact.KEYED
    assert list(broken.value.output.elements()) == twice[:1]
    ((number, rest),) = broken.value.pending
    assert number == 0
    assert list(rest.elements()) == twice[1:]


def test_many_ends_of_one_payload_and_start_are_kept_apart_and_forgotten():
    merge = Named(R4)
    merge.attach("a")
    merge.attach("b")
    ends = range(2, 300)
    inserts = [Insert({"value": "a"}, 1, end) for end in ends]
    assert merge.push_all("a", inserts) == inserts
    assert merge.push_all("b", inserts[::-1]) == []
    longer = [Adjust({"value": "a"}, 1, end, end + 1000) for end in ends]
    assert merge.push_all("a", longer) == []
    out = merge.push_all("a", [Stable(500)])
    assert len(out) == len(ends) + 1
    assert merge.kernel.ledgers.used <= 3 * len(ends)
    merge.push_all("a", [Stable(FOREVER)])
    merge.push_all("b", [Stable(FOREVER)])
    assert merge.kernel.ledgers.used == merge.kernel.nodes.used == 0


@pytest.mark.parametrize("complete", [False, True])
def test_an_event_that_is_prolonged_for_ever_takes_no_more_room(complete):
    merge = Named(lambda sides: R4(sides, FirstThenFinal()))
    merge.attach("a", complete=complete)
    merge.push("a", Insert({"value": "a"}, 0, 10))
    for time in range(10, 5000, 10):
        merge.push_all("a", [Adjust({"value": "a"}, 0, time, time + 10), Stable(time)])
        assert merge.kernel.ledgers.used <= 3
    assert merge.kernel.nodes.open.size[0] < 2100


def test_the_fastest_of_lossy_inputs_may_lead_and_what_comes_after_is_late():
    merge = Named(lambda sides: R4(sides, pace=Pace.FASTEST))
    merge.attach("a", complete=False)
    merge.attach("b", complete=False)
    merge.push_all("a", [Insert({"value": "a"}, 1, 5), Stable(9)])
    assert merge.kernel.stable == 9
    assert merge.push("b", Insert({"value": "b"}, 2, 6)) == []
    assert merge.sides.late.tolist() == [0, 1]
    assert merge.kernel.late.tolist() == [0]


def test_an_idle_input_is_not_waited_for_until_it_has_caught_up():
    merge = Named(R4)
    for name in ("a", "b"):
        merge.attach(name, complete=False)
    assert merge.push_all("a", [Insert({"value": "a"}, 1, 5), Stable(9)]) == [Insert({"value": "a"}, 1, 5)]
    assert merge.idle("b") == [Stable(9)]
    assert merge.push("b", Stable(4)) == []
    assert merge.push("a", Stable(12)) == [Stable(12)]
    assert merge.push("b", Stable(12)) == []
    assert merge.push("a", Stable(20)) == []
    assert merge.push("b", Stable(15)) == [Stable(15)]


@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_corrections_of_what_nobody_showed_say_more_than_there_are_events(policy):
    """Each of them shows an event more, and the stable takes back all but one: far more rows than events."""
    merge = Named(lambda sides: R4(sides, policy))
    oracle = IndexedMerge(Case.R4, by_identity, policy)
    for name in ("a", "b"):
        assert merge.attach(name, complete=False) == oracle.attach(name, complete=False)
    payloads = [{"value": str(number)} for number in range(20)]
    turns = {
        "a": [Insert(payload, 1, 5) for payload in payloads],
        "b": [Adjust(payload, 1, 10 + 2 * k, 11 + 2 * k) for payload in payloads for k in range(12)],
    }
    for name, elements in [*turns.items(), ("a", [Stable(9)]), ("b", [Stable(9), Stable(FOREVER)])]:
        said = [out for element in elements for out in oracle.push(name, element)]
        assert merge.push_all(name, elements) == said


def test_batches_of_any_size_say_the_same():
    workload = Workload(events=3_000, active=300, payload_bytes=8, revisions=0.3, stable_freq=0.05)
    streams = [Batch.of([e for b in workload.replica(k) for e in b.elements()]) for k in range(2)]
    outputs = []
    for rows in (1, 7, 1000):
        merge = Named(R4)
        for name in ("a", "b"):
            merge.attach(name, BEGINNING)
        said = []
        for begin in range(0, max(map(len, streams)), 1000):
            for number, stream in enumerate(streams):
                part = stream[begin : begin + 1000]
                for at in range(0, len(part), rows):
                    said += merge.kernel.push(number, part[at : at + rows]).elements()
        outputs.append(said)
    assert outputs[0] == outputs[1] == outputs[2]


def repeating_turns(random: Random) -> list[tuple[str, Element, bool]]:
    """What two inputs say in turn, each in stretches, and whether it repeats what the input shows."""
    _, copies = replicas(random, 2, case=Case.R3, shape=Shape(events=12, payloads=5, horizon=20))
    streams = dict(zip("ab", map(list, copies), strict=True))
    shown: dict[str, list[Insert]] = {"a": [], "b": []}
    said, turns = dict.fromkeys("ab", BEGINNING), []
    while any(streams.values()):
        name = random.choice([name for name, left in streams.items() if left])
        for _ in range(random.randint(1, 6)):
            if not streams[name]:
                break
            element = streams[name].pop(0)
            turns.append((name, element, False))
            match element:
                case Insert():
                    shown[name].append(element)
                case Adjust(payload, start, old_end, end):
                    shown[name].remove(Insert(payload, start, old_end))
                    shown[name] += [Insert(payload, start, end)] if end > start else []
                case Stable(time):
                    said[name] = max(said[name], time)
            repeatable = [event for event in shown[name] if event.start >= said[name]]
            if repeatable and random.random() < 0.5:
                turns.append((name, random.choice(repeatable), True))
    return turns


def keyed(on_broken: Policy, *, complete: bool) -> Merger:
    """A merge of two inputs that promise a key."""
    merger = Merger(on_broken=on_broken)
    for name in ("a", "b"):
        merger.attach(name, properties="keyed", complete=complete)
    return merger


@pytest.mark.parametrize("complete", [False, True], ids=["lossy", "complete"])
@pytest.mark.parametrize("seed", range(cases(60)))
def test_what_a_keyed_input_repeats_changes_nothing(seed, complete):
    once, repeating = (keyed(Drop(), complete=complete) for _ in range(2))
    for name, element, is_repeat in repeating_turns(Random(seed)):
        said = repeating.push(name, element)
        assert said == ([] if is_repeat else once.push(name, element))
    assert repeating.frontier == once.frontier


@pytest.mark.parametrize("complete", [False, True], ids=["lossy", "complete"])
@pytest.mark.parametrize("seed", range(cases(60)))
def test_repeats_in_a_batch_are_left_out_as_those_that_come_alone(seed, complete):
    turns = repeating_turns(Random(seed))
    aside, together_aside = Quarantine(), Quarantine()
    alone, together, dropping = (
        keyed(answer, complete=complete) for answer in (aside, together_aside, Drop())
    )
    for name, stretch in groupby(turns, key=lambda turn: turn[0]):
        elements = [element for _, element, _ in stretch]
        said = [out for element in elements for out in alone.push(name, element)]
        assert together.push(name, elements) == said
        assert dropping.push(name, elements) == said
    told = [
        [(one.position, one.input, one.element, one.detail) for one in found.violations]
        for found in (aside, together_aside)
    ]
    assert told[0] == told[1]
    assert len(told[0]) == sum(is_repeat for _, _, is_repeat in turns)
    counts = [
        [(one.elements, one.refused) for one in merger.status().inputs.values()]
        for merger in (alone, together, dropping)
    ]
    assert counts[0] == counts[1] == counts[2]


def test_the_first_repeat_of_a_batch_is_raised_and_the_rest_is_merged():
    merger = keyed(Raise(), complete=True)
    event, other = Insert({"value": "a"}, 1, 5), Insert({"value": "b"}, 2, 6)
    with pytest.raises(BrokenPropertyError, match="element 2 of input 'a'") as caught:
        merger.push("a", [event, event, other, event])
    assert list(caught.value.output.elements()) == [event, other]
    assert merger.push("b", [event, other, Stable(9)]) == [Stable(9)]


each_case = pytest.mark.parametrize("make", [R3, R4])
A, B = {"value": "a"}, {"value": "b"}


def merge_of(make, policy: OutputPolicy, *names: str, complete: bool = True) -> Named:
    merge = Named(lambda sides: make(sides, policy))
    for name in names:
        merge.attach(name, complete=complete)
    return merge


@each_case
class TestWhatIsSaidBeforeAStable:
    def test_the_changes_of_the_leader_are_followed_and_nobody_elses(self, make):
        merge = merge_of(make, FollowLeader(), "a", "b")
        merge.push("a", Stable(1))
        assert merge.push("b", Insert(B, 2, 9)) == []
        assert merge.push_all("a", said := [Insert(A, 2, 9), Adjust(A, 2, 9, 7)]) == said
        assert merge.push_all("b", [Insert(A, 2, 9), Adjust(A, 2, 9, 8)]) == []

    def test_who_inserts_the_latest_start_is_followed_from_that_insert_on(self, make):
        merge = merge_of(make, FollowLeader(by="latest"), "a", "b")
        assert merge.push("a", Insert(A, 2, 9)) == [Insert(A, 2, 9)]
        assert merge.push("b", Insert(B, 1, 9)) == []
        assert merge.push("b", Insert(A, 2, 8)) == []
        assert merge.push("b", Insert(A, 3, 9)) == [Insert(A, 3, 9)]
        assert merge.push("a", Insert(B, 2, 7)) == []
        assert merge.detach("b") == []
        assert merge.push("a", Insert(B, 1, 7)) == [Insert(B, 1, 7)]

    def test_who_shows_the_most_unfrozen_events_is_followed(self, make):
        merge = merge_of(make, FollowLeader(by="unfrozen"), "a", "b")
        assert merge.push("b", Insert(A, 2, 9)) == [Insert(A, 2, 9)]
        assert merge.push("a", Insert(B, 4, 9)) == [Insert(B, 4, 9)]
        assert merge.push("b", Insert(A, 5, 9)) == [Insert(A, 5, 9)]
        assert merge.push_all("b", [Adjust(A, 5, 9, 5), Insert(A, 6, 9)]) == [Insert(A, 6, 9)]
        merge.push("b", Stable(5))
        assert merge.push("a", Insert(B, 7, 9)) == [Insert(B, 7, 9)]

    def test_every_change_of_every_input_is_followed(self, make):
        merge = merge_of(make, EveryChange(), "a", "b")
        merge.push("a", Stable(1))
        assert merge.push_all("a", said := [Insert(A, 2, 9), Adjust(A, 2, 9, 7)]) == said
        assert merge.push_all("b", said := [Insert(B, 2, 9), Adjust(B, 2, 9, 2)]) == said

    @pytest.mark.parametrize("policy", [HalfFrozen(), FinalOnly()], ids=str)
    def test_who_waits_says_nothing(self, make, policy):
        merge = merge_of(make, policy, "a", "b")
        for name in ("a", "b"):
            assert merge.push_all(name, [Insert(A, 2, 9), Adjust(A, 2, 9, 7)]) == []

    def test_a_quorum_lets_out_an_insert_and_no_adjust(self, make):
        merge = merge_of(make, Quorum(fraction=1), "a", "b")
        assert merge.push("a", Insert(A, 2, 9)) == []
        assert merge.push_all("b", [Insert(A, 2, 7), Adjust(A, 2, 7, 8)]) == [Insert(A, 2, 7)]


@each_case
def test_a_change_that_the_leader_does_not_make_is_taken_back_before_it_is_final(make):
    merge = merge_of(make, EveryChange(), "a", "b")
    merge.push_all("a", [Insert(A, 1, 9), Stable(3)])
    assert merge.push_all("b", [Insert(A, 1, 9), Adjust(A, 1, 9, 7)]) == [Adjust(A, 1, 9, 7)]
    assert merge.push("a", Stable(8)) == [Adjust(A, 1, 7, 9), Stable(8)]


def test_an_end_that_only_one_who_left_had_shown_is_out_before_it_is_final():
    merge = merge_of(R4, FirstThenFinal(), "a", "b", complete=False)
    merge.push_all("b", [Insert(A, 1, 9), Stable(3)])
    assert merge.push("a", Stable(3)) == [Stable(3)]
    assert merge.push("b", Adjust(A, 1, 9, 5)) == []
    assert merge.detach("b") == []
    assert merge.push("a", Stable(7)) == [Adjust(A, 1, 9, 5), Stable(7)]


@each_case
def test_two_changes_of_one_stable_are_said_in_the_order_of_their_starts(make):
    merge = merge_of(make, FirstThenFinal(), "a")
    merge.push_all("a", [Insert(A, 1, 9), Insert(B, 2, 9), Stable(3)])
    changes = [Adjust(A, 1, 9, 7), Adjust(B, 2, 9, 6)]
    assert merge.push_all("a", [*changes, Stable(8)]) == [*changes, Stable(8)]


@each_case
def test_what_is_decided_is_compared_and_forgotten_however_much_that_is(make):
    """More than there is room for at once, so that room is used again."""
    merge = merge_of(make, FirstThenFinal(), "a", "b")
    for time in range(0, 1500, 300):
        events = [Insert(A, time + n, 2000) for n in range(300)]
        corrections = [Adjust(A, time + n, 2000, time + n + 1) for n in range(300)]
        for name in ("a", "b"):
            merge.push_all(name, [*events, *corrections, Stable(time + 301)])
    assert merge.kernel.nodes.used == 0
    assert merge.kernel.nodes.capacity == 1024
    assert (merge.kernel.nodes.slots < 0).all()
    assert not merge.sides.disagreements.any()
    merge.push_all("a", [Insert(A, 1600, 1601), Stable(1700)])
    merge.push("b", Stable(1700))
    assert merge.sides.disagreements.tolist() == [0, 1]


@each_case
def test_ends_that_move_for_ever_are_final_in_the_end_as_the_leader_shows_them(make):
    """More moves than there is room for, so that room is made."""
    merge = merge_of(make, EveryChange(), "a", "b")
    events = [Insert(A, 1, 9), Insert(B, 2, 9)]
    merge.push_all("a", [*events, Stable(3)])
    merge.push_all("b", [*events, Adjust(B, 2, 9, 7)])
    merge.push_all("b", [Adjust(A, 1, 9, 8), Adjust(A, 1, 8, 9)] * 1200)
    assert merge.push("b", Adjust(A, 1, 9, 7)) == [Adjust(A, 1, 9, 7)]
    assert merge.push("a", Stable(8)) == [Adjust(A, 1, 7, 9), Adjust(B, 2, 7, 9), Stable(8)]


def test_of_ends_that_lossy_inputs_differ_in_the_one_that_most_of_them_show_is_out():
    merge = merge_of(R4, HalfFrozen(), "a", "b", "c", complete=False)
    ends = {"a": 7, "b": 7, "c": 9}
    out = [e for name, end in ends.items() for e in merge.push_all(name, [Insert(A, 1, end), Stable(3)])]
    assert out == [Insert(A, 1, 7), Stable(3)]


@each_case
@pytest.mark.parametrize("furthest", ["a", "b", "c"])
def test_of_what_the_leader_does_not_show_the_furthest_that_shows_it_knows_the_end(make, furthest):
    merge = merge_of(make, FirstThenFinal(), "a", "b", "c", "d")
    ends = {"a": 12, "b": 13, "c": 14}
    merge.push_all(furthest, [Insert(A, 1, 6), Stable(3), Adjust(A, 1, 6, ends[furthest])])
    for name in ends.keys() - {furthest}:
        merge.push_all(name, [Insert(A, 1, ends[name]), Stable(2)])
    assert merge.push("d", Stable(10)) == [Adjust(A, 1, 6, ends[furthest]), Stable(10)]


def test_of_more_than_there_are_of_a_half_frozen_event_the_leader_shows_none_begins():
    merge = merge_of(R4, FirstThenFinal(), "a", "b")
    merge.push_all("a", [Insert(A, 1, 9), Stable(3)])
    shown = [Insert(A, 1, end) for end in (9, 8, 8, 7)]
    assert merge.push_all("b", [*shown, Stable(10)]) == [Stable(10)]


def test_an_event_whose_ends_have_all_been_left_has_the_last_of_them():
    merge = merge_of(R4, HalfFrozen(), "a", "b", complete=False)
    oracle = IndexedMerge(Case.R4, by_identity, HalfFrozen())
    for name in ("a", "b"):
        oracle.attach(name, complete=False)
    first, then = [Insert(A, 1, 5), Adjust(A, 1, 5, 7)], [Adjust(A, 1, 7, 8), Adjust(A, 1, 8, 7), Stable(3)]
    assert merge.push_all("a", first) + merge.detach("a") == []
    assert [e for element in first for e in oracle.push("a", element)] + oracle.detach("a") == []
    out = merge.push_all("b", then)
    assert out == [e for element in then for e in oracle.push("b", element)]
    assert out == [Insert(A, 1, 8), Stable(3)]
