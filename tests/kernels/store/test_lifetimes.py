"""Events of numbers by their lifetimes, after every operation, beside a bag of events."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernels.store.trees import check_trees

from anabranch.kernels.store.lifetimes import Lifetimes
from anabranch.model.slots import NONE
from anabranch.model.time import BEGINNING, FOREVER

NUMBERS = 3
IDENTITIES = [(1, 1), (1, 2), (2, 1), ((1 << 64) - 1, 1), (1 << 63, 0)]
TIME = st.one_of(st.integers(0, 12), st.sampled_from([BEGINNING, FOREVER]))
EVENT = st.tuples(st.integers(0, NUMBERS - 1), TIME, st.sampled_from(IDENTITIES), TIME)
ADJUST = st.tuples(st.integers(0, 1000), TIME)
OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("keep"), st.lists(EVENT, max_size=40)),
        st.tuples(st.just("keep"), st.lists(EVENT, max_size=40)),
        st.tuples(st.just("adjust"), st.lists(ADJUST, max_size=20)),
        st.tuples(st.just("purge"), TIME),
    ),
    max_size=15,
)


def _column(values, dtype=np.int64):
    return np.array(list(values), dtype)


def _words(events):
    return np.array([words for _, _, words, _ in events], np.uint64).reshape(-1, 2)


class Events:
    """Lifetimes as a test works with them; by place the event that stands there."""

    def __init__(self):
        self.lifetimes = Lifetimes.of_capacity(1).with_numbers(NUMBERS)
        self.at = {}

    def keep(self, events):
        number, start, end = (_column(event[n] for event in events) for n in (0, 1, 3))
        self.lifetimes, places = self.lifetimes.keep(number.astype(np.int32), start, end, _words(events))
        for event, place in zip(events, places.tolist(), strict=True):
            assert (place == NONE) == (event[1] >= event[3]), "what has no length is not kept"
            if place != NONE:
                assert self.at.setdefault(place, event) == event, "a place is of one event"

    def adjust(self, events, ends, known):
        number, start, old_end = (_column(event[n] for event in events) for n in (0, 1, 3))
        columns = number.astype(np.int32), start, old_end, _column(ends), _words(events)
        self.lifetimes, had, has = self.lifetimes.adjust(*columns)
        for event, end, old, new in zip(events, ends, had.tolist(), has.tolist(), strict=True):
            if not known[event]:
                assert old == new == NONE
                continue
            assert self.at[old] == event
            known[event] -= 1
            if not known[event]:
                del self.at[old]
            changed = (*event[:3], end)
            assert (new == NONE) == (end <= event[1])
            if new != NONE:
                known[changed] += 1
                assert self.at.setdefault(new, changed) == changed
            if new != NONE and not known[event] and known[changed] == 1:
                assert new == old, "an event that is all there is keeps its place"

    def purge(self, time):
        for place in self.lifetimes.purge(time).tolist():
            assert self.at.pop(place)[3] <= time

    def probe(self, rows):
        number, start, end = (_column(row[n] for row in rows) for n in range(3))
        found = self.lifetimes.probe(number.astype(np.int32), start, end)
        pairs = Counter()
        for row, place, copies in zip(found[0].tolist(), found[2].tolist(), found[3].tolist(), strict=True):
            assert (row, self.at[place]) not in pairs, "an event is found once"
            pairs[row, self.at[place]] = copies
        assert found[0].tolist() == sorted(found[0].tolist())
        return pairs


def _meeting(rows, known):
    """Of each row the events of its number that are alive at a time when it is."""
    return Counter(
        {
            (row, event): copies
            for row, (number, start, end) in enumerate(rows)
            for event, copies in known.items()
            if copies and event[0] == number and max(start, event[1]) < min(end, event[3])
        }
    )


@given(OPERATIONS, st.lists(st.tuples(st.integers(0, NUMBERS - 1), TIME, TIME), max_size=8))
def test_a_probe_finds_the_events_of_a_bag_after_every_operation(operations, probes):
    events, known = Events(), Counter()
    everything = [(number, BEGINNING, FOREVER) for number in range(NUMBERS)]
    for word, given_ in operations:
        if word == "keep":
            events.keep(given_)
            known.update(event for event in given_ if event[1] < event[3])
        elif word == "adjust":
            kept = [*known, (0, 5, (9, 9), 6)]
            events.adjust([kept[n % len(kept)] for n, _ in given_], [end for _, end in given_], known)
        else:
            events.purge(given_)
            known = Counter({event: copies for event, copies in known.items() if event[3] > given_})
        known = +known
        check_trees(events.lifetimes.leaves)
        rows = [*probes, *everything]
        assert events.probe(rows) == _meeting(rows, known)
        assert events.lifetimes.places.used == len(known) == len(events.at)


@pytest.mark.parametrize("long", [0, 1, 50])
def test_a_probe_of_many_events_looks_at_few_nodes(long):
    """Whatever is alive for long, and however many events are over: what is not found is passed in nodes."""
    count = 50_000
    start = np.random.default_rng(1).permutation(count)
    end = start + 2
    end[:long] = FOREVER
    words = np.stack([start, start], axis=1).astype(np.uint64)
    lifetimes = Lifetimes.of_capacity(1).with_numbers(1)
    lifetimes, _ = lifetimes.keep(np.zeros(count, np.int32), start, end, words)
    at = np.arange(0, count, 7)
    before = int(lifetimes.touched[0])
    rows = lifetimes.probe(np.zeros(len(at), np.int32), at, at + 1)[0]
    expected = sum(int(((start <= t) & (end > t)).sum()) for t in at[::100].tolist())
    assert int(np.isin(rows, np.arange(0, len(at), 100)).sum()) == expected
    levels = int(lifetimes.leaves.levels[0]) + 1
    assert (int(lifetimes.touched[0]) - before) / len(at) < 8 * levels * (1 + long)


def test_no_node_is_left_when_all_events_are_over():
    count = 20_000
    random = np.random.default_rng(3)
    start = random.integers(0, 1000, count)
    end = start + random.integers(1, 500, count)
    words = random.integers(0, 1 << 62, (count, 2)).astype(np.uint64)
    lifetimes = Lifetimes.of_capacity(1).with_numbers(5)
    lifetimes, _ = lifetimes.keep(random.integers(0, 5, count).astype(np.int32), start, end, words)
    assert len(lifetimes.purge(700)) == int((end <= 700).sum())
    assert lifetimes.places.used == int((end > 700).sum())
    check_trees(lifetimes.leaves)
    lifetimes.purge(FOREVER)
    assert lifetimes.places.used == 0
    assert lifetimes.leaves.pool.used == 0
