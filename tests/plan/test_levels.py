"""Where a plan is cut: what runs on one level, what comes in there, and by which columns it is dealt out."""

import pyarrow as pa
import pytest

from anabranch import Case, Fact, FollowLeader, count
from anabranch.expressions.expression import col
from anabranch.plan import build as ab
from anabranch.plan.graph import Graph
from anabranch.plan.inlet import Inlet
from anabranch.plan.levels import OUTPUT, Level, levels, levels_text
from anabranch.plan.stream import Stream

COLUMNS = {"room": "string", "level": "int64"}


def source(name: str, **more: object) -> Stream:
    """Points of a room and a level, at most 5 late."""
    return ab.source(name, COLUMNS | {"at": "int64"}, start="at", disorder=5, **more)


def cut(stream: Stream) -> tuple[Level, ...]:
    return levels(stream.node, 2)


def shapes(stream: Stream) -> list[tuple[list[tuple[str, int, tuple[str, ...]]], list[str]]]:
    """Of each level what comes in, whence and by which columns, and the operators that run."""
    found = []
    for level in cut(stream):
        edges = [(edge.name.split(" of ")[0], edge.origin, edge.by) for edge in level.edges]
        nodes = Graph(level.outputs.values()).nodes
        found.append((edges, [node.word for node in nodes if not isinstance(node, Inlet)]))
    return found


BOTH = ("room", "level")


class TestOneLevel:
    """Rows that meet once stay where they are."""

    def test_a_merge_of_replicas_is_one_level_by_what_tells_events_apart(self):
        feeds = ab.source(
            "feeds",
            COLUMNS | {"at": "int64", "who": "string"},
            start="at",
            disorder=5,
            replica="who",
            lossy=False,
        )
        assert shapes(feeds.merge()) == [([("feeds", 0, BOTH)], ["merge"])]
        assert shapes(feeds.merge(identity="room")) == [([("feeds", 0, ("room",))], ["merge"])]

    def test_a_declared_key_may_be_dropped_or_renamed_where_rows_are_read(self):
        keyed = source("s", key="room")
        assert shapes(keyed.rename({"room": "place"}).final()) == [
            ([("s", 0, ("place", "level"))], ["final"])
        ]
        assert shapes(keyed.drop("room").final()) == [([("s", 0, ("level",))], ["final"])]

    def test_a_window_is_dealt_out_by_its_groups(self):
        windows = source("s").window(10)
        assert shapes(windows.group_by("room").agg(count())) == [([("s", 0, ("room",))], ["window"])]
        assert shapes(windows.agg(count())) == [([("s", 0, ())], ["window"])]
        sessions, rows = source("s").session(10).group_by("room"), source("s").rows(3)
        assert shapes(sessions.agg(count())) == [([("s", 0, ("room",))], ["session"])]
        assert shapes(rows.agg(count())) == [([("s", 0, ())], ["rows"])]

    def test_a_merge_of_streams_deals_them_alike(self):
        merged = ab.merge(source("a"), source("b"))
        assert shapes(merged) == [([("a", 0, BOTH), ("b", 0, BOTH)], ["merge"])]

    def test_a_leader_by_what_inputs_show_is_found_in_one_place(self):
        for by, columns in (("stable", BOTH), ("latest", ()), ("unfrozen", ())):
            merged = ab.merge(source("a"), source("b"), policy=FollowLeader(by=by))
            assert shapes(merged) == [([("a", 0, columns), ("b", 0, columns)], ["merge"])]

    def test_a_plan_without_any_meeting_is_dealt_by_all_columns(self):
        assert shapes(source("a").lasting(5)) == [([("a", 0, BOTH)], ["alter_lifetime"])]
        assert shapes(source("a")) == [([("a", 0, BOTH)], [])]

    def test_what_follows_by_more_columns_goes_on(self):
        plan = ab.merge(source("a"), source("b"), identity="room").final()
        assert shapes(plan) == [([("a", 0, ("room",)), ("b", 0, ("room",))], ["merge", "final"])]

    def test_columns_are_followed_through_names(self):
        plan = ab.merge(source("a"), source("b"), identity="room").rename({"room": "place"}).final()
        assert [len(level.edges) for level in cut(plan)] == [2]

    def test_another_input_of_what_follows_is_dealt_as_the_first_was(self):
        first = ab.merge(source("a"), source("b"), identity="room").rename({"room": "place"})
        plan = ab.merge(first, source("c").rename({"room": "place"}))
        (level,) = cut(plan)
        by = {edge.name: (edge.by, edge.names) for edge in level.edges}
        assert by == {
            "a": (("room",), ("room",)),
            "b": (("room",), ("room",)),
            "c": (("place",), ("room",)),
        }

    def test_a_union_goes_along_with_whatever_its_inputs_are_asked_for(self):
        plan = ab.union(source("a"), source("b")).final()
        assert shapes(plan) == [([("a", 0, BOTH), ("b", 0, BOTH)], ["union", "final"])]

    def test_a_diamond_of_one_source_is_one_edge(self):
        one = source("a")
        plan = ab.union(one.filter(col("level") > 3), one.lasting(9)).final()
        (level,) = cut(plan)
        assert [(edge.name, edge.by, edge.steps) for edge in level.edges] == [("a", BOTH, ())]

    def test_two_streams_of_one_source_that_are_merged_meet(self):
        one = source("a")
        plan = ab.merge({"x": one.filter(col("level") > 3), "y": one.filter(col("level") > 4)})
        assert [len(level.edges) for level in cut(plan)] == [1]


class TestStepsBeforeTheShuffle:
    """What looks at payloads alone, right behind a source, runs where rows are read."""

    def test_filter_and_select_run_there(self):
        plan = ab.merge(source("a").filter(col("level") > 3).select("room"), source("b").select("room"))
        (level,) = cut(plan)
        assert {edge.name: [step.word for step in edge.steps] for edge in level.edges} == {
            "a": ["filter", "select"],
            "b": ["select"],
        }
        assert level.edges[0].by == ("room",)
        assert level.edges[0].inlet.schema.names == ["room"]
        assert [node.word for node in Graph(level.outputs.values()).nodes] == ["inlet", "inlet", "merge"]

    def test_what_changes_times_runs_behind_the_gate_and_all_after_it(self):
        plan = source("a").filter(col("level") > 3).lasting(5).select("room")
        (level,) = cut(plan)
        assert [step.word for step in level.edges[0].steps] == ["filter"]

    def test_what_they_are_set_to_is_a_setting_of_the_state(self):
        (level,) = cut(ab.merge(source("a").filter(col("level") > 3), source("b")))
        assert any("> 3" in value for value in level.edges[0].inlet.settings().values())

    def test_an_impure_function_runs_before_rows_are_dealt_out(self):
        def seen(batch: pa.RecordBatch) -> pa.RecordBatch:
            return batch

        early = source("a").apply(seen, pure=False).lasting(5)
        assert [[step.word for step in edge.steps] for level in cut(early) for edge in level.edges] == [
            ["apply"]
        ]
        late = source("a").lasting(5).apply(seen, pure=False).final()
        first, second = cut(late)
        assert [step.word for step in second.edges[0].steps] == ["apply"]
        assert list(first.outputs) == [second.edges[0].name]


class TestSeveralLevels:
    """Where rows must meet that are apart they are dealt out anew."""

    def test_a_merge_by_fewer_columns_after_one_by_more(self):
        first = ab.merge(source("a"), source("b"))
        plan = ab.merge({"x": first, "y": source("c")}, identity="room")
        assert shapes(plan) == [
            ([("a", 0, BOTH), ("b", 0, BOTH)], ["merge"]),
            ([("c", 0, ("room",)), ("merge", 1, ("room",))], ["merge"]),
        ]

    def test_what_is_in_order_is_in_one_shard(self):
        plan = ab.merge(source("a"), source("b")).sort()
        assert shapes(plan) == [
            ([("a", 0, BOTH), ("b", 0, BOTH)], ["merge"]),
            ([("merge", 1, ())], ["sort"]),
        ]
        assert shapes(source("a").sort().final()) == [([("a", 0, ())], ["sort", "final"])]

    def test_columns_that_are_made_anew_cannot_be_followed(self):
        plan = source("a").lasting(5).select("level", room=col("room").str.to_uppercase()).final()
        assert shapes(plan) == [
            ([("a", 0, BOTH)], ["alter_lifetime", "select"]),
            ([("select", 1, ("level", "room"))], ["final"]),
        ]

    def test_a_level_is_read_by_one_that_is_not_the_next(self):
        one = ab.merge(source("a"), source("b"))
        two = ab.merge({"x": one, "y": source("c")}, identity="room")
        three = ab.merge({"p": two.filter(col("level") > 2), "q": one}, identity="level")
        parts = cut(three)
        assert [(edge.name.split(" of ")[0], edge.origin, edge.by) for edge in parts[2].edges] == [
            ("filter", 2, ("level",)),
            ("merge", 1, ("level",)),
        ]
        assert {*parts[0].outputs} == {parts[1].edges[1].name, parts[2].edges[1].name}

    def test_a_union_of_two_levels_is_on_the_deeper(self):
        one = ab.merge(source("a"), source("b"))
        two = ab.merge({"x": one, "y": source("c")}, identity="room")
        plan = ab.union(two, source("d")).final()
        assert shapes(plan)[1] == (
            [("c", 0, ("room",)), ("d", 0, ("room",)), ("merge", 1, ("room",))],
            ["merge", "union", "final"],
        )

    def test_the_diamond_of_a_merge_meets_again_where_both_are(self):
        one = ab.merge(source("a"), source("b"))
        plan = ab.union(one.sort(), one)
        first, second = cut(plan)
        assert list(first.outputs) == [edge.name for edge in second.edges]
        assert [(edge.origin, edge.by) for edge in second.edges] == [(1, ())]
        assert list(second.outputs) == [OUTPUT]
        assert [node.word for node in Graph(second.outputs.values()).nodes if node.word != "inlet"] == [
            "sort",
            "union",
        ]


class TestPropertiesAcrossShards:
    """What is known of order holds for one channel, and every shard is one."""

    def test_a_second_merge_knows_no_order(self):
        sources = [
            ab.source(name, COLUMNS, properties=[Fact.INSERT_ONLY, Fact.STRICTLY_INCREASING])
            for name in "abc"
        ]
        one = ab.merge(*sources[:2])
        two = ab.merge({"x": one, "y": sources[2]}, identity="room")
        assert one.node.choice.case is Case.R0
        assert two.node.choice.case is Case.R0
        first, second = cut(two)
        (merge,) = [node for node in Graph(first.outputs.values()).nodes if node.word == "merge"]
        assert merge.choice.case is Case.R0
        assert second.outputs[OUTPUT].choice.case in (Case.R3, Case.R4)

    def test_it_is_told(self):
        plan = ab.merge({"x": ab.merge(source("a"), source("b")), "y": source("c")}, identity="room")
        text = levels_text(cut(plan))
        assert "level 2" in text
        assert "dealt out by room" in text

    def test_every_shard_of_the_level_before_is_waited_for(self):
        plan = ab.merge({"x": ab.merge(source("a"), source("b")), "y": source("c")}, identity="room")
        _, second = levels(plan.node, 3)
        assert {edge.origin: edge.inlet.admission().channels for edge in second.edges} == {0: 1, 1: 3}


@pytest.mark.parametrize("shards", [1, 2])
def test_the_same_plan_is_cut_in_the_same_way(shards):
    def plan() -> Stream:
        one = ab.merge(source("a"), source("b"))
        return ab.merge({"x": one, "y": source("c")}, identity="room")

    names = [[edge.name for level in levels(plan().node, shards) for edge in level.edges] for _ in range(2)]
    assert names[0] == names[1]
