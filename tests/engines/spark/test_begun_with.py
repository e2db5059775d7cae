"""Settings that a checkpoint fixes are compared before a query goes on, with or without rows to read."""

import json

import pytest

from anabranch import FinalOnly
from anabranch import spark as ab
from anabranch.engines.settings import GAINS
from anabranch.engines.spark.query.begun_with import (
    FILE,
    BegunWith,
    check_begun_with,
    folder_sink,
    keep_begun_with,
    table_sink,
    topic_sink,
)
from anabranch.engines.spark.query.checkpoint import CheckpointError
from anabranch.kernels.store.saved import StateFormatError

HISTORY = table_sink("history", "delta", (), open_only=False, final=False)
CURRENT = table_sink("current", "delta", ["id"], open_only=False, final=False)
TOPIC = topic_sink("merged", "json", None)


def begin(checkpoint, settings):
    """A checkpoint whose first micro-batch was begun with these settings."""
    checkpoint.mkdir(exist_ok=True)
    keep_begun_with(checkpoint, settings)
    (checkpoint / "offsets").mkdir()
    (checkpoint / "offsets" / "0").touch()


@pytest.mark.parametrize(
    ("before", "now", "words"),
    [
        (
            folder_sink("jsonl"),
            folder_sink("parquet"),
            "is format jsonl, and this query would write format p",
        ),
        (folder_sink("jsonl"), HISTORY, "is a folder, and this query would write a table"),
        (HISTORY, TOPIC, "is a table, and this query would write a topic"),
        (HISTORY, CURRENT, "is kind history, and this query would write kind current"),
        (CURRENT, CURRENT | {"key": "id, name"}, "is key id, and this query would write key id, name"),
        (CURRENT, CURRENT | {"open_only": "true"}, "is open_only false, and"),
        (HISTORY, HISTORY | {"format": "parquet"}, "is format delta, and"),
        (TOPIC, topic_sink("other", "json", None), "is topic merged, and this query would write topic other"),
        (TOPIC, topic_sink("merged", "arrow", None), "is values json, and"),
        (TOPIC, topic_sink("merged", "json", "id"), "is key none, and this query would write key id"),
    ],
)
def test_what_is_written_stays_what_it_was(tmp_path, before, now, words):
    begin(tmp_path / "c", BegunWith(before))
    check_begun_with(tmp_path / "c", BegunWith(before))
    with pytest.raises(CheckpointError, match=words) as caught:
        check_begun_with(tmp_path / "c", BegunWith(now))
    assert "Go on with" in caught.value.__notes__[0]


def test_what_the_state_depends_on_stays_and_columns_may_be_added(tmp_path):
    before, more = {"lossy": "False", "duration": "60", GAINS: "true"}, {"payload column 'b'": "text"}
    begin(tmp_path / "c", BegunWith(TOPIC, before, 2))
    check_begun_with(tmp_path / "c", BegunWith(TOPIC, before | more, 2))
    with pytest.raises(StateFormatError, match="was begun with lossy False, this query has True"):
        check_begun_with(tmp_path / "c", BegunWith(TOPIC, before | {"lossy": "True"}, 2))
    with pytest.raises(StateFormatError, match="was begun with no key, this query has key a"):
        check_begun_with(tmp_path / "c", BegunWith(TOPIC, before | {"key": "a"}, 2))
    with pytest.raises(CheckpointError, match="was begun with 2 shards, and this query has 3") as caught:
        check_begun_with(tmp_path / "c", BegunWith(TOPIC, before, 3))
    assert caught.value.__notes__ == ["Pass shards=2, or begin a new checkpoint."]


def test_a_plan_that_keeps_more_than_a_merge_gains_no_columns(tmp_path):
    begin(tmp_path / "c", BegunWith(TOPIC, {"lossy": "False"}))
    with pytest.raises(StateFormatError, match="was begun with no payload column 'b', this query has"):
        check_begun_with(tmp_path / "c", BegunWith(TOPIC, {"lossy": "False", "payload column 'b'": "text"}))


def test_settings_are_free_until_a_micro_batch_has_begun(tmp_path):
    keep_begun_with(tmp_path, BegunWith(folder_sink("jsonl")))
    keep_begun_with(tmp_path, BegunWith(folder_sink("parquet")))
    (tmp_path / "offsets").mkdir()
    (tmp_path / "offsets" / "0").touch()
    with pytest.raises(CheckpointError, match="is format parquet"):
        keep_begun_with(tmp_path, BegunWith(folder_sink("jsonl")))


def test_settings_that_were_damaged_are_named_with_a_way_out(tmp_path):
    begin(tmp_path / "c", BegunWith(TOPIC))
    file = tmp_path / "c" / FILE
    file.write_bytes(file.read_bytes().replace(b"merged", b"nerged"))
    with pytest.raises(CheckpointError, match=f"{FILE} has a line and its CRC-32") as caught:
        check_begun_with(tmp_path / "c", BegunWith(TOPIC))
    assert "remove it" in caught.value.__notes__[0]
    file.unlink()
    check_begun_with(tmp_path / "c", BegunWith(TOPIC))


def test_a_query_that_changed_is_refused_before_rows_come_and_nothing_is_made(spark, tmp_path):
    (tmp_path / "feeds").mkdir()
    rows = "".join(f"{json.dumps({'v': n, 'at': n})}\n" for n in range(9))
    (tmp_path / "feeds" / "1.jsonl").write_text(rows)

    def merged(**changed):
        feed = ab.folder(spark, tmp_path / "feeds", schema="v long, at long", by_replica=False)
        return ab.merge(feed, **{"start": "at", "duration": 5, "disorder": 1} | changed)

    out = {"checkpoint": tmp_path / "c", "available_now": True}
    with pytest.raises(ValueError, match="'10s' is none that Spark knows"):
        ab.write_folder(merged(), tmp_path / "out", checkpoint=tmp_path / "c", trigger="10s")
    with pytest.raises(ValueError, match="'10s' is none that Spark knows"):
        ab.write_table(merged(), tmp_path / "out", kind="history", checkpoint=tmp_path / "c", trigger="10s")
    assert [one.name for one in tmp_path.iterdir()] == ["feeds"]

    assert ab.wait(ab.write_folder(merged(), tmp_path / "out", format="jsonl", **out), 120)
    there = {*tmp_path.glob("out/*"), *tmp_path.glob("c/*")}
    for changed, words in (
        ({"duration": 6}, "begun with source rows: duration 5"),
        ({"lossy": True}, "begun with source rows: lossy False"),
        ({"policy": FinalOnly()}, "begun with merge: policy first, this query has final"),
        ({"identity": "v"}, "begun with source rows: identity None"),
    ):
        with pytest.raises(StateFormatError, match=words):
            ab.write_folder(merged(**changed), tmp_path / "out", format="jsonl", **out)
    with pytest.raises(CheckpointError, match="is format jsonl, and this query would write format parquet"):
        ab.write_folder(merged(), tmp_path / "out", **out)
    with pytest.raises(CheckpointError, match="is a folder, and this query would write a table"):
        ab.write_table(merged(), tmp_path / "table", kind="history", **out)
    ab.prepare(spark, shards=3)
    try:
        with pytest.raises(CheckpointError, match="begun with 2 shards, and this query has 3"):
            ab.write_folder(merged(), tmp_path / "out", format="jsonl", **out)
    finally:
        ab.prepare(spark, shards=2)
    (tmp_path / "c" / FILE).unlink()
    with pytest.raises(FileExistsError, match=r"0000.jsonl, and this query would write parquet beside it"):
        ab.write_folder(merged(), tmp_path / "out", **out)
    assert {*tmp_path.glob("out/*"), *tmp_path.glob("c/*")} == there - {tmp_path / "c" / FILE}
    assert not (tmp_path / "table").exists()
