"""CEDR streams with counted intervals, in any order of arrival."""

import inspect
from collections import Counter

import pytest
from dialect_streams import Plain, denoted, label, reads_back_at_every_element, said, stream
from hypothesis import given
from hypothesis import strategies as st

from anabranch.model.dialects import DialectError, external_cti
from anabranch.model.dialects.cedr import Retraction
from anabranch.model.dialects.external_cti import ExternalCti
from anabranch.model.elements import Adjust, Insert, Stable
from anabranch.model.time import BEGINNING, FOREVER

P, Q = {"P": "P0"}, {"P": "P1"}


def unsayable_from(origin: int):
    def unsayable(plain: Plain, element) -> bool:
        match element:
            case Insert(start=start):
                return start < origin
            case Adjust(start=start, old_end=old_end, end=end) if end > old_end:
                return start < max(origin, plain.frontier)
            case Adjust(old_end=old_end, end=end):
                return end < min(old_end, origin)
            case Stable(time):
                return plain.frontier < time <= origin

    return unsayable


origins = st.sampled_from([BEGINNING, -7, -1, 0, 2])


@given(st.randoms(use_true_random=False), origins)
def test_what_is_written_reads_back_up_to_the_first_that_cannot_be_counted(random, origin):
    reads_back_at_every_element(external_cti, stream(random), unsayable_from(origin), origin=origin)


@given(st.randoms(use_true_random=False))
def test_streams_that_can_be_counted_are_written_whole(random):
    unsayable = unsayable_from(-7)
    elements = stream(random, length=60, avoid=unsayable)
    reads_back_at_every_element(external_cti, elements, unsayable, origin=-7)


def earliest_correct_stable(items: list, origin: int) -> int:
    """From all that has arrived, the slow way: complete intervals from the origin, short of what waits."""
    syncs = [i.start if isinstance(i, Insert) else i.new_end for i in items if not isinstance(i, ExternalCti)]
    complete = {
        i.start: i.end
        for i in items
        if isinstance(i, ExternalCti) and sum(i.start <= s < i.end for s in syncs) == i.count
    }
    cover = origin
    while cover in complete:
        cover = complete[cover]
    there = Counter((label(i.payload), i.start, i.end) for i in items if isinstance(i, Insert))
    waiting = [i for i in items if isinstance(i, Retraction)]
    for retraction in sorted(waiting, key=lambda r: -r.end):
        key = label(retraction.payload)
        if there[key, retraction.start, retraction.end]:
            there[key, retraction.start, retraction.end] -= 1
            there[key, retraction.start, retraction.new_end] += 1
            waiting.remove(retraction)
    return min([cover, *(retraction.new_end for retraction in waiting)])


@given(st.randoms(use_true_random=False))
def test_in_any_order_of_arrival_each_stable_comes_as_early_as_is_correct(random):
    elements = stream(random, avoid=unsayable_from(-1))
    items = list(external_cti.write(elements, origin=-1))
    random.shuffle(items)
    groups, error = said(external_cti.read, items, origin=-1)
    assert error is None
    plain = Plain()
    for position, group in enumerate(groups[:-1], 1):
        for element in group:
            plain.apply(element)
        expected = earliest_correct_stable(items[:position], -1)
        assert plain.frontier == (expected if expected > -1 else BEGINNING), items[:position]
    assert plain.state() == denoted(elements).state()


def test_table_5_with_its_count_corrected_closes_at_8():
    table_5 = [
        Retraction(P, 0, 10, 8),
        Retraction(P, 0, 6, 4),
        Retraction(P, 0, 8, 6),
        Insert(P, 0, 10),
        ExternalCti(0, 8, 4),
        Insert(Q, 1, 5),
    ]
    groups, error = said(external_cti.read, table_5)
    assert error is None
    assert groups == [
        [],
        [],
        [],
        [Insert(P, 0, 10), Adjust(P, 0, 10, 8), Adjust(P, 0, 8, 6), Adjust(P, 0, 6, 4)],
        [],
        [Insert(Q, 1, 5), Stable(8)],
        [],
    ]


def i(start, end):
    return Insert(P, start, end)


def r(start, end, new_end):
    return Retraction(P, start, end, new_end)


x = ExternalCti


@pytest.mark.parametrize(
    ("items", "lifetimes"),
    [
        ([x(1, FOREVER, 0), i(0, 1), x(0, 1, 1)], [(0, 1)]),
        ([i(0, 2), x(0, 1, 1), r(0, 2, 1), x(1, FOREVER, 1)], [(0, 1)]),
        ([i(0, 2), r(0, 1, 0), x(0, 1, 2), r(0, 2, 1), x(1, FOREVER, 1)], []),
        ([r(0, 2, 1), r(0, 3, 2), x(0, 2, 2), i(0, 3), x(2, FOREVER, 1)], [(0, 1)]),
        ([r(0, 1, 0), i(0, 1), x(0, FOREVER, 2)], []),
        ([i(0, 1), x(1, FOREVER, 0), x(0, 1, 1)], [(0, 1)]),
        ([x(0, FOREVER, 0)], []),
    ],
)
def test_the_streams_that_the_printed_algorithm_gets_wrong_are_read_right(items, lifetimes):
    expected = denoted([*(i(*lifetime) for lifetime in lifetimes), Stable(FOREVER)])
    assert denoted(external_cti.read(items)).state() == expected.state()


def test_a_retraction_that_never_meets_its_event_is_an_error_or_handed_over():
    items = [r(0, 9, 4), i(0, 8)]
    with pytest.raises(DialectError, match=r"1 of the retractions wait.*P0'} \[0, 9\)"):
        list(external_cti.read(items))
    aside = []
    assert list(external_cti.read(items, unmatched=aside.append)) == [i(0, 8)]
    assert aside == [r(0, 9, 4)]


def test_of_retractions_that_wait_for_equal_events_the_first_that_came_is_released_first():
    elements = list(external_cti.read([r(0, 9, 4), r(0, 9, 6), i(0, 9), i(0, 9)]))
    assert elements == [i(0, 9), Adjust(P, 0, 9, 4), i(0, 9), Adjust(P, 0, 9, 6)]


def test_a_held_retraction_keeps_the_stable_at_its_new_end():
    items = [i(0, 9), r(0, 8, 3), x(0, 5, 2), r(0, 9, 8)]
    stables = [e for e in external_cti.read(items) if isinstance(e, Stable)]
    assert stables == [Stable(3), Stable(5)]


def test_what_comes_behind_a_complete_count_names_the_interval():
    with pytest.raises(DialectError, match=r"sync time 3 came after \[0, 8\) had been counted complete"):
        list(external_cti.read([i(1, 2), x(0, 8, 1), i(3, 4)]))


def test_more_than_an_interval_counts_names_the_interval():
    with pytest.raises(DialectError, match=r"X\[4, 8\)#1 counts 1 items, and 2 came"):
        list(external_cti.read([i(5, 6), x(4, 8, 1), i(6, 7)]))
    with pytest.raises(DialectError, match=r"X\[4, 8\)#1 counts 1 items, and 2 came"):
        list(external_cti.read([i(5, 6), i(6, 7), x(4, 8, 1)]))


@pytest.mark.parametrize("second", [x(6, 9, 0), x(2, 5, 0), x(5, 6, 0), x(4, 8, 0), x(0, FOREVER, 0)])
def test_intervals_that_overlap_are_named(second):
    with pytest.raises(DialectError, match=r"X\[.*\)#0 overlaps X\[4, 8\)#1"):
        list(external_cti.read([x(4, 8, 1), second]))


def test_an_interval_that_is_complete_is_not_counted_again():
    with pytest.raises(DialectError, match=r"X\[3, 9\)#0 overlaps everything before 4"):
        list(external_cti.read([x(0, 4, 0), x(3, 9, 0)]))


def test_what_lies_before_the_origin_is_named():
    with pytest.raises(DialectError, match="sync time -3, before the origin 0"):
        list(external_cti.read([i(-3, 4)]))
    with pytest.raises(DialectError, match="sync time -3, before 0"):
        list(external_cti.write([i(-3, 4)]))
    with pytest.raises(DialectError, match=r"stable\(0\) lies at or before 0"):
        list(external_cti.write([Stable(0)]))


def test_a_stable_that_says_nothing_new_is_not_written():
    assert list(external_cti.write([Stable(3), Stable(3), Stable(2)])) == [x(0, 3, 0)]


@pytest.mark.parametrize(("start", "end", "count"), [(3, 3, 0), (4, 3, 0), (0, 3, -1)])
def test_an_interval_counts_something_that_can_arrive(start, end, count):
    with pytest.raises(DialectError, match="counts nothing"):
        x(start, end, count)


def test_a_count_is_an_int():
    with pytest.raises(TypeError, match="count of an external CTI is an int, not True"):
        x(0, 1, True)


def test_what_is_frozen_is_forgotten():
    def long_stream():
        for t in range(3000):
            yield Insert({"n": t}, t, t + 5)
            yield Adjust({"n": t}, t, t + 5, t + 3)
            yield Stable(t + 1)

    written = external_cti.write(long_stream())
    assert max(len(inspect.getgeneratorlocals(written)["syncs"]) for _ in written) <= 6
    read = external_cti.read(external_cti.write(long_stream()))
    sizes = [
        (len(state["alive"]), len(state["coverage"]._pending), len(state["coverage"]._uncounted))
        for state in (inspect.getgeneratorlocals(read) for _ in read)
    ]
    assert max(max(size) for size in sizes) <= 6


def test_an_event_that_has_begun_cannot_grow_here_either():
    with pytest.raises(DialectError, match="would be lengthened"):
        list(external_cti.write([Insert(P, 1, 5), Stable(2), Adjust(P, 1, 5, 9)]))
