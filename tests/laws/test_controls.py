"""Replicas that come, go and come again mean one thing, whoever is told of it.

A replica is attached by its first element or by an attach, and once; what it sends after a detach is refused
until it is attached again, and then it begins anew. Judged by the rule written out once more, below.
"""

from collections import Counter
from dataclasses import dataclass, field
from random import Random

import pytest
from engines.spark.hearing import Shard, parcels, said
from engines.spark.merges import Merging
from quick import cases

import anabranch as ab
from anabranch import Attach, Batch, Detach, Insert, Rule, Stable, Tagged
from anabranch.model.recording import Recording

SCHEMA = {"value": "string"}


def drawn(random: Random) -> list[Tagged]:
    """What two replicas send: events at one time after another, stables, and controls at any moment."""
    told, now = [], 0
    for _ in range(random.randint(3, 14)):
        now += random.randint(0, 2)
        what = random.choice(
            [Insert({"value": random.choice("xy")}, now, now + 3)] * 3
            + [Stable(now), Attach(), Detach(), Attach(random.randint(0, now))]
        )
        told.append(Tagged(random.choice("ab"), what))
    return told


@dataclass
class Meaning:
    """The rule: who is attached, how far each is, and what is refused."""

    attached: set[str] = field(default_factory=set)
    left: set[str] = field(default_factory=set)
    stable: dict[str, int] = field(default_factory=dict)
    refused: Counter = field(default_factory=Counter)

    def receive(self, told: Tagged) -> None:
        who, element = told.input, told.element
        rule = self._rule(who, element)
        if rule is not None:
            self.refused[who, str(element), rule] += 1

    def _rule(self, who: str, element) -> Rule | None:
        match element:
            case Attach():
                if who in self.attached:
                    return Rule.ALREADY_ATTACHED
                self._enter(who)
            case Detach() if who in self.attached:
                self.attached.discard(who)
                self.left.add(who)
            case Detach():
                self.left.add(who)
                return Rule.DETACHED_INPUT
            case _ if who in self.left:
                return Rule.DETACHED_INPUT
            case Stable(time):
                self._enter(who)
                self.stable[who] = max(time, self.stable[who])
            case Insert(start=start):
                self._enter(who)
                if start < self.stable[who]:
                    return Rule.INSERT_BEHIND_STABLE
        return None

    def _enter(self, who: str) -> None:
        if who not in self.attached:
            self.attached.add(who)
            self.left.discard(who)
            self.stable[who] = ab.BEGINNING


def meant(told: list[Tagged]) -> Counter:
    meaning = Meaning()
    for one in told:
        meaning.receive(one)
    return meaning.refused


def counted(aside: ab.Quarantine) -> Counter:
    return Counter((one.input, str(one.element), one.rule) for one in aside.violations)


def cut(random: Random, told: list[Tagged]) -> list[list[Tagged]]:
    bounds = sorted(random.sample(range(len(told) + 1), random.randint(0, min(3, len(told)))))
    return [told[a:b] for a, b in zip([0, *bounds], [*bounds, len(told)], strict=True) if a < b]


def merged() -> ab.Stream:
    return ab.source("s", SCHEMA, replica="who").merge(policy=ab.EveryChange(), case="R4")


@pytest.mark.parametrize("seed", range(cases(150)))
def test_everyone_refuses_the_same(seed):
    random = Random(seed)
    told = drawn(random)
    pieces = cut(random, told)
    expected = meant(told)

    aside = ab.Quarantine()
    recording = Recording(aside)
    for piece in pieces:
        recording.apply(Batch.of(piece))
    assert counted(aside) == expected

    aside = ab.Quarantine()
    merger = ab.Merger("R4", ab.EveryChange(), on_invalid=aside)
    for piece in pieces:
        merger.play(Batch.of(piece))
    assert counted(aside) == expected

    aside = ab.Quarantine()
    job = merged().open(on_invalid=aside)
    for piece in pieces:
        job.push("s", piece)
        job = merged().open(job.dump(), on_invalid=aside)
    assert counted(aside) == expected


@pytest.mark.parametrize("seed", range(cases(150)))
def test_a_merge_by_itself_and_a_job_give_the_same_element_by_element(seed):
    merger, job = ab.Merger("R4", ab.EveryChange(), on_invalid=ab.Drop()), merged().open(on_invalid=ab.Drop())
    for one in drawn(Random(seed)):
        assert list(merger.play(Batch.of([one])).elements()) == job.push("s", [one])


@pytest.mark.parametrize("seed", range(cases(150)))
def test_a_shard_refuses_what_a_job_does(seed):
    random = Random(seed)
    told = drawn(random)
    shard = Shard(Merging(ab.Case.R4, policy=ab.EveryChange()))
    refused: Counter = Counter()
    for place, one in enumerate(told):
        heard = shard.receive(parcels(said(one.element, who=one.input, first=place)))
        refused.update((two.replica, two.rule) for two in heard.refused)
    assert refused == Counter({(who, rule.value): n for (who, _, rule), n in _by_rule(meant(told)).items()})


def _by_rule(refused: Counter) -> Counter:
    found: Counter = Counter()
    for (who, _, rule), n in refused.items():
        found[who, "", rule] += n
    return found


@pytest.mark.parametrize("seed", range(cases(100)))
def test_a_push_that_raises_has_not_taken_place(seed):
    random = Random(seed)
    told = drawn(random)
    job, kept = merged().open(), []
    for piece in cut(random, told):
        before = job.dump()
        if meant([*kept, *piece]) == meant(kept):
            job.push("s", piece)
            kept += piece
            continue
        with pytest.raises(ab.InvalidElementError):
            job.push("s", piece)
        assert job.dump() == before
