"""Frames that are given by the names of their replicas are merged as one that says whose each row is."""

import pytest

from anabranch import spark as ab
from anabranch.engines.spark.replica_frames import in_one_frame

COLUMNS = "at long, v string"


@pytest.fixture
def frames(spark):
    return {
        "east": spark.createDataFrame([(1, "x"), (2, "y")], COLUMNS),
        "west": spark.createDataFrame([("y", 2), ("z", 3)], "v string, at long"),
    }


def test_they_are_merged_by_name(frames):
    merged = ab.merge(frames, start="at", lossy=True).where("kind = 'insert'")
    assert sorted(row.v for row in merged.collect()) == ["x", "y", "z"]


def test_so_are_changes(frames):
    merged = ab.merge_changes(
        frames, key="v", time="at", op="v", ops=dict.fromkeys("xyz", "upsert"), payload="v"
    )
    assert merged.columns[:4] == ["kind", "start", "end", "old_end"]


def test_they_are_awaited_unless_others_are_named(frames):
    together, column, awaited = in_one_frame(frames, None, ())
    assert (column, awaited) == ("replica", ("east", "west"))
    assert {row.replica for row in together.collect()} == {"east", "west"}
    assert in_one_frame(frames, "who", ["east"])[1:] == ("who", ["east"])


def test_whether_they_may_lose_rows_is_asked(frames):
    with pytest.raises(ValueError, match="none of them vouches"):
        ab.merge(frames, start="at")


def test_what_cannot_be_one_frame_is_refused_with_the_way_out(spark, frames, tmp_path):
    (tmp_path / "east").mkdir()
    door = ab.folder(spark, tmp_path, schema=COLUMNS)
    with pytest.raises(TypeError, match="'west' is Folder") as caught:
        ab.merge({"east": frames["east"], "west": door}, start="at", lossy=True)
    assert "give it alone" in caught.value.__notes__[0]
    with pytest.raises(ValueError, match="'east' has one of that name"):
        ab.merge(frames, start="at", replica="v", lossy=True)
    with pytest.raises(ValueError, match="none is given"):
        ab.merge({}, start="at", lossy=True)
