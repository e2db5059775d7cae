"""Plans as queries of Spark's: levels, side sources, diamonds, native sources, restarts."""

import pytest
from element_rows import relation_of
from engines.spark.plan_shapes import PLANS, Feed, bag, run, source

import anabranch as ab
from anabranch import spark as sp
from anabranch.model.schema import SchemaError

QUICKLY = ("several levels", "side source", "windows over a join")
"""The others are restarted by `--slow` and, without a JVM, in `test_plan_laws.py`."""


@pytest.mark.parametrize(
    "name", [name if name in QUICKLY else pytest.param(name, marks=pytest.mark.slow) for name in PLANS]
)
def test_a_plan_gives_what_it_does_embedded_restarted_after_every_micro_batch(spark, tmp_path, name):
    make, sources = PLANS[name]
    feed = Feed(tmp_path, sources)
    for _ in range(3):
        feed.put()
        run(sp.frame(make(), feed.frames(spark)), tmp_path)
    assert bag(relation_of(tmp_path / "out")) == feed.meant(make())
    assert not list((tmp_path / "out").glob("_quarantine/*"))


def test_native_sources_run_steps_where_they_read_and_may_be_described_as_for_a_run(spark, tmp_path):
    feed = Feed(tmp_path, "ab")
    for _ in range(3):
        feed.put()
    plan = ab.merge(
        source("a").filter(ab.col("level") > 1).select("room"),
        source("b").filter(ab.col("level") > 1).select("room"),
    )
    doors = {"a": ab.folder(tmp_path / "a"), "b": sp.folder(spark, tmp_path / "b")}
    run(sp.frame(plan, doors), tmp_path)
    assert bag(relation_of(tmp_path / "out")) == feed.meant(plan)


def test_native_sources_of_several_levels_are_read_on_after_every_micro_batch(spark, tmp_path):
    """Every shard of the last level must have been called in the micro-batch before."""
    make, sources = PLANS["diamond"]
    feed = Feed(tmp_path, sources)
    for _ in range(3):
        feed.put()
        run(sp.frame(make(), {name: sp.folder(spark, tmp_path / name) for name in sources}), tmp_path)
    assert bag(relation_of(tmp_path / "out")) == feed.meant(make())


def test_a_row_for_which_a_step_fails_is_set_aside_and_nothing_else_is_lost(spark, tmp_path):
    feed = Feed(tmp_path, "a", parts=1)
    feed.put()
    plan = source("a").with_columns(level=12 // ab.col("level"))
    run(sp.frame(plan, feed.frames(spark)), tmp_path)
    rows = [row for row in feed.rows["a"][0] if row["level"]]
    assert sum(bag(relation_of(tmp_path / "out")).values()) == len(rows)
    (aside,) = (tmp_path / "out").glob("_quarantine/*")
    assert len(aside.read_text().splitlines()) == 20 - len(rows)


def test_what_a_query_over_what_is_there_leaves_open_is_what_a_run_leaves_that_is_not_to_finish(
    spark, tmp_path
):
    make, sources = PLANS["windows over a join"]
    feed = Feed(tmp_path, sources)
    for _ in range(2):
        feed.put()
    query = sp.write_folder(
        sp.frame(make(), feed.frames(spark)),
        tmp_path / "out",
        checkpoint=tmp_path / "checkpoint",
        available_now=True,
    )
    sp.wait(query)
    relation = ab.Relation()
    run_here = ab.run(make(), {name: tmp_path / name for name in sources}, finish=False)
    for batch in run_here:
        relation.apply(batch)
    assert bag(relation_of(tmp_path / "out")) == bag(relation)
    held = {name.rpartition(" ")[2]: one["live"] for name, one in sp.status(query).operators.items()}
    assert held["window"] == run_here.status().operators["window"].live > 0
    assert held["session"] == run_here.status().operators["session"].live > 0


class TestWhatIsRefused:
    """Before a query is started."""

    def test_every_source_is_given(self, spark, tmp_path):
        feed = Feed(tmp_path, "ab", parts=1)
        feed.put()
        frames = feed.frames(spark)
        with pytest.raises(ab.PlanError, match="reads 'b', and nothing is given"):
            sp.frame(ab.union(source("a"), source("b")), {"a": frames["a"]})
        with pytest.raises(ab.PlanError, match="no source 'b'"):
            sp.frame(source("a"), frames)

    def test_columns_are_those_of_the_plan(self, spark, tmp_path):
        feed = Feed(tmp_path, "a", parts=1)
        feed.put()
        rows = feed.frames(spark)["a"]
        with pytest.raises(SchemaError, match="has column 'room', and what is given"):
            sp.frame(source("a"), {"a": rows.drop("room")})
        with pytest.raises(SchemaError, match="'level' of source 'a' is int64, what is given has string"):
            sp.frame(source("a"), {"a": rows.selectExpr("at", "room", "string(level) as level")})

    def test_a_checkpoint_is_of_one_plan(self, spark, tmp_path):
        feed = Feed(tmp_path, "a", parts=2)
        feed.put()
        run(sp.frame(source("a").lasting(3), feed.frames(spark)), tmp_path)
        feed.put()
        with pytest.raises(ValueError, match="begun with"):
            run(sp.frame(source("a").lasting(4), feed.frames(spark)), tmp_path)

    def test_a_frame_has_one_output(self, spark, tmp_path):
        feed = Feed(tmp_path, "a", parts=1)
        feed.put()
        frames = feed.frames(spark)
        with pytest.raises(ab.PlanError, match=r"'early', 'late' are given: make a frame"):
            sp.frame({"early": source("a"), "late": source("a").final()}, frames)
        with pytest.raises(ab.PlanError, match=r"tap\('early'\) is another output") as raised:
            sp.frame(source("a").tap("early").final(), frames)
        assert any("test_plans.py:" in note for note in raised.value.__notes__)
        with pytest.raises(TypeError, match="what comes out is a stream"):
            sp.frame("a", frames)

    def test_a_static_frame_is_not_beside_a_streaming_one(self, spark, tmp_path):
        feed = Feed(tmp_path, "ab", parts=1)
        feed.put()
        frames = feed.frames(spark)
        frames["b"] = spark.read.schema(frames["b"].schema).parquet(str(tmp_path / "b"))
        with pytest.raises(ab.PlanError, match="'b' is static and 'a' is streaming") as raised:
            sp.frame(ab.union(source("a"), source("b")), frames)
        assert any("plan_shapes.py:" in note for note in raised.value.__notes__)
