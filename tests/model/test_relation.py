"""The relation of the model means what the oracle says, in every batching and with every policy."""

from random import Random

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from laws.relation import Compiled, agrees_with_the_oracle_after_every_element, bag_of

from anabranch import FOREVER, Adjust, Event, Freeze, Insert, Relation, Stable
from anabranch.model.batch import Batch
from anabranch.model.notation import parse
from anabranch.model.validity import Drop, InvalidElementError, Quarantine, Rule
from anabranch.oracle.payload import payload_key
from anabranch.oracle.relation import World, denoted
from anabranch.testing.faults import noise
from anabranch.testing.presentations import present
from anabranch.testing.references import Shape, reference
from anabranch.testing.strategies import streams

randoms = st.randoms(use_true_random=False)


def noisy_stream(random: Random, *, events: int = 5) -> list:
    stream = present(reference(random, shape=Shape(events=events)), random)
    return noise(stream, random)


@given(randoms)
def test_a_relation_agrees_with_the_oracle_after_every_element(random):
    agrees_with_the_oracle_after_every_element(Compiled, noisy_stream(random))


@given(randoms)
def test_how_a_stream_is_cut_into_batches_changes_nothing(random):
    stream = noisy_stream(random, events=12)
    aside, world = Quarantine(), World()
    relation = Relation(aside)
    rest = stream
    while rest:
        cut = random.randint(1, len(rest))
        relation.apply(rest[:cut])
        rest = rest[cut:]
    expected = [(i, broken) for i, e in enumerate(stream, 1) if (broken := world.apply(e))]
    assert [(v.position, v.rule) for v in aside.violations] == expected
    assert [v.element for v in aside.violations] == [stream[i - 1] for i, _ in expected]
    assert bag_of(relation) == world.bag()
    assert relation.frontier == world.stable
    assert relation.position == len(stream)


@given(randoms)
def test_dropping_and_quarantining_leave_the_same_relation(random):
    stream = noisy_stream(random)
    dropping, quarantining = Relation(Drop()), Relation(Quarantine())
    dropping.apply(stream)
    quarantining.apply(stream)
    assert bag_of(dropping) == bag_of(quarantining)


@given(randoms)
def test_raising_applies_what_came_before_and_nothing_after(random):
    stream = noisy_stream(random)
    relation, world = Relation(), World()
    first = next((i for i, element in enumerate(stream) if world.apply(element)), None)
    if first is None:
        relation.apply(stream)
    else:
        with pytest.raises(InvalidElementError) as caught:
            relation.apply(stream)
        assert caught.value.violation.element == stream[first]
        assert caught.value.violation.position == first + 1
        assert caught.value.__notes__
        assert bag_of(relation) == denoted(stream[:first]).bag()


@given(streams(shape=Shape(events=20, horizon=30)), st.integers(1, 7))
def test_released_events_and_those_that_stay_are_together_the_relation(stream, step):
    keeping, releasing = Relation(), Relation()
    released = []
    for cut in range(0, len(stream), step):
        keeping.apply(stream[cut : cut + step])
        releasing.apply(stream[cut : cut + step])
        frozen = releasing.release().objects()
        assert all(event.end < releasing.frontier or releasing.frontier == FOREVER for event in frozen)
        assert all(status is not Freeze.FULLY_FROZEN for _, status in releasing.freezes())
        released += frozen
    everything = sorted(released + releasing.events(), key=str)
    assert everything == sorted(keeping.events(), key=str)


@given(streams())
def test_the_change_of_a_batch_is_what_the_relation_has_more_and_less(stream):
    relation = Relation()
    for element in stream:
        before = bag_of(relation)
        change = relation.apply(element)
        after = bag_of(relation)
        net = {(payload_key(e.payload), e.start, e.end): count for e, count in change.events().rows()}
        assert net == {row: after[row] - before[row] for row in before | after if after[row] != before[row]}
        assert change.after == relation.frontier


def test_equal_events_are_counted_and_adjusted_one_at_a_time():
    relation = Relation()
    relation.apply(parse("+ a [0, 9)\n+ a [0, 9)\n~ a [0, 9) -> [0, 5)"))
    assert relation.events() == [Event({"value": "a"}, 0, 5), Event({"value": "a"}, 0, 9)]
    relation.apply(parse("~ a [0, 5) -> [0, 0)"))
    assert relation.events() == [Event({"value": "a"}, 0, 9)]


def test_columns_may_come_and_go_within_a_stream():
    relation = Relation()
    relation.apply(Insert({"a": 1}, 0, 9))
    relation.apply(Insert({"a": 2, "b": "x"}, 0, 9))
    relation.apply(Adjust({"b": None, "a": 1.0}, 0, 9, 5))
    assert relation.events() == [Event({"a": 1}, 0, 5), Event({"a": 2, "b": "x"}, 0, 9)]


def test_a_batch_is_applied_from_anything_that_speaks_arrow():
    relation = Relation()
    relation.apply(Batch.of([Insert({"n": 2**60}, 0, 9), Stable(3)]).to_arrow())
    assert relation.events() == [Event({"n": 2**60}, 0, 9)]


@pytest.mark.parametrize(
    ("stream", "rule"),
    [
        ("+ a [5, 5)", Rule.EMPTY_LIFETIME),
        ("+ a [5, 4)", Rule.EMPTY_LIFETIME),
        ("| 5\n+ a [4, 9)", Rule.INSERT_BEHIND_STABLE),
        ("+ a [2, 9)\n~ a [2, 9) -> [2, 1)", Rule.NEGATIVE_LIFETIME),
        ("+ a [2, 4)\n| 5\n~ a [2, 4) -> [2, 9)", Rule.ADJUST_OF_FROZEN),
        ("+ a [2, 9)\n| 5\n~ a [2, 9) -> [2, 4)", Rule.ADJUST_BEHIND_STABLE),
        ("+ a [2, 9)\n| 5\n~ a [2, 9) -> [2, 2)", Rule.ADJUST_BEHIND_STABLE),
        ("+ a [2, 9)\n~ a [2, 8) -> [2, 5)", Rule.NO_SUCH_EVENT),
        ("+ a [2, 9)\n~ b [2, 9) -> [2, 5)", Rule.NO_SUCH_EVENT),
        ("+ a [0, ∞)\n| ∞\n~ a [0, ∞) -> [0, ∞)", Rule.ADJUST_OF_FROZEN),
        ("| ∞\n+ a [9, ∞)", Rule.INSERT_BEHIND_STABLE),
    ],
)
def test_the_last_element_of_each_of_these_breaks_its_rule(stream, rule):
    aside = Quarantine()
    Relation(aside).apply(parse(stream))
    assert [violation.rule for violation in aside.violations] == [rule]
    assert rule.value in aside.violations[0].message
    assert rule.statement in aside.violations[0].message
    assert rule.breach in aside.violations[0].message


@pytest.mark.parametrize(
    "stream",
    [
        "| 5\n+ a [5, 6)",
        "+ a [5, 9)\n| 5\n~ a [5, 9) -> [5, 5)",
        "+ a [0, 1)\n| 1\n~ a [0, 1) -> [0, 2)\n| 3",
        "+ a [0, 9)\n| 5\n~ a [0, 9) -> [0, 5)",
        "| 5\n| 3\n| 5\n+ a [5, 6)",
        "+ a [0, 9)\n~ a [0, 9) -> [0, 0)\n+ a [0, 9)",
        "+ a [0, 9)\n~ a [0, 9) -> [0, 9)",
    ],
)
def test_an_element_exactly_at_the_stable_is_on_time(stream):
    Relation().apply(parse(stream))


def test_a_representation_says_how_far_a_relation_is_and_what_is_in_it():
    assert repr(Relation()) == "<Relation, stable to -∞: no events>"
    relation = Relation(input="east")
    relation.apply([*(Insert({"v": n}, n, n + 2) for n in range(7)), Stable(3)])
    assert repr(relation).startswith("<Relation of 'east', stable to 3: {'v': 0} [0, 2), {'v': 1} [1, 3), ")
    assert repr(relation).endswith("{'v': 4} [4, 6), and 2 more>")


def test_what_is_released_is_forgotten():
    relation = Relation()
    relation.apply([Insert({"n": 1}, 1, 3), Insert({"n": 2}, 1, 9), Insert({"n": 1}, 1, 3), Stable(5)])
    assert [(event.payload["n"], event.end) for event in relation.release().objects()] == [(1, 3), (1, 3)]
    assert [event.payload["n"] for event in relation.events()] == [2]
    assert relation.release().objects() == []


def test_whatever_reads_arrow_reads_the_events_of_a_relation():
    relation = Relation()
    relation.apply([Insert({"room": "A"}, 3, 9), Insert({"room": "B"}, 4, FOREVER), Stable(5)])
    assert pl.DataFrame(relation).to_dict(as_series=False) == {
        "start": [3, 4],
        "end": [9, None],
        "count": [1, 1],
        "room": ["A", "B"],
    }


def test_a_notebook_shows_the_first_events_of_a_relation_as_a_table():
    relation = Relation()
    relation.apply([Insert({"room": f"<{number}>"}, number, number + 1) for number in range(30)])
    shown = relation._repr_html_()
    assert shown.count("<tr>") == 1 + 20
    assert "30 events (the first 20 of them), stable to -∞" in shown
    assert "<td>&lt;0&gt;</td>" in shown
