"""How far a shard is: the greatest stables of its channels, and all who join by way of one another."""

from itertools import permutations

import pytest
from engines.spark.hearing import Shard, event, hear, said
from engines.spark.merges import Merging
from hypothesis import given
from hypothesis import strategies as st

from anabranch import BEGINNING, Attach, Case, Detach, Stable

times = st.integers(0, 50)
micro_batches = st.lists(
    st.lists(st.lists(times, max_size=4), min_size=1, max_size=3), min_size=1, max_size=3
)
"""Of each micro-batch, the stables that each of its tasks reads."""


class TestStablesInDisorder:
    """Where the order of a channel is not known, its greatest stable counts, wherever it is read."""

    @given(micro_batches)
    def test_a_channel_is_as_far_as_the_greatest_of_all_that_it_has_said(self, batches):
        shard, greatest = Shard(Merging()), BEGINNING
        for tasks in batches:
            rows = [said(*map(Stable, task)) for task in tasks]
            assert hear(shard, *(row for row in rows if row), ordered=False) == []
            greatest = max([greatest, *(time for task in tasks for time in task)])
            assert shard.frontier == greatest

    @given(micro_batches)
    def test_a_replica_is_as_far_as_the_channel_whose_greatest_is_least(self, batches):
        shard, greatest = Shard(Merging(channels=2)), {"x": BEGINNING, "y": BEGINNING}
        for tasks in batches:
            rows = [
                [row for n, time in enumerate(task) for row in said(Stable(time), channel="xy"[n % 2])]
                for task in tasks
            ]
            hear(shard, *(row for row in rows if row), ordered=False)
            for row in (row for task in rows for row in task):
                greatest[row.channel] = max(greatest[row.channel], row.element.time)
            assert shard.frontier == min(greatest.values())

    @pytest.mark.parametrize("stables", list(permutations([3, 7, 5])))
    @pytest.mark.parametrize("tasks", [1, 3])
    def test_the_greatest_before_a_detach_counts(self, stables, tasks):
        story = [event("v", 1, 9), *map(Stable, stables), Detach()]
        each = -(-len(story) // tasks)
        shard = Shard(Merging())
        hear(shard, *(said(*story[n : n + each]) for n in range(0, len(story), each)), ordered=False)
        assert shard.frontier == 7

    def test_what_a_channel_said_before_counts_where_its_replica_leaves(self):
        shard = Shard(Merging(channels=2))
        hear(shard, said(Stable(9), channel="x"), ordered=False)
        rows = [*said(Stable(3), channel="x"), *said(Stable(8), channel="y"), *said(Detach(), channel="y")]
        hear(shard, rows, ordered=False)
        assert shard.frontier == 8


class TestThoseWhoJoin:
    """A late input leads from where the frontier reaches its guarantee; it may take it to that of another."""

    GUARANTEES = (5, 8, 12, 20)

    @pytest.mark.parametrize("order", list(permutations(range(4))))
    @pytest.mark.parametrize("case", [Case.R0, Case.R2, Case.R3, Case.R4], ids=lambda case: case.name)
    def test_a_frontier_that_reaches_one_reaches_all_that_follow_from_it(self, case, order):
        """Each is as far as the guarantee of the next: whoever comes first, one stable takes all along."""
        shard = Shard(Merging(case))
        hear(shard, said(event("v", 1, 2)))
        for n in order:
            reached = (*self.GUARANTEES[1:], 30)[n]
            hear(shard, said(Attach(self.GUARANTEES[n]), Stable(reached), who=f"late {n}"))
        assert shard.frontier == BEGINNING
        hear(shard, said(Stable(5), first=1))
        assert shard.frontier == 30

    def test_a_frontier_stops_where_nobody_takes_it_on(self):
        shard = Shard(Merging())
        hear(shard, said(event("v", 1, 2)))
        for guarantee, reached in ((5, 8), (9, 30)):
            hear(shard, said(Attach(guarantee), Stable(reached), who=f"late {guarantee}"))
        hear(shard, said(Stable(5), first=1))
        assert shard.frontier == 8
