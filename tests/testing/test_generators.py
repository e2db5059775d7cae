"""What the generators promise: valid streams, equivalent replicas, the case that was asked for."""

from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch import BEGINNING, FOREVER, Adjust, Attach, Detach, Insert, Relation, Stable
from anabranch.model.batch import Batch
from anabranch.model.consistency import contradiction, difference
from anabranch.model.observation import observe
from anabranch.model.properties import Case, Fact
from anabranch.model.recording import Recording
from anabranch.oracle.payload import payload_key
from anabranch.oracle.relation import denoted
from anabranch.testing.assertions import assert_denotes, assert_equivalent, assert_valid
from anabranch.testing.faults import detach, gap, interleave, late_join, restart
from anabranch.testing.presentations import replicas
from anabranch.testing.references import Shape
from anabranch.testing.workload import Workload

randoms = st.randoms(use_true_random=False)
cases = st.sampled_from(Case)


def bag(events) -> Counter:
    return Counter((payload_key(e.payload), e.start, e.end) for e in events)


@given(randoms, cases)
def test_every_replica_is_valid_and_denotes_the_reference(random, case):
    events, copies = replicas(random, 3, case=case)
    for copy in copies:
        assert denoted(copy).bag() == bag(events)
        assert denoted(copy).stable == FOREVER


@given(randoms, cases)
def test_every_replica_is_within_the_case_asked_for(random, case):
    _, copies = replicas(random, 2, case=case)
    for copy in copies:
        found = observe([Batch.of(copy)]).properties()
        assert case.value.facts - found.facts <= {Fact.DETERMINISTIC_TIES}
    if case is Case.R1:
        inserts = [[e for e in copy if isinstance(e, Insert)] for copy in copies]
        assert inserts[0] == inserts[1]


def test_the_generators_reach_every_kind_of_trouble():
    seen = Counter()
    for seed in range(200):
        events, (stream, other) = replicas(Random(seed), 2)
        data = [e for e in stream if not isinstance(e, Stable)]
        adjusts = [e for e in data if isinstance(e, Adjust)]
        starts = [e.start for e in data if isinstance(e, Insert)]
        seen["lengthened"] += any(e.end > e.old_end for e in adjusts)
        seen["shortened"] += any(e.start < e.end < e.old_end for e in adjusts)
        seen["removed"] += any(e.removes for e in adjusts)
        seen["spurious"] += len(starts) > len(events)
        seen["out of order"] += starts != sorted(starts)
        seen["tied"] += len(set(starts)) < len(starts)
        seen["repeated"] += max(bag(events).values(), default=0) > 1
        seen["unending"] += any(e.end == FOREVER for e in events)
        seen["stable in the middle"] += any(isinstance(e, Stable) for e in stream[:-1])
        seen["physically different"] += stream != other
        open_stables = [e.time for e in stream if isinstance(e, Stable)]
        seen["stable goes back"] += open_stables != sorted(open_stables)
    assert min(seen.values()) >= 10, seen


def test_the_same_seed_gives_the_same_streams():
    assert replicas(Random(7), 3) == replicas(Random(7), 3)
    assert replicas(Random(7), 3) != replicas(Random(8), 3)


@given(randoms, cases)
def test_a_gap_leaves_a_valid_stream_of_fewer_events(random, case):
    events, (stream,) = replicas(random, 1, case=case)
    lossy = denoted(gap(stream, random)).bag()
    assert lossy <= bag(events)


@given(randoms, cases)
def test_a_late_joiner_shows_every_event_that_ends_at_or_after_its_guarantee(random, case):
    events, (stream,) = replicas(random, 1, case=case)
    guarantee = random.randint(0, 9)
    joined = late_join(events, random, guarantee=guarantee, case=case)
    assert joined[0] == Attach(guarantee)
    late = denoted(joined[1:]).bag()
    assert late <= bag(events)
    assert bag(e for e in events if e.end >= guarantee) <= late
    recording = Recording()
    recording.apply(Batch.of(interleave({"whole": stream, "late": joined}, random)))
    assert contradiction(recording.relations(), recording.guarantees()) is None


@given(randoms)
def test_a_restart_tells_everything_again(random):
    events, (first, again) = replicas(random, 2)
    faulty = restart(first, again, random)
    cut = faulty.index(Detach())
    assert faulty[:cut] == first[:cut]
    assert faulty[cut + 1] == Attach(BEGINNING)
    assert_denotes(faulty[cut + 2 :], events)
    assert detach(first, random)[-1] == Detach()


def test_assertions_fail_when_streams_differ():
    with pytest.raises(AssertionError, match="left"):
        assert_equivalent([Insert({"value": "a"}, 0, 9)], [Insert({"value": "a"}, 0, 8)])
    with pytest.raises(ValueError, match="insert-behind-stable"):
        assert_valid([Stable(5), Insert({"value": "a"}, 0, 9)])


@pytest.mark.parametrize("revisions", [0.0, 0.3])
def test_replicas_of_a_workload_are_valid_equivalent_and_physically_different(revisions):
    workload = Workload(events=3000, active=100, payload_bytes=20, revisions=revisions, seed=3)
    relations = [Relation(), Relation()]
    for number, relation in enumerate(relations):
        for batch in workload.replica(number):
            relation.apply(batch)
    assert difference(*relations) is None
    assert len(relations[0]) == 3000
    first, second = (Batch.from_arrow(next(workload.replica(i)).to_arrow()) for i in (0, 1))
    assert first.start.tolist() != second.start.tolist()


def test_a_workload_has_the_stables_disorder_and_activity_asked_for():
    workload = Workload(events=50_000, stable_freq=0.05, disorder=0.2, active=500, payload_bytes=8)
    relation, alive, stables, elements, late = Relation(), 0, 0, 0, 0
    for batch in workload.replica(0):
        relation.apply(batch)
        starts = batch.start[batch.kind == 0]
        late += int((starts[1:] < starts[:-1]).sum())
        stables += int((batch.kind == 2).sum())
        elements += len(batch)
        relation.release()
        alive = max(alive, len(relation))
    assert 0.02 <= stables / elements <= 0.06
    assert 0.1 <= late / elements <= 0.25
    assert alive <= 3 * 500


def test_a_shape_or_workload_that_makes_no_sense_is_refused():
    with pytest.raises(ValueError, match="horizon"):
        Shape(horizon=1)
    with pytest.raises(ValueError, match="disorder"):
        Workload(disorder=1.5)
