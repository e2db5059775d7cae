"""The clock is among the sources of every query, and nothing is different for it while it sleeps."""

import json

import pytest
from element_rows import relation_of
from engines.spark.plan_shapes import PLANS, Feed, bag, run, source

from anabranch import spark as sp
from anabranch.engines.spark.clock import ClockReader
from anabranch.engines.spark.query.begun_with import FILE, BegunWith, keep_begun_with
from anabranch.engines.spark.query.checkpoint import CheckpointError

ASLEEP = {"now": 0}


def offsets(folder, batch):
    """Where every source was at the end of a micro-batch."""
    _, _, *lines = (folder / "checkpoint" / "offsets" / str(batch)).read_text().splitlines()
    return [json.loads(line) for line in lines]


def test_it_stays_where_it_is():
    reader = ClockReader()
    begun = reader.initialOffset()
    assert begun == ASLEEP
    reader.prepareForTriggerAvailableNow()
    assert reader.latestOffset(begun, reader.getDefaultReadLimit()) == begun
    assert reader.partitions(begun, begun) == []
    later = {"now": 1_700_000_000_000_000}
    assert reader.latestOffset(later, reader.getDefaultReadLimit()) == later


def test_it_is_in_the_first_offset_and_makes_no_micro_batch(spark, tmp_path):
    """What is available now is read file by file, the query ends by itself, and again after a restart."""
    make, sources = PLANS["several levels"]
    feed = Feed(tmp_path, sources)
    feed.put()
    feed.put()
    run(sp.frame(make(), feed.frames(spark)), tmp_path)
    assert len(list(tmp_path.glob("checkpoint/offsets/[0-9]*"))) == 2
    first, second = (offsets(tmp_path, batch) for batch in (0, 1))
    assert len(first) == len(sources) + 1
    assert [one for one in (*first, *second) if "now" in one] == [ASLEEP, ASLEEP]
    run(sp.frame(make(), feed.frames(spark)), tmp_path)
    assert len(list(tmp_path.glob("checkpoint/offsets/[0-9]*"))) == 2
    feed.put()
    run(sp.frame(make(), feed.frames(spark)), tmp_path)
    assert len(list(tmp_path.glob("checkpoint/offsets/[0-9]*"))) == 3
    assert bag(relation_of(tmp_path / "out")) == feed.meant(make())


def test_a_query_that_goes_on_makes_no_micro_batch_in_silence(spark, tmp_path):
    feed = Feed(tmp_path, "a")
    feed.put()
    rows = sp.frame(source("a").lasting(3), {"a": sp.folder(spark, tmp_path / "a")})
    query = sp.write_folder(rows, tmp_path / "out", checkpoint=tmp_path / "checkpoint")
    try:
        query.processAllAvailable()
        feed.put()
        query.processAllAvailable()
        batches = [one["batchId"] for one in query.recentProgress if one["numInputRows"]]
        assert batches == [0, 1]
        assert sp.status(query).batch == 1
        assert sp.status(query).unread == {}
        assert query.lastProgress["batchId"] <= 2
    finally:
        query.stop()
    assert not (tmp_path / "checkpoint" / "offsets" / "2").exists()


def test_frames_that_are_what_they_are_have_no_clock(spark, tmp_path):
    feed = Feed(tmp_path, "a", parts=1)
    feed.put()
    rows = spark.read.parquet(str(tmp_path / "a"))
    plan = source("a").lasting(3)
    found = sp.frame(plan, {"a": rows})
    assert not found.isStreaming
    assert found.where("kind = 'insert'").count() == 20
    merged = sp.merge(rows, start="at", duration=3, disorder=3)
    assert not merged.isStreaming
    assert merged.where("kind = 'insert'").count() == 20


def test_a_checkpoint_that_was_begun_without_it_is_named(spark, tmp_path):
    """As an older anabranch left it: the settings say nothing of a clock, and no offset is one's."""
    feed = Feed(tmp_path, "a")
    feed.put()

    def query():
        run(sp.merge(feed.frames(spark)["a"], start="at", duration=3, disorder=3), tmp_path)

    query()
    checkpoint = tmp_path / "checkpoint"
    (checkpoint / "anabranch-seal").unlink()
    note = checkpoint / "offsets" / "0"
    note.write_text("\n".join(note.read_text().splitlines()[:-1]))
    (checkpoint / "offsets" / ".0.crc").unlink()
    settings = json.loads((checkpoint / FILE).read_text().splitlines()[0])
    (checkpoint / FILE).unlink()
    feed.put()
    with pytest.raises(CheckpointError, match="a clock among its sources, and its checkpoint was begun by"):
        query()
    old = BegunWith(settings["sink"], settings["merge"], settings["shards"])
    keep_begun_with(checkpoint, old)
    with pytest.raises(
        CheckpointError, match=f"a clock among its sources, and {checkpoint} was begun by"
    ) as it:
        query()
    assert "goes on from it" in it.value.__notes__[0]
