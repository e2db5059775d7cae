"""States of plans of several levels that are not what their query left: the shards find them."""

from random import Random

import pytest
from engines.spark.plan_driving import LeveledQuery
from engines.spark.plan_laws import rows
from quick import cases

import anabranch as ab
from anabranch import Insert, Stable
from anabranch.kernels.answers import Answers
from anabranch.kernels.store.saved import StateFormatError

COLUMNS = {"value": "string", "n": "int64"}
NOTHING = {}, {}
ASIDE = Answers(ab.Quarantine(), ab.Quarantine(), ab.Quarantine())
"""What the other shards refuse, to which the damaged one sends nonsense, is no error of theirs."""


def plan():
    """Two levels, and a source that only the second reads."""
    both = ab.merge(ab.source("a", COLUMNS), ab.source("b", COLUMNS)).final()
    return ab.union(both.select("n").final(), ab.source("c", COLUMNS).select("n")).lasting(1).distinct("n")


def heard(query, random, time, names="abc"):
    """A micro-batch of all sources, or of some."""
    events = [
        Insert({"value": random.choice("xyz"), "n": random.randint(0, 3)}, time, time + 9) for _ in range(3)
    ]
    return query.receive({name: [rows([*events, Stable(time + 1)])] for name in names})


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("level", [1, 2])
@pytest.mark.parametrize("damage", ["gone", "older"])
def test_a_state_that_is_gone_or_older_is_found(damage, level, native):
    for seed in range(cases(6)):
        random = Random(seed)
        query = LeveledQuery(plan(), 2, ASIDE, native=native)
        assert len(query.parts) == 2
        shard, kept = random.randint(0, 1), NOTHING
        for batch in range(6):
            heard(query, random, 3 * batch)
            if batch == 2 and damage == "older":
                kept = query.state(level, shard)
            if random.random() < 0.4:
                query.restart()
        query.put(level, shard, kept)
        with pytest.raises(StateFormatError, match=r"belong together|goes on from the state") as found:
            heard(query, random, 18)
        assert "damaged" in found.value.__notes__[0]


@pytest.mark.parametrize("native", [True, False])
def test_a_state_that_is_what_was_left_is_taken_whichever_sources_send(native):
    for seed in range(cases(6)):
        random = Random(seed)
        query = LeveledQuery(plan(), 2, ASIDE, native=native)
        for batch in range(8):
            heard(query, random, 3 * batch, random.choice(["abc", "ab", "c", "a"]))
            if random.random() < 0.5:
                query.restart()
