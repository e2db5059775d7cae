"""What a sink knows of the folder that is read: it writes elsewhere, and finds the lines of refused rows."""

import json

import pytest
from connectors.folder_reader import everything, reader

from anabranch import spark as ab
from anabranch.connectors.folder.file_places import FilePlaces, files_of
from anabranch.engines.spark.query.provenance import check_apart


@pytest.mark.parametrize(
    ("sink", "words"),
    [
        ("in", "is that"),
        ("in/out", "is inside"),
        ("in/_out", "is inside"),
        ("x/../in/east", "is inside"),
        (".", "holds"),
    ],
)
def test_a_sink_is_apart_from_its_source(tmp_path, sink, words):
    (tmp_path / "in" / "east").mkdir(parents=True)
    with pytest.raises(ValueError, match=f"does not write where it reads, and .* {words} {tmp_path}/in"):
        check_apart(tmp_path / "in", tmp_path / sink)


def test_a_link_into_the_source_is_inside_it(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "in")
    with pytest.raises(ValueError, match="link is that"):
        check_apart(tmp_path / "in", tmp_path / "link")


def test_folders_beside_the_source_are_apart_and_others_may_hold_it(tmp_path):
    check_apart(tmp_path / "in", tmp_path / "input", tmp_path / "in2", tmp_path)
    check_apart(None, tmp_path)
    with pytest.raises(ValueError, match="checkpoint is inside"):
        check_apart(tmp_path / "in", tmp_path / "out", tmp_path / "in" / "checkpoint")


def test_every_sink_refuses_to_write_where_its_query_reads(spark, tmp_path):
    (tmp_path / "in" / "east").mkdir(parents=True)
    rows = ab.folder(spark, tmp_path / "in", schema="v long, at long")
    merged = ab.merge(rows, start="at", replica="replica", disorder=0, lossy=False)
    before = sorted(tmp_path.rglob("*"))
    for start in (
        lambda: ab.write_folder(merged, tmp_path / "in" / "out", checkpoint=tmp_path / "cp"),
        lambda: ab.write_folder(merged, tmp_path / "out", checkpoint=tmp_path / "in" / "cp"),
        lambda: ab.write_table(merged, tmp_path / "in" / "t", kind="history", checkpoint=tmp_path / "cp"),
        lambda: ab.write_kafka(merged, "t", servers="localhost:1", checkpoint=tmp_path / "in" / "cp"),
    ):
        with pytest.raises(ValueError, match="does not write where it reads"):
            start()
    assert sorted(tmp_path.rglob("*")) == before


@pytest.fixture
def begun(tmp_path):
    """A folder and a checkpoint with three micro-batches of two files, as Spark notes them."""
    for name in ("east", "replica=west"):
        (tmp_path / "in" / name).mkdir(parents=True)
        for number in range(6 if name == "east" else 2):
            (tmp_path / "in" / name / f"{number}.jsonl").write_text("{}\n")
    (tmp_path / "offsets").mkdir()
    for batch, offset in enumerate(everything(reader(tmp_path / "in", files_per_trigger=3))[1:]):
        (tmp_path / "offsets" / str(batch)).write_text(f"v1\n{{}}\n{json.dumps(offset)}")
    return tmp_path


def placed(begun, replica, number, batch=2):
    refused = {"rule": "late", "reason": f"element {number} of it", "replica": replica, "raw": "{}"}
    return FilePlaces(begun / "in", begun, batch).placed(refused | {"place": f"{replica} row {number}"})


def test_a_number_stands_for_a_file_and_a_line(begun):
    row = placed(begun, "east", (5 << 40) + 2)
    assert row["place"] == f"{begun}/in/east/5.jsonl:3"
    assert row["reason"] == f"element {begun}/in/east/5.jsonl:3 of it"
    assert placed(begun, "west", (1 << 40))["place"] == f"{begun}/in/replica=west/1.jsonl:1"


def test_rows_of_earlier_micro_batches_are_found_while_their_files_are_there(begun):
    assert placed(begun, "east", 4)["place"] == f"{begun}/in/east/0.jsonl:5"
    (begun / "in" / "east" / "0.jsonl").unlink()
    assert placed(begun, "east", 4)["place"] == "east row 4"
    assert placed(begun, "east", 5 << 40)["place"] == f"{begun}/in/east/5.jsonl:1"


@pytest.mark.parametrize("harm", ["gone", "two sources", "no offset", "a strange file"])
def test_a_place_that_cannot_be_told_stays_as_it_is(begun, harm):
    file = begun / "offsets" / "2"
    match harm:
        case "gone":
            file.unlink()
        case "two sources":
            file.write_text(file.read_text() + "\n{}")
        case "no offset":
            file.write_text("v1\n{}\n17")
        case _:
            (begun / "in" / "east" / "x.csv").touch()
    assert placed(begun, "east", 5 << 40)["place"] == f"east row {5 << 40}"


def test_a_place_that_is_told_stays_as_it_is(begun):
    refused = {"place": "x.jsonl:3", "replica": "east", "reason": "no row", "rule": "malformed", "raw": ""}
    assert FilePlaces(begun / "in", begun, 2).placed(refused) == refused


def test_how_many_files_a_micro_batch_begins_to_read_is_in_the_offsets(tmp_path):
    (tmp_path / "offsets").mkdir()
    places = [
        {"a": {"last": "2", "files": 2}},
        {"a": {"last": "4", "files": 4}, "b": {"last": "1", "files": 1}},
    ]
    for number, place in enumerate(places):
        (tmp_path / "offsets" / str(number)).write_text(f"v1\n{{}}\n{json.dumps(place)}")
    (tmp_path / "offsets" / "2").write_text('v1\n{}\n{"topic": {"0": 7}}')
    assert [files_of(tmp_path, number) for number in range(4)] == [2, 3, 0, 0]
