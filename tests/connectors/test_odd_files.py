"""Files that are pipes, links or half something else, and streams that change on the way."""

import os
import threading
from dataclasses import replace
from decimal import Decimal

import pyarrow as pa
import pytest

from anabranch import Insert, Stable, Tagged, read, write
from anabranch.connectors.files import reading
from anabranch.connectors.files.reading import Source
from anabranch.connectors.files.writing import Target, objects
from anabranch.model.batch import Batch
from anabranch.model.json_lines import UnwritableError
from anabranch.model.schema import SchemaError
from anabranch.model.validity import Quarantine

ROW = Insert({"a": 1}, 0, 1)


def elements_of(path) -> list:
    return [element for batch in read(str(path)) for element in objects(batch)]


def test_a_pipe_is_written_to_and_stays_a_pipe(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    heard = []
    reader = threading.Thread(target=lambda: heard.append(pipe.read_bytes()))
    reader.start()
    write(str(pipe), [ROW], format="jsonl")
    reader.join()
    assert heard == [b'{"kind":"insert","start":0,"end":1,"payload":{"a":1}}\n']
    assert pipe.is_fifo()


def test_a_link_stays_a_link_and_permissions_stay_as_they_were(tmp_path):
    target, link = tmp_path / "target.jsonl", tmp_path / "link.jsonl"
    target.write_text("old")
    target.chmod(0o600)
    link.symlink_to(target)
    write(str(link), [ROW])
    assert link.is_symlink()
    assert elements_of(target) == [ROW]
    assert target.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_a_reserved_column_that_appears_late_does_not_change_what_came_before(tmp_path, ending):
    path = tmp_path / f"late.{ending}"
    rows = [ROW, Insert({"start": 7, "payload": {"x": 1}}, 0, 1), Stable(1)]
    write(str(path), [Batch.of([row]) for row in rows])
    assert elements_of(path) == rows


@pytest.mark.parametrize(("first", "then"), [("x", b"x"), (1.5, Decimal("1.5")), (["x"], [b"x"])], ids=str)
def test_values_are_refused_rather_than_changed(tmp_path, first, then):
    path = tmp_path / "changed.parquet"
    with pytest.raises(SchemaError):
        write(str(path), [Batch.of([Insert({"v": value}, 0, 1)]) for value in (first, then)])
    assert list(tmp_path.iterdir()) == []


def test_tagged_and_untagged_elements_do_not_mix_across_batches(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "ROWS", 2)
    path = tmp_path / "mixed.txt"
    path.write_text("e: | 1\ne: | 2\n| 3\n")
    with pytest.raises(SchemaError, match="either every element"):
        list(read(str(path)))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"dialect": "foo"}, "change-rows"),
        ({"format": "foo"}, "parquet"),
        ({"format": "parquet", "dialect": "cedr"}, "JSON lines"),
    ],
    ids=str,
)
def test_names_and_pairings_that_are_unknown_are_refused(tmp_path, options, words):
    with pytest.raises(ValueError, match=words):
        write(str(tmp_path / "out.jsonl"), [ROW], **options)
    with pytest.raises(ValueError, match=words):
        read(str(tmp_path / "out.jsonl"), **options)


def test_a_dialect_writes_one_stream_of_json_values(tmp_path):
    path = str(tmp_path / "out.jsonl")
    with pytest.raises(ValueError, match="one stream"):
        write(path, [Tagged("e", ROW)], dialect="cedr")
    with pytest.raises(UnwritableError):
        write(path, [Insert({"v": float("nan")}, 0, 1)], dialect="cedr")


def test_an_empty_batch_at_the_end_is_no_mix(tmp_path):
    path = tmp_path / "tagged.parquet"
    write(str(path), [Batch.of([Tagged("e", ROW)]), Batch.of([])])
    assert elements_of(path) == [Tagged("e", ROW)]
    with pytest.raises(SchemaError, match="names its input"):
        write(str(path), [Batch.of([Tagged("e", ROW)]), Batch.of([ROW])])


def test_lines_do_not_make_lists_of_maps(tmp_path):
    maps = pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64()))
    batch = replace(Batch.of([Insert({}, 0, 1)]), payload=pa.RecordBatch.from_arrays([maps], names=["m"]))
    with pytest.raises(SchemaError, match="'m'"):
        write(str(tmp_path / "maps.jsonl"), [batch])
    write(str(tmp_path / "maps.parquet"), [batch])
    (read_back,) = read(str(tmp_path / "maps.parquet"))
    assert read_back.payload.equals(batch.payload)


def test_brackets_in_text_are_text(tmp_path):
    path = tmp_path / "brackets.jsonl"
    rows = [Insert({"v": "[" * 900}, 0, 1)]
    write(str(path), rows)
    assert elements_of(path) == rows


def test_what_is_no_element_is_named():
    with pytest.raises(TypeError, match="'x' is none"):
        Batch.of(["x"])


def test_a_byte_order_mark_says_nothing(tmp_path):
    (tmp_path / "alone.txt").write_bytes(b"\xef\xbb\xbf")
    assert elements_of(tmp_path / "alone.txt") == []
    path = tmp_path / "marked.txt"
    path.write_bytes(b"\xef\xbb\xbf+ a [1, 2)\n")
    assert elements_of(path) == [Insert({"value": "a"}, 1, 2)]


def test_nesting_that_is_too_deep_is_malformed(tmp_path):
    path = tmp_path / "deep.jsonl"
    deep = "[" * 900 + "]" * 900
    path.write_text(
        '{"kind":"insert","start":1,"end":2,"payload":{"v":' + deep + '}}\n{"kind":"stable","time":1}\n'
    )
    aside = Quarantine()
    assert sum(map(len, Source.named(str(path)).batches(policy=aside))) == 1
    assert "nested" in aside.violations[0].message


def test_what_arrow_cannot_write_is_named_with_the_file(tmp_path):
    path = tmp_path / "struct.parquet"
    with pytest.raises(ValueError, match=r"struct\.parquet cannot be written"):
        Target.named(str(path)).write([Batch.of([Insert({"s": {}}, 0, 1)])])
    assert list(tmp_path.iterdir()) == []
