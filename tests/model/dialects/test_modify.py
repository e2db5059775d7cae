"""The a/m/f dialect of LM example 1."""

import inspect

import pytest
from dialect_streams import Plain, denoted, reads_back_at_every_element, stream
from hypothesis import given
from hypothesis import strategies as st

from anabranch.model.dialects import DialectError, modify
from anabranch.model.dialects.modify import Add, Finalize, Modify
from anabranch.model.elements import Adjust, Insert, Stable
from anabranch.model.time import FOREVER

A, B = {"value": "A"}, {"value": "B"}


def ambiguous(plain: Plain, element) -> bool:
    """Two events that may still change have the payload and the start of one that does change."""
    if not isinstance(element, Adjust) or element.old_end == element.end:
        return False
    key = denoted([Insert(element.payload, 0, 1)]).events[0][0]
    return sum(e[0] == key and e[1] == element.start and e[2] >= plain.frontier for e in plain.events) > 1


@given(st.randoms(use_true_random=False))
def test_what_is_written_reads_back_up_to_the_first_ambiguous_change(random):
    reads_back_at_every_element(modify, stream(random), ambiguous)


@given(st.randoms(use_true_random=False))
def test_streams_whose_changes_name_one_event_are_written_whole(random):
    elements = stream(random, length=60, avoid=ambiguous)
    reads_back_at_every_element(modify, elements, ambiguous)


PHY1 = [Add(B, 8, FOREVER), Add(A, 6, 12), Modify(B, 8, 10), Finalize(11), Finalize(FOREVER)]
PHY2 = [Add(A, 6, 7), Add(B, 8, 15), Modify(A, 6, 12), Modify(B, 8, 10), Finalize(FOREVER)]


def test_the_two_streams_of_table_1_denote_the_same_relation():
    one, two = denoted(modify.read(PHY1)), denoted(modify.read(PHY2))
    assert one.state() == two.state()
    assert one.state() == denoted([Insert(A, 6, 12), Insert(B, 8, 10), Stable(FOREVER)]).state()


def test_the_three_outputs_of_table_2_denote_the_same_relation():
    out1 = [Add(A, 6, 10), Modify(A, 6, 12), Add(B, 7, 14), Modify(A, 6, 15), Finalize(16)]
    out2 = [Add(A, 6, 15), Add(B, 7, 14), Finalize(16)]
    out3 = [Add(A, 6, 10), Add(B, 7, 14), Modify(A, 6, 15), Finalize(16)]
    states = [denoted(modify.read(out)).state() for out in (out1, out2, out3)]
    assert states == [denoted([Insert(A, 6, 15), Insert(B, 7, 14), Stable(16)]).state()] * 3


def test_a_modify_to_the_start_removes():
    assert not denoted(modify.read([Add(A, 6, 7), Modify(A, 6, 6)])).events


def test_a_modify_of_an_event_that_is_not_there_names_it():
    with pytest.raises(DialectError, match=r"m\(\{'value': 'A'\}, 6, 12\) names no event"):
        list(modify.read([Add(B, 6, 7), Modify(A, 6, 12)]))


def test_an_event_that_ended_before_a_finalize_can_no_longer_be_modified():
    list(modify.read([Add(A, 6, 7), Finalize(7), Modify(A, 6, 12)]))
    with pytest.raises(DialectError, match="names no event that can still change"):
        list(modify.read([Add(A, 6, 7), Finalize(8), Modify(A, 6, 12)]))


def test_an_ambiguous_modify_names_the_events_it_could_mean():
    with pytest.raises(DialectError, match=r"names 2 events, \[6, 7\), \[6, ∞\)"):
        list(modify.read([Add(A, 6, FOREVER), Add(A, 6, 7), Modify(A, 6, 12)]))


def test_a_finalized_event_makes_no_modify_ambiguous():
    items = [Add(A, 6, FOREVER), Add(A, 6, 7), Finalize(9), Modify(A, 6, 12)]
    assert list(modify.read(items))[-1] == Adjust(A, 6, FOREVER, 12)


def test_an_adjust_of_an_event_that_is_not_there_is_not_written():
    with pytest.raises(DialectError, match=r"\[6, 8\), which is not there"):
        list(modify.write([Insert(A, 6, 7), Adjust(A, 6, 8, 9)]))


def test_a_payload_is_a_mapping_and_a_time_is_a_tick():
    with pytest.raises(TypeError, match="maps column names"):
        Add("A", 6, 7)
    with pytest.raises(TypeError, match="the end of a modify is an int of ticks"):
        Modify(A, 6, 7.5)


@pytest.mark.parametrize("side", ["read", "write"])
def test_what_is_frozen_is_forgotten(side):
    def long_stream():
        for t in range(3000):
            yield Insert({"n": t}, t, t + 5)
            yield Adjust({"n": t}, t, t + 5, t + 6)
            yield Stable(t)

    inputs = long_stream() if side == "write" else modify.write(long_stream())
    translation = getattr(modify, side)(inputs)
    largest = max(len(inspect.getgeneratorlocals(translation)["alive"]) for _ in translation)
    assert largest <= 9
