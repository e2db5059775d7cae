"""Change-data-capture rows."""

import inspect
from collections import Counter
from itertools import permutations

import pytest
from dialect_streams import TABLE, Plain, denoted, label, said, stream
from hypothesis import given
from hypothesis import strategies as st

from anabranch.model.dialects import DialectError, change_rows
from anabranch.model.dialects.change_rows import Change, Op, Progress
from anabranch.model.elements import Adjust, Insert, Stable
from anabranch.model.time import FOREVER

A, B = {"id": 1, "v": "a"}, {"id": 1, "v": "b"}


def insert(time, after):
    return Change(Op.INSERT, time, after=after)


def update(time, before, after):
    return Change(Op.UPDATE, time, before, after)


def delete(time, before):
    return Change(Op.DELETE, time, before)


def crosses(plain: Plain, element) -> bool:
    """A stable makes final that one of two equal rows ends inside the other, having begun before it."""
    if not isinstance(element, Stable) or element.time <= plain.frontier:
        return False
    return any(
        a[0] == b[0] and a[1] < b[1] < a[2] < b[2] and a[2] < element.time
        for a, b in permutations(plain.events, 2)
    )


def shares_a_key(plain: Plain, element) -> bool:
    """A stable makes final that two rows of one id are there at once."""
    if not isinstance(element, Stable) or element.time <= plain.frontier:
        return False
    begun = [event for event in plain.events if event[1] < element.time]
    return any(
        dict_of(a)["id"] == dict_of(b)["id"] and max(a[1], b[1]) < min(a[2], b[2])
        for a, b in permutations(begun, 2)
    )


def dict_of(event):
    return {name: value for name, _, value in event[0]}


def ever(bad):
    """Avoid whatever could become bad, so that streams stay sayable to their end."""

    def would_be(plain: Plain, element) -> bool:
        return bad(plain.with_(element), Stable(FOREVER))

    return would_be


def reads_back_at_every_stable(elements, unsayable, **key) -> None:
    """Nothing is said between stables; at each of them what is final is said, until it cannot be."""
    written, error = said(change_rows.write, elements, **key)
    read, trouble = said(change_rows.read, [item for group in written for item in group], **key)
    assert trouble is None
    read_groups = iter(read)
    plain, back = Plain(), Plain()
    for position, element in enumerate(elements):
        if unsayable(plain, element):
            assert error is not None, elements[: position + 1]
            assert len(written) == position + 1, (error, elements[: position + 1])
            return
        assert isinstance(element, Stable) or not written[position]
        plain.apply(element)
        for _ in written[position]:
            for said_back in next(read_groups):
                back.apply(said_back)
        assert back.final() == plain.final(), elements[: position + 1]
        assert all(e[1] < back.frontier and (e[2] < back.frontier or e[2] == FOREVER) for e in back.events)
    open_ends = [e for e in plain.events if e[1] >= plain.frontier or plain.frontier <= e[2] < FOREVER]
    if plain.frontier == FOREVER or not open_ends:
        assert error is None, error
    else:
        assert error is not None
        assert len(written) == len(elements) + 1
        assert f"the elements end and {len(open_ends)} of the events are not final" in str(error)
        assert said(change_rows.write, elements, unsettled="hold", **key) == (written, None)


@given(st.randoms(use_true_random=False))
def test_what_is_final_is_written_up_to_the_first_delete_that_could_mean_another_row(random):
    reads_back_at_every_stable(stream(random, length=30), crosses)


@given(st.randoms(use_true_random=False))
def test_streams_without_crossing_rows_are_written_whole(random):
    reads_back_at_every_stable(stream(random, length=60, avoid=ever(crosses)), crosses)


@given(st.randoms(use_true_random=False))
def test_with_a_key_what_is_final_is_written_up_to_the_first_key_that_is_shared(random):
    reads_back_at_every_stable(stream(random, length=30, payloads=TABLE), shares_a_key, key=["id"])


@given(st.randoms(use_true_random=False))
def test_with_a_key_streams_in_which_it_is_one_are_written_whole(random):
    elements = stream(random, length=60, payloads=TABLE, avoid=ever(shares_a_key))
    reads_back_at_every_stable(elements, shares_a_key, key="id")


@given(st.randoms(use_true_random=False))
def test_closed_streams_read_back_exactly(random):
    elements = [*stream(random, length=60, avoid=ever(crosses)), Stable(FOREVER)]
    assert denoted(change_rows.read(change_rows.write(elements))).state() == denoted(elements).state()


def table_log(random, least_step=0):
    """Random changes of a keyed table, and the rows that were there as (row, from, until)."""
    log, there, history, time = [], {}, [], 0
    for _ in range(20):
        time += least_step + random.randrange(3)
        key = random.randrange(3)
        row = {"id": key, "v": random.randrange(3), "w": 9}
        if key not in there:
            log.append(insert(time, row))
        else:
            before, since = there.pop(key)
            history.append((before, since, time))
            if random.random() < 0.3:
                log.append(delete(time, before))
                continue
            log.append(update(time, before, row))
        there[key] = (row, time)
    history += [(row, since, FOREVER) for row, since in there.values()]
    return log, Counter((label(row), start, end) for row, start, end in history if start < end)


def reduced(change, random):
    """The change with less of its row before."""
    if change.op is Op.UPDATE:
        return random.choice(
            [change, update(change.time, None, change.after), update(change.time, {"w": 9}, change.after)]
        )
    if change.op is Op.DELETE:
        return delete(change.time, random.choice([change.before, {"id": change.before["id"], "v": None}]))
    return change


@given(st.randoms(use_true_random=False))
def test_a_row_holds_from_its_commit_until_its_next_change(random):
    log, history = table_log(random)
    assert Counter(denoted(change_rows.read(log)).events) == history
    assert Counter(denoted(change_rows.read(log, ordered=False)).events) == history
    partial = [reduced(change, random) for change in log]
    assert Counter(denoted(change_rows.read(partial, key="id")).events) == history


@given(st.randoms(use_true_random=False))
def test_a_log_that_was_read_is_written_again_as_it_was(random):
    log, _ = table_log(random, least_step=1)
    written = list(change_rows.write(change_rows.read([*log, Progress(FOREVER)]), key="id"))
    assert [item for item in written if isinstance(item, Change)] == log
    assert written[-1] == Progress(FOREVER)


def test_a_rise_of_the_commit_time_is_progress_where_rows_are_ordered():
    log = [insert(3, A), insert(3, {"id": 2}), delete(5, A), Progress(9)]
    stables = [e.time for e in change_rows.read(log) if isinstance(e, Stable)]
    assert stables == [3, 5, 9]
    assert [e.time for e in change_rows.read(log, ordered=False) if isinstance(e, Stable)] == [9]


def test_a_row_that_ends_as_it_begins_was_never_there():
    assert not denoted(change_rows.read([insert(3, A), delete(3, A)])).events


def test_of_equal_rows_the_latest_is_deleted():
    elements = list(change_rows.read([insert(1, A), insert(3, A), delete(7, A)]))
    assert elements[-1] == Adjust(A, 3, FOREVER, 7)
    elements = list(change_rows.read([insert(1, A), insert(8, A), delete(7, A)], ordered=False))
    assert elements[-1] == Adjust(A, 1, FOREVER, 7)


def test_a_commit_time_that_goes_back_names_the_row():
    with pytest.raises(DialectError, match=r"the insert of {'id': 1, 'v': 'b'} at 4 is behind 5"):
        list(change_rows.read([insert(5, A), insert(4, B)]))
    assert len(list(change_rows.read([insert(5, A), insert(4, B)], ordered=False))) == 2
    with pytest.raises(DialectError, match="at 4 is behind 5"):
        list(change_rows.read([Progress(5), insert(4, B)], ordered=False))


def test_a_change_of_a_row_that_is_not_there_names_it():
    with pytest.raises(DialectError, match=r"at 5 ends a row equal to {'id': 1}, and none is there"):
        list(change_rows.read([insert(3, A), delete(5, {"id": 1})]))
    with pytest.raises(DialectError, match=r"with the key of {'id': 2}, and none"):
        list(change_rows.read([insert(3, A), delete(5, {"id": 2})], key="id"))


def test_a_key_is_in_every_row_and_in_one_row_only():
    with pytest.raises(DialectError, match=r"{'v': 1} has no value in the key column id"):
        list(change_rows.read([insert(3, {"v": 1})], key="id"))
    with pytest.raises(DialectError, match=r"'v': 'b'} begins at 5, and .*'v': 'a'} has been there since 3"):
        list(change_rows.read([insert(3, A), insert(5, B)], key="id"))


def test_without_a_key_an_update_needs_the_row_before():
    with pytest.raises(DialectError, match="no image of the row before it, and no key is given"):
        list(change_rows.read([insert(3, A), update(5, None, B)]))


def test_a_key_may_change_where_the_image_before_has_the_old_one():
    log = [insert(3, A), update(5, {"id": 1}, {"id": 2, "v": "a"})]
    assert list(change_rows.read(log, key="id"))[3] == Adjust(A, 3, FOREVER, 5)


@pytest.mark.parametrize(
    ("op", "before", "after"),
    [("insert", None, None), ("insert", A, B), ("update", A, None), ("delete", None, None), ("delete", A, B)],
)
def test_a_change_has_the_images_of_its_kind(op, before, after):
    with pytest.raises(DialectError, match=rf"the {op} of .* has (a|no) row (before|after) it"):
        Change(op, 3, before, after)


def test_no_change_commits_at_the_end_of_time():
    with pytest.raises(DialectError, match="commits at the end of time"):
        insert(FOREVER, A)


def test_a_delete_and_an_insert_at_one_time_are_an_update_where_a_key_says_so():
    elements = [Insert(A, 1, 5), Insert(B, 5, 9), Stable(FOREVER)]
    end = Progress(FOREVER)
    assert list(change_rows.write(elements, key="id")) == [insert(1, A), update(5, A, B), delete(9, B), end]
    assert list(change_rows.write(elements)) == [insert(1, A), delete(5, A), insert(5, B), delete(9, B), end]


def test_a_half_frozen_event_is_written_without_its_end_until_that_is_final():
    elements = [Insert(A, 1, 5), Stable(5), Adjust(A, 1, 5, 7), Stable(8)]
    assert list(change_rows.write(elements)) == [insert(1, A), Progress(5), delete(7, A), Progress(8)]


def test_what_is_not_final_is_an_error_or_held():
    elements = [Insert(A, 1, 5), Insert(B, 2, FOREVER), Insert(B, 7, 9), Stable(3)]
    with pytest.raises(DialectError, match="2 of the events are not final") as caught:
        list(change_rows.write(elements))
    assert "stable(FOREVER)" in caught.value.__notes__[0]
    assert len(list(change_rows.write(elements, unsettled="hold"))) == 3
    with pytest.raises(ValueError, match="unsettled is 'raise' or 'hold', not 'drop'"):
        list(change_rows.write(elements, unsettled="drop"))


def test_an_adjust_of_an_event_that_is_not_there_is_not_written():
    for elements in ([Adjust(A, 6, 8, 9)], [Insert(A, 6, 7), Stable(7), Adjust(A, 6, 8, 9)]):
        with pytest.raises(DialectError, match=r"\[6, 8\), which is not there"):
            list(change_rows.write(elements))


def test_nothing_changes_after_the_end_of_time():
    with pytest.raises(DialectError, match=r"\[6, ∞\), which is not there"):
        list(change_rows.write([Insert(A, 6, FOREVER), Stable(FOREVER), Adjust(A, 6, FOREVER, 9)]))


def test_what_is_final_is_forgotten():
    def long_stream():
        for t in range(3000):
            yield Insert({"n": t}, t, t + 9)
            yield Adjust({"n": t}, t, t + 9, t + 5)
            yield Stable(t)

    written = change_rows.write(long_stream(), unsettled="hold")
    sizes = [
        max(state["settling"].unsettled, len(state["rows"]))
        for state in (inspect.getgeneratorlocals(written) for _ in written)
    ]
    assert max(sizes) <= 8
    read = change_rows.read(change_rows.write(long_stream(), unsettled="hold"))
    assert max(len(inspect.getgeneratorlocals(read)["rows"]) for _ in read) <= 8
