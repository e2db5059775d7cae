"""Rows that wait come out as a sorted list of them does, without those that were removed."""

from collections import Counter
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from quick import cases

from anabranch.kernels.store.waiting import Waiting
from anabranch.model.identity import identities


def batch_of(values):
    return pa.record_batch(
        {"v": pa.array(values, pa.int64()), "text": pa.array([f"row {v}" for v in values])}
    )


def play(seed):
    """Rows and removals in pieces, taken by times, beside a bag of rows; saved and loaded on the way."""
    random = Random(seed)
    waiting, alive, now = Waiting(), Counter(), random.choice([0, -(2**62), 2**61])
    span = random.choice([3, 40])
    for _ in range(40):
        rows = []
        for _ in range(random.choice([0, 1, 5, 60])):
            held = sorted(row for row in alive.elements() if row[0] >= now)
            if held and random.random() < 0.4:
                row = random.choice(held)
                alive[row] -= 1
                rows.append((*row, -1))
            else:
                row = (now + random.randrange(span), random.randrange(5))
                alive[row] += 1
                rows.append((*row, 1))
        payload = batch_of([v for _, v, _ in rows])
        start = np.array([at for at, _, _ in rows], np.int64)
        waiting.add(start, np.array([sign for _, _, sign in rows], np.int8), identities(payload), payload)
        if random.random() < 0.4:
            now += random.randrange(span)
            take(waiting, alive, now)
        if random.random() < 0.2:
            saved, waiting = waiting.saved(), Waiting()
            waiting.load(saved)
    take(waiting, alive, None)
    assert len(waiting) == waiting.removals == 0


def play_all(seeds):
    for seed in seeds:
        play(seed)


def take(waiting, alive, time):
    due = [row for row in alive.elements() if time is None or row[0] < time]
    words = identities(batch_of([v for _, v in due])).tolist()
    meant = [row for _, row in sorted(zip(words, due, strict=True), key=lambda one: (one[1][0], one[0]))]
    start, payload = waiting.take_before(time)
    values = [] if payload is None else payload.column("v").to_pylist()
    assert list(zip(start.tolist(), values, strict=True)) == meant
    assert payload is None or payload.column("text").to_pylist() == [f"row {v}" for v in values]
    for row in due:
        alive[row] -= 1


@pytest.mark.parametrize("seed", range(cases(40)))
def test_rows_come_out_as_a_sorted_list_of_them(seed):
    play(seed)


def test_removals_are_no_more_than_a_part_of_what_waits():
    waiting = Waiting()
    row = batch_of([7])
    words, start = identities(row), np.array([9])
    for _ in range(5_000):
        for sign in (1, -1):
            waiting.add(start, np.array([sign], np.int8), words, row)
    assert len(waiting) < 4_000


def test_a_tie_that_is_not_broken_by_identity_is_noticed(monkeypatch):
    monkeypatch.setattr(np, "lexsort", lambda keys: np.arange(len(keys[0])))
    with pytest.raises(AssertionError):
        play_all(range(10))
