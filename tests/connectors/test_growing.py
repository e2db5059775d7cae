"""Lines that are appended to a file are read once, in order, whenever they come; a torn one is no row."""

import json
import os
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from connectors.folder_reader import everything, reader
from connectors.test_folder import put, said
from pyspark.sql.streaming.datasource import ReadAllAvailable

from anabranch import spark as ab
from anabranch.connectors.folder import growing
from anabranch.engines.spark.query.failure import WorkerError, failure

NEVER_OLD = (4_000_000_000, 4_000_000_000)
LONG_AGO = (1, 1)


def lines(*values):
    return "".join(f"{json.dumps({'v': value, 'at': value})}\n" for value in values)


def append(file, text, times=None):
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a") as out:
        out.write(text)
    later = file.stat().st_mtime + 1 if times is None else times[0]
    os.utime(file, (later, later))
    return file


def after(source, offset):
    return source.latestOffset(offset, ReadAllAvailable())


def values(source, start, end):
    spoken, refused = said(source, start, end)
    return [value for _, _, some in sorted(spoken, key=lambda one: one[1]) for value in some], refused


def test_lines_that_are_appended_are_read_by_the_next_micro_batch_with_their_own_numbers(tmp_path):
    file = append(tmp_path / "east" / "1.jsonl", lines(1, 2))
    source = reader(tmp_path)
    first = after(source, {})
    append(file, lines(3) + "{}\n" + lines(4))
    second = after(source, first)
    assert values(source, {}, first)[0] == [1, 2]
    found, refused = values(source, first, second)
    assert found == [3, 4]
    assert [one.place for one in refused] == [f"{file}:4"]
    assert second["east"]["files"] == 1
    assert after(source, second) == second


@pytest.mark.parametrize("cut", range(1, len(lines(2))))
def test_a_torn_line_is_left_until_it_is_whole(tmp_path, cut):
    text = lines(2)
    file = append(tmp_path / "east" / "1.jsonl", lines(1) + text[:cut], NEVER_OLD)
    source = reader(tmp_path)
    first = after(source, {})
    whole = cut == len(text) - 1
    assert values(source, {}, first) == ([1, 2] if whole else [1], [])
    assert after(source, first) == first
    append(file, text[cut:] + lines(3))
    second = after(source, first)
    assert values(source, first, second) == ([3] if whole else [2, 3], [])
    assert values(source, {}, first) == ([1, 2] if whole else [1], [])


def test_a_torn_line_is_refused_when_it_is_old_or_another_file_follows(tmp_path):
    append(tmp_path / "old" / "1.jsonl", lines(1) + '{"v": 2, "a', LONG_AGO)
    append(tmp_path / "passed" / "1.jsonl", lines(1) + '{"v": 2, "a', NEVER_OLD)
    append(tmp_path / "passed" / "2.jsonl", lines(3), NEVER_OLD)
    source = reader(tmp_path)
    found, refused = values(source, {}, after(source, {}))
    assert sorted(found) == [1, 1, 3]
    assert sorted(one.place for one in refused) == [
        str(tmp_path / name / "1.jsonl:2") for name in ("old", "passed")
    ]


def test_a_micro_batch_that_runs_again_reads_what_it_read_though_its_file_has_grown(tmp_path):
    file = append(tmp_path / "east" / "1.jsonl", lines(1, 2))
    first = after(reader(tmp_path), {})
    append(file, lines(3))
    append(tmp_path / "east" / "2.jsonl", lines(4))
    again = reader(tmp_path)
    assert values(again, {}, first)[0] == [1, 2]
    second = after(again, first)
    assert values(again, first, second)[0] == [3, 4]
    append(tmp_path / "east" / "2.jsonl", lines(5))
    assert values(reader(tmp_path), first, second)[0] == [3, 4]
    assert values(again, second, after(again, second))[0] == [5]


def test_a_file_may_grow_while_a_task_reads_it(tmp_path):
    file = append(tmp_path / "east" / "1.jsonl", lines(1))
    source = reader(tmp_path)
    end = after(source, {})
    (task,) = source.partitions({}, end)
    append(file, lines(2))
    assert len(list(source.read(task))) > 0
    assert values(source, end, after(source, end))[0] == [2]


def test_however_a_writer_appends_each_line_is_read_once(tmp_path):
    draw = random.Random(7)
    for round_ in range(20):
        place = tmp_path / str(round_)
        source, offset, read = reader(place), {}, []
        texts = [lines(*range(n, n + draw.randrange(4))) for n in range(0, 40, 4)]
        wanted = [json.loads(line)["v"] for text in texts for line in text.splitlines()]
        name, number = None, 0
        (place / "east").mkdir(parents=True)
        for text in texts:
            if name is None or draw.random() < 0.3:
                number += 1
                name = place / "east" / f"{number:03}.jsonl"
            cuts = sorted(draw.randrange(len(text) + 1) for _ in range(draw.randrange(3)))
            for begin, end in zip([0, *cuts], [*cuts, len(text)], strict=True):
                append(name, text[begin:end], NEVER_OLD)
                if draw.random() < 0.6:
                    then = after(source, offset)
                    if draw.random() < 0.5:
                        source = reader(place)
                    if then != offset:
                        found, refused = values(source, offset, then)
                        assert not refused
                        read += found
                    offset = then
        then = after(source, offset)
        read += values(source, offset, then)[0] if then != offset else []
        assert read == wanted


def test_a_run_over_what_is_there_reads_no_further_than_it_was(tmp_path):
    file = append(tmp_path / "east" / "1.jsonl", lines(1))
    source = reader(tmp_path)
    source.prepareForTriggerAvailableNow()
    append(file, lines(2))
    offsets = everything(source)
    assert len(offsets) == 2
    assert values(source, *offsets)[0] == [1]
    assert values(source, offsets[1], after(reader(tmp_path), offsets[1]))[0] == [2]


@pytest.mark.parametrize("text", [lines(7, 8, 9), lines(7)])
def test_a_file_that_is_written_anew_is_told_with_a_way_out_that_works(tmp_path, text):
    file = append(tmp_path / "east" / "1.jsonl", lines(1, 2))
    source = reader(tmp_path)
    end = after(source, {})
    kept = file.read_bytes()
    file.write_text(text)
    os.utime(file, NEVER_OLD)
    with pytest.raises(WorkerError) as caught:
        after(source, end)
    words = failure(caught.value)
    if len(text) > len(kept):
        assert f"first {len(kept)} bytes" in words.__notes__[0]
        file.write_bytes(kept)
        append(file, lines(3))
        assert values(source, end, after(source, end))[0] == [3]
        return
    assert "1.jsonl came or changed since" in str(words)
    file.write_bytes(kept)
    os.system(words.__notes__[1].partition("again: ")[2])
    assert after(source, end) == end


def test_a_parquet_file_without_its_end_is_waited_for(tmp_path):
    put(tmp_path, "east", "1.parquet", [1])
    file = tmp_path / "east" / "2.parquet"
    pq.write_table(pa.table({"v": [2], "at": [20]}), file)
    whole = file.read_bytes()
    file.write_bytes(whole[:-1])
    os.utime(file, NEVER_OLD)
    put(tmp_path, "east", "3.parquet", [3])
    source = reader(tmp_path)
    first = after(source, {})
    assert first["east"]["last"] == "1.parquet"
    file.write_bytes(whole)
    second = after(source, first)
    assert values(source, first, second)[0] == [2, 3]


def test_a_query_over_a_file_that_grows_has_each_row_once_also_when_a_micro_batch_runs_again(spark, tmp_path):
    file = append(tmp_path / "feeds" / "east" / "1.jsonl", lines(1, 2) + '{"v": 3,', NEVER_OLD)

    def run():
        feed = ab.folder(spark, tmp_path / "feeds", schema="v long, at long")
        merged = ab.merge(feed, start="at", replica="replica", disorder=0, lossy=False)
        out = {"checkpoint": tmp_path / "c", "format": "jsonl", "available_now": True}
        assert ab.wait(ab.write_folder(merged, tmp_path / "out", **out), 120)
        parts = [part.read_text() for part in tmp_path.glob("out/*.jsonl")]
        rows = [json.loads(line) for part in parts for line in part.splitlines()]
        return sorted(row["v"] for row in rows if row["kind"] == "insert")

    assert run() == [1, 2]
    append(file, ' "at": 3}\n' + lines(4))
    assert run() == [1, 2, 3, 4]
    for left in (tmp_path / "c" / "commits").glob("*1*"):
        left.unlink()
    append(file, lines(5))
    append(tmp_path / "feeds" / "east" / "2.jsonl", lines(6))
    assert run() == [1, 2, 3, 4, 5, 6]
    assert not (tmp_path / "out" / "_quarantine").exists()


def test_a_file_of_any_length_has_a_last_line(tmp_path):
    file = tmp_path / "1.jsonl"
    for length in (0, 1, 65_535, 65_536, 65_537, 200_000):
        file.write_bytes(lines(1).encode() + b"x" * length)
        os.utime(file, NEVER_OLD)
        assert growing.readable(file, is_last=True) == len(lines(1))
        assert growing.readable(file, is_last=False) == len(lines(1)) + length
