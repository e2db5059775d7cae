"""What a plan says of missing rows is so: they leave holes, or make other results where it says that."""

from collections import Counter
from random import Random

import pytest
from laws.operators import OPERATORS, SCHEMA
from laws.plans import drawn_row

import anabranch as ab
from anabranch.model.time import FOREVER
from anabranch.plan.join import Join
from anabranch.plan.node import Node, PlanError
from anabranch.plan.source import Source

SAID = {"distinct on some columns", "window", "window, early", "top_k", "top_k, early", "session", "rows"}


def rests_on(node: Node, source: str) -> bool:
    """Somewhere in a plan rows of a source come to an operator that says that it rests on their absence."""
    return any(
        rests_on(given, source) or (rests and reads(given, source))
        for rests, given in zip(node.rests_on_absence(), node.inputs, strict=True)
    )


def reads(node: Node, source: str) -> bool:
    if isinstance(node, Source):
        return node.name == source
    return any(reads(given, source) for given in node.inputs)


def bag(random):
    """Events of the columns that operators are drawn for."""
    events = []
    for _ in range(random.randint(0, 8)):
        start = random.randint(0, 9)
        payload = tuple(sorted(drawn_row(random).items()))
        events.append((payload, start, start + random.randint(1, 4)))
    return events


def others_come_out(operator, seed, number):
    """Whether fewer rows of an input make something come out that all do not; and what is said of it."""
    random = Random(seed)
    names = [f"s{n}" for n in range(operator.inputs)]
    drawn = operator.draw(random, [ab.source(name, SCHEMA) for name in names])
    bags = [bag(random) for _ in names]
    fewer = [list(one) for one in bags]
    fewer[number] = [row for row in bags[number] if random.random() < 0.6]
    frontiers = [FOREVER] * len(names)
    before, after = (Counter(drawn.meaning(given, frontiers)) for given in (bags, fewer))
    return bool(after - before), rests_on(drawn.stream.node, names[number])


def judged(operator, number):
    seen = Counter()
    for seed in range(150):
        others, said = others_come_out(operator, seed, number)
        assert said or not others, f"seed {seed}: rows are missing, and there are results that were not there"
        seen[said] += others
    return seen[True] > 0


@pytest.mark.parametrize("operator", OPERATORS, ids=lambda operator: operator.name)
def test_a_missing_row_makes_other_results_where_an_operator_says_so_and_nowhere_else(operator):
    found = [judged(operator, number) for number in range(operator.inputs)]
    assert found[0] == (operator.name in SAID)
    assert found[1:] in ([], [operator.name == "left join"])


def test_an_operator_that_does_not_say_it_is_noticed(monkeypatch):
    monkeypatch.setattr(Join, "rests_on_absence", lambda self: (False, False))
    left = next(one for one in OPERATORS if one.name == "left join")
    with pytest.raises(AssertionError, match="rows are missing"):
        judged(left, 1)


@pytest.mark.parametrize("operator", [one for one in OPERATORS if one.inputs == 1], ids=lambda one: one.name)
def test_streams_with_holes_are_merged_behind_all_operators_but_those(operator):
    sources = [ab.source(name, SCHEMA, lossy=True) for name in ("north", "south")]
    streams = [operator.draw(Random(1), [one]).stream for one in sources]
    if operator.name in SAID:
        with pytest.raises(PlanError, match="merge the lossy sources first"):
            ab.merge(*streams)
        _ = operator.draw(Random(1), [ab.merge(*sources)]).stream
    else:
        ab.merge(*streams)


def test_a_left_with_holes_may_be_joined_and_merged():
    north, south, names = (
        ab.source(name, SCHEMA, lossy=name != "names") for name in ("north", "south", "names")
    )
    ab.merge(*(one.join(names, on="value", within=0, how="left") for one in (north, south)))
