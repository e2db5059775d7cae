"""One shard: what it hears in which order, what it leaves out and says so, and its state as bytes.

The files in ``golden`` were written by ``python tests/engines/spark/test_shard.py``, which is run again when
the format changes on purpose.
"""

from dataclasses import replace
from pathlib import Path

import pytest
from engines.spark.driving import Said
from engines.spark.hearing import Shard, event, hear, parcels, said
from engines.spark.merges import Merging

from anabranch import (
    BEGINNING,
    FOREVER,
    Adjust,
    Attach,
    Case,
    Detach,
    Drop,
    Fact,
    InvalidElementError,
    Properties,
    Raise,
    Stable,
)
from anabranch.engines.spark import order
from anabranch.engines.spark import shard as sharding
from anabranch.engines.spark.rows_merge import ROWS_SOURCE
from anabranch.kernels.store.saved import MARK, StateFormatError
from anabranch.model.elements import Element
from anabranch.model.output_policy import EveryChange, FinalOnly, FirstThenFinal
from anabranch.model.validity import BrokenPropertyError

GOLDEN = Path(__file__).parent / "golden"


class TestManyChannels:
    """What channels of a replica say is merged together where each says little."""

    @staticmethod
    def tasks(count: int, each: int) -> list[list[Said]]:
        """Two replicas with as many channels in two tasks, a few events and an event too late in each."""
        tasks: list[list[Said]] = [[], []]
        for who in "ab":
            for n in range(count):
                events = [event(f"{n} {k}", 10 + k, 90) for k in range(each)]
                elements = [*events, Stable(10), event("late", 5, 9)]
                tasks[n % 2] += said(*elements, who=who, channel=f"{n:04}", first=100)
        return tasks

    @pytest.mark.parametrize("tasks", [1, 2])
    @pytest.mark.parametrize("enough", [1, 7, 4096])
    def test_they_say_what_they_say_one_by_one(self, monkeypatch, tasks, enough):
        monkeypatch.setattr(order, "ENOUGH", enough)
        told = self.tasks(40, 3)
        shard = Shard(Merging(policy=EveryChange()))
        heard = shard.receive(parcels(*(told if tasks == 2 else [told[0] + told[1]]), rows=10_000))
        out = [element for batch in heard.output for element in batch.elements()]
        assert out == [event(f"{n} {k}", 10 + k, 90) for n in range(40) for k in range(3)]
        assert shard.frontier == 10
        places = [f"{who}/{n:04} row 104" for who in "ab" for n in range(40)]
        assert [refused.place for refused in heard.refused] == places

    def pushes(self, monkeypatch, count: int) -> list[str]:
        """Who says something to the merge when so many channels speak."""
        shard, pushes = Shard(Merging()), []
        for way in ("push", "advance"):
            call = getattr(shard.merge, way)
            monkeypatch.setattr(
                shard.merge, way, lambda name, said, call=call: pushes.append(name) or call(name, said)
            )
        shard.receive(parcels(*self.tasks(count, 3), rows=10_000))
        return pushes

    def test_a_merge_is_not_called_for_each_of_them(self, monkeypatch):
        assert self.pushes(monkeypatch, 200) == ["a", "b", "a", "b"]  # events, then stables

    def test_what_is_wide_does_not_wait(self, monkeypatch):
        monkeypatch.setattr(order, "BYTES", 1)
        assert self.pushes(monkeypatch, 20) == ["a"] * 20 + ["b"] * 20 + ["a", "b"]

    def test_no_more_waits_than_is_enough(self, monkeypatch):
        """Three events of each channel: with six, those of two channels are merged together."""
        monkeypatch.setattr(order, "ENOUGH", 6)
        assert self.pushes(monkeypatch, 20) == ["a"] * 10 + ["b"] * 10 + ["a", "b"]

    def test_what_the_merge_refuses_of_them_is_placed(self):
        repeats = [row for n in range(3) for row in said(event("v", 5, 9), channel=str(n), first=10 * n)]
        merging = Merging(Case.R3, properties=Properties.of(Fact.KEYED))
        heard = Shard(merging).receive(parcels(repeats[:2], repeats[2:]))
        assert [refused.place for refused in heard.refused] == ["a/1 row 10", "a/2 row 20"]


class TestOrder:
    """A micro-batch is heard in the order of its channels, whatever its parcels came in."""

    STORY = (event("v", 1, 5), Adjust({"value": "v"}, 1, 5, 9), Stable(3), Adjust({"value": "v"}, 1, 9, 4))

    @pytest.mark.parametrize("rows", [1, 2, 1000])
    def test_parcels_may_come_in_any_order(self, rows):
        tasks = [said(element, first=n) for n, element in enumerate(self.STORY)]
        shard = Shard(Merging(policy=EveryChange()))
        assert hear(shard, *tasks[::-1], rows=rows) == [
            event("v", 1, 5),
            Adjust({"value": "v"}, 1, 5, 9),
            Adjust({"value": "v"}, 1, 9, 4),
        ]
        assert shard.frontier == 3

    def test_parcels_may_overlap(self):
        story = said(*self.STORY, Stable(4), event("w", 6, 7), Stable(6))
        shard = Shard(Merging(policy=EveryChange()))
        assert len(hear(shard, story[1::2], story[::2])) == 4
        assert shard.frontier == 6

    def test_stables_count_where_they_were_said(self):
        shard = Shard(Merging())
        heard = shard.receive(parcels(said(Stable(5), event("v", 3, 9))))
        assert [refused.rule for refused in heard.refused] == ["insert-behind-stable"]

    def test_stables_of_an_unknown_order_count_at_the_end(self):
        shard = Shard(Merging())
        assert hear(shard, said(Stable(5), event("v", 3, 9)), ordered=False) == [event("v", 3, 9)]
        assert shard.frontier == 5
        heard = shard.receive(parcels(said(event("w", 4, 9)), ordered=False))
        assert [refused.rule for refused in heard.refused] == ["insert-behind-stable"]

    def test_events_of_all_replicas_come_before_the_stables_of_any(self):
        """Nobody is late only because another came first."""
        shard = Shard(Merging(Case.R4, lossy=True))
        out = hear(shard, said(Stable(9), who="a"), said(event("v", 3, 5), Stable(9), who="b"))
        assert out == [event("v", 3, 5)]
        assert shard.frontier == 9

    def test_a_replica_is_as_far_as_the_slowest_of_its_channels(self):
        shard = Shard(Merging())
        hear(shard, said(Stable(9), channel="x"), said(Stable(4), channel="y"))
        assert shard.frontier == 4
        hear(shard, said(Stable(7), channel="y", first=1))
        assert shard.frontier == 7

    def test_channels_that_are_counted_are_all_waited_for(self):
        shard = Shard(Merging(channels=2))
        hear(shard, said(Stable(9), channel="x"))
        assert shard.frontier == BEGINNING
        hear(shard, said(Stable(4), channel="y"))
        assert shard.frontier == 4

    def test_a_micro_batch_may_hold_a_restart(self):
        shard = Shard(Merging(Case.R3))
        story = said(
            event("v", 1, 9), Stable(3), Detach(), Attach(), event("v", 1, 9), event("w", 4, 9), Stable(5)
        )
        assert hear(shard, story) == [event("v", 1, 9), event("w", 4, 9)]
        assert shard.frontier == 5

    def test_stables_before_a_detach_count_where_the_order_is_unknown(self):
        shard = Shard(Merging())
        hear(shard, said(event("v", 1, 9), Stable(3), Detach()), ordered=False)
        assert shard.frontier == 3

    def test_output_is_put_together_up_to_a_size(self, monkeypatch):
        monkeypatch.setattr(sharding, "TOGETHER", 5)
        result = Shard(Merging()).receive(parcels(*(said(event("v", n, n + 1), first=n) for n in range(12))))
        assert [len(batch) for batch in result.output] == [5, 5, 2]

    def test_nothing_heard_is_nothing_said(self):
        result = Shard(Merging()).receive([])
        assert (result.output, result.refused, result.received) == ([], [], {})

    def test_what_is_heard_is_counted_by_kind(self):
        result = Shard(Merging()).receive(parcels(said(Attach(), *self.STORY, Detach())))
        assert result.received == {"attach": 1, "insert": 1, "adjust": 2, "stable": 1, "detach": 1}


def adjust(start: int, old_end: int, end: int) -> Adjust:
    return Adjust({"value": "v"}, start, old_end, end)


class TestPatience:
    """Where the order of a micro-batch is not known, an adjust waits for the end that it corrects."""

    def receive(self, shard: Shard, *tasks) -> list[Element]:
        return hear(shard, *(said(*task) for task in tasks), ordered=False)

    @pytest.mark.parametrize("merging", [Merging(Case.R3), Merging(Case.R4), Merging(lossy=True)])
    def test_an_adjust_that_is_read_before_its_insert_corrects_it(self, merging):
        shard = Shard(merging)
        out = self.receive(shard, [adjust(1, 5, 9)], [event("v", 1, 5), Stable(20)])
        assert out == [event("v", 1, 5), adjust(1, 5, 9)]

    @pytest.mark.parametrize("merging", [Merging(Case.R3), Merging(Case.R4), Merging(lossy=True)])
    def test_a_chain_of_adjusts_is_heard_in_its_order(self, merging):
        merging = replace(merging, policy=EveryChange())
        out = self.receive(Shard(merging), [adjust(1, 7, 9), adjust(1, 5, 7)], [event("v", 1, 5)])
        assert out == [event("v", 1, 5), adjust(1, 5, 7), adjust(1, 7, 9)]

    def test_what_came_and_went_in_one_micro_batch_is_not_there(self):
        shard = Shard(Merging(Case.R3))
        out = self.receive(shard, [adjust(1, 5, 1)], [event("v", 1, 5), Stable(20)])
        assert out == [event("v", 1, 5), adjust(1, 5, 1)]

    @pytest.mark.parametrize("case", [Case.R3, Case.R4])
    def test_what_was_there_and_goes_and_comes_again_is_there(self, case):
        """The same rows as when it came and went: what the replica showed before tells them apart."""
        shard = Shard(Merging(case, policy=EveryChange()))
        self.receive(shard, [event("v", 1, 5)])
        out = self.receive(shard, [adjust(1, 5, 1)], [event("v", 1, 5), Stable(20)])
        assert out == [adjust(1, 5, 1), event("v", 1, 5)]

    def test_an_event_is_there_once_at_most_where_that_can_be(self):
        shard = Shard(Merging(properties=Properties.of("keyed"), policy=EveryChange()))
        out = self.receive(shard, [event("v", 1, 8)], [event("v", 1, 5)], [adjust(1, 5, 1)])
        assert out == [event("v", 1, 5), adjust(1, 5, 1), event("v", 1, 8)]

    def test_an_end_may_come_back(self):
        shard = Shard(Merging(Case.R4, policy=EveryChange()))
        out = self.receive(shard, [adjust(1, 5, 9)], [adjust(1, 7, 5), event("v", 1, 5)], [adjust(1, 5, 7)])
        assert out == [event("v", 1, 5), adjust(1, 5, 7), adjust(1, 7, 5), adjust(1, 5, 9)]

    def test_true_repeats_find_an_end_each(self):
        shard = Shard(Merging(Case.R4, policy=EveryChange()))
        out = self.receive(shard, [adjust(1, 5, 9), adjust(1, 5, 9)], [event("v", 1, 5), event("v", 1, 5)])
        assert out == [event("v", 1, 5), adjust(1, 5, 9)] * 2

    def test_an_adjust_that_finds_no_end_is_heard_last(self):
        shard = Shard(Merging(Case.R4, policy=EveryChange(), lossy=True))
        out = self.receive(shard, [adjust(1, 6, 7), adjust(1, 5, 9)], [event("v", 1, 5)])
        assert out[:2] == [event("v", 1, 5), adjust(1, 5, 9)]

    def test_replicas_wait_for_themselves_only(self):
        shard = Shard(Merging(Case.R4, lossy=True, policy=EveryChange()))
        tasks = said(adjust(1, 5, 9), who="a"), said(event("v", 1, 5), who="b")
        assert hear(shard, *tasks, ordered=False)[0] != event("v", 1, 5)

    def test_what_waits_is_heard_before_its_replica_leaves(self):
        shard = Shard(Merging(Case.R3))
        story = [adjust(1, 5, 9), event("v", 1, 5), Stable(20), Detach(), Attach(), event("v", 21, 25)]
        assert self.receive(shard, story) == [event("v", 1, 5), adjust(1, 5, 9), event("v", 21, 25)]
        assert shard.frontier == 20

    def test_what_is_said_after_an_attach_waits_for_what_follows_it(self):
        shard = Shard(Merging(Case.R3, policy=EveryChange()))
        story = [event("v", 1, 5), Detach(), Attach(), adjust(7, 8, 9), event("v", 7, 8)]
        assert self.receive(shard, story) == [event("v", 1, 5), event("v", 7, 8), adjust(7, 8, 9)]

    def test_what_waits_is_counted_once(self):
        shard = Shard(Merging(Case.R3))
        rows = parcels(said(adjust(1, 5, 9)), said(event("v", 1, 5)), ordered=False)
        assert shard.receive(rows).received == {"insert": 1, "adjust": 1}

    def test_where_the_order_is_known_nothing_waits(self):
        shard = Shard(Merging(Case.R3))
        assert hear(shard, said(adjust(1, 5, 9), event("v", 1, 5), Stable(20))) == [event("v", 1, 5)]


class TestRefusals:
    def test_what_breaks_a_rule_is_told_with_its_place_and_the_rest_is_used(self):
        shard = Shard(Merging())
        heard = shard.receive(
            parcels(
                said(
                    event("v", 5, 5),
                    event("w", 1, 3),
                    Stable(2),
                    event("x", 1, 3),
                    event("y", 4, 3),
                    first=70,
                )
            )
        )
        assert [e for batch in heard.output for e in batch.elements()] == [event("w", 1, 3)]
        assert [(r.rule, r.replica, r.place) for r in heard.refused] == [
            ("empty-lifetime", "a", "a/x row 70"),
            ("insert-behind-stable", "a", "a/x row 73"),
            ("empty-lifetime", "a", "a/x row 74"),
        ]
        assert "starts at 1, the last stable is 2" in heard.refused[1].reason
        assert heard.refused[1].raw == '{"payload":{"value":"x"},"start":1,"end":3}'
        assert shard.left_out == {(ROWS_SOURCE, "a"): 3}

    def test_who_has_left_says_nothing(self):
        shard = Shard(Merging())
        heard = shard.receive(
            parcels(said(event("v", 1, 3), Detach(), event("w", 1, 3), Stable(4), Detach()))
        )
        assert [(r.rule, r.place) for r in heard.refused] == [
            ("detached-input", f"a/x row {n}") for n in (2, 3, 4)
        ]
        assert shard.frontier == BEGINNING

    def test_an_adjust_of_nothing_is_told_where_the_merge_finds_it(self):
        """The merge, not the shard, knows which events there are and what was promised of them."""
        properties = Properties.of(Fact.STRICTLY_INCREASING, Fact.INSERT_ONLY)
        shard = Shard(Merging(properties=properties))
        heard = shard.receive(parcels(said(event("v", 4, 9), event("w", 2, 9), event("x", 5, 9), first=7)))
        assert [(r.rule, r.place) for r in heard.refused] == [("broken-property", "a/x row 8")]
        assert [e for batch in heard.output for e in batch.elements()] == [event("v", 4, 9), event("x", 5, 9)]

    def test_what_comes_late_is_told(self):
        shard = Shard(Merging(Case.R4, lossy=True))
        hear(shard, said(Stable(5), who="a"))
        heard = shard.receive(parcels(said(event("v", 2, 3), event("w", 6, 7), who="b")))
        assert [(r.rule, r.replica, r.place) for r in heard.refused] == [("late", "b", "b/x row 0")]

    def test_what_is_dropped_is_not_told(self):
        shard = Shard(Merging(on_invalid=Drop()))
        heard = shard.receive(parcels(said(event("v", 5, 5), event("w", 1, 3))))
        assert not heard.refused
        assert len(heard.output[0]) == 1

    def test_where_nothing_may_be_refused_it_is_an_error(self):
        with pytest.raises(InvalidElementError, match="x:70 of input 'a' has an empty lifetime"):
            Shard(Merging(on_invalid=Raise())).receive(parcels(said(event("v", 5, 5), first=70)))
        broken = Merging(Case.R0, on_broken=Raise())
        with pytest.raises(BrokenPropertyError, match="strictly increasing"):
            Shard(broken).receive(parcels(said(event("v", 4, 9), event("w", 4, 9))))


class TestState:
    @pytest.mark.parametrize("case", list(Case), ids=lambda case: case.name)
    def test_a_shard_that_was_dumped_goes_on_as_the_one_that_was_not(self, case):
        there, here = Shard(Merging(case)), Shard(Merging(case))
        for start in range(6):
            said_now = said(event("v", start, start + 9), Stable(start), first=2 * start, who="ab"[start % 2])
            assert hear(there, said_now) == hear(here, said_now)
            there = Shard.load(there.assignment, 0, there.dump())
            assert there.frontier == here.frontier == start
            assert there.frontiers == here.frontiers

    def test_state_of_another_version_is_refused_by_name(self):
        data = Shard(Merging()).dump()
        with pytest.raises(StateFormatError, match=r"anabranch-shard-1\\n', the mark of an older") as error:
            Shard.load(Merging(), 0, b"anabranch-shard-1\n" + data[len(MARK) :])
        assert "a new checkpoint" in error.value.__notes__[0]

    def test_replicas_that_are_waited_for_are_there_from_the_beginning(self):
        shard = Shard(Merging(Case.R4, lossy=True, replicas=("a", "b")))
        hear(shard, said(Stable(9), who="a"))
        assert shard.frontier == BEGINNING
        hear(shard, said(Stable(5), who="b"))
        assert shard.frontier == 5


GOLDEN_MERGES = {
    "shard-4-r3": Merging(Case.R3, EveryChange(lag=1)),
    "shard-4-r4": Merging(Case.R4, lossy=frozenset({"b"}), channels=1),
}


def golden_shard(name: str) -> Shard:
    """A small shard in the middle of its work: a replica has restarted, events are live, one is removed."""
    shard = Shard(GOLDEN_MERGES[name])
    first = said(Attach(), event("é", 1, 9), event("gone", 2, FOREVER), Stable(2))
    shard.receive(parcels(first, said(event("é", 1, 7), Stable(1), who="b")))
    shard.receive(
        parcels(
            said(Adjust({"value": "gone"}, 2, FOREVER, 2), event("open", 4, FOREVER), Stable(4), first=4),
            said(Detach(), Attach(), event("é", 1, 7), event("only b", 5, 6), Stable(3), who="b", first=2),
        )
    )
    return shard


GOLDEN_ENDS = {
    "shard-4-r3": [
        Adjust({"value": "é"}, 1, 7, 9),
        Adjust({"value": "open"}, 4, FOREVER, 12),
        Adjust({"value": "only b"}, 5, 6, 5),
    ],
    "shard-4-r4": [
        Adjust({"value": "open"}, 4, FOREVER, 12),
        Adjust({"value": "only b"}, 5, 6, 5),
    ],
}


@pytest.mark.parametrize("name", GOLDEN_MERGES)
def test_state_that_was_written_before_is_read_and_goes_on(name):
    shard = Shard.load(GOLDEN_MERGES[name], 0, (GOLDEN / f"{name}.bin").read_bytes())
    here = golden_shard(name)
    assert shard.frontier == here.frontier
    assert shard.frontiers == here.frontiers
    rest = said(Adjust({"value": "open"}, 4, FOREVER, 12), Stable(FOREVER), first=7)
    out = hear(shard, rest)
    assert out == hear(here, rest)
    assert sorted(out, key=lambda e: e.start) == GOLDEN_ENDS[name]
    assert shard.frontier == FOREVER
    assert shard.merge.status().live == 0


if __name__ == "__main__":
    GOLDEN.mkdir(exist_ok=True)
    for name in GOLDEN_MERGES:
        (GOLDEN / f"{name}.bin").write_bytes(golden_shard(name).dump())


def test_a_checkpoint_of_another_policy_is_a_named_error():
    dumped = Shard(Merging(policy=FirstThenFinal())).dump()
    with pytest.raises(StateFormatError, match="begun with merge: policy first, this query has final"):
        Shard.load(Merging(policy=FinalOnly()), 0, dumped)
