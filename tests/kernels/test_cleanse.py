"""Cleanse lets out what is final, as inserts, and the compiled one gives the very elements of the oracle."""

from functools import cache
from itertools import pairwise
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from quick import cases

from anabranch import (
    FOREVER,
    Adjust,
    Batch,
    Case,
    Fact,
    Insert,
    Relation,
    Stable,
    observe,
    parse,
    text,
)
from anabranch.kernels.cleanse import Cleanse
from anabranch.kernels.store.saved import from_bytes, to_bytes
from anabranch.model.batch import Kind
from anabranch.model.consistency import difference, incompatibility
from anabranch.model.identity import identities
from anabranch.model.rows import rows_of
from anabranch.oracle.cleanse import Cleanse as Meaning
from anabranch.oracle.relation import World, denoted
from anabranch.testing.faults import noise
from anabranch.testing.presentations import Habits, present, replicas
from anabranch.testing.references import Shape, reference
from anabranch.testing.workload import Workload

randoms = st.randoms(use_true_random=False)
both = pytest.mark.parametrize("ordered", [True, False])
CHANGING = Habits(revisions=0.6, comebacks=0.3, spurious=0.6)


@cache
def identity_of(value) -> tuple:
    return tuple(identities(rows_of([{} if value is None else {"value": value}]))[0].tolist())


def by_identity(payload) -> tuple:
    return identity_of(payload.get("value"))


def meaning(ordered) -> Meaning:
    return Meaning(ordered=ordered, order=by_identity)


def drawn(random: Random, case: Case = Case.R4, shape: Shape | None = None) -> list:
    return present(reference(random, case=case, shape=shape), random, case=case, habits=CHANGING)


def cut(stream: list, random: Random):
    """The stream in pieces of random lengths, empty ones among them."""
    while stream:
        length = random.choice([len(stream), 20, 5, 2, 1, 1, 0])
        yield stream[:length]
        stream = stream[length:]


def cleansed(oracle: Meaning, elements: list) -> list:
    return [said for element in elements for said in oracle.push(element)]


def pushed(kernel: Cleanse, elements: list) -> list:
    return list(kernel.act(Batch.of(elements)).elements())


def stored_and_read_back(kernel: Cleanse) -> Cleanse:
    return Cleanse.load(from_bytes(to_bytes({"": kernel.saved()}))[""])


@both
@settings(max_examples=cases(40))
@given(case=st.sampled_from(Case), random=randoms)
def test_it_gives_the_elements_of_the_oracle_however_the_input_is_cut(ordered, case, random):
    kernel, oracle = Cleanse(ordered=ordered), meaning(ordered)
    for part in cut(drawn(random, case), random):
        assert pushed(kernel, part) == cleansed(oracle, part)
        assert kernel.live == len(oracle.events)
        assert (kernel.frontier, kernel.reached) == (oracle.stable, oracle.frontier)


@both
@pytest.mark.parametrize("seed", range(cases(5)))
def test_it_gives_the_elements_of_the_oracle_where_many_events_collide(ordered, seed):
    random = Random(seed)
    crowd = Shape(events=300, payloads=1 + seed, horizon=5 + 9 * seed, repeats=0.3)
    kernel, oracle = Cleanse(ordered=ordered), meaning(ordered)
    for part in cut(drawn(random, shape=crowd), random):
        assert pushed(kernel, part) == cleansed(oracle, part)
        if random.random() < 0.2:
            kernel = stored_and_read_back(kernel)


@both
@settings(max_examples=cases(15))
@given(random=randoms)
def test_it_goes_on_from_what_was_dumped_as_if_nothing_had_happened(ordered, random):
    kernel, oracle = Cleanse(ordered=ordered), meaning(ordered)
    for element in drawn(random):
        if random.random() < 0.3:
            kernel = stored_and_read_back(kernel)
        assert pushed(kernel, [element]) == oracle.push(element)
        assert kernel.live == len(oracle.events)


@both
@settings(max_examples=cases(15))
@given(random=randoms)
def test_an_element_that_is_not_valid_changes_nothing(ordered, random):
    kernel, oracle, world = Cleanse(ordered=ordered), meaning(ordered), World()
    for element in noise(drawn(random), random):
        expected = [] if world.apply(element) else oracle.push(element)
        assert pushed(kernel, [element]) == expected
    assert kernel.live == len(oracle.events)


@both
@settings(max_examples=cases(40))
@given(case=st.sampled_from(Case), random=randoms)
def test_after_every_element_the_output_is_valid_and_can_become_what_the_input_can(ordered, case, random):
    oracle, world = meaning(ordered), World()
    told, output = Relation(), Relation()
    for element in drawn(random, case):
        told.apply(element)
        for said in oracle.push(element):
            assert not isinstance(said, Adjust)
            assert world.apply(said) is None
            output.apply(said)
            assert incompatibility(output, {"input": told}) is None
        assert world.stable == output.frontier == oracle.stable <= told.frontier
    assert world.stable == FOREVER
    assert difference(output, told) is None


@settings(max_examples=cases(25))
@given(random=randoms)
def test_out_of_order_nothing_that_is_final_waits(random):
    oracle = meaning(False)
    for element in drawn(random):
        oracle.push(element)
        assert all(event.end >= oracle.frontier for event in oracle.events)


@settings(max_examples=cases(25))
@given(random=randoms)
def test_in_order_all_replicas_give_the_same_inserts_by_start(random):
    _, streams = replicas(random, 3, habits=CHANGING)
    outputs = [cleansed(meaning(True), stream) for stream in streams]
    one, *others = [[said for said in output if isinstance(said, Insert)] for output in outputs]
    assert [one, one] == others
    assert all(before.start <= after.start for before, after in pairwise(one))
    assert Fact.PERFECT in observe([Batch.of(outputs[0])]).properties()


@both
@settings(max_examples=cases(20))
@given(random=randoms)
def test_after_the_last_stable_everything_is_out_and_nothing_is_held(ordered, random):
    stream = drawn(random)
    kernel = Cleanse(ordered=ordered)
    out = pushed(kernel, stream)
    assert denoted(out).bag() == denoted(stream).bag()
    assert kernel.frontier == FOREVER
    assert kernel.live == kernel.kept.table.used == kernel.kept.waits[0] == 0


@both
def test_an_open_event_holds_back_the_stable_and_in_order_all_that_starts_with_or_after_it(ordered):
    kernel = Cleanse(ordered=ordered)
    first = text(pushed(kernel, parse("+ z [0, 2)\n+ long [1, 9)\n+ a [1, 3)\n+ b [2, 4)\n| 6")))
    second = text(pushed(kernel, parse("+ c [7, 8)\n| 10")))
    tied = text(sorted(parse("+ long [1, 9)\n+ a [1, 3)"), key=lambda insert: by_identity(insert.payload)))
    if ordered:
        assert first == "+ z [0, 2)\n| 1"
        assert second == f"{tied}\n+ b [2, 4)\n+ c [7, 8)\n| 10"
    else:
        assert first == "+ z [0, 2)\n+ a [1, 3)\n+ b [2, 4)\n| 1"
        assert second == "+ long [1, 9)\n+ c [7, 8)\n| 10"


@both
def test_an_event_that_ends_at_the_stable_is_not_final(ordered):
    kernel = Cleanse(ordered=ordered)
    assert text(pushed(kernel, parse("+ a [0, 5)\n| 5"))) == "| 0"
    assert text(pushed(kernel, parse("~ a [0, 5) -> [0, 7)\n| 7\n| 8"))) == "+ a [0, 7)\n| 8"


@both
def test_payloads_may_have_no_columns_or_gain_some_later(ordered):
    kernel = Cleanse(ordered=ordered)
    stream = [Insert({}, 0, 2), Insert({}, 0, 2), Insert({"value": 1}, 1, 3), Insert({"value": 2.5}, 2, 3)]
    out = []
    for element in stream:
        kernel = stored_and_read_back(kernel)
        out += pushed(kernel, [element])
    assert out + pushed(kernel, [Stable(FOREVER)]) == [*stream, Stable(FOREVER)]


@both
def test_few_of_many_payloads_without_columns_go_out(ordered):
    kernel = Cleanse(ordered=ordered)
    for start in range(30):
        assert pushed(kernel, [Insert({}, start, start + 1)]) == []
    assert pushed(kernel, [Stable(2)]) == [Insert({}, 0, 1), Stable(1)]


@both
def test_a_workload_comes_out_as_it_was_meant(ordered):
    workload = Workload(events=20_000, active=500, payload_bytes=20, revisions=0.2, stable_freq=0.02)
    kernel, output, told = Cleanse(ordered=ordered), Relation(), Relation()
    inserted = []
    for batch in workload.replica(0):
        for begin in range(0, len(batch), 1000):
            said = kernel.act(batch[begin : begin + 1000])
            inserted.append(said.start[said.kind == Kind.INSERT])
            assert (said.payload.column("text").is_null().to_numpy(False) == (said.kind == Kind.STABLE)).all()
            output.apply(said)
        told.apply(batch)
    assert difference(output, told) is None
    assert kernel.live == 0
    assert (np.diff(np.concatenate(inserted)) >= 0).all() or not ordered


@both
def test_memory_follows_what_is_held_and_not_what_has_passed(ordered):
    kernel = Cleanse(ordered=ordered)
    events, sizes = 2000, []
    everyone = np.arange(events)
    payload = pa.RecordBatch.from_pydict({"value": [f"{number:0100}" for number in range(events)]})
    for time in range(0, 120 * events, events):
        start = everyone + time
        end = start + events // 2
        columns = (
            (Kind.INSERT, start, end, 0 * end),
            (Kind.ADJUST, start, end + 1, end),
            (Kind.ADJUST, start, end + 2, end + 1),
        )
        for kind, *times in columns:
            kernel.act(Batch(np.full(events, kind, np.int8), *times, payload))
        kernel.advance("", time + events)
        assert kernel.live <= events
        sizes.append(kernel.nbytes)
    assert max(sizes) <= 1.2 * max(sizes[:40])


@both
def test_an_event_that_never_settles_leaves_no_trail(ordered):
    kernel = Cleanse(ordered=ordered)
    rows = 1000
    payload = pa.RecordBatch.from_pydict({"value": np.zeros(rows, np.int64)})
    kernel.push("", Batch.of([Insert({"value": 0}, 0, 10)]))
    end = 10 + (np.arange(rows) + 1) % 2
    adjusts = Batch(np.full(rows, Kind.ADJUST, np.int8), np.zeros(rows, np.int64), end, 21 - end, payload)
    for _ in range(100):
        assert len(kernel.push("", adjusts).events) == 0
        assert kernel.live == 1
        assert max(kernel.kept.by_start.size[0], kernel.kept.by_end.size[0]) <= 3 * rows
    assert pushed(kernel, [Stable(FOREVER)]) == [Insert({"value": 0}, 0, 10), Stable(FOREVER)]


@both
def test_there_is_room_for_all_that_waits(ordered):
    kernel, events = Cleanse(ordered=ordered), [Insert({"value": n}, 1, 5) for n in range(3000)]
    for begin in range(0, len(events), 1000):
        assert len(kernel.push("", Batch.of(events[begin : begin + 1000])).events) == 0
    assert len(kernel.advance("", 9).events) == len(events)
