"""What an operator touches follows from what changes, not from what it holds."""

from collections import Counter
from random import Random

import pytest
from laws.operators import OPERATORS, SCHEMA
from laws.plans import ROWS
from quick import cases

import anabranch as ab
from anabranch import Insert, Stable
from anabranch.kernels.distinct import Distinct
from anabranch.kernels.join.join import Join
from anabranch.kernels.session import Session
from anabranch.kernels.sort import Sort
from anabranch.kernels.window import Window
from anabranch.model.time import FOREVER

FEW, MANY = 40, 1_200
ROUNDS = 50
EACH = 64
"""What an element may touch that has nothing to do with it: a join looks through keys of few events."""
AWAY = 1_000
"""Where the events are that nothing concerns."""
SEEDS = 3


def touched(job) -> int:
    """What all kernels of a job have touched."""
    counts = (kernel.report().counts.get("touched", 0) for _, _, kernel in job.passes.flow.kernels())
    return sum(counts)


def near(random, now):
    """A few events about a time, one of them taken back, and a stable behind them."""
    events = [Insert(random.choice(ROWS), now + random.randint(0, 3), now + 9) for _ in range(3)]
    return [*events, ab.Adjust(events[0].payload, events[0].start, now + 9, events[0].start), Stable(now)]


def spent(operator, seed, held):
    """What is touched by some pushes, and by all and the end, where so many events are held far away."""
    random = Random(seed)
    names = [f"s{n}" for n in range(operator.inputs)]
    job = operator.draw(random, [ab.source(name, SCHEMA) for name in names]).stream.open()
    far = Random(seed)
    for name in names:
        job.push(name, [Insert(far.choice(ROWS), AWAY + n, AWAY + n + 9) for n in range(held)])
    before = touched(job)
    for now in range(0, 4 * ROUNDS, 4):
        for name in names:
            job.push(name, near(random, now))
    during = touched(job) - before
    for name in names:
        job.push(name, [Stable(FOREVER)])
    return during, touched(job)


def check(operator, seed):
    """Judge an operator of a seed with few events held, and with many."""
    (few, all_few), (many, all_many) = (spent(operator, seed, held) for held in (FEW, MANY))
    most = 1.3 * few + EACH * 4 * ROUNDS * operator.inputs
    assert many <= most, f"seed {seed}: {few} are touched where few are held, and {many} where many"
    few, many = all_few - few, all_many - many
    most = (1.3 * few / FEW + EACH) * MANY
    assert many <= most, f"seed {seed}: to take and to end {FEW} touches {few}, and {MANY} {many}"


@pytest.mark.parametrize("operator", OPERATORS, ids=lambda operator: operator.name)
def test_what_is_touched_follows_from_what_changes(operator):
    for seed in range(cases(SEEDS)):
        check(operator, seed)


@pytest.mark.parametrize(
    ("kernel", "name"),
    [(Distinct, "distinct"), (Session, "session"), (Join, "join"), (Sort, "sort"), (Window, "window")],
)
def test_a_kernel_that_looks_at_all_that_it_holds_is_noticed(monkeypatch, kernel, name):
    report, push, looked = kernel.report, kernel.push, Counter()

    def told(self):
        found = report(self)
        return found._replace(counts={**found.counts, "touched": found.counts["touched"] + looked[id(self)]})

    def looks_at_all(self, name, batch):
        looked[id(self)] += report(self).live * len(batch)
        return push(self, name, batch)

    monkeypatch.setattr(kernel, "report", told)
    monkeypatch.setattr(kernel, "push", looks_at_all)
    (operator,) = (one for one in OPERATORS if one.name == name)
    with pytest.raises(AssertionError):
        check(operator, 0)
