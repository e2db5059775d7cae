"""A folder of files as a source: which files make a micro-batch, how they are cut, and what is in them."""

import json
import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from connectors.folder_reader import everything, reader
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxFiles, ReadMaxRows
from pyspark.sql.types import StructType

from anabranch.connectors.files.local_path import local_path
from anabranch.connectors.folder.columns import folder_columns
from anabranch.connectors.folder.source import Folder, listed
from anabranch.engines.spark.query.failure import WorkerError, failure
from anabranch.engines.spark.transport import parcel
from anabranch.model.schema import SchemaError
from anabranch.rows import refusal


def put(place, replica, name, values, *, group=1000):
    (place / replica).mkdir(parents=True, exist_ok=True)
    table = pa.table({"v": values, "at": [10 * value for value in values]})
    pq.write_table(table, place / replica / name, row_group_size=group)


def said(source, start, end):
    """What the tasks of a micro-batch read: (replica, values) of each stretch, and what they refuse."""
    spoken, refused = [], []
    for task in source.partitions(start, end):
        for rows in source.read(task):
            body, no = rows.column(1)[0], rows.column(2)[0]
            if no.is_valid:
                refused += refusal.from_bytes(no.as_py())
                continue
            if not body.is_valid:
                continue
            one = parcel.from_bytes(body.as_py())
            for n, stretch in enumerate(one.stretches):
                mine = (one.stretch == n) & (one.kind == 0)
                payload = one.batch(mine.nonzero()[0]).payload.column("v").to_pylist()
                spoken.append((stretch.replica, stretch.sequence, payload))
    return sorted(spoken), refused


def test_files_of_each_replica_are_read_in_the_order_of_their_names(tmp_path):
    put(tmp_path, "east", "2.parquet", [3, 4])
    put(tmp_path, "east", "1.parquet", [1, 2])
    put(tmp_path, "replica=west", "1.parquet", [1])
    put(tmp_path, "east", "_part.parquet", [9])
    put(tmp_path, "east", ".hidden.parquet", [9])
    assert list(listed(tmp_path)) == ["east", "west"]
    source = reader(tmp_path)
    start, end = everything(source)
    spoken, refused = said(source, start, end)
    assert [(who, values) for who, _, values in spoken] == [("east", [1, 2]), ("east", [3, 4]), ("west", [1])]
    assert not refused


def test_a_limit_is_kept_and_one_file_of_each_replica_is_always_read(tmp_path):
    for name in ("east", "west"):
        for number in range(4):
            put(tmp_path, name, f"{number}.parquet", [number] * 10)
    assert len(everything(reader(tmp_path, files_per_trigger=3))) == 1 + 4
    assert len(everything(reader(tmp_path, files_per_trigger=4))) == 1 + 2
    assert len(everything(reader(tmp_path, rows_per_trigger=20))) == 1 + 4
    assert len(everything(reader(tmp_path, rows_per_trigger=1))) == 1 + 4
    assert len(everything(reader(tmp_path, bytes_per_trigger=1))) == 1 + 4
    assert len(everything(reader(tmp_path))) == 1 + 1
    assert len(everything(reader(tmp_path, files_per_trigger=1), ReadAllAvailable())) == 1 + 1
    assert len(everything(reader(tmp_path), ReadMaxFiles(2))) == 1 + 4
    assert len(everything(reader(tmp_path), ReadMaxRows(20))) == 1 + 4


def test_replicas_advance_together(tmp_path):
    for name in ("east", "west"):
        for number in range(3):
            put(tmp_path, name, f"{number}.parquet", [number])
    for limit in (1, 2):
        first = everything(reader(tmp_path, files_per_trigger=limit))[1]
        assert {name: place["files"] for name, place in first.items()} == {"east": 1, "west": 1}


def test_what_comes_after_the_start_of_a_run_over_what_is_there_waits_for_the_next(tmp_path):
    put(tmp_path, "east", "1.parquet", [1])
    source = reader(tmp_path, files_per_trigger=1)
    source.prepareForTriggerAvailableNow()
    put(tmp_path, "east", "2.parquet", [2])
    put(tmp_path, "north", "1.parquet", [2])
    assert len(everything(source)) == 1 + 1
    assert len(everything(reader(tmp_path, files_per_trigger=1))) == 1 + 2


def test_a_file_that_appears_behind_what_was_read_is_named(tmp_path):
    put(tmp_path, "east", "2.parquet", [1])
    source = reader(tmp_path)
    end = everything(source)[-1]
    put(tmp_path, "east", "1.parquet", [2])
    with pytest.raises(
        WorkerError, match=r"files up to '2.parquet' were read, and 1.parquet came or changed"
    ):
        source.latestOffset(end, ReadAllAvailable())


def test_a_late_file_is_named_though_an_older_one_has_been_removed(tmp_path):
    put(tmp_path, "east", "1.parquet", [1])
    put(tmp_path, "east", "3.parquet", [3])
    source = reader(tmp_path)
    end = everything(source)[-1]
    (tmp_path / "east" / "1.parquet").unlink()
    assert source.latestOffset(end, ReadAllAvailable()) == end
    put(tmp_path, "east", "2.parquet", [2])
    with pytest.raises(WorkerError, match=r"and 2\.parquet came or changed since"):
        source.latestOffset(end, ReadAllAvailable())


def test_a_file_that_is_gone_before_it_was_read_stops_the_query(tmp_path):
    put(tmp_path, "east", "1.parquet", [1])
    put(tmp_path, "east", "2.parquet", [1])
    source = reader(tmp_path)
    start, end = everything(source)
    (tmp_path / "east" / "1.parquet").unlink()
    with pytest.raises(WorkerError, match=r"2 files of east .* are to be read, and 1 are there") as told:
        source.partitions(start, end)
    assert isinstance(failure(told.value), FileNotFoundError)


@pytest.mark.parametrize("name", ["1.parquet", "1.arrow"])
@pytest.mark.parametrize("rest", [0, 60, 300])
def test_a_file_that_is_cut_short_is_named(tmp_path, name, rest):
    put(tmp_path, "east", "1.parquet", [1])
    whole = (tmp_path / "east" / "1.parquet").read_bytes()
    (tmp_path / "east" / "1.parquet").unlink()
    (tmp_path / "east" / name).write_bytes(whole[:rest])
    os.utime(tmp_path / "east" / name, (1, 1))
    source = reader(tmp_path, tasks=2)
    with pytest.raises(WorkerError, match=f"east/{name} cannot be read"):
        said(source, *everything(source))


@pytest.mark.parametrize("path", ["s3://bucket/feeds", "hdfs://host/feeds", "file://host/feeds"])
def test_an_address_is_no_folder(path):
    with pytest.raises(ValueError, match="on a file system"):
        local_path(path)


def test_a_file_address_is_a_path(tmp_path):
    assert local_path(f"file://{tmp_path}/a%20b") == tmp_path / "a b"


def test_a_large_file_is_cut_for_several_tasks_and_keeps_its_order(tmp_path):
    put(tmp_path, "east", "1.parquet", list(range(500)), group=100)
    put(tmp_path, "west", "1.parquet", list(range(500)), group=100)
    source = reader(tmp_path, tasks=4)
    start, end = everything(source)
    assert len(source.partitions(start, end)) == 4
    spoken, _ = said(source, start, end)
    for name in ("east", "west"):
        assert [v for who, _, values in spoken if who == name for v in values] == list(range(500))


def test_arrow_files_of_both_forms_are_read(tmp_path):
    rows = pa.table({"v": [1, 2], "at": [10, 20]})
    (tmp_path / "east").mkdir()
    with pa.ipc.new_file(tmp_path / "east" / "1.arrow", rows.schema) as writer:
        writer.write_table(rows)
    with pa.ipc.new_stream(tmp_path / "east" / "2.arrows", rows.schema) as writer:
        writer.write_table(rows)
    source = reader(tmp_path)
    spoken, _ = said(source, *everything(source))
    assert [values for _, _, values in spoken] == [[1, 2], [1, 2]]


def test_lines_that_do_not_fit_are_refused_with_their_place_and_the_others_are_read(tmp_path):
    lines = [
        '{"v": 1, "at": 10}',
        "not json",
        "",
        '{"v": "x", "at": 20}',
        '{"v": 3, "at": 30, "more": 1}',
        "[1]",
    ]
    (tmp_path / "east").mkdir()
    file = tmp_path / "east" / "1.jsonl"
    file.write_text("\n".join(lines))
    source = reader(tmp_path)
    spoken, refused = said(source, *everything(source))
    assert [values for _, _, values in spoken] == [[1, 3]]
    assert [(one.place, one.raw) for one in refused] == [
        (f"{file}:2", "not json"),
        (f"{file}:4", lines[3]),
        (f"{file}:6", "[1]"),
    ]
    assert {(one.rule, one.replica) for one in refused} == {("malformed", "east")}


def test_good_lines_are_read_all_at_once(tmp_path):
    (tmp_path / "east").mkdir()
    rows = [json.dumps({"v": n, "at": n}) for n in range(1000)]
    (tmp_path / "east" / "1.ndjson").write_text("\n".join(rows) + "\n")
    source = reader(tmp_path)
    spoken, refused = said(source, *everything(source))
    assert [v for _, _, values in spoken for v in values] == list(range(1000))
    assert not refused


def test_a_file_without_a_column_stops_the_query_and_is_named(tmp_path):
    (tmp_path / "east").mkdir()
    pq.write_table(pa.table({"v": [1]}), tmp_path / "east" / "1.parquet")
    source = reader(tmp_path)
    with pytest.raises(WorkerError) as caught:
        said(source, *everything(source))
    error = failure(caught.value)
    assert isinstance(error, SchemaError)
    assert "1.parquet has no column 'at'" in str(error)


def test_an_empty_folder_knows_no_replica_by_name(tmp_path):
    (tmp_path / "feeds").mkdir()
    columns = StructType().add("at", "long")
    found = folder_columns(tmp_path / "feeds", columns, True, None, from_arrow_schema)
    assert (
        found.replicas == Folder(None, str(found.place), found.schema, {}, adds_replica=True).replicas == ()
    )
    (tmp_path / "feeds" / "east").mkdir()
    assert Folder(None, str(found.place), found.schema, {}, adds_replica=True).replicas == ("east",)
