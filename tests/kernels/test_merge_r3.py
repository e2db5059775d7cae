"""The compiled merge of R3 gives the very elements that the scans of the oracle give."""

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from laws.merge import FAULTS, Attachment, Scenario, merges, played

from anabranch import BEGINNING, FOREVER, Batch, Case
from anabranch.kernels.merge.r3 import R3
from anabranch.model.consistency import difference
from anabranch.model.identity import identities
from anabranch.model.relation import Relation
from anabranch.model.rows import rows_of
from anabranch.oracle.indexed_merge import IndexedMerge
from anabranch.testing.workload import Workload

randoms = st.randoms(use_true_random=False)


class ByElement:
    """The kernel, one element at a time."""

    def __init__(self, case: Case = Case.R3) -> None:
        assert case is Case.R3
        self.kernel = R3()

    def attach(self, name, guarantee=BEGINNING):
        self.kernel.attach(name, guarantee)
        return []

    def detach(self, name):
        self.kernel.detach(name)
        return []

    def push(self, name, element):
        return list(self.kernel.push(name, Batch.of([element])).elements())


def by_identity(payload) -> tuple:
    return tuple(identities(rows_of([payload]))[0].tolist())


@pytest.mark.parametrize("fault", FAULTS)
@settings(max_examples=60)
@given(random=randoms)
def test_it_gives_the_elements_of_the_oracle_one_by_one(fault, random):
    scenario = Scenario.drawn(random, Case.R3, fault)
    kernel, oracle = ByElement(), IndexedMerge(Case.R3, by_identity)
    for (ours, _), (theirs, _) in zip(played(kernel, scenario), played(oracle, scenario), strict=True):
        assert ours == theirs


@pytest.mark.parametrize("fault", FAULTS)
@settings(max_examples=20)
@given(random=randoms)
def test_the_output_is_valid_compatible_and_right(fault, random):
    merges(ByElement, Scenario.drawn(random, Case.R3, fault))


@settings(max_examples=40)
@given(random=randoms)
def test_how_an_input_is_cut_into_batches_does_not_change_the_output(random):
    scenario = Scenario.drawn(random, Case.R3, "none")
    runs: list[Attachment] = []
    for item in scenario.recording:
        if not runs or runs[-1].name != item.input or random.random() < 0.2:
            runs.append(Attachment(item.input, BEGINNING, []))
        runs[-1].said.append(item.element)
    whole, single = R3(), R3()
    for name in ("a", "b", "c"):
        whole.attach(name)
        single.attach(name)
    for run in runs:
        batched = list(whole.push(run.name, Batch.of(run.said)).elements())
        assert batched == [e for x in run.said for e in single.push(run.name, Batch.of([x])).elements()]


def test_replicas_of_a_workload_merge_to_what_each_of_them_means():
    workload = Workload(events=20_000, active=500, payload_bytes=20, revisions=0.2, stable_freq=0.02)
    merge, merged, alone = R3(), Relation(), Relation()
    for number in range(3):
        merge.attach(str(number))
    most = 0
    for step in zip(*(workload.replica(number) for number in range(3)), strict=True):
        for number, batch in enumerate(step):
            merged.apply(merge.push(str(number), batch))
            most = max(most, merge.nodes.used)
        alone.apply(step[0])
    assert merge.stable == FOREVER
    assert merge.nodes.used == 0
    assert most < 20_000
    assert difference(merged, alone) is None


def test_more_inputs_than_there_was_room_for_are_taken():
    merge = R3()
    random = Random(3)
    scenario = Scenario.drawn(random, Case.R3, "none")
    stream = [item.element for item in scenario.recording if item.input == "a"]
    for number in range(9):
        merge.attach(str(number))
    out = [e for number in range(9) for e in merge.push(str(number), Batch.of(stream)).elements()]
    assert len([e for e in out if e in stream]) > 0
    assert np.count_nonzero(merge.attached) == 9
    assert merge.nodes.used == 0
