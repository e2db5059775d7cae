"""Who is awaited, who is said to be idle, and what replicas of several channels promise."""

from dataclasses import replace

import pytest
from engines.spark.hearing import Shard, event, hear, parcels, said
from engines.spark.merges import Merging

from anabranch import BEGINNING, Case, Detach, Fact, Properties, Stable
from anabranch import source as plan_source
from anabranch import spark as ab
from anabranch.engines.spark.columns import columns_of
from anabranch.engines.spark.plan_sources import read_of

AWAITED = Merging(lossy=True, replicas=("a", "b"))


class TestIdle:
    def test_nobody_waits_for_a_replica_that_is_said_to_be_idle(self):
        shard = Shard(replace(AWAITED, idle=("b",)))
        hear(shard, said(event("v", 5, 9), Stable(7)))
        assert shard.frontier == 7

    def test_without_that_it_is_waited_for(self):
        shard = Shard(AWAITED)
        hear(shard, said(event("v", 5, 9), Stable(7)))
        assert shard.frontier == BEGINNING

    def test_it_is_waited_for_in_a_micro_batch_in_which_it_speaks(self):
        shard = Shard(replace(AWAITED, idle=("b",)))
        hear(shard, said(event("v", 5, 9), Stable(7)), said(event("w", 6, 9), Stable(6), who="b"))
        assert shard.frontier == 6

    def test_it_is_waited_for_again_from_when_it_has_caught_up(self):
        shard = Shard(replace(AWAITED, idle=("b",)))
        hear(shard, said(Stable(7)))
        hear(shard, said(Stable(9), first=1), said(Stable(9), who="b"))
        hear(shard, said(Stable(12), first=2), said(Stable(10), who="b", first=1))
        assert shard.frontier == 10

    def test_what_it_says_when_it_is_back_and_behind_is_late(self):
        shard = Shard(replace(AWAITED, idle=("b",)))
        hear(shard, said(Stable(7)))
        heard = shard.receive(parcels(said(event("w", 5, 9), who="b")))
        assert [refused.rule for refused in heard.refused] == ["late"]

    def test_one_that_left_is_passed_over(self):
        shard = Shard(replace(AWAITED, idle=("b",)))
        hear(shard, said(Stable(7)), said(Detach(), who="b"))
        hear(shard, said(Stable(8), first=1))
        assert shard.frontier == 8

    def test_a_name_that_nobody_has_is_an_error_that_says_who_is_known(self):
        shard = Shard(replace(AWAITED, idle=("wset",)))
        with pytest.raises(ValueError, match="'wset'") as caught:
            shard.receive(parcels(said(Stable(7))))
        assert "'a', 'b'" in caught.value.__notes__[0]


class TestChannels:
    """Two channels of one replica, each in order."""

    ORDERED = Merging(properties=Properties.of("strictly increasing", "insert only"), by_channel=True)

    @staticmethod
    def channel(name, *starts, first=0):
        return said(*(event(f"{name} {at}", at, at + 1) for at in starts), channel=name, first=first)

    def test_rows_of_channels_that_are_each_in_order_are_all_merged(self):
        shard = Shard(self.ORDERED)
        assert len(hear(shard, self.channel("x", 1, 3, 5), self.channel("y", 2, 4, 6))) == 6

    def test_so_are_those_of_a_channel_that_comes_later(self):
        shard = Shard(self.ORDERED)
        assert len(hear(shard, self.channel("x", 1, 3, 5))) == 3
        assert len(hear(shard, self.channel("y", 2, 4, 6))) == 3

    def test_a_replica_of_one_channel_keeps_the_case_that_its_order_allows(self):
        shard = Shard(replace(self.ORDERED, by_channel=False))
        hear(shard, self.channel("x", 1, 3, 5))
        assert shard.merge.status().case == Case.R0.name

    @pytest.mark.parametrize("fact", Fact, ids=str)
    def test_what_is_about_order_is_not_true_of_channels_together(self, fact):
        about_order = {
            Fact.ORDERED,
            Fact.STRICTLY_INCREASING,
            Fact.DETERMINISTIC_TIES,
            Fact.PERFECT,
            Fact.CLOSED,
        }
        assert (fact in Properties.of(fact).spread()) == (fact not in about_order)


def read_from(rows, replica):
    columns = {"at": "int64"} | ({} if replica == "at" else {replica: "string"})
    named = plan_source("rows", columns, start="at", replica=replica, disorder=1, lossy=False)
    return read_of(named.node, columns_of(rows))


class TestDoors:
    """What sources know of their replicas before a row comes."""

    def test_sub_folders_are_names_and_files_that_say_whose_they_are_have_none(self, spark, tmp_path):
        for name in ("east", "west"):
            (tmp_path / "by name" / name).mkdir(parents=True)
        (tmp_path / "one").mkdir()
        folder = ab.folder(spark, tmp_path / "by name", schema="at long")
        assert read_from(folder, "replica").source.awaited == ("east", "west")
        whole = ab.folder(spark, tmp_path / "one", schema="at long, who string", by_replica=False)
        assert read_from(whole, "who").source.awaited == ()

    def test_topics_are_names_and_may_have_several_channels(self, spark):
        given = {"servers": "nowhere:1", "schema": "at long, who string"}
        topics = ab.kafka(spark, {"east": "readings-e", "west": "readings-w"}, **given)
        assert read_from(topics, "replica").source.awaited == ("east", "west")
        assert read_from(topics, "replica").by_channels
        alone = ab.kafka(spark, "readings", **given)
        assert read_from(alone, "who").source.awaited == ()

    def test_a_case_that_needs_one_order_is_not_forced_on_several_channels(self, spark):
        given = {"servers": "nowhere:1", "schema": "at long, who string"}
        topics = ab.kafka(spark, "readings", **given)
        with pytest.raises(ValueError, match="R1 is forced, and needs the rows of a replica in one order"):
            ab.merge(topics, start="at", replica="who", disorder=1, lossy=False, case="R1")
        ab.merge(topics, start="at", replica="who", disorder=1, lossy=False, case="R3")

    def test_idle_names_a_replica_that_rows_can_have(self, spark, tmp_path):
        feed = spark.readStream.schema("at long").json(str(tmp_path))
        with pytest.raises(ValueError, match="'west' is named as a replica, and no column"):
            ab.merge(feed, start="at", disorder=1, idle=["west"])
