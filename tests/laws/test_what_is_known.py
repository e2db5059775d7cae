"""What a plan says to be known of its output is so, whatever is known of its sources."""

from collections import Counter
from random import Random

import pytest
from laws.operators import OPERATORS, SCHEMA
from laws.plans import drawn_stream, interleaved
from quick import cases

import anabranch as ab
from anabranch import Batch, Case, Fact, Insert, Properties, Stable
from anabranch.model.lifetime import Lifetime
from anabranch.model.time import FOREVER
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
    job = stream.open()
    out = []
    for name, piece in interleaved(random, {name: said[name] for name in said if name in job.passes.sources}):
        out += job.push(name, piece)
    claimed, found = stream.properties, facts_of(out)
    wrong = (claimed.facts & SEEN) - found.facts
    assert not wrong, f"seed {seed}: {text} is said to be {', '.join(map(str, wrong))}, and is not: {out}"
    inserts = [element for element in out if isinstance(element, Insert)]
    if claimed.longest is not None and inserts:
        assert found.longest is not None, text
        assert found.longest <= claimed.longest, text
    if counts is not None:
        counts.update(claimed.facts & SEEN)


@pytest.mark.parametrize("operator", OPERATORS, ids=lambda operator: operator.name)
def test_what_an_operator_says_is_so(operator):
    for seed in range(cases(ALONE) // len(OPERATORS)):
        check(seed, [operator])


def test_what_a_plan_says_is_so_and_it_says_something():
    counts = Counter()
    for seed in range(300):
        check(seed, counts=counts)
    assert all(counts[fact] > 20 for fact in SEEN)


def test_a_fact_that_is_not_so_is_noticed(monkeypatch):
    monkeypatch.setattr(Lifetime, "keeps_sync", property(lambda self: True))
    with pytest.raises(AssertionError, match="ordered"):
        check_all(range(400), "alter_lifetime")


def check_all(seeds, name):
    chosen = [operator for operator in OPERATORS if operator.name == name]
    for seed in seeds:
        check(seed, chosen)
