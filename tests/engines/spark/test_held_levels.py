"""A plan whose last level is held: what our sinks write has the least stable of all shards."""

import pyarrow.parquet as pq
from element_rows import relation_of
from engines.spark.plan_shapes import Feed, bag, run, source

import anabranch as ab
from anabranch import spark as sp


def plan() -> ab.Stream:
    """What can never change again, in order, so that a shard waits for what it has heard itself."""
    return ab.union(source("a"), source("b")).final()


def stable_of(feed: Feed) -> int:
    """How far the embedded engine is, which holds what all shards do."""
    job = plan().open()
    for number in range(feed.done):
        for name in feed.names:
            job.push(name, feed.rows[name][number])
    return job.status().outputs[""]


def test_a_folder_has_the_least_stable_micro_batch_by_micro_batch_and_a_reader_goes_on_with_it(
    spark, tmp_path
):
    feed = Feed(tmp_path, "ab")
    for number in range(3):
        feed.put()
        rows = sp.frame(plan(), feed.frames(spark))
        run(rows, tmp_path)
        relation = relation_of(tmp_path / "out")
        assert bag(relation) == feed.meant(plan())
        assert relation.frontier == stable_of(feed)
        (stable,) = (tmp_path / "out").glob(f"*-{number:09}-stable.parquet")
        assert pq.read_table(stable).column("kind").to_pylist() == ["stable"]
    assert not list((tmp_path / "out" / "_part").glob("*-*"))
    onwards = ab.source("out", {"room": "string", "level": "int64"}).filter(ab.col("level") > 2)
    last = list(ab.run(onwards, {"out": tmp_path / "out"}, finish=False))[-1]
    assert list(last.elements())[-1] == ab.Stable(relation.frontier)


def test_a_table_has_it_and_a_frame_that_is_read_otherwise_has_no_stable(spark, tmp_path):
    feed = Feed(tmp_path, "ab")
    feed.put()
    feed.put()
    rows = sp.frame(plan(), feed.frames(spark))
    out = {"checkpoint": tmp_path / "checkpoint", "available_now": True, "format": "parquet"}
    assert sp.wait(sp.write_table(rows, tmp_path / "table", kind="elements", **out), 300)
    elements = spark.read.parquet(f"{tmp_path}/table/latest")
    assert {row.kind for row in elements.select("kind").distinct().collect()} == {"insert", "stable"}
    assert elements.where("kind = 'stable'").selectExpr("max(start)").first()[0] == stable_of(feed)
    kinds = []
    seen = rows.writeStream.foreachBatch(lambda batch, _: kinds.extend(batch.select("kind").collect()))
    query = seen.option("checkpointLocation", str(tmp_path / "other")).trigger(availableNow=True).start()
    assert sp.wait(query, 300)
    assert {row.kind for row in kinds} == {"insert"}


def test_a_merge_of_rows_that_says_only_what_is_final_is_held_too(spark, tmp_path):
    feed = Feed(tmp_path, "a")
    for _ in range(2):
        feed.put()
    rows = sp.merge(feed.frames(spark)["a"], start="at", duration=5, disorder=3, policy=ab.FinalOnly())
    run(rows, tmp_path)
    relation = relation_of(tmp_path / "out")
    meant = source("a").final()
    assert bag(relation) == feed.meant(meant)
    assert relation.frontier > ab.BEGINNING
