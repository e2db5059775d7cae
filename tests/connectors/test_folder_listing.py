"""Which files of a folder are read and whose they are; nothing that is there is passed over in silence."""

import os
import re

import pytest
from connectors.folder_reader import COLUMNS, everything, reader
from pyspark.sql.streaming.datasource import ReadAllAvailable

from anabranch import spark as ab
from anabranch.connectors.folder.listing import TEMPORARY, listing
from anabranch.connectors.folder.reading import FileRange, by_folder, reads
from anabranch.connectors.folder.source import listed
from anabranch.engines.spark.query.failure import WorkerError, failure
from anabranch.rows.layout import SINGLE, Layout

LINE = '{"v": 1, "at": 10}\n'

pytestmark = pytest.mark.usefixtures("spark")
"""Spark reads a schema that is text once a session has been started."""


def put(place, *names, text=LINE):
    for name in names:
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(text)


def test_names_of_hidden_and_temporary_files_are_passed_over(tmp_path):
    hidden = [
        ".hidden.jsonl",
        "_SUCCESS",
        "_delta/x/y.jsonl",
        ".crc/x",
        *(f"2.jsonl{end}" for end in TEMPORARY),
    ]
    put(tmp_path, "1.jsonl", *hidden, "3.jsonl.TMP")
    assert listed(tmp_path) == {SINGLE: {"1.jsonl": tmp_path / "1.jsonl"}}
    put(tmp_path / "by", "east/1.jsonl", *hidden, *(f"east/{name}" for name in hidden))
    assert listed(tmp_path / "by") == {"east": {"1.jsonl": tmp_path / "by" / "east" / "1.jsonl"}}


def test_endings_are_known_in_any_case(tmp_path):
    put(tmp_path, "1.JSONL", "2.Json")
    assert list(listed(tmp_path)[SINGLE]) == ["1.JSONL", "2.Json"]


STRANGE = {
    "an ending that tells no format": (["1.jsonl", "2.xml"], "2.xml tells no format"),
    "no ending": (["1.jsonl", "2"], "2 tells no format"),
    "a compressed file": (["1.jsonl", "2.jsonl.gz"], "2.jsonl.gz tells no format"),
    "several such files": (["1.xml", "2.xml", "3.xml"], "1.xml (and 2 more like it) tells no format"),
    "such a file of a replica": (["east/1.jsonl", "east/2.xml"], "east/2.xml tells no format"),
    "a file beside the folders": (["east/1.jsonl", "2.jsonl"], "2.jsonl is beside the folders of replicas"),
    "another file beside them": (["east/1.jsonl", "README"], "README is beside the folders of replicas"),
    "a deeper folder": (["east/2026/1.jsonl"], "east/2026 is a folder inside the folder of a replica"),
    "two folders of one replica": (
        ["east/1.jsonl", "replica=east/2.jsonl"],
        "a second folder of replica 'east'",
    ),
    "a folder of no replica": (["replica=/1.jsonl"], "replica= names no replica"),
}


@pytest.mark.parametrize("what", STRANGE)
def test_what_has_no_place_is_named_with_the_way_out(tmp_path, what):
    names, words = STRANGE[what]
    put(tmp_path, *names)
    with pytest.raises(ValueError, match=re.escape(words)) as told:
        listing(tmp_path)
    assert str(tmp_path) in str(told.value)
    assert told.value.__notes__
    with pytest.raises(ValueError, match=re.escape(words)):
        ab.folder(None, tmp_path, schema="v long, at long")


def test_what_is_neither_file_nor_folder_is_named(tmp_path):
    os.mkfifo(tmp_path / "pipe.jsonl")
    with pytest.raises(ValueError, match=r"pipe\.jsonl is neither a file nor a folder"):
        listing(tmp_path)
    (tmp_path / "pipe.jsonl").unlink()
    (tmp_path / "gone.jsonl").symlink_to(tmp_path / "nowhere")
    with pytest.raises(ValueError, match=r"gone\.jsonl is neither a file nor a folder"):
        listing(tmp_path)


@pytest.mark.parametrize("name", ["east/2.xml", "east/deeper/2.jsonl", "2.jsonl"])
def test_what_has_no_place_and_appears_later_stops_the_query_with_its_name(tmp_path, name):
    put(tmp_path, "east/1.jsonl")
    source = reader(tmp_path)
    end = everything(source)[-1]
    put(tmp_path, "east/2.jsonl.tmp", "_SUCCESS")
    assert source.latestOffset(end, ReadAllAvailable()) == end
    put(tmp_path, name)
    with pytest.raises(WorkerError) as told:
        source.latestOffset(end, ReadAllAvailable())
    assert isinstance(failure(told.value), ValueError)
    assert name.removesuffix("/2.jsonl") in str(failure(told.value))
    with pytest.raises(WorkerError):
        source.prepareForTriggerAvailableNow()


def test_a_folder_keeps_the_form_that_it_began_with(tmp_path):
    put(tmp_path, "1.jsonl")
    flat = reader(tmp_path, by_replica="false")
    end = everything(flat)[-1]
    (tmp_path / "1.jsonl").unlink()
    assert flat.latestOffset(end, ReadAllAvailable()) == end
    put(tmp_path, "east/1.jsonl")
    with pytest.raises(WorkerError, match="one sequence of files, and 'east' is a folder"):
        flat.latestOffset(end, ReadAllAvailable())
    with pytest.raises(WorkerError, match="a folder for each replica now, and files of 'stream' were read"):
        reader(tmp_path).latestOffset(end, ReadAllAvailable())
    replicas = reader(tmp_path, by_replica="true")
    end = everything(replicas)[-1]
    (tmp_path / "east" / "1.jsonl").unlink()
    (tmp_path / "east").rmdir()
    assert replicas.latestOffset(end, ReadAllAvailable()) == end
    put(tmp_path, "2.jsonl")
    with pytest.raises(WorkerError, match=r"a folder for each replica, and .*2\.jsonl is in none"):
        replicas.latestOffset(end, ReadAllAvailable())
    with pytest.raises(WorkerError, match="no folder for each replica now, and files of 'east' were read"):
        reader(tmp_path).latestOffset(end, ReadAllAvailable())


def test_an_empty_folder_has_the_columns_that_it_will_have(spark, tmp_path):
    schema = "v long, at long"
    with pytest.raises(
        ValueError, match="is empty, and whether it will have a folder for each replica"
    ) as told:
        ab.folder(spark, tmp_path, schema=schema)
    assert "by_replica=True" in "".join(told.value.__notes__)
    assert ab.folder(spark, tmp_path, schema=schema, by_replica=True).schema.names == ["v", "at", "replica"]
    assert ab.folder(spark, tmp_path, schema=schema, by_replica=False).schema.names == ["v", "at"]
    named = f"replica string, {schema}"
    assert ab.folder(spark, tmp_path, schema=named).schema.names == ["replica", "v", "at"]
    (tmp_path / "stream").mkdir()
    assert ab.folder(spark, tmp_path, schema=schema).schema.names == ["v", "at", "replica"]
    assert ab.folder(spark, tmp_path, schema=named).schema.names == ["replica", "v", "at"]
    with pytest.raises(ValueError, match="one sequence of files, and 'stream' is a folder"):
        ab.folder(spark, tmp_path, schema=schema, by_replica=False)


@pytest.mark.parametrize(
    ("columns", "in_folder", "meant"),
    [
        pytest.param(by_folder(COLUMNS, added=True), True, ["east", "east"], id="the folder says it"),
        pytest.param(COLUMNS, True, ["west", "east"], id="rows say it, else the folder"),
        pytest.param(COLUMNS, False, ["west"], id="rows say it"),
    ],
)
def test_whose_a_row_is_says_its_folder_unless_the_schema_lets_the_row_say_it(
    tmp_path, columns, in_folder, meant
):
    path = tmp_path / "1.jsonl"
    path.write_text('{"v": 1, "at": 10, "replica": "west"}\n{"v": 2, "at": 20}\n')
    part = FileRange("east" if in_folder else SINGLE, str(path), 0, in_folder=in_folder)
    [[read]] = reads([part], columns, Layout("at", replica="replica"), 100, 1000)
    assert [read.replicas[n] for n in read.replica] == meant
    assert len(read.refused) == 2 - len(meant)


def test_rows_of_lines_are_numbered_by_their_lines(tmp_path):
    path = tmp_path / "1.jsonl"
    path.write_text(f"{LINE}\nno row\n{LINE}")
    [[read]] = reads([FileRange("east", str(path), 3)], COLUMNS, Layout("at"), 100, 1000)
    assert read.sequence.tolist() == [3 << 40, (3 << 40) + 3]
