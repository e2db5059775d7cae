"""The folder that a sink wrote, read as a recorded stream: the same elements as its files mean."""

import json
from datetime import UTC, date, datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from anabranch import FOREVER, Adjust, Insert, Relation, Stable, difference, read
from anabranch.cli.main import main
from anabranch.connectors.files.formats import UnknownFormatError
from anabranch.connectors.files.reading import UnreadableError
from anabranch.connectors.files.writing import objects
from anabranch.connectors.folder.sink import FolderWriter, Written
from anabranch.model.time import ticks

CLOCKS = {
    "numbers": (pa.int64(), lambda n: n, lambda n: n),
    "days": (pa.date32(), lambda n: date(2026, 3, n), lambda n: date(2026, 3, n).toordinal() - 719163),
    "moments": (
        pa.timestamp("us", "UTC"),
        lambda n: datetime(2026, 3, 1, 10, n, tzinfo=UTC),
        lambda n: ticks(datetime(2026, 3, 1, 10, n, tzinfo=UTC)),
    ),
    "local times": (
        pa.timestamp("us"),
        lambda n: datetime(2026, 3, 1, 10, n),
        lambda n: ticks(datetime(2026, 3, 1, 10, n, tzinfo=UTC)),
    ),
}


def rows(clock, *elements, name="room"):
    """Rows as a merge gives them: kind, times and a payload of one column, nested where its name is taken."""
    kind, of, _ = CLOCKS[clock]
    columns = ("kind", "start", "end", "old_end")
    times = [(column, kind) for column in columns[1:]]
    value = pa.struct([(name, pa.string())]) if name == "kind" else pa.string()
    schema = pa.schema([("kind", pa.string()), *times, ("payload" if name == "kind" else name, value)])
    told = []
    for word, *when, room in elements:
        said = [of(time) if time is not None else None for time in when]
        told.append([word, *said, {name: room} if name == "kind" else room])
    return pa.RecordBatch.from_pylist([dict(zip(schema.names, row, strict=True)) for row in told], schema)


def written(place, form, *batches):
    """A folder as the sink writes it: each batch is a micro-batch, each of its parts what one task says."""
    for name in ("_part", "_checkpoint"):
        (place / name).mkdir(parents=True)
    options = {"path": str(place), "quarantine": str(place / "_quarantine"), "format": form}
    writer = FolderWriter(options | {"query": "0123abcd", "sealed": str(place / "_checkpoint")})
    for number, parts in enumerate(batches):
        said = [writer.write(iter([part])) for part in parts]
        told = [
            Written(task, one.elements, one.stables, one.refused, one.frontiers)
            for task, one in enumerate(said)
        ]
        writer.commit(told, number)
    return place


def elements_of(path):
    return [element for batch in read(str(path)) for element in objects(batch)]


@pytest.mark.parametrize("name", ["room", "kind"])
@pytest.mark.parametrize("form", ["parquet", "jsonl"])
@pytest.mark.parametrize("clock", CLOCKS)
def test_a_written_folder_is_the_stream_of_its_micro_batches(tmp_path, clock, form, name):
    tick = CLOCKS[clock][2]
    first = rows(clock, ("insert", 1, 5, None, "a"), ("insert", 2, None, None, "b"), name=name)
    other = rows(clock, ("insert", 3, 9, None, "c"), ("stable", 2, None, None, None), name=name)
    last = rows(clock, ("adjust", 2, 7, None, "b"), ("stable", None, None, None, None), name=name)
    place = written(tmp_path / "out", form, [first, other], [last])
    assert elements_of(place) == [
        Insert({name: "a"}, tick(1), tick(5)),
        Insert({name: "b"}, tick(2), FOREVER),
        Insert({name: "c"}, tick(3), tick(9)),
        Stable(tick(2)),
        Adjust({name: "b"}, tick(2), FOREVER, tick(7)),
        Stable(FOREVER),
    ]


def test_a_folder_that_has_nothing_yet_is_an_empty_stream(tmp_path):
    assert elements_of(written(tmp_path / "out", "parquet")) == []


@pytest.mark.parametrize(
    "name", ["part-00000.parquet", "feed.jsonl", "0123abcd-000000000-0000.csv", "deeper/x"]
)
def test_a_folder_that_nobody_wrote_so_is_refused_with_the_file(tmp_path, name):
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).touch()
    with pytest.raises(UnknownFormatError, match=f"is not a folder .* {name.split('/')[0]} is in it"):
        read(str(tmp_path))


def test_an_empty_folder_and_a_dialect_are_refused(tmp_path):
    with pytest.raises(UnknownFormatError, match="it has no files of one"):
        read(str(tmp_path))
    place = written(tmp_path / "out", "jsonl", [rows("numbers", ("insert", 1, 5, None, "a"))])
    with pytest.raises(UnknownFormatError, match="is a folder"):
        read(str(place), dialect="cedr")
    with pytest.raises(UnknownFormatError, match="are jsonl, not parquet"):
        read(str(place), format="parquet")


def test_a_file_that_is_cut_short_is_named(tmp_path):
    place = written(tmp_path / "out", "parquet", [rows("numbers", ("insert", 1, 5, None, "a"))])
    [file] = place.glob("*.parquet")
    file.write_bytes(file.read_bytes()[:-9])
    with pytest.raises(UnreadableError, match=file.name):
        elements_of(place)


def test_show_and_convert_read_what_a_run_wrote(tmp_path, capsys):
    said = [("insert", 1, 5, None, "a"), ("insert", 2, 9, None, "b"), ("stable", 4, None, None, None)]
    place = written(tmp_path / "out", "jsonl", [rows("numbers", *said)])
    assert main(["show", str(place), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert [(event["payload"], event["start"]) for event in shown["events"]] == [
        ({"room": "a"}, 1),
        ({"room": "b"}, 2),
    ]
    assert shown["frontier"] == 4
    assert main(["convert", str(place), str(tmp_path / "out.parquet")]) == 0
    whole, folder = Relation(), Relation()
    whole.apply(elements_of(tmp_path / "out.parquet"))
    folder.apply(elements_of(place))
    assert difference(whole, folder) is None
    assert pq.read_table(tmp_path / "out.parquet").num_rows == 3


def test_a_line_that_nobody_wrote_so_is_told_with_its_number(tmp_path, capsys):
    place = written(tmp_path / "out", "jsonl", [rows("numbers", ("insert", 1, 5, None, "a"))])
    [file] = place.glob("*.jsonl")
    file.write_text(file.read_text() + '{"kind": "attach"}\n{"kind": "insert", "start": 1.5}\n')
    assert main(["show", str(place), "--json", "--quarantine", str(tmp_path / "bad.jsonl")]) == 0
    told = [json.loads(line) for line in (tmp_path / "bad.jsonl").read_text().splitlines()]
    assert [one["position"] for one in told] == [2, 3]
    assert main(["show", str(place)]) == 2
    assert "'attach'" in capsys.readouterr().err
