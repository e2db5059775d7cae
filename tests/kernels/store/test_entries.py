"""Entries name what a dict names, by the serial numbers of its slots."""

from random import Random

import numpy as np
import pytest
from quick import cases

from anabranch.kernels.store.entries import Entries, by_serial

SLOTS = 50


def play(seed):
    """Slots are taken with keys, freed and given out again; the least and what is due, beside a dict."""
    random, entries, serial = Random(seed), Entries(), np.full(SLOTS, -1)
    keys, opened, passed = {}, 0, 0
    for _ in range(60):
        free = [slot for slot in range(SLOTS) if slot not in keys]
        new = random.sample(free, min(len(free), random.choice([0, 1, 3, 20])))
        for slot in new:
            keys[slot], serial[slot], opened = passed + random.randrange(30), opened, opened + 1
        entries.add(np.array(new, np.int32), np.array([keys[slot] for slot in new], np.int64), serial)
        assert by_serial(serial).tolist() == sorted(keys, key=lambda slot: serial[slot])
        for slot in random.sample(sorted(keys), random.randrange(len(keys) + 1)):
            del keys[slot]
            serial[slot] = -1
        assert entries.least(serial, len(keys)) == min(keys.values(), default=None)
        if random.random() < 0.3:
            passed += random.randrange(20)
            due = {slot for slot, key in keys.items() if key < passed}
            assert sorted(entries.take_before(passed, serial).tolist()) == sorted(due)
            for slot in due:
                del keys[slot]
                serial[slot] = -1
    entries.clear()
    assert entries.least(serial, 0) is None
    assert len(entries) == entries.nbytes == 0


@pytest.mark.parametrize("seed", range(cases(30)))
def test_the_least_and_those_before_a_key_are_those_of_a_dict(seed):
    play(seed)


def test_a_slot_that_is_given_to_another_is_not_taken_for_it():
    entries, serial = Entries(), np.array([7])
    entries.add(np.array([0], np.int32), np.array([20]), serial)
    serial[0] = 8
    assert entries.take_before(30, serial).tolist() == []
    assert entries.least(serial, 1) is None


def test_stale_entries_behind_one_that_is_not_are_let_go():
    entries, serial = Entries(), np.array([0, -1])
    entries.add(np.array([0], np.int32), np.array([5]), serial)
    for turn in range(5_000):
        serial[1] = turn + 1
        entries.add(np.array([1], np.int32), np.array([9]), serial)
        assert entries.least(serial, 2) == 5
    assert len(entries) <= 2 * 2 + 1024
