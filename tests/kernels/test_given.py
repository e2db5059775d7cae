"""What a merge has out and can still change is what its output denotes beyond its stable."""

from random import Random

import pytest
from quick import cases

from anabranch import (
    FOREVER,
    Adjust,
    EveryChange,
    FirstThenFinal,
    HalfFrozen,
    Insert,
    Merger,
    Relation,
    Stable,
)


def rows(random: Random, length: int) -> list:
    """A stream of one input: payloads that come, some longer than they were said to be, and stables."""
    said, now, shown = [], 0, {}
    for n in range(length):
        now += random.randrange(3)
        match random.choice(("insert", "insert", "adjust", "stable")):
            case "insert":
                payload, end = {"v": random.choice("abc"), "n": n}, random.choice((now + 4, FOREVER))
                shown[n] = payload, now, end
                said.append(Insert(payload, now, end))
            case "adjust" if shown:
                key = random.choice(list(shown))
                payload, start, end = shown[key]
                if end > now:
                    shown[key] = payload, start, now + 5
                    said += [Adjust(payload, start, end, now + 5)] if end != now + 5 else []
            case _:
                said.append(Stable(now))
    return said


@pytest.mark.parametrize("policy", [FirstThenFinal(), EveryChange(), HalfFrozen()], ids=str)
@pytest.mark.parametrize("case", ["R3", "R4"])
@pytest.mark.parametrize("seed", range(cases(8)))
def test_what_is_given_is_what_is_out_and_not_final(seed, case, policy):
    random = Random(seed)
    merger, output = Merger(case, policy), Relation()
    stream = rows(random, 40)
    for name in "xy":
        merger.attach(name)
    places = dict.fromkeys("xy", 0)
    while min(places.values()) < len(stream):
        name = random.choice([name for name, place in places.items() if place < len(stream)])
        until = places[name] + random.randrange(1, 6)
        output.apply(merger.push(name, stream[places[name] : until]))
        places[name] = until
        open_ones = Relation()
        open_ones.apply(merger.given())
        assert open_ones.events() == [event for event in output.events() if event.end >= output.frontier]
        if random.random() < 0.2:
            merger = Merger.load(merger.dump())


def test_a_merge_that_has_said_nothing_gives_nothing():
    assert len(Merger().given()) == 0
