"""A history says what the relation was after every element."""

from collections import Counter

from element_strategies import cut_up
from hypothesis import given
from hypothesis import strategies as st

from anabranch import Adjust, Batch, Event, Stable
from anabranch.model.history import Version, history
from anabranch.model.notation import parse
from anabranch.oracle.payload import payload_key
from anabranch.oracle.relation import World, denoted
from anabranch.testing.references import Shape
from anabranch.testing.strategies import streams

crowded = streams(shape=Shape(events=5, payloads=2, horizon=5))


def row(version: Version) -> tuple:
    """The event of a version in the oracle's words."""
    return payload_key(version.event.payload), version.event.start, version.event.end


@given(crowded)
def test_the_versions_of_a_moment_are_the_relation_of_that_prefix(stream):
    versions = history([Batch.of(stream)])
    world = World()
    for position, element in enumerate(stream, 1):
        world.apply(element)
        alive = [v for v in versions if v.arrived <= position and (v.current or v.replaced > position)]
        assert Counter(map(row, alive)) == world.bag()
    assert Counter(row(version) for version in versions if version.current) == denoted(stream).bag()


@given(crowded)
def test_versions_come_in_the_order_they_arrived_each_from_its_own_element(stream):
    versions = history([Batch.of(stream)])
    arrivals = [version.arrived for version in versions]
    assert arrivals == sorted(set(arrivals))
    makers = [stream[arrived - 1] for arrived in arrivals]
    assert [(m.payload, m.start, m.end) for m in makers] == [
        (v.event.payload, v.event.start, v.event.end) for v in versions
    ]
    enders = [version.replaced for version in versions if not version.current]
    adjusts = [i for i, element in enumerate(stream, 1) if isinstance(element, Adjust)]
    assert sorted(enders) == adjusts


@given(crowded)
def test_of_equal_versions_the_oldest_is_replaced_first(stream):
    versions = history([Batch.of(stream)])
    for version in versions:
        elders = [v for v in versions if row(v) == row(version) and v.arrived < version.arrived]
        if not version.current:
            assert all(not elder.current and elder.replaced < version.replaced for elder in elders)


@given(crowded, st.lists(st.integers(0, 20), max_size=4))
def test_how_a_stream_is_cut_into_batches_changes_nothing(stream, cuts):
    assert history(Batch.of(piece) for piece in cut_up(stream, cuts)) == history([Batch.of(stream)])


def test_stables_have_positions_but_no_versions():
    stream = parse("| 1\n+ a [3, 9)\n| 2\n~ a [3, 9) -> [3, 3)")
    assert history([Batch.of(stream)]) == [Version(Event({"value": "a"}, 3, 9), arrived=2, replaced=4)]
    assert history([Batch.of([Stable(1)])]) == []
