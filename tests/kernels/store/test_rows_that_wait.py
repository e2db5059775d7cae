"""Rows that wait come out as a sorted list of them does, without those that were taken back."""

from collections import Counter
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from quick import cases

from anabranch.kernels.store import waiting as module
from anabranch.kernels.store.waiting import Waiting
from anabranch.model.batch import Batch
from anabranch.model.identity import identities
from anabranch.model.payloads import SLACK
from anabranch.model.time import BEGINNING, FOREVER

GIVEN = [(ends, words) for ends in (True, False) for words in ("given", "hashed", "some")]
FIRSTS = 0, -(2**62), 2**61


def batch_of(values):
    return pa.record_batch(
        {"v": pa.array(values, pa.int64()), "text": pa.array([f"row {v}" for v in values])}
    )


def play(seed, ends, words):
    """Rows and removals in pieces, taken by times, beside a bag of rows; saved and loaded on the way.

    A row is its start, its end (0 where there are none) and the value of its payload; where identities are
    given, rows are known by them and in their order.
    """
    random = Random(seed)
    waiting, alive, now = Waiting(), Counter(), random.choice(FIRSTS)
    span = random.choice([1, 3, 40, 100_000])
    given, passed = words == "given", BEGINNING
    for _ in range(40):
        rows = []
        for _ in range(random.choice([0, 1, 5, 60])):
            held = sorted(alive.elements())
            if held and random.random() < 0.4:
                row = random.choice(held)
                alive[row] -= 1
                rows.append((*row, -1))
            else:
                row = (now + random.randrange(span), ends * random.randrange(2), random.randrange(5))
                alive[row] += 1
                rows.append((*row, 1))
        alive = +alive
        given = random.random() < 0.5 if words == "some" else given
        add(waiting, rows, ends, own_words(rows) if given else None, words)
        assert waiting.events == alive.total() <= len(waiting)
        if random.random() < 0.4:
            passed = now = now + random.randrange(span + 1)
            take(waiting, alive, now, words)
        if random.random() < 0.2:
            waiting = Waiting.load(waiting.saved(), passed)
    take(waiting, alive, FOREVER, words)
    assert len(waiting) == waiting.events == waiting.removals == waiting.pool.capacity == 0


def play_all(seeds, ends, words):
    for seed in seeds:
        play(seed, ends, words)


def own_words(rows):
    return words_of([value for _, _, value, _ in rows])


def words_of(values):
    """Identities of which some have one word in common, as else those of few rows do."""
    return np.array([(value % 2 + 1, value // 2) for value in values], np.uint64).reshape(-1, 2)


def add(waiting, rows, ends, given, words):
    start, end, value, sign = np.array(rows, np.int64).reshape(-1, 4).T.copy()
    payload = waiting.admit(batch_of(value.tolist()))
    if words == "some" and given is not None:
        given = identities(payload)
    none = None if (sign > 0).all() else sign.astype(np.int8)
    waiting.add(start, payload, end=end if ends else None, sign=none, words=given)


def take(waiting, alive, time, words):
    due = [row for row in alive.elements() if time == FOREVER or row[0] < time]
    values = [value for _, _, value in due]
    known = words_of(values) if words == "given" else identities(batch_of(values))
    keys = [(row[0], *word, row[1]) for row, word in zip(due, known.tolist(), strict=True)]
    meant = [row for _, row in sorted(zip(keys, due, strict=True))]
    batch = waiting.take_before(time)
    values = batch.payload.column("v").to_pylist() if len(batch) else []
    assert list(zip(batch.start.tolist(), batch.end.tolist(), values, strict=True)) == meant
    assert not values or batch.payload.column("text").to_pylist() == [f"row {v}" for v in values]
    for row in due:
        alive[row] -= 1


@pytest.mark.parametrize(("ends", "words"), GIVEN)
@pytest.mark.parametrize("seed", range(cases(15)))
def test_rows_come_out_as_a_sorted_list_of_them(seed, ends, words):
    play(seed, ends, words)


@pytest.mark.parametrize(("ends", "words"), GIVEN)
def test_rows_that_are_taken_back_are_no_more_than_a_part_of_what_waits(ends, words):
    waiting = Waiting()
    for _ in range(5_000):
        for sign in (1, -1):
            add(waiting, [(9, 7, 5, sign)], ends, own_words([(9, 7, 5, sign)]), words)
    assert len(waiting) < 4_000
    assert waiting.events == 0
    add(waiting, [(9, 7, 5, 1)], ends, own_words([(9, 7, 5, 1)]), words)
    assert waiting.take_before(10).payload.to_pydict() == {"v": [5], "text": ["row 5"]}


def test_few_rows_that_are_taken_back_are_not_counted_with_the_others():
    waiting, values = Waiting(), range(3_000)
    waiting.add(np.array(values), waiting.admit(batch_of(values)))
    waiting.add(np.array([7]), waiting.admit(batch_of([7])), sign=np.array([-1], np.int8))
    assert (len(waiting), waiting.events) == (3_001, 2_999)


def test_texts_of_rows_that_are_gone_are_let_go():
    waiting = Waiting()
    for time in range(0, 100_000, 1_000):
        values = range(time, time + 1_000)
        waiting.add(np.array(values), waiting.admit(batch_of(values)))
        assert len(waiting.take_before(time + 500)) == (1_000 if time else 500)
        assert waiting.payloads.payloads.rows <= SLACK + 3_000


def test_rows_that_start_by_themselves_are_not_hashed(monkeypatch):
    def hashed(payload):
        assert payload.num_rows == 2
        return identities(payload)

    monkeypatch.setattr(module, "identities", hashed)
    waiting = Waiting()
    waiting.add(np.array([3, 5, 4, 5]), waiting.admit(batch_of([1, 2, 3, 4])))
    assert waiting.take_before(9).start.tolist() == [3, 4, 5, 5]


@pytest.mark.parametrize("alone", [True, False])
def test_a_row_that_is_not_there_is_not_taken_back(alone):
    waiting = Waiting()
    sign = np.array([1, -1], np.int8)
    waiting.add(np.array([3, 4 if alone else 3]), waiting.admit(batch_of([1, 2])), sign=sign)
    with pytest.raises(AssertionError, match="only what is there"):
        waiting.take_before(9)


def test_columns_widen_for_rows_that_wait_already():
    waiting = Waiting()
    waiting.add(np.array([5]), waiting.admit(pa.record_batch({"v": pa.array([7], pa.int8())})))
    waiting.add(np.array([4]), waiting.admit(pa.record_batch({"v": [2.5], "w": ["more"]})))
    waiting.add(np.array([3]), waiting.admit(pa.record_batch({"v": pa.array([9], pa.int8())})))
    batch = waiting.take_before(6)
    assert isinstance(batch, Batch)
    assert batch.payload.to_pydict() == {"v": [9.0, 2.5, 7.0], "w": [None, "more", None]}


@pytest.mark.parametrize("ends", [True, False])
def test_a_tie_that_is_not_broken_is_noticed(monkeypatch, ends):
    monkeypatch.setattr(module, "_by_identity", lambda times, *_: np.arange(len(times)))
    with pytest.raises(AssertionError):
        play_all(range(10), ends, "given")


def test_an_identity_that_is_given_may_be_zero():
    """That of a payload of nulls is; what waits may be other columns."""
    waiting, words = Waiting(), np.array([[9, 0], [0, 0]], np.uint64)
    waiting.add(np.array([7, 7]), waiting.admit(pa.record_batch({"v": [1, 2]})), words=words)
    assert waiting.take_before(8).payload.to_pydict() == {"v": [2, 1]}
