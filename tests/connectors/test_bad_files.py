"""Files with records that are no rows: each is refused with reason and place, beside rows that are used.

A file that cannot be read at all, or has other columns, stops the query and is named: who knows what it has.
"""

import json
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from bad_records import (
    BAD_ELEMENTS,
    BAD_TEXTS,
    COLUMNS,
    DDL,
    GOOD,
    ODD_TEXTS,
    ROW,
    STABLE,
    moment,
)

from anabranch import spark as ab
from anabranch.connectors.folder.reading import FileRange, reads
from anabranch.engines.spark.query.watch import status_in
from anabranch.model.schema import SchemaError
from anabranch.rows.layout import Layout

LAYOUT = Layout("at", kind="kind", end="until", old_end="was", replica="replica")
TIME = pa.timestamp("us", "UTC")
ELEMENTS = pa.schema(
    [*COLUMNS, ("kind", pa.string()), ("until", TIME), ("was", TIME), ("replica", pa.string())]
)
LINE = json.dumps(GOOD).encode()
PAYLOAD = {name: value for name, value in ROW.items() if name != "at"}


def read(path: Path, columns: pa.Schema = ELEMENTS):
    """The rows of a file of replica east, and what is refused of it."""
    found = [
        one
        for turn in reads([FileRange("east", str(path), 0)], columns, LAYOUT, 1000, 1 << 20)
        for one in turn
    ]
    rows = [row for one in found for row in one.batch.payload.to_pylist()]
    return rows, [refused for one in found for refused in one.refused]


def layoutless(path: Path):
    layout = Layout("at")
    return [
        one
        for turn in reads([FileRange("east", str(path), 0)], COLUMNS, layout, 1000, 1 << 20)
        for one in turn
    ]


def lines(path: Path, *texts: bytes) -> Path:
    path.write_bytes(b"\n".join(texts) + b"\n")
    return path


@pytest.mark.parametrize("what", BAD_TEXTS)
def test_a_line_that_is_no_row_is_refused_with_its_place_and_its_neighbours_are_used(tmp_path, what):
    path = lines(tmp_path / "1.jsonl", LINE, BAD_TEXTS[what], LINE)
    rows, [refused] = read(path)
    assert rows == [PAYLOAD, PAYLOAD]
    assert (refused.rule, refused.replica, refused.place) == ("malformed", "east", f"{path}:2")
    assert refused.reason
    assert refused.raw == BAD_TEXTS[what].decode(errors="replace")


def test_many_bad_lines_are_refused_each_at_its_place(tmp_path):
    texts = [text for bad in BAD_TEXTS.values() for text in (bad, b"", LINE, b"  ")]
    path = lines(tmp_path / "1.jsonl", *texts)
    rows, refused = read(path)
    assert rows == [PAYLOAD] * len(BAD_TEXTS)
    assert [one.place for one in refused] == [f"{path}:{4 * n + 1}" for n in range(len(BAD_TEXTS))]


@pytest.mark.parametrize("what", ODD_TEXTS)
def test_a_line_that_only_looks_odd_is_a_row(tmp_path, what):
    assert read(lines(tmp_path / "1.jsonl", ODD_TEXTS[what], LINE)) == ([PAYLOAD, PAYLOAD], [])


@pytest.mark.parametrize(
    ("data", "count"),
    [
        pytest.param(b"", 0, id="nothing"),
        pytest.param(b"\n\r\n \n", 0, id="empty lines"),
        pytest.param(LINE, 1, id="no line feed at the end"),
        pytest.param(b"\xef\xbb\xbf" + LINE + b"\n" + LINE, 2, id="a byte order mark"),
        pytest.param(b"\xef\xbb\xbf", 0, id="a byte order mark alone"),
        pytest.param(LINE + b"\r\n" + LINE + b"\r\n", 2, id="lines that end as on another system"),
    ],
)
def test_a_file_of_lines_may_look_odd(tmp_path, data, count):
    path = tmp_path / "1.jsonl"
    path.write_bytes(data)
    assert read(path) == ([PAYLOAD] * count, [])


TABLE = pa.Table.from_pylist([ROW, ROW], COLUMNS)


def parquet(path: Path, rows: pa.Table = TABLE) -> bytes:
    pq.write_table(rows, path)
    return path.read_bytes()


def arrow(path: Path, rows: pa.Table = TABLE) -> bytes:
    with pa.ipc.new_file(path, rows.schema) as writer:
        writer.write_table(rows)
    return path.read_bytes()


def cut(end: int):
    return lambda data: data[:end]


def spoiled(data: bytes) -> bytes:
    """The same, with other bytes in the middle and at the end."""
    return data[:40] + bytes(200) + data[240:-40] + bytes(40)


BAD_FILES = {
    "Parquet that is empty": ("parquet", parquet, cut(0)),
    "Parquet that is cut at its beginning": ("parquet", parquet, cut(10)),
    "Parquet that is cut in the middle": ("parquet", parquet, cut(700)),
    "Parquet that lacks its last byte": ("parquet", parquet, cut(-1)),
    "Parquet with other bytes in it": ("parquet", parquet, spoiled),
    "JSON that is called Parquet": ("parquet", parquet, lambda _: LINE),
    "Arrow that is called Parquet": ("parquet", arrow, cut(None)),
    "Arrow that is empty": ("arrow", arrow, cut(0)),
    "Arrow that is cut at its beginning": ("arrow", arrow, cut(10)),
    "Arrow that is cut in the middle": ("arrow", arrow, cut(900)),
    "Arrow with other bytes in it": ("arrow", arrow, spoiled),
    "Parquet that is called Arrow": ("feather", parquet, cut(None)),
    "JSON that is called Arrow": ("ipc", arrow, lambda _: LINE),
}


@pytest.mark.parametrize("what", BAD_FILES)
def test_a_file_that_cannot_be_read_stops_the_query_and_is_named(tmp_path, what):
    ending, write, harmed = BAD_FILES[what]
    path = tmp_path / f"1.{ending}"
    path.write_bytes(harmed(write(tmp_path / "whole")))
    with pytest.raises(OSError, match=rf"1\.{ending} cannot be read"):
        layoutless(path)


OTHER_COLUMNS = {
    "a column that is missing": (TABLE.drop_columns("v"), "no column 'v'"),
    "a column under another name": (TABLE.rename_columns({"v": "V"}), "no column 'v'"),
    "text for a number": (TABLE.set_column(2, "v", pa.array(["one", "2"])), "column 'v' cannot be int64"),
    "numbers for a time": (
        TABLE.set_column(1, "at", pa.array([1.5, 2.5])),
        "column 'at' cannot be timestamp",
    ),
    "a list for a number": (TABLE.set_column(2, "v", pa.array([[1], [2]])), "column 'v' cannot be int64"),
    "numbers beyond 64 bits": (
        TABLE.set_column(2, "v", pa.array([2**64 - 1, 1], pa.uint64())),
        "column 'v' cannot be int64",
    ),
    "fractions for whole numbers": (
        TABLE.set_column(2, "v", pa.array([0.5, 1])),
        "column 'v' cannot be int64",
    ),
    "times finer than a tick": (
        TABLE.set_column(1, "at", pa.array([1, 2], pa.timestamp("ns", "UTC"))),
        "column 'at' cannot be timestamp",
    ),
    "times beyond the clock": (
        TABLE.set_column(1, "at", pa.array([1 << 60, 2], pa.timestamp("ms", "UTC"))),
        "column 'at' cannot be timestamp",
    ),
}


@pytest.mark.parametrize("what", OTHER_COLUMNS)
@pytest.mark.parametrize("write", [parquet, arrow])
def test_a_file_with_other_columns_stops_the_query_and_is_named(tmp_path, what, write):
    rows, words = OTHER_COLUMNS[what]
    path = tmp_path / f"1.{write.__name__}"
    write(path, rows)
    with pytest.raises(SchemaError, match=words) as told:
        layoutless(path)
    assert str(path) in str(told.value)


@pytest.mark.parametrize("write", [parquet, arrow])
def test_typed_rows_that_are_no_elements_are_refused_with_their_file_and_number(tmp_path, write):
    far = pa.array([1 << 62, 1 << 62, 5, None, 7], pa.int64()).cast(TIME)
    rows = pa.table(
        {
            "at": pa.array([None, 4, 5, 6, 7], pa.int64()).cast(TIME),
            "until": far,
            "was": far,
            "kind": [None, "upsert", "attached", "insert", None],
            "v": [1, 2, 3, 4, 5],
        }
    )
    path = tmp_path / f"1.{write.__name__}"
    write(path, rows)
    used, refused = read(path, pa.schema([*rows.schema, ("replica", pa.string())]))
    assert used == [{"v": 4}, {"v": 5}]
    assert [(one.place, one.replica) for one in refused] == [(f"{path}:{n}", "east") for n in (1, 2, 3)]
    assert "'upsert'" in refused[1].reason


def element(**fields) -> bytes:
    return json.dumps({**{k: v for k, v in GOOD.items() if k != "at"}, **fields}).encode()


def good(minute: int) -> bytes:
    return element(at=moment(minute), until=moment(minute + 15), v=minute)


def test_a_query_sets_every_bad_record_aside_with_its_place_and_merges_the_others(spark, tmp_path):
    for name in ("east", "west"):
        (tmp_path / "in" / name).mkdir(parents=True)
    first, second = (tmp_path / "in" / "east" / f"{n}.jsonl" for n in (1, 2))
    stable = element(kind="stable", at=moment(STABLE))
    lines(first, good(1), *(text for bad in BAD_TEXTS.values() for text in (b"", bad)), good(2))
    lines(second, good(20), stable, *(element(**fields) for fields, _ in BAD_ELEMENTS.values()), good(31))
    lines(tmp_path / "in" / "west" / "1.jsonl", *map(good, (1, 2, 20, 31)))
    schema = f"{DDL}, kind string, until timestamp, was timestamp"
    roles = {"start": "at", "end": "until", "old_end": "was", "kind": "kind", "replica": "replica"}
    merged = ab.merge(ab.folder(spark, tmp_path / "in", schema=schema, files_per_trigger=2), **roles)
    query = ab.write_folder(merged, tmp_path / "out", checkpoint=tmp_path / "checkpoint", available_now=True)
    ab.wait(query)

    table = ab.table(spark.read.parquet(str(tmp_path / "out")))
    assert sorted(row["v"] for row in table.collect()) == [1, 2, 20, 31]
    files = sorted((tmp_path / "out" / "_quarantine").glob("*.jsonl"))
    refused = {one["place"]: one for file in files for one in map(json.loads, file.read_text().splitlines())}
    meant = {f"{first}:{2 * n + 3}": "malformed" for n in range(len(BAD_TEXTS))}
    meant |= {f"{second}:{n + 3}": rule for n, (_, rule) in enumerate(BAD_ELEMENTS.values())}
    assert {place: one["rule"] for place, one in refused.items()} == meant
    assert all(one["reason"] and one["replica"] == "east" for one in refused.values())
    told = [status for progress in query.recentProgress if (status := status_in(progress))]
    assert sum(one.quarantined for one in told) == len(BAD_TEXTS) + len(BAD_ELEMENTS)
    assert sum((Counter(one.emitted) for one in told), Counter())["insert"] == 4
