"""Plans that merge replicas of changes obey their law, and it tells wrong kernels from right ones."""

from dataclasses import dataclass, fields
from random import Random

import pytest
from laws.replicas_of_changes import POLICIES, gives_the_versions_of_the_log
from quick import cases

from anabranch.kernels.kernel import State
from anabranch.kernels.merge_changes import MergeChanges as Kernel
from anabranch.plan.merge_changes import MergeChanges
from anabranch.plan.stream import Stream


@pytest.mark.parametrize("policy", POLICIES, ids=str)
@pytest.mark.parametrize("seed", range(cases(10)))
def test_what_comes_out_is_the_versions_of_the_log(seed, policy):
    gives_the_versions_of_the_log(Random(seed), policy)


class KnowsNoSnapshots(Kernel):
    """Rows of a snapshot are taken for rows that begin when they are read."""

    def begins(self, name, time=None):
        return super().begins(name)


class WaitsForNobody(Kernel):
    """Once one has spoken, those who have not are taken for such that vouch for nothing."""

    def begins(self, name, time=None):
        result = super().begins(name, time)
        for one in self.replicas.values():
            one.spoken = True
        return result


class ForgetsWhoWaits(Kernel):
    """What a replica has shown before it met the merge is not saved."""

    def saved(self):
        waiting, self.waiting = self.waiting, {}
        state = super().saved()
        self.waiting = waiting
        return state


def with_kernel(wrong: type[Kernel]):
    @dataclass(frozen=True, kw_only=True, eq=False)
    class Wrong(MergeChanges):
        def operator(self, state: State | None = None) -> Kernel:
            made = super().operator(state)
            made.__class__ = wrong
            return made

    def remade(stream: Stream) -> Stream:
        node = stream.node
        return Stream(Wrong(**{one.name: getattr(node, one.name) for one in fields(node)}))

    return remade


@pytest.mark.parametrize("wrong", [KnowsNoSnapshots, WaitsForNobody, ForgetsWhoWaits])
def test_a_wrong_kernel_is_caught(wrong):
    with pytest.raises((AssertionError, KeyError)):
        check_many(with_kernel(wrong))


def check_many(remade) -> None:
    for seed in range(40):
        gives_the_versions_of_the_log(Random(seed), POLICIES[seed % len(POLICIES)], remade)
