"""What a query survives: another process at its checkpoint, full disks, files that change, large values."""

import json
import os
import shutil
import subprocess
import sys
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from connectors.folder_reader import everything, reader
from element_rows import ELEMENTS, put, relation_of
from survival.small_disk import grown, small_disk

from anabranch import Insert, Stable
from anabranch import spark as ab
from anabranch.engines.spark.query.checkpoint import CheckpointError
from anabranch.engines.spark.query.failure import WorkerError, failure
from anabranch.engines.spark.query.lock import held
from anabranch.engines.spark.transport import parcel
from anabranch.model.schema import SchemaError
from anabranch.rows import refusal

SECOND = """
import sys
from anabranch import spark as ab

folder, columns = sys.argv[1], ("kind", "start", "end", "old_end", "replica")
rows = ab.folder(ab.session("local[2]", shards=2), f"{folder}/in")
merged = ab.merge(rows, **{name: name for name in columns}, case="R3")
ab.wait(ab.write_folder(merged, f"{folder}/out", checkpoint=f"{folder}/checkpoint", available_now=True))
"""
HOLDER = """
import sys
from pathlib import Path
from anabranch.engines.spark.query.lock import held
hold = held(Path(sys.argv[1]))
print("held", flush=True)
sys.stdin.read()
"""


def merged(spark, folder):
    return ab.merge(ab.folder(spark, folder / "in"), **ELEMENTS, case="R3")


def run(spark, folder):
    query = ab.write_folder(
        merged(spark, folder), folder / "out", checkpoint=folder / "checkpoint", available_now=True
    )
    ab.wait(query)


class TestAnotherProcess:
    """A checkpoint is of one query at a time."""

    @pytest.fixture
    def other(self, tmp_path):
        """A process that has the checkpoint, as one that runs a query has it."""
        command = [sys.executable, "-c", HOLDER, str(tmp_path / "checkpoint")]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        with subprocess.Popen(command, **pipes) as process:
            assert process.stdout.readline() == "held\n"
            yield process
            process.kill()

    def test_a_second_process_is_refused_and_goes_on_when_the_first_is_killed(self, spark, tmp_path, other):
        put(tmp_path / "in", "a", 0, [Insert({"value": "x"}, 1, 5), Stable(9)])
        with pytest.raises(CheckpointError, match=f"process {other.pid} on .* goes on from") as caught:
            run(spark, tmp_path)
        assert "Stop that query first" in caught.value.__notes__[0]
        assert not list((tmp_path / "out").glob("*.parquet"))
        other.kill()
        other.wait()
        run(spark, tmp_path)
        assert [event.payload["value"] for event in relation_of(tmp_path / "out").events()] == ["x"]

    def test_a_query_that_runs_has_its_checkpoint_and_lets_go_when_it_ends(self, spark, tmp_path):
        put(tmp_path / "in", "a", 0, [Insert({"value": "x"}, 1, 5), Stable(9)])
        place = {"checkpoint": tmp_path / "checkpoint"}
        query = ab.write_folder(merged(spark, tmp_path), tmp_path / "out", **place)
        with pytest.raises(CheckpointError, match="this process goes on from"):
            ab.write_folder(merged(spark, tmp_path), tmp_path / "out", **place)
        command = [sys.executable, "-c", HOLDER, str(tmp_path / "checkpoint")]
        refused = subprocess.run(command, capture_output=True, text=True, check=False)
        assert f"process {os.getpid()} on" in refused.stderr
        query.stop()
        held(tmp_path / "checkpoint").release()

    @pytest.mark.slow
    def test_of_two_programs_one_goes_on_and_nothing_is_doubled(self, spark, tmp_path):
        put(tmp_path / "in", "a", 0, [Insert({"value": "x"}, 1, 5), Stable(9)])
        first = ab.write_folder(merged(spark, tmp_path), tmp_path / "out", checkpoint=tmp_path / "checkpoint")
        command = [sys.executable, "-c", SECOND, str(tmp_path)]
        second = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        assert second.returncode
        assert "a checkpoint is of one query at a time" in second.stderr
        put(tmp_path / "in", "a", 1, [Insert({"value": "y"}, 10, 15), Stable(19)])
        first.processAllAvailable()
        first.stop()
        assert [e.payload["value"] for e in relation_of(tmp_path / "out").events()] == ["x", "y"]


class TestFullDisks:
    """A full disk stops a query with an error that says so; with more room it goes on as if nothing was."""

    @pytest.mark.parametrize("part", [pytest.param("out", marks=pytest.mark.slow), "checkpoint"])
    def test_with_more_room_the_query_goes_on_and_nothing_is_lost_or_doubled(self, spark, tmp_path, part):
        wide = "".join(Random(1).choices("0123456789abcdef", k=2 << 20))
        for name in ("a", "b"):
            put(tmp_path / "in", name, 0, [Insert({"value": "x"}, 1, 5), Stable(9)])
            put(tmp_path / "in", name, 1, [Insert({"value": wide}, 10, 200), Stable(30)])
        with small_disk(tmp_path / part, 500):
            with pytest.raises(OSError, match=r"full|No space left|did not take|written to") as caught:
                run(spark, tmp_path)
            assert "start the query again: it goes on" in caught.value.__notes__[-1]
            grown(tmp_path / part, 30_000)
            run(spark, tmp_path)
            assert [(e.start, e.payload["value"]) for e in relation_of(tmp_path / "out").events()] == [
                (1, "x"),
                (10, wide),
            ]
            tables = [pq.read_table(file) for file in (tmp_path / "out").glob("*.parquet")]
            assert [table.column("kind").to_pylist().count("insert") for table in tables].count(1) == 2


def said(source, start, end):
    """The values that the tasks of a micro-batch read, and why they refuse others."""
    values, refused = [], []
    for task in source.partitions(start, end):
        for rows in source.read(task):
            body, no = rows.column(1)[0], rows.column(2)[0]
            if no.is_valid:
                refused += [one.reason for one in refusal.from_bytes(no.as_py())]
            elif body.is_valid:
                values += parcel.from_bytes(body.as_py()).payload.column("v").to_pylist()
    return sorted(values, key=str), refused


def write(file, *rows):
    file.parent.mkdir(parents=True, exist_ok=True)
    if file.suffix == ".jsonl":
        file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    else:
        pq.write_table(pa.Table.from_pylist(list(rows)), file)
    return file


class TestFilesThatChange:
    """Files appear whole and stay as they are; one that does not is named."""

    @pytest.mark.parametrize("name", ["1.parquet", "1.jsonl"])
    def test_a_file_that_is_overwritten_between_listing_and_reading_is_named(self, tmp_path, name):
        file = write(tmp_path / "east" / name, {"v": 1, "at": 10})
        source = reader(tmp_path)
        start, end = everything(source)
        tasks = source.partitions(start, end)
        write(file, {"v": 2, "at": 10})
        os.utime(file, (2_000_000_000, 2_000_000_000))
        with pytest.raises(WorkerError) as caught:
            list(source.read(tasks[0]))
        error = failure(caught.value)
        assert f"{file} cannot be read: it was written to after it was chosen" in str(error)
        assert "Files appear whole" in error.__notes__[0]
        with pytest.raises(WorkerError, match="was written to after it was chosen to be read"):
            source.partitions(start, end)

    @pytest.mark.parametrize("name", ["1.parquet", "1.jsonl"])
    def test_a_file_that_is_written_to_while_it_is_read_is_named(self, tmp_path, name):
        file = write(tmp_path / "east" / name, *({"v": n, "at": n} for n in range(1000)))
        source = reader(tmp_path)
        rows = source.read(source.partitions(*everything(source))[0])
        next(rows)
        os.utime(file, (2_000_000_000, 2_000_000_000))
        with pytest.raises(WorkerError, match="was written to after it was chosen"):
            list(rows)

    def test_a_file_that_is_gone_between_listing_and_reading_is_named_and_may_be_put_back(self, tmp_path):
        file = write(tmp_path / "in" / "1.parquet", {"v": 1, "at": 10, "replica": "east"})
        source = reader(tmp_path / "in")
        start, end = everything(source)
        tasks = source.partitions(start, end)
        shutil.move(file, tmp_path / "aside")
        with pytest.raises(WorkerError) as caught:
            list(source.read(tasks[0]))
        assert f"{file} cannot be read" in str(failure(caught.value))
        assert "put it back" in failure(caught.value).__notes__[0]
        shutil.move(tmp_path / "aside", file)
        assert said(source, start, end) == ([1], [])


class TestColumnsThatChange:
    """The schema of a query stays; what fits it is read, and what does not is never guessed."""

    def second(self, folder, ending, **row):
        write(folder / "east" / f"1{ending}", {"v": 1, "at": 10})
        write(folder / "east" / f"2{ending}", {"at": 20, **row})
        source = reader(folder)
        return said(source, *everything(source))

    @pytest.mark.parametrize("ending", [".parquet", ".jsonl"])
    def test_a_new_column_is_not_looked_at(self, tmp_path, ending):
        assert self.second(tmp_path, ending, v=2, more="x") == ([1, 2], [])

    def test_a_dropped_column_stops_the_query_in_parquet_and_is_null_in_json(self, tmp_path):
        with pytest.raises(WorkerError) as caught:
            self.second(tmp_path / "p", ".parquet")
        assert isinstance(failure(caught.value), SchemaError)
        assert "2.parquet has no column 'v'" in str(failure(caught.value))
        assert self.second(tmp_path / "j", ".jsonl") == ([1, None], [])

    def test_another_type_is_converted_without_loss_or_refused(self, tmp_path):
        assert self.second(tmp_path / "p", ".parquet", v=2.0) == ([1, 2], [])
        with pytest.raises(WorkerError) as caught:
            self.second(tmp_path / "q", ".parquet", v="two")
        assert "2.parquet: column 'v' cannot be int64" in str(failure(caught.value))
        values, [reason] = self.second(tmp_path / "j", ".jsonl", v="two")
        assert values == [1]
        assert reason == "column 'v' is an integer, and this row has \"two\""


def test_a_value_of_ten_megabytes_goes_through_a_folder(spark, tmp_path):
    wide = "".join(Random(1).choices("0123456789abcdef", k=10 << 20))
    for name in ("a", "b"):
        put(
            tmp_path / "in", name, 0, [Insert({"value": wide}, 1, 5), Insert({"value": "x"}, 2, 5), Stable(9)]
        )
    run(spark, tmp_path)
    assert {event.payload["value"] for event in relation_of(tmp_path / "out").events()} == {wide, "x"}
