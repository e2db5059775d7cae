"""Sort gives the very elements of its oracle, in order, and before the frontier it is what its input is."""

import json
from functools import cache
from itertools import pairwise
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from quick import cases

from anabranch import FOREVER, Adjust, Batch, Case, Fact, Insert, Relation, Stable, observe, parse, text
from anabranch.kernels.kernel import Kernel, State
from anabranch.kernels.sort import Sort
from anabranch.model.batch import Kind
from anabranch.model.consistency import difference
from anabranch.model.elements import sync
from anabranch.model.identity import identities
from anabranch.model.rows import rows_of
from anabranch.oracle.relation import World
from anabranch.oracle.sort import Sort as Meaning
from anabranch.oracle.sort import cut_at
from anabranch.testing.presentations import Habits, present, replicas
from anabranch.testing.references import Shape, reference
from anabranch.testing.workload import Workload

randoms = st.randoms(use_true_random=False)
CHANGING = Habits(revisions=0.6, comebacks=0.3, spurious=0.6)


@cache
def identity_of(value) -> tuple:
    return tuple(identities(rows_of([{} if value is None else {"value": value}]))[0].tolist())


def meaning() -> Meaning:
    return Meaning(order=lambda payload: identity_of(payload.get("value")))


def drawn(random: Random, case: Case = Case.R4, shape: Shape | None = None) -> list:
    return present(reference(random, case=case, shape=shape), random, case=case, habits=CHANGING)


def cut(stream: list, random: Random):
    while stream:
        length = random.choice([len(stream), 20, 5, 2, 1, 1])
        yield stream[:length]
        stream = stream[length:]


def told(kernel: Kernel, part: list) -> list:
    """What comes of elements when each stable is an advance, as a gate hands them on."""
    out, pushed = [], []
    for element in part:
        if not isinstance(element, Stable):
            pushed.append(element)
            continue
        assert len(kernel.push("", Batch.of(pushed)).events) == 0
        pushed = []
        before = kernel.frontier
        out += kernel.advance("", element.time).events.elements()
        out += [Stable(kernel.frontier)] * (kernel.frontier > before)
    assert len(kernel.push("", Batch.of(pushed)).events) == 0
    return out


def stored_and_read_back(kernel: Sort) -> Sort:
    version, values, batches = kernel.saved()
    read = []
    for batch in batches:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        read.append(pa.ipc.open_stream(sink.getvalue()).read_next_batch())
    return Sort.load(State(version, json.loads(json.dumps(values)), read))


@settings(max_examples=cases(60))
@given(case=st.sampled_from(Case), random=randoms)
def test_it_gives_the_elements_of_the_oracle_however_the_input_is_cut(case, random):
    kernel, oracle = Sort(), meaning()
    for part in cut(drawn(random, case), random):
        assert told(kernel, part) == [out for element in part for out in oracle.push(element)]
        if random.random() < 0.3:
            kernel = stored_and_read_back(kernel)


@pytest.mark.parametrize("seed", range(cases(4)))
def test_it_gives_the_elements_of_the_oracle_where_many_events_collide(seed):
    random = Random(seed)
    crowd = Shape(events=120, payloads=1 + seed, horizon=5 + 9 * seed, repeats=0.3)
    kernel, oracle = Sort(), meaning()
    for part in cut(drawn(random, shape=crowd), random):
        assert told(kernel, part) == [out for element in part for out in oracle.push(element)]
        if random.random() < 0.2:
            kernel = stored_and_read_back(kernel)


@settings(max_examples=cases(150))
@given(case=st.sampled_from(Case), random=randoms)
def test_after_every_element_it_is_in_order_and_before_the_frontier_what_the_input_is(case, random):
    oracle, world, output = meaning(), World(), World()
    syncs = []
    for element in drawn(random, case):
        assert world.apply(element) is None
        for out in oracle.push(element):
            assert output.apply(out) is None
            if not isinstance(out, Stable):
                assert not isinstance(out, Adjust) or out.old_end != out.end
                syncs.append(sync(out))
        assert output.stable == world.stable
        assert cut_at(output.rows, world.stable) == cut_at(world.rows, world.stable)
        assert all(start < world.stable for _, start, _ in output.rows)
    assert syncs == sorted(syncs)
    assert output.bag() == world.bag()


@settings(max_examples=cases(40))
@given(random=randoms)
def test_replicas_without_revisions_come_out_the_same(random):
    straight = Habits(revisions=0, comebacks=0, spurious=0)
    _, streams = replicas(random, 3, habits=straight)
    one, *others = [[e for e in told(Sort(), s) if isinstance(e, Insert)] for s in streams]
    assert [one, one] == others
    assert Fact.PERFECT in observe([Batch.of(one)]).properties()


@settings(max_examples=cases(40))
@given(random=randoms)
def test_after_the_last_stable_nothing_is_held(random):
    kernel, stream = Sort(), drawn(random)
    told(kernel, stream)
    assert kernel.frontier == FOREVER
    assert kernel.report().live == len(kernel.waiting) == len(kernel.moving) == len(kernel.due) == 0
    assert kernel.payloads.rows == kernel.waiting.pool.capacity == 0


def test_an_event_that_is_held_goes_out_once_with_the_end_it_has_then():
    stream = "+ a [4, 9)\n+ b [2, 5)\n~ a [4, 9) -> [4, 6)\n+ c [3, 9)\n~ c [3, 9) -> [3, 3)\n| 4\n| 5"
    assert text(told(Sort(), parse(stream))) == "+ b [2, 5)\n| 4\n+ a [4, 6)\n| 5"


def test_what_starts_or_ends_at_the_frontier_is_not_passed():
    stream = "+ a [0, 5)\n| 1\n~ a [0, 5) -> [0, 8)\n+ b [5, 6)\n| 5\n| 6"
    assert text(told(Sort(), parse(stream))) == (
        "+ a [0, 5)\n| 1\n| 5\n+ b [5, 6)\n~ a [0, 5) -> [0, 8)\n| 6"
    )


def test_a_later_revision_with_an_earlier_sync_time_is_not_told_before_what_it_revises():
    stream = "+ a [0, 9)\n| 3\n~ a [0, 9) -> [0, 20)\n~ a [0, 20) -> [0, 5)\n| 7\n| 30"
    assert text(told(Sort(), parse(stream))) == "+ a [0, 9)\n| 3\n~ a [0, 9) -> [0, 5)\n| 7\n| 30"


def test_a_revision_that_is_taken_back_in_time_is_never_told():
    stream = "+ a [0, 9)\n| 3\n~ a [0, 9) -> [0, 7)\n| 5\n~ a [0, 7) -> [0, 9)\n| inf"
    assert text(told(Sort(), parse(stream))) == "+ a [0, 9)\n| 3\n| 5\n| ∞"


def test_events_of_one_start_and_end_change_each_by_its_payload():
    stream = "+ a [0, 9)\n+ b [0, 9)\n| 1\n~ a [0, 9) -> [0, 7)\n~ b [0, 9) -> [0, 7)\n| inf"
    out = told(Sort(), parse(stream))
    assert sorted(one.payload["value"] for one in out if isinstance(one, Adjust)) == ["a", "b"]
    swapped = "+ a [0, 9)\n+ b [0, 7)\n| 1\n~ a [0, 9) -> [0, 7)\n~ b [0, 7) -> [0, 9)\n| inf"
    changes = {text([one]) for one in told(Sort(), parse(swapped)) if isinstance(one, Adjust)}
    assert changes == {"~ a [0, 9) -> [0, 7)", "~ b [0, 7) -> [0, 9)"}


def test_repeats_change_as_few_ends_as_must_change_in_ascending_order():
    stream = "+ a [0, 5)\n+ a [0, 30)\n| 3\n~ a [0, 5) -> [0, 20)\n~ a [0, 30) -> [0, 10)\n| 7\n| inf"
    out = text(told(Sort(), parse(stream)))
    assert out == ("+ a [0, 5)\n+ a [0, 30)\n| 3\n~ a [0, 5) -> [0, 10)\n| 7\n~ a [0, 30) -> [0, 20)\n| ∞")


def test_payloads_may_have_no_columns_or_gain_some_later():
    kernel = Sort()
    stream = [Insert({}, 0, 2), Insert({}, 0, 2), Insert({"value": 1}, 1, 3), Insert({"value": 2.5}, 2, 3)]
    for element in stream:
        kernel = stored_and_read_back(kernel)
        told(kernel, [element])
    assert told(kernel, [Stable(FOREVER)]) == [*stream, Stable(FOREVER)]


def test_a_workload_comes_out_in_order_and_as_it_was_meant():
    workload = Workload(events=10_000, active=500, payload_bytes=20, revisions=0.2, stable_freq=0.01)
    kernel, output, meant, latest = Sort(), Relation(), Relation(), 0
    for batch in workload.replica(0):
        meant.apply(batch)
        stables = np.flatnonzero(batch.kind == Kind.STABLE)
        for begin, end in pairwise([0, *(stables + 1).tolist(), len(batch)]):
            part = batch[begin:end]
            kernel.push("", part)
            if len(part) and part.kind[-1] == Kind.STABLE:
                said = kernel.advance("", int(part.start[-1])).events
                adjust = said.kind == Kind.ADJUST
                syncs = np.where(adjust, np.minimum(said.old_end, said.end), said.start)
                assert (np.diff(syncs, prepend=latest) >= 0).all()
                latest = syncs.max(initial=latest)
                output.apply(said)
                output.apply(Stable(kernel.frontier))
    assert difference(output, meant) is None
    assert kernel.report().live == 0


def columns(kind, start, end, old_end) -> Batch:
    payload = pa.RecordBatch.from_pydict({"value": [f"{n:0100}" for n in range(len(start))]})
    return Batch(np.full(len(start), kind, np.int8), start, end, old_end, payload)


def test_memory_follows_what_is_held_and_not_what_has_passed():
    kernel, events, sizes = Sort(), 2000, []
    everyone = np.arange(events)
    for time in range(0, 100 * events, events):
        start = everyone + time
        end = start + events // 2
        for kind, *times in (
            (Kind.INSERT, start, end, 0 * end),
            (Kind.ADJUST, start, end + 1, end),
            (Kind.ADJUST, start, end + 2, end + 1),
        ):
            kernel.push("", columns(kind, *times))
        kernel.advance("", time + events // 2)
        kernel.push("", columns(Kind.ADJUST, start, end + 3, end + 2))
        kernel.advance("", time + events)
        assert kernel.report().live <= 3 * events
        sizes.append(kernel.report().nbytes)
    assert max(sizes) <= 1.3 * max(sizes[:40])


def test_an_event_that_never_settles_leaves_no_trail():
    for passed in (False, True):
        kernel = Sort()
        told(kernel, [Insert({"value": "a"}, 0, 10), *([Stable(1)] if passed else [])])
        for turn in range(1500):
            end = 10 + turn
            told(kernel, [Adjust({"value": "a"}, 0, end, end + 1)])
            told(kernel, [Adjust({"value": "a"}, 0, end + 1, end + 1 + turn)] * (turn == 1499))
            assert len(kernel.waiting) <= 2100
            assert len(kernel.moving) <= 4
            assert len(kernel.due) <= 1100
        assert text(told(kernel, [Stable(5)])) == ("| 5" if passed else "+ a [0, 3009)\n| 5")


def test_a_frontier_looks_only_at_what_it_lets_out():
    kernel, events = Sort(), 20_000
    start = np.random.default_rng(1).permutation(events)
    kernel.push("", columns(Kind.INSERT, start, start + 10 * events, 0 * start))
    for time in range(0, events, 100):
        kernel.advance("", time)
    assert kernel.report().counts["touched"] <= 3 * events
    kernel.advance("", events)
    kernel.push("", columns(Kind.ADJUST, start, start + events, start + 10 * events))
    before = kernel.report().counts["touched"]
    for time in range(events, 2 * events, 100):
        assert len(kernel.advance("", time + 100).events) == 100
    assert kernel.report().counts["touched"] - before <= 4 * events
