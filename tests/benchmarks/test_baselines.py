"""What the merge is measured against gives the right relation, and the other ways of R3 its very elements."""

import pytest
from baselines.attached import attached
from baselines.cleansed import Cleansed
from baselines.naive import Naive
from baselines.pure_python import PurePython, tuples
from hypothesis import given, settings
from hypothesis import strategies as st
from kernels.merging import Named, by_identity
from laws.merge import Scenario, played

from anabranch import FOREVER, Adjust, Batch, Case, Insert, Stable
from anabranch.kernels.merge.r3 import R3
from anabranch.model.consistency import difference
from anabranch.model.relation import Relation
from anabranch.testing.workload import Workload

pytestmark = pytest.mark.slow

randoms = st.randoms(use_true_random=False)


class Numbered:
    """A baseline, one element at a time, its inputs numbered as they come."""

    def __init__(self, baseline) -> None:
        self.baseline = baseline
        self.numbers: dict[str, int] = {}

    def attach(self, name, guarantee, *, complete):
        assert complete
        self.numbers[name] = len(self.numbers)
        return []

    def push(self, name, element):
        return list(self.baseline.push(self.numbers[name], Batch.of([element])).elements())


class InTuples(Numbered):
    """The baseline in plain Python."""

    def __init__(self) -> None:
        super().__init__(PurePython(order=lambda payload: by_identity(dict(payload))))

    def push(self, name, element):
        return [from_tuple(said) for said in self.baseline.push(self.numbers[name], [as_tuple(element)])]


def as_tuple(element) -> tuple:
    match element:
        case Insert(payload, start, end):
            return "+", tuple(payload.items()), start, end
        case Adjust(payload, start, old_end, end):
            return "~", tuple(payload.items()), start, old_end, end
        case Stable(time):
            return "|", time


def from_tuple(element: tuple):
    match element:
        case "+", payload, start, end:
            return Insert(dict(payload), start, end)
        case "~", payload, start, old_end, end:
            return Adjust(dict(payload), start, old_end, end)
        case _, time:
            return Stable(time)


WAYS = {
    "naive": lambda: Numbered(Naive(inputs=3)),
    "pure python": InTuples,
    "cleansed": lambda: Numbered(Cleansed(inputs=3)),
}


@pytest.mark.parametrize("way", WAYS)
@settings(max_examples=15)
@given(random=randoms)
def test_the_output_means_what_the_replicas_mean(way, random):
    scenario = Scenario.drawn(random, Case.R3, "none")
    output, meant = Relation(), Relation()
    for said, _ in played(WAYS[way](), scenario):
        output.apply(said)
    meant.apply([Insert(event.payload, event.start, event.end) for event in scenario.events])
    assert output.frontier == FOREVER
    assert difference(output, meant) is None


@pytest.mark.parametrize(
    ("way", "fault"), [("naive", "none"), ("pure python", "none"), ("pure python", "gap")]
)
@settings(max_examples=15)
@given(random=randoms)
def test_other_ways_of_r3_give_its_elements_one_by_one(way, fault, random):
    scenario = Scenario.drawn(random, Case.R3, fault)
    for (other, _), (ours, _) in zip(played(WAYS[way](), scenario), played(Named(R3), scenario), strict=True):
        assert other == ours


def test_a_workload_in_batches_comes_out_alike_and_nothing_is_left():
    workload = Workload(events=6000, active=300, payload_bytes=20, revisions=0.3, stable_freq=0.02)
    merge, naive, plain, cleansed = R3(attached(3)), Naive(3), PurePython(), Cleansed(3)
    in_order, alone, most = Relation(), Relation(), 0
    for step in zip(*(workload.replica(number) for number in range(3)), strict=True):
        for begin in range(0, max(map(len, step)), 700):
            for number, batch in enumerate(step):
                part = batch[begin : begin + 700]
                ours = merge.push(number, part)
                assert list(naive.push(number, part).elements()) == list(ours.elements())
                assert sorted(plain.push(number, tuples(part))) == sorted(tuples(ours))
                in_order.apply(cleansed.push(number, part))
                most = max(most, naive.output.index.used)
        alone.apply(step[0])
    assert difference(in_order, alone) is None
    assert 0 < most < 6000
    assert [stored.index.used for stored in (*naive.inputs, naive.output)] == [0] * 4
    assert not plain.starts


def test_memory_of_separate_indexes_grows_with_the_inputs():
    workload = Workload(events=5000, active=5000, payload_bytes=1000, closed=False)
    held = []
    for inputs in (2, 6):
        naive, merge = Naive(inputs), R3(attached(inputs))
        for number in range(inputs):
            for batch in workload.replica(number):
                naive.push(number, batch)
                merge.push(number, batch)
        held.append((naive.nbytes, merge.nbytes))
    (few, shared_by_few), (many, shared_by_many) = held
    assert many > 2 * few
    assert shared_by_many < 1.5 * shared_by_few
