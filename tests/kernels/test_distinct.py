"""Of equal points one, whichever it is; what is removed makes room for the next; nothing is kept in vain."""

from random import Random

import pyarrow as pa
import pytest

import anabranch as ab
from anabranch import Insert, Stable
from anabranch.kernels.distinct import Distinct
from anabranch.model.batch import Batch
from anabranch.model.elements import Adjust
from anabranch.model.time import FOREVER
from anabranch.oracle.distinct import is_distinct
from anabranch.oracle.relation import World
from anabranch.plan.node import PlanError

SCHEMA = pa.schema({"room": pa.string(), "by": pa.int64(), "note": pa.string()})


def rows(world):
    """The events of a world with plain payloads."""
    return [(tuple(sorted((n, v[1]) for n, v in key)), start, end) for key, start, end in world.rows]


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
        assert is_distinct(rows(heard), rows(said), columns)
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
    play_all(range(20), columns, removals=removals)


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
    for at in range(20_000):
        kernel.push("", Batch.of([Insert({"room": "x", "by": 1, "note": ""}, at, at + 1)], schema=SCHEMA))
        kernel.advance("", at)
        assert kernel.report().live <= 2 * 1024 + 2


def test_events_that_last_are_refused_with_the_way_out():
    rooms = ab.source("rooms", {"room": "string"})
    with pytest.raises(PlanError, match="distinct is of points") as refused:
        rooms.distinct()
    assert "lasting(1)" in refused.value.__notes__[0]
    with pytest.raises(PlanError, match="no column 'rom'"):
        rooms.lasting(1).distinct("rom")
