"""What a plan says to be known of its output is so, whatever is known of its sources."""

from collections import Counter, defaultdict
from random import Random

import pytest
from laws.operators import OPERATORS, SCHEMA
from laws.plans import bag_of, drawn_stream, interleaved
from quick import cases

import anabranch as ab
from anabranch import Batch, Case, Fact, Insert, Properties, Stable
from anabranch.model.lifetime import Lifetime
from anabranch.model.time import BEGINNING, FOREVER
from anabranch.oracle.relation import World
from anabranch.plan.union import Union
from anabranch.testing.presentations import Habits
from anabranch.testing.references import Shape

SEEN = {
    Fact.INSERT_ONLY,
    Fact.ORDERED,
    Fact.STRICTLY_INCREASING,
    Fact.KEYED,
    Fact.SHRINKING,
    Fact.KEPT,
    Fact.CLOSED,
}
"""What one stream alone can show."""
TOLD = {Fact.DISJOINT, Fact.DETERMINISTIC_TIES}
"""What the events that are there at one time show, and what two runs do."""
ALONE = 1200
"""Seeds of single operators, for all of them together."""


def facts_of(elements):
    """What holds of a stream, and the longest lifetime in it."""
    known = ab.observe([Batch.of(elements)]).properties() if elements else Properties.of(*SEEN)
    lengths = [e.end - e.start for e in elements if not isinstance(e, Stable)]
    endless = any(e.end == FOREVER for e in elements if not isinstance(e, Stable))
    longest = None if endless else max([1, *lengths])
    return Properties(known.facts & SEEN, None, longest)


def said_by(random):
    """A stream of any case, some of them in order though they are revised, some closed at their last end."""
    case, ends = random.choice(list(Case)), random.random() < 0.5
    habits = Habits(closed=random.random() < 0.3, revisions=random.choice([0.0, 0.4]))
    shape = Shape(unending=0.0 if ends else 0.15)
    said = drawn_stream(random, case=case, shape=shape, habits=habits)
    if random.random() < 0.4:
        job = ab.source("s", SCHEMA).sort().open()
        said = [element for one in said for element in job.push("s", [one])]
    times = [time for e in said if not isinstance(e, Stable) for time in (e.start, e.end)]
    if ends and times and random.random() < 0.5:
        said.append(Stable(max(times)))
    return said


def drawn(random, operators):
    """A plan over sources that promise what they do, and what they say."""
    names = ["s0", "s1"][: random.randint(1, 2)]
    said = {name: said_by(random) for name in names}
    streams = {name: ab.source(name, SCHEMA, properties=facts_of(said[name])) for name in names}
    stream, text = streams[random.choice(names)], ""
    for _ in range(random.randint(1, 3)):
        operator = random.choice(operators)
        inputs = [stream, *(streams[random.choice(names)] for _ in range(operator.inputs - 1))]
        stream, text = operator.draw(random, inputs).stream, f"{operator.name}({text})"
    return stream, text, said


def check(seed, operators=OPERATORS, counts=None):
    """Judge the plan of a seed."""
    random = Random(seed)
    stream, text, said = drawn(random, operators)
    text = f"seed {seed}: {text}"
    claimed = stream.properties
    out = played(random, stream, said, lambda world: judge(claimed, world, text))
    found = facts_of(out)
    wrong = (claimed.facts & SEEN) - found.facts
    assert not wrong, f"{text} is said to be {', '.join(map(str, wrong))}, and is not: {out}"
    inserts = [element for element in out if isinstance(element, Insert)]
    if claimed.longest is not None and inserts:
        assert found.longest is not None, text
        assert found.longest <= claimed.longest, text
    if Fact.DETERMINISTIC_TIES in claimed.facts:
        again = played(random, stream, said, lambda world: None)
        assert ties(out) == ties(again), f"{text}: ties are in another order where pieces are cut elsewhere"
    if counts is not None:
        counts.update(claimed.facts & (SEEN | TOLD))
        counts["key"] += claimed.key is not None


def played(random, stream, said, judged):
    """What a plan says of its sources, in pieces that are drawn anew; its events are judged after each."""
    job, out, world = stream.open(), [], World()
    for name, piece in interleaved(random, {name: said[name] for name in said if name in job.passes.sources}):
        for element in job.push(name, piece):
            assert world.apply(element) is None
            out.append(element)
        judged(world)
    return out


def judge(claimed, world, text):
    """The key and the lifetimes of what is out."""
    rows = [(dict(payload), start, end) for payload, start, end in bag_of(world)]
    if claimed.key is not None:
        keys = Counter((*(payload.get(name) for name in claimed.key), start) for payload, start, _ in rows)
        twice = [key for key, count in keys.items() if count > 1]
        assert not twice, f"{text} is said to have the key {claimed.key}, and has {twice[0]} twice"
    if Fact.DISJOINT in claimed.facts:
        ends = {}
        for payload, start, end in sorted(bag_of(world), key=lambda row: row[1]):
            assert ends.get(payload, BEGINNING) <= start, f"{text}: lifetimes of {payload} overlap"
            ends[payload] = end


def ties(elements):
    """The payloads of the inserts of each start in their order; ends may have been revised before."""
    found = defaultdict(list)
    for one in elements:
        if isinstance(one, Insert):
            found[one.start].append(one.payload)
    return found


@pytest.mark.parametrize("operator", OPERATORS, ids=lambda operator: operator.name)
def test_what_an_operator_says_is_so(operator):
    for seed in range(cases(ALONE) // len(OPERATORS)):
        check(seed, [operator])


def test_what_a_plan_says_is_so_and_it_says_something():
    counts = Counter()
    for seed in range(300):
        check(seed, counts=counts)
    assert all(counts[fact] > 20 for fact in SEEN | TOLD | {"key"}), counts


def test_a_fact_that_is_not_so_is_noticed(monkeypatch):
    monkeypatch.setattr(Lifetime, "keeps_sync", property(lambda self: True))
    with pytest.raises(AssertionError, match="ordered"):
        check_all(range(400), "alter_lifetime")


def check_all(seeds, name):
    chosen = [operator for operator in OPERATORS if operator.name == name]
    for seed in seeds:
        check(seed, chosen)


@pytest.mark.parametrize(
    ("claimed", "words"),
    [
        (Properties(key=("value",)), "is said to have the key"),
        (Properties.of(Fact.DISJOINT), "lifetimes of"),
        (Properties.of(Fact.DETERMINISTIC_TIES), "ties are in another order"),
    ],
    ids=["key", "disjoint", "ties"],
)
def test_a_claim_about_a_union_is_noticed(monkeypatch, claimed, words):
    monkeypatch.setattr(Union, "properties", property(lambda self: claimed))
    with pytest.raises(AssertionError, match=words):
        check_all(range(100), "union")
