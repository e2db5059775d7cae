"""The open/close dialect of LM example 3."""

import inspect

import pytest
from dialect_streams import Plain, denoted, reads_back_at_every_element, stream
from hypothesis import given
from hypothesis import strategies as st

from anabranch.model.dialects import DialectError, open_close
from anabranch.model.dialects.open_close import Close, Open
from anabranch.model.elements import Adjust, Insert, Stable
from anabranch.model.time import FOREVER

A, B, C = {"p": "A"}, {"p": "B"}, {"p": "C"}


def meets_another(plain: Plain, element) -> bool:
    """The event as it is after the element overlaps another of its payload, or ends where another starts."""
    if isinstance(element, Stable) or element == _without_effect(element):
        return False
    after = plain.with_(element)
    key = denoted([Insert(element.payload, 0, 1)]).events[0][0]
    event = (key, element.start, element.end)
    if event not in after.events:
        return False
    after.events.remove(event)
    others = [(s, e) for k, s, e in after.events if k == key]
    return any((s < element.end and element.start < e) or s == element.end for s, e in others)


def _without_effect(element):
    return element if isinstance(element, Adjust) and element.old_end == element.end else None


@given(st.randoms(use_true_random=False))
def test_what_is_written_reads_back_up_to_the_first_event_that_meets_another(random):
    reads_back_at_every_element(open_close, stream(random), meets_another)


@given(st.randoms(use_true_random=False))
def test_streams_with_one_active_event_of_a_payload_are_written_whole(random):
    elements = stream(random, length=60, avoid=meets_another)
    reads_back_at_every_element(open_close, elements, meets_another)


def test_the_three_streams_of_example_3_denote_the_same_relation():
    s5 = [Open(A, 1), Open(B, 2), Open(C, 3), Close(A, 4), Close(B, 5)]
    u5 = [Open(A, 1), Close(A, 4), Open(B, 2), Close(B, 5), Open(C, 3)]
    w6 = [Open(B, 2), Close(B, 6), Open(A, 1), Open(C, 3), Close(A, 4), Close(B, 5)]
    expected = denoted([Insert(A, 1, 4), Insert(B, 2, 5), Insert(C, 3, FOREVER)]).state()
    assert [denoted(open_close.read(items)).state() for items in (s5, u5, w6)] == [expected] * 3


def test_a_close_at_the_start_removes_and_one_at_the_end_of_time_opens_the_latest_again():
    assert not denoted(open_close.read([Open(A, 1), Close(A, 1)])).events
    items = [Open(A, 1), Close(A, 4), Open(A, 5), Close(A, 9), Close(A, FOREVER)]
    expected = denoted([Insert(A, 1, 4), Insert(A, 5, FOREVER)]).state()
    assert denoted(open_close.read(items)).state() == expected


def test_the_events_of_a_payload_may_be_opened_in_any_order():
    items = [Open(A, 5), Open(A, 1), Close(A, 9), Close(A, 3)]
    assert denoted(open_close.read(items)).state() == denoted([Insert(A, 1, 3), Insert(A, 5, 9)]).state()


def test_a_close_that_finds_no_event_is_named():
    with pytest.raises(DialectError, match=r"close\(\{'p': 'A'\}, 4\) finds no event"):
        list(open_close.read([Open(A, 5), Close(A, 4)]))
    with pytest.raises(DialectError, match="finds no event"):
        list(open_close.read([Open(A, 1), Close(A, 4), Stable(5), Close(A, 6)]))


def test_one_event_cannot_be_opened_twice():
    with pytest.raises(DialectError, match=r"active twice, \[1, ∞\) and \[1, 4\)"):
        list(open_close.read([Open(A, 1), Close(A, 4), Open(A, 1)]))


def test_events_of_one_payload_that_overlap_cannot_be_written():
    with pytest.raises(DialectError, match=r"active twice, \[3, 9\) and \[1, 5\)"):
        list(open_close.write([Insert(A, 1, 5), Insert(A, 3, 9)]))
    with pytest.raises(DialectError, match=r"active twice, \[1, 5\) and \[1, 5\)"):
        list(open_close.write([Insert(A, 1, 5), Insert(A, 1, 5)]))


def test_a_close_that_would_end_another_event_cannot_be_written():
    assert len(list(open_close.write([Insert(A, 1, 5), Insert(A, 5, 9)]))) == 4
    with pytest.raises(DialectError, match=r"for the event \[1, 5\) would be read as the end of \[5, 9\)"):
        list(open_close.write([Insert(A, 5, 9), Insert(A, 1, 5)]))


def test_an_adjust_of_an_event_that_is_not_there_is_not_written():
    with pytest.raises(DialectError, match=r"\[6, 8\), which is not there"):
        list(open_close.write([Insert(A, 6, 7), Adjust(A, 6, 8, 9)]))


@pytest.mark.parametrize("side", ["read", "write"])
def test_what_is_frozen_is_forgotten(side):
    def long_stream():
        for t in range(0, 9000, 3):
            yield Insert(A, t, t + 2)
            yield Adjust(A, t, t + 2, t + 1)
            yield Stable(t)

    inputs = long_stream() if side == "write" else open_close.write(long_stream())
    translation = getattr(open_close, side)(inputs)
    largest = max(len(inspect.getgeneratorlocals(translation)["alive"]) for _ in translation)
    assert largest <= 3


def test_an_event_that_would_go_on_into_the_next_cannot_be_written():
    with pytest.raises(DialectError, match=r"active twice, \[1, 5\) and \[3, 9\)"):
        list(open_close.write([Insert(A, 3, 9), Insert(A, 1, 5)]))
