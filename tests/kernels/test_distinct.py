"""Of equal points the least, whatever comes first; what is removed makes room for the next; nothing leaks."""

from collections import Counter
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from quick import cases

import anabranch as ab
from anabranch import Insert, Stable
from anabranch.kernels.distinct import Distinct
from anabranch.model.batch import Batch
from anabranch.model.elements import Adjust
from anabranch.model.identity import identities
from anabranch.model.time import FOREVER
from anabranch.oracle.distinct import distinct
from anabranch.oracle.relation import World
from anabranch.plan.node import PlanError

SCHEMA = pa.schema({"room": pa.string(), "by": pa.int64(), "note": pa.string()})


def rows(world):
    """The events of a world with plain payloads."""
    return [(tuple(sorted((n, v[1]) for n, v in key)), start, end) for key, start, end in world.rows]


def rank(row):
    """The identity of a payload, by which those of a group are in order."""
    low, high = identities(pa.RecordBatch.from_pylist([dict(row[0])], schema=SCHEMA))[0].tolist()
    return low, high


def play(seed, columns, *, removals=True):
    """A stream through a kernel that is restarted now and then, judged after every piece."""
    random, heard, said, stable = Random(seed), World(), World(), 0
    kernel = Distinct(columns, SCHEMA, removable=removals)
    for _ in range(30):
        piece = []
        for _ in range(random.choice([1, 2, 8])):
            payload = {
                "room": random.choice("xy"),
                "by": random.randint(0, 2),
                "note": "n" * random.randint(0, 1),
            }
            start = stable + random.randint(0, 3)
            piece.append(Insert(payload, start, start + 1))
            assert heard.apply(piece[-1]) is None
            open_events = [row for row in rows(heard) if row[1] >= stable]
            if removals and open_events and random.random() < 0.5:
                gone, start, end = random.choice(open_events)
                piece.append(Adjust(dict(gone), start, end, start))
                assert heard.apply(piece[-1]) is None
        for element in kernel.push("", Batch.of(piece, schema=SCHEMA)).events:
            assert said.apply(element) is None
        assert Counter(rows(said)) == Counter(distinct(rows(heard), columns, rank))
        if random.random() < 0.3:
            stable += random.randint(1, 4)
            kernel.advance("", stable)
            said.apply(Stable(kernel.frontier))
            heard.apply(Stable(stable))
        if random.random() < 0.2:
            kernel = Distinct.load(kernel.saved(), columns, SCHEMA, removable=removals)
    kernel.advance("", FOREVER)
    assert (kernel.report().live, kernel.keys.numbers.used) == (0, 0)


def play_all(seeds, columns, **more):
    """Many of them."""
    for seed in seeds:
        play(seed, columns, **more)


@pytest.mark.parametrize("removals", [True, False])
@pytest.mark.parametrize("columns", [("room",), ("room", "by"), ("room", "by", "note")])
def test_of_each_group_one_is_said_whatever_is_removed(columns, removals):
    play_all(range(cases(20)), columns, removals=removals)


def test_a_group_that_is_forgotten_too_soon_is_noticed(monkeypatch):
    advance = Distinct.advance
    monkeypatch.setattr(Distinct, "advance", lambda self, name, time: advance(self, name, FOREVER))
    with pytest.raises(AssertionError):
        play_all(range(40), ("room",))


def test_a_thousand_repeats_are_one_entry():
    kernel = Distinct(("room", "by", "note"), SCHEMA)
    kernel.push("", Batch.of([Insert({"room": "x", "by": 1}, 5, 6)] * 1000, schema=SCHEMA))
    assert kernel.report().live == 1


def test_what_the_stable_has_passed_is_let_go_as_rows_come():
    kernel = Distinct(("room",), SCHEMA, removable=False)
    for at in range(6_000):
        kernel.push("", Batch.of([Insert({"room": "x", "by": 1, "note": ""}, at, at + 1)], schema=SCHEMA))
        kernel.advance("", at)
        assert kernel.report().live <= 2 * 1024 + 2


@pytest.mark.parametrize("columns", [("room",), ("by", "note"), ()])
@pytest.mark.parametrize("ties", [[], ["insert only"]])
def test_what_is_left_does_not_depend_on_the_order_of_arrival(columns, ties):
    for seed in range(cases(30)):
        random = Random(seed)
        calls = ab.source("calls", SCHEMA, properties=ties)
        stream = calls.lasting(1).distinct(*columns)
        events = []
        for start in range(20):
            for _ in range(random.randint(0, 3)):
                payload = {"room": random.choice("xy"), "by": random.randint(0, 2), "note": "n"}
                events.append(Insert(payload, start, start + 1))
        left = []
        for _ in range(3):
            job, world = stream.open(), World()
            arrivals = sorted(events, key=lambda one: one.start + random.uniform(0, 4.9))
            while arrivals:
                cut = random.choice([1, 3])
                piece, arrivals = arrivals[:cut], arrivals[cut:]
                stable = Stable(min((one.start for one in arrivals), default=FOREVER))
                for element in job.push("calls", [*piece, stable]):
                    assert world.apply(element) is None
            left.append(Counter(rows(world)))
        assert left[0] == left[1] == left[2]


def test_a_distinct_that_keeps_what_came_first_is_noticed(monkeypatch):
    monkeypatch.setattr("anabranch.kernels.distinct.Distinct._words", _numbered())
    with pytest.raises(AssertionError):
        play_all(range(10), ("room",), removals=False)


def _numbered():
    """Identities that grow with each payload that is new, so that the least is the one that came first."""
    known = {}

    def words(self, batch):
        found = [known.setdefault(repr(one), len(known)) for one in batch.payload.to_pylist()]
        return np.array([[n, 0] for n in found], np.uint64).reshape(-1, 2)

    return words


def test_two_replicas_of_which_each_is_distinct_and_sorted_are_merged_into_one_relation():
    rooms = {"room": "string", "by": "string"}
    x, y = Insert({"room": "A", "by": "x"}, 3, 4), Insert({"room": "A", "by": "y"}, 3, 4)
    found = []
    for orders in (([x, y], [y, x]), ([y, x], [x, y]), ([x, y], [x, y])):
        one, two = (ab.source(name, rooms).lasting(1).distinct("room").sort() for name in "ab")
        job, world = ab.merge(one, two).open(), World()
        for name, order in zip("ab", orders, strict=True):
            for element in job.push(name, [*order, Stable(FOREVER)]):
                assert world.apply(element) is None
        found.append(world.bag())
    assert found[0] == found[1] == found[2]
    assert found[0].total() == 1


def test_events_that_last_are_refused_with_the_way_out():
    rooms = ab.source("rooms", {"room": "string"})
    with pytest.raises(PlanError, match="distinct is of points") as refused:
        rooms.distinct()
    assert "lasting(1)" in refused.value.__notes__[0]
    with pytest.raises(PlanError, match="no column 'rom'"):
        rooms.lasting(1).distinct("rom")
