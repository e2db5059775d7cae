"""What is known of a stream follows from its sources, and picks the case of a merge (LM IV-G)."""

import anabranch as ab
from anabranch import Case, Fact, col
from anabranch.plan.merge import Merge


def source(name, *facts, **more):
    return ab.source(name, {"room": "string", "level": "int64"}, properties=facts, **more)


def case_of(*streams):
    merged = ab.merge(*streams).node
    assert isinstance(merged, Merge)
    return merged.choice.case


def test_sources_that_are_strictly_increasing_and_insert_only_merge_in_r0():
    streams = [source(name, "insert only", "strictly increasing") for name in "ab"]
    assert case_of(*streams) is Case.R0
    assert case_of(*(stream.filter(col("level") > 1).drop("level") for stream in streams)) is Case.R0


def test_what_is_final_and_in_order_merges_in_r1_whatever_it_was():
    streams = [source(name).final(ordered=True) for name in "ab"]
    assert case_of(*streams) is Case.R1


def test_a_selection_that_drops_the_key_loses_it():
    keyed = [source(name, key=["room"]) for name in "ab"]
    assert case_of(*keyed) is Case.R3
    assert case_of(*(stream.drop("level") for stream in keyed)) is Case.R3
    assert case_of(*(stream.drop("room") for stream in keyed)) is Case.R4
    assert case_of(*(stream.rename({"room": "place"}) for stream in keyed)) is Case.R3


def test_a_window_without_groups_at_its_close_merges_in_r0_and_with_groups_in_r2():
    perfect = [source(name, "insert only", "ordered") for name in "ab"]
    disordered = [source(name) for name in "ab"]
    for streams in (perfect, disordered):
        assert case_of(*(stream.window(10).agg(ab.count()) for stream in streams)) is Case.R0
        grouped = [stream.window(10).group_by("room").agg(ab.count()) for stream in streams]
        assert case_of(*grouped) is Case.R2
    early = [stream.window(10).group_by("room").agg(ab.count(), early=True) for stream in perfect]
    assert case_of(*early) is Case.R3


def test_sessions_merge_by_their_groups_and_without_groups_in_order():
    streams = [source(name) for name in "ab"]
    assert case_of(*(stream.session(10).agg(ab.count()) for stream in streams)) is Case.R0
    grouped = [stream.session(10).group_by("room").agg(ab.count()) for stream in streams]
    assert case_of(*grouped) is Case.R3
    assert grouped[0].properties.key == ("room",)
    assert case_of(*(stream.rows(3).group_by("room").agg(ab.count()) for stream in streams)) is Case.R4
    ranked = streams[0].session(10).group_by("room").agg(ab.col("level").top_k(2)).properties
    assert ranked.key == ("room", "rank")
    assert Fact.STRICTLY_INCREASING not in streams[0].window(5).agg(ab.col("level").top_k(2)).properties


def test_lifetimes_of_windows_are_as_long_as_they_or_their_slide():
    rooms = source("rooms")
    assert rooms.window(10, 5).agg(ab.count()).properties.longest == 10
    assert Fact.DISJOINT not in rooms.window(10, 5).agg(ab.count()).properties
    slide = rooms.window(10, 5, lifetime="slide").agg(ab.count()).properties
    assert slide.longest == 5
    assert Fact.DISJOINT in slide


def test_a_union_has_no_order_and_no_key():
    perfect = [source(name, "insert only", "strictly increasing") for name in "ab"]
    known = ab.union(*perfect).properties
    assert Fact.INSERT_ONLY in known
    assert Fact.ORDERED not in known
    assert Fact.KEYED not in known


def test_rows_are_insert_only_and_last_as_long_as_is_said():
    rows = ab.source("rows", {"at": "int64", "room": "string"}, start="at", duration=7, disorder=2)
    assert Fact.INSERT_ONLY in rows.properties
    assert rows.properties.longest == 7
    assert rows.clip(3).properties.longest == 3
    assert Fact.INSERT_ONLY not in rows.ended().properties or Fact.INSERT_ONLY in rows.properties


def test_rows_of_several_channels_are_in_order_within_each_alone():
    columns = {"at": "int64", "channel": "int64", "place": "int64"}
    promise = ["strictly increasing", "insert only"]
    one = ab.source("one", columns, start="at", sequence="place", disorder=2, properties=promise)
    many = ab.source(
        "many", columns, start="at", channel="channel", sequence="place", disorder=2, properties=promise
    )
    assert Fact.STRICTLY_INCREASING in one.properties
    assert Fact.ORDERED not in many.properties
    assert Fact.KEYED in many.properties


def test_lossy_replicas_become_complete_where_they_are_merged():
    heard = ab.source(
        "heard", {"at": "int64", "gateway": "string"}, start="at", replica="gateway", disorder=1, lossy=True
    )
    assert Fact.COMPLETE not in heard.node.properties
    assert Fact.COMPLETE in heard.merge().properties


def test_ties_that_two_plans_have_in_orders_of_their_own_are_in_no_one_order():
    final = source("a").final(ordered=True)
    changed = final.with_columns(level=col("level") * 2)
    assert case_of(changed, changed.sort()) is Case.R2
