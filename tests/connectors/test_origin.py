"""What a sink knows of the folder that is read: it writes elsewhere, and finds the lines of refused rows."""

import json

import pytest
from connectors.folder_reader import everything, reader

import anabranch
from anabranch import spark as ab
from anabranch.connectors.folder.file_places import FilePlaces, files_of
from anabranch.engines.spark.query.provenance import check_apart
from anabranch.rows.refusal import ONLY


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
    return FilePlaces({ONLY: str(begun / "in")}, begun, batch).placed(
        refused | {"place": f"{replica} row {number}"}
    )


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


def test_rows_of_several_folders_are_found_by_the_edge_that_they_came_by(begun):
    other = begun / "other" / "east"
    other.mkdir(parents=True)
    (other / "a.jsonl").write_text("{}\n")
    offset = json.dumps(everything(reader(begun / "other", edge="other"))[-1])
    file = begun / "offsets" / "2"
    file.write_text(f"{file.read_text()}\n-\n{offset}\n{json.dumps({'now': 7})}")
    places = FilePlaces({"in": str(begun / "in"), "other": str(begun / "other")}, begun, 2)
    refused = {"rule": "late", "reason": "it is", "replica": "east", "raw": "{}"}
    assert places.placed(refused | {"place": "other: east row 0"})["place"] == f"{other}/a.jsonl:1"
    for unknown in ("east/1 row 0", "third: east row 0", f"other: east row {1 << 40}"):
        assert places.placed(refused | {"place": unknown})["place"] == unknown


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
            (begun / "in" / "east" / "x.xml").touch()
    assert placed(begun, "east", 5 << 40)["place"] == f"east row {5 << 40}"


def test_a_place_that_is_told_stays_as_it_is(begun):
    refused = {"place": "x.jsonl:3", "replica": "east", "reason": "no row", "rule": "malformed", "raw": ""}
    assert FilePlaces({ONLY: str(begun / "in")}, begun, 2).placed(refused) == refused


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


def lines(file, *rows):
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(row if isinstance(row, str) else f"{json.dumps(row)}\n" for row in rows))


def readings(name="s"):
    columns = {"at": "int64", "v": "int64", "replica": "string"}
    return anabranch.source(name, columns, start="at", disorder=1, replica="replica", lossy=False)


def sink(frame, folder):
    """What a query writes, and what it sets aside."""
    ab.wait(ab.write_folder(frame, folder / "out", checkpoint=folder / "cp", available_now=True))
    files = sorted((folder / "out" / "_quarantine").glob("*.jsonl"))
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


@pytest.mark.parametrize("place", ["feeds", "feeds/out", "."])
def test_a_plan_does_not_write_where_it_reads(spark, tmp_path, place):
    lines(tmp_path / "feeds" / "east" / "1.jsonl", {"at": 1, "v": 1})
    lines(tmp_path / "other" / "east" / "1.jsonl", {"at": 1, "v": 1})
    plan = anabranch.union(readings("s").merge(), readings("t").merge())
    doors = {
        "s": ab.folder(spark, tmp_path / "other", schema="at long, v long"),
        "t": ab.folder(spark, tmp_path / "feeds", schema="at long, v long"),
    }
    with pytest.raises(ValueError, match="does not write where it reads"):
        ab.write_folder(ab.frame(plan, doors), tmp_path / place, checkpoint=tmp_path / "cp")
    assert not (tmp_path / "cp").exists()


def test_refused_rows_have_the_file_and_line_in_a_plan_as_in_a_merge(spark, tmp_path):
    feeds = tmp_path / "feeds"
    lines(feeds / "east" / "0001.jsonl", {"at": 5, "v": 1}, "nonsense\n", {"at": 30, "v": 1})
    lines(feeds / "west" / "0001.jsonl", {"at": 5, "v": 1}, {"at": 30, "v": 1})
    lines(feeds / "east" / "0002.jsonl", {"at": 3, "v": 1}, {"at": 40, "v": 1})

    def door():
        return ab.folder(spark, feeds, schema="at long, v long", files_per_trigger=1)

    merged = ab.merge(door(), start="at", replica="replica", disorder=1, lossy=False)
    both = anabranch.union(readings("s").merge(), readings("t").merge())
    found = [
        sink(merged, tmp_path / "merge"),
        sink(ab.frame(readings().merge(), {"s": door()}), tmp_path / "plan"),
        sink(ab.frame(both, {"s": door(), "t": door()}), tmp_path / "two"),
    ]
    places = [str(feeds / "east" / name) for name in ("0001.jsonl:2", "0002.jsonl:1")]
    assert [[row["place"] for row in one] for one in found[:2]] == [places, places]
    assert found[0] == found[1]
    assert sorted(row["place"] for row in found[2]) == sorted(places * 2)
