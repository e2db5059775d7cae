"""Values counted by slot are a counter for each slot, whatever comes, goes, is merged and cleared."""

from collections import Counter
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from quick import cases

from anabranch.kernels.aggregate import counted
from anabranch.kernels.aggregate.column import Values
from anabranch.kernels.aggregate.counted import Counted

SLOTS = 7


def new(words):
    column = Counted(lambda values: (values.integers, values.start), words=words)
    column.with_room(SLOTS)
    return column


def has(column, words):
    """What each slot has."""
    of, low, high, count = (one.tolist() for one in column.listed(np.arange(SLOTS, dtype=np.int32)))
    found = [Counter() for _ in range(SLOTS)]
    for slot, one, other, copies in zip(of, low, high, count, strict=True):
        assert (one, other) not in found[slot], "a value stands once"
        found[slot][one, other if words == 2 else 0] = copies
    return found


def counted_is_a_counter(seed, words):
    random = Random(seed)
    column, meant = new(words), [Counter() for _ in range(SLOTS)]
    distinct = random.choice([3, 40, 2000])
    for _ in range(60):
        slots = [random.randrange(SLOTS) for _ in range(random.choice([1, 5, 200]))]
        values = [(random.randrange(-distinct, distinct), random.randrange(-2, 3)) for _ in slots]
        sign = 1
        if random.random() < 0.4:
            stay = [(slot, one) for slot, many in enumerate(meant) for one in many.elements()]
            taken = random.sample(stay, min(len(stay), random.choice([1, 300, 10**6])))
            slots, values, sign = [slot for slot, _ in taken], [one for _, one in taken], -1
        low, high = np.array(values, np.int64).reshape(-1, 2).T
        column.add(Values(np.array(slots, np.int32), pa.array(low), high.copy()), sign)
        for slot, (one, other) in zip(slots, values, strict=True):
            meant[slot][one, other if words == 2 else 0] += sign
        into, other = random.sample(range(SLOTS), 2)
        pair = np.array([into], np.int32), np.array([other], np.int32)
        if random.random() < 0.3:
            column.merge(*pair)
            meant[into].update(meant[other])
            if random.random() < 0.5:
                column.merge(*pair, -1)
                meant[into].subtract(meant[other])
        if random.random() < 0.3:
            column.clear(pair[0])
            meant[into].clear()
        if random.random() < 0.2:
            slots = np.array(random.sample(range(SLOTS), SLOTS), np.int32)
            rows, column = column.saved(slots), new(words)
            column.load(slots, rows)
        meant = [+one for one in meant]
        assert has(column, words) == meant
        lengths = [len(one) for one in meant]
        assert column.distinct(np.arange(SLOTS, dtype=np.int32)).tolist() == lengths
        assert column.used == sum(lengths)


def many_are_counters():
    for words in (1, 2):
        for seed in range(6):
            counted_is_a_counter(seed, words)


@pytest.mark.parametrize("words", [1, 2])
@pytest.mark.parametrize("seed", range(cases(12)))
def test_values_are_a_counter_for_each_slot(seed, words):
    counted_is_a_counter(seed, words)


def _nothing_moves(tables, slots):
    pass


@pytest.mark.parametrize(("name", "wrong"), [("clear_tables", _nothing_moves)])
def test_a_table_that_is_not_let_go_is_noticed(monkeypatch, name, wrong):
    monkeypatch.setattr(counted, name, wrong)
    with pytest.raises(AssertionError):
        many_are_counters()


def test_tables_that_are_let_go_are_used_again():
    column = new(1)
    for turn in range(200):
        slot = np.full(500, turn % SLOTS, np.int32)
        column.add(Values(slot, pa.array(np.arange(500) * turn), np.zeros(500, np.int64)), 1)
        column.clear(slot[:1])
        if turn == 10:
            nbytes = column.nbytes
    assert column.nbytes == nbytes
