"""Rows of CSV: what is a row of which line, what is refused, and that other formats give the same."""

import csv
import io
import json
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from connectors.folder_reader import reader
from pyspark.sql.streaming.datasource import ReadAllAvailable

import anabranch as ab
from anabranch.connectors.files import csv_records
from anabranch.connectors.files.csv_records import end_of_records, record_blocks
from anabranch.connectors.files.csv_rows import CsvRows
from anabranch.connectors.files.formats import UnknownFormatError
from anabranch.connectors.files.sampled_columns import csv_columns
from anabranch.connectors.folder.reading import FileRange, reads
from anabranch.model.schema import SchemaError
from anabranch.rows.layout import Layout

AT = "2026-03-01T10:00:00Z"
LEVELS = {"at": "timestamp[us, tz=UTC]", "room": "string", "level": "int64"}


def events(plan: Any, given: Any) -> tuple[list[Any], list[tuple[str, str]]]:
    """The events of a plan over what is given, and the places and reasons of refused rows."""
    refused: list[tuple[str, str]] = []
    aside = ab.Quarantine(lambda violation: refused.append((violation.place, violation.detail)))
    relation = ab.Relation()
    for batch in ab.run(plan, {"levels": given}, on_invalid=aside):
        relation.apply(batch)
    rows = [(event.start, event.end, event.payload, n) for event, n in relation.current().rows()]
    return sorted(rows, key=str), refused


def levels(columns: Any = None, **settings: Any) -> Any:
    return ab.source("levels", columns or LEVELS, start="at", duration="5 minutes", **settings)


def rows_of(path: Path, text: str | bytes, columns: Any = None) -> tuple[list[Any], list[tuple[str, str]]]:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    found, refused = events(levels(columns), str(path))
    return [payload for _, _, payload, n in found for _ in range(n)], refused


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "levels.csv"


class TestRows:
    def test_quotes_commas_and_line_breaks_are_of_their_cells(self, file):
        rows, refused = rows_of(file, f'at,room,level\n{AT},"a ""big"", cold\nroom",1\n{AT},5" pipe,2\n')
        wanted = [{"room": 'a "big", cold\nroom', "level": 1}, {"room": '5" pipe', "level": 2}]
        assert sorted(rows, key=lambda row: row["level"]) == wanted
        assert not refused

    def test_an_empty_cell_is_null_and_quotes_around_nothing_are_empty_text(self, file):
        rows, refused = rows_of(file, f'at,room,level\n{AT},,1\n{AT},"",""\n')
        assert sorted(rows, key=str) == [{"level": 1}, {"room": ""}]
        assert not refused

    def test_a_bom_and_windows_line_ends_are_no_part_of_cells(self, file):
        rows, refused = rows_of(file, b"\xef\xbb\xbfat,room,level\r\n" + f"{AT},A,1\r\n".encode())
        assert (rows, refused) == ([{"room": "A", "level": 1}], [])

    @pytest.mark.parametrize("text", ["", "\n\n", "at,room,level", "at,room,level\n"])
    def test_a_file_without_rows_has_none(self, file, text):
        assert rows_of(file, text) == ([], [])

    def test_what_does_not_fit_is_refused_with_its_line_and_the_others_are_rows(self, file):
        text = (
            f'at,room,level\n{AT},A,1\n{AT},"B\nb",x\n{AT},C,3\n\n{AT},D\n{AT},E,5,6\n'
            f'never,F,6\n{AT},"G"g,7\n{AT},H,9223372036854775808\n{AT},I,9'
        )
        rows, refused = rows_of(file, text)
        assert sorted(row["room"] for row in rows) == ["A", "C", "I"]
        assert refused == [
            (f"{file}:3", "column 'level' is int64, and this row has 'x'"),
            (f"{file}:7", "a row has 3 cells as the header has, and this one 2"),
            (f"{file}:8", "a row has 3 cells as the header has, and this one 4"),
            (f"{file}:9", "column 'at' is timestamp[us, tz=UTC], and this row has 'never'"),
            (
                f"{file}:10",
                "after the closing quote of a cell comes a comma or the end of the line, here comes more",
            ),
            (f"{file}:11", "column 'level' is int64, and this row has '9223372036854775808'"),
        ]

    def test_a_torn_last_line_is_refused_with_its_line(self, file):
        rows, refused = rows_of(file, f"at,room,level\n{AT},A,1\n{AT},B")
        assert rows == [{"room": "A", "level": 1}]
        assert [place for place, _ in refused] == [f"{file}:3"]

    def test_a_quote_that_is_never_closed_is_refused_where_it_opens(self, file):
        rows, refused = rows_of(file, f'at,room,level\n{AT},A,1\n{AT},"B,2\n{AT},C,3\n')
        assert rows == [{"room": "A", "level": 1}]
        assert refused == [
            (f"{file}:3", "a quote that opens a cell is closed, and this row has one that is not")
        ]

    def test_text_that_is_not_utf8_is_refused_with_its_line(self, file):
        rows, refused = rows_of(file, b"at,room,level\n" + f"{AT},\xff,1\n{AT},B,2\n".encode("latin-1"))
        assert rows == [{"room": "B", "level": 2}]
        assert [place for place, _ in refused] == [f"{file}:2"]

    def test_a_row_longer_than_the_longest_names_its_line(self, file, monkeypatch):
        monkeypatch.setattr(csv_records, "BLOCK", 16)
        monkeypatch.setattr(csv_records, "LONGEST", 64)
        with pytest.raises(SchemaError, match="line 3"):
            rows_of(file, f'at,room,level\n{AT},A,1\n{AT},"{"x" * 100},1\n{AT},"C",3\n')


class TestHeaders:
    def test_columns_are_known_by_their_names_in_any_order(self, file):
        rows, _ = rows_of(file, f"level,extra,at,room\n1,x,{AT},A\n")
        assert rows == [{"room": "A", "level": 1}]

    def test_a_header_without_a_column_of_the_source_is_refused(self, file):
        with pytest.raises(SchemaError, match=r"levels\.csv has no column 'level', did you mean 'levle'"):
            rows_of(file, f"at,room,levle\n{AT},A,1\n")

    def test_a_header_that_names_a_column_twice_is_refused(self, file):
        with pytest.raises(SchemaError, match="2 columns 'level'"):
            rows_of(file, f"at,room,level,level\n{AT},A,1,2\n")

    def test_columns_that_the_source_has_not_are_told(self, file):
        file.write_text(f"at,room,level,extra\n{AT},A,1,x\n")
        running = ab.run(levels(), {"levels": str(file)})
        list(running)
        assert running.status().remarks() == ["levels: 1 of 1 rows have 'extra', which is no column"]

    def test_odd_names_are_used_as_they_are(self, file):
        columns = {"at": "timestamp[us, tz=UTC]", "a,b": "string", ' "x"': "int64", "ß\n": "int64"}
        rows, refused = rows_of(file, f'"a,b"," ""x""",at,"ß\n"\nA,1,{AT},2\nB,x,{AT},3\n', columns)
        assert rows == [{"a,b": "A", ' "x"': 1, "ß\n": 2}]
        assert [place for place, _ in refused] == [f"{file}:4"]

    def test_a_list_is_refused_by_name_before_a_row_is_read(self, file):
        with pytest.raises(SchemaError, match="holds no list<item: int64>, and column 'level'"):
            rows_of(
                file, f"at,level\n{AT},1\n", {"at": "timestamp[us, tz=UTC]", "level": pa.list_(pa.int64())}
            )


class TestFolders:
    def test_a_folder_of_each_replica_holds_files_of_every_format(self, tmp_path):
        for name, room in (("east", "A"), ("west", "B")):
            (tmp_path / name).mkdir()
            (tmp_path / name / "1.csv").write_text(f"room,at,level\n{room},{AT},1\n")
            line = json.dumps({"at": AT, "room": f"{room}2", "level": 2})
            (tmp_path / name / "2.jsonl").write_text(line + "\n")
        source = levels({**LEVELS, "who": "string"}, replica="who", lossy=True, disorder="1 second")
        found, refused = events(source.merge(), str(tmp_path))
        assert sorted(payload["room"] for _, _, payload, _ in found) == ["A", "A2", "B", "B2"]
        assert not refused

    def test_a_file_that_grows_ends_at_its_last_whole_record(self, file):
        text = b'at,room\n1,"a\nb"\n2,"c\nd'
        for size in range(len(text) + 1):
            file.write_bytes(text[:size])
            assert end_of_records(file) == max((n for n in (0, 8, 16) if n <= size), default=0), text[:size]


class TestColumns:
    def test_types_are_those_of_the_first_rows(self, file):
        file.write_text(
            "n,x,zip,flag,day,local,moment,text,none,big\n"
            f"1,1,007,true,2026-03-01,2026-03-01 10:00,{AT},a,,18446744073709551615\n"
            '-2,2.5,1,False,2026-03-02,2026-03-01T10:00:00.5,2026-03-01T10:00:00+01:00,"1",,0\n'
        )
        types = [str(field.type) for field in csv_columns(str(file))]
        moments = "timestamp[us, tz=UTC]"
        assert types == [
            *("int64", "double", "string", "bool", "date32[day]", "timestamp[us]"),
            *(moments, "string", "null", "uint64"),
        ]

    def test_a_column_without_a_name_is_refused_by_its_place(self, file):
        file.write_text(f",at\n0,{AT}\n")
        with pytest.raises(SchemaError, match="column 1 of the header has no name"):
            csv_columns(str(file))

    def test_csv_is_not_written(self, tmp_path):
        with pytest.raises(UnknownFormatError, match="CSV is read and not written"):
            ab.write(str(tmp_path / "out.csv"), [])


def test_elements_in_csv_are_those_of_any_other_format(tmp_path):
    file = tmp_path / "feed.csv"
    file.write_text("kind,start,end,old_end,room\ninsert,3,9,,a\nadjust,3,7,9,a\nstable,5,,,\ninsert,x,9\n")
    violations: list[Any] = []
    batches = ab.read(str(file), policy=ab.Quarantine(violations.append))
    found = [element for batch in batches for element in batch.elements()]
    assert found == [ab.Insert({"room": "a"}, 3, 9), ab.Adjust({"room": "a"}, 3, 9, 7), ab.Stable(5)]
    assert [violation.position for violation in violations] == [5]


TEXTS = ["a", "", "x,y", 'say "hi"', "two\nlines", '5" pipe', " ", "ß", "null", "\r\nx", None]
ZONES = ["Z", "+01:00", "-05:30", ""]


def random_rows(random: Random) -> list[dict[str, Any]]:
    first = datetime(2026, 3, 1, tzinfo=UTC)
    return [
        {
            "at": (first + timedelta(seconds=random.randrange(3_000))).isoformat()[:19]
            + random.choice(ZONES),
            "room": random.choice(TEXTS),
            "level": random.choice([None, 0, -7, 2**62]),
            "share": random.choice([None, 0.5, -1e300, 3.0]),
            "on": random.choice([None, True, False]),
            "day": random.choice([None, "2026-03-01"]),
        }
        for _ in range(random.randrange(12))
    ]


COLUMNS = {
    "at": "timestamp[us, tz=UTC]",
    "room": "string",
    "level": "int64",
    "share": "float64",
    "on": "bool",
    "day": "date32",
}


def as_csv(rows: list[dict[str, Any]], names: list[str], random: Random) -> bytes:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator=random.choice(["\n", "\r\n"]), quoting=csv.QUOTE_MINIMAL)
    writer.writerow(names)
    for row in rows:
        writer.writerow(["" if row[name] is None else row[name] for name in names])
    # csv.writer writes empty text as nothing: only quotes say that it is no null.
    found = text.getvalue()
    if random.random() < 0.3:
        found = found.rstrip("\r\n")
    return random.choice([b"", b"\xef\xbb\xbf"]) + found.encode()


@pytest.mark.parametrize("seed", range(60))
def test_random_rows_are_the_same_events_in_every_format(tmp_path, seed):
    random = Random(seed)
    rows = [{**row, "room": row["room"] or None} for row in random_rows(random)]
    names = random.sample(list(COLUMNS), len(COLUMNS))
    (tmp_path / "a.csv").write_bytes(as_csv(rows, names, random))
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    typed = [
        {
            **row,
            "at": datetime.fromisoformat(row["at"] if row["at"][19:] else row["at"] + "Z"),
            "day": row["day"] and date.fromisoformat(row["day"]),
        }
        for row in rows
    ]
    pq.write_table(pa.Table.from_pylist(typed, levels(COLUMNS).node.columns), tmp_path / "a.parquet")
    found = [events(levels(COLUMNS), str(tmp_path / name)) for name in ("a.csv", "a.jsonl", "a.parquet")]
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("seed", range(80))
def test_records_and_rows_do_not_depend_on_their_neighbours_or_on_blocks(tmp_path, monkeypatch, seed):
    random = Random(seed)
    parts = ["a", "1", ",", ",", "\n", "\n", '"', '""', '"b"', "\r\n", "x\ny", " "]
    text = "".join(random.choice(parts) for _ in range(random.randrange(60))).encode()
    whole = [
        one
        for block in record_blocks(io.BytesIO(text), 0)
        for one in zip(block.texts, block.lines, strict=True)
    ]
    monkeypatch.setattr(csv_records, "BLOCK", random.randrange(1, 9))
    small = [
        one
        for block in record_blocks(io.BytesIO(text), 0)
        for one in zip(block.texts, block.lines, strict=True)
    ]
    assert whole == small
    texts = [record for record, _ in whole if record.strip()]
    schema = pa.schema([("p", pa.string()), ("q", pa.int64())])
    together = CsvRows(["p", "q"], schema, "").read(texts)
    alone = [CsvRows(["p", "q"], schema, "").read([record]) for record in texts]
    assert together.rows.to_pylist() == [row for one in alone for row in one.rows.to_pylist()]
    assert together.refused == [(n, reason) for n, one in enumerate(alone) for _, reason in one.refused]


def rows_and_lines(parts: list[FileRange]) -> list[Any]:
    columns = pa.schema([("at", pa.int64()), ("room", pa.string())])
    found = []
    for part in parts:
        for turn in reads([part], columns, Layout("at", disorder=0), 1000, 1 << 20):
            for read in turn:
                rooms = read.batch.payload.column("room").to_pylist()
                found += zip(read.sequence.tolist(), read.batch.start.tolist(), rooms, strict=True)
                found += [(one.place, one.reason) for one in read.refused]
    return found


def test_a_file_that_is_read_in_parts_has_the_rows_and_lines_of_the_whole(file):
    text = b'\xef\xbb\xbfroom,at\n"a\nb",1\n\nc,2\nd,x\n"e,""\n",3\n'
    file.write_bytes(text)
    whole = FileRange("", str(file), 0, in_folder=False)
    expected = rows_and_lines([whole])
    assert expected == [
        (1, 1, "a\nb"),
        (4, 2, "c"),
        (6, 3, 'e,"\n'),
        (f"{file}:6", "column 'at' is int64, and this row has 'x'"),
    ]
    for end in (3, 11, 19, 20, 24, 28):
        first = replace(whole, end=end)
        rest = replace(whole, begin=end, first=text.count(b"\n", 0, end))
        assert sorted(rows_and_lines([first, rest]), key=str) == sorted(expected, key=str)


def test_a_reader_of_spark_follows_a_file_that_grows_record_by_record(tmp_path):
    text = b'v,at\n1,10\n2,"\n20"\n3,30\n'
    file = tmp_path / "east" / "1.csv"
    file.parent.mkdir()
    file.write_bytes(b"")
    source = reader(tmp_path)
    offsets, parts = [source.initialOffset()], []
    for size in range(len(text) + 1):
        file.write_bytes(text[:size])
        end = source.latestOffset(offsets[-1], ReadAllAvailable())
        if end != offsets[-1]:
            for partition in source.partitions(offsets[-1], end):
                parts += [part for group in partition.groups for part in group]
            offsets.append(end)
    assert [(part.begin, part.end) for part in parts if part.end] == [(0, 5), (5, 10), (10, 18), (18, 23)]


class TestSamples:
    @pytest.mark.parametrize("separator", [";", "\t", "|"])
    def test_other_separators_than_commas_are_refused_with_the_way_out(self, file, separator):
        file.write_text(separator.join(("at", "room")) + "\n")
        with pytest.raises(SchemaError, match="the header is one column") as caught:
            csv_columns(str(file))
        assert "Cells of CSV have commas between them" in caught.value.__notes__[0]

    def test_lines_that_end_with_a_carriage_return_alone_are_refused(self, file):
        with pytest.raises(SchemaError, match="lines end with a line feed, and these with a carriage return"):
            rows_of(file, f"at,room,level\r{AT},A,1\r")
        assert rows_of(file, f'at,"level",room,"a\rb"\r\n{AT},1,A,x\r\n')[0] == [{"room": "A", "level": 1}]

    def test_a_mark_before_a_name_in_quotes_leaves_the_name_one_cell(self, file):
        file.write_bytes(b"\xef\xbb\xbf" + f'"two\nlines",at\n1,{AT}\n'.encode())
        assert csv_columns(str(file)).names == ["two\nlines", "at"]
        assert end_of_records(file) == file.stat().st_size

    def test_a_header_in_another_encoding_is_refused_with_the_way_out(self, file):
        file.write_bytes(f"at,room\r\n{AT},A\r\n".encode("utf-16"))
        with pytest.raises(SchemaError, match="text is UTF-8, and the header is not"):
            csv_columns(str(file))

    def test_a_sample_of_which_no_row_fits_is_refused_with_its_first_line(self, file):
        file.write_text("at,room\n1,A,\n2,B,\n")
        with pytest.raises(
            SchemaError, match=r"levels\.csv:2: a row has 2 cells as the header has, and this"
        ):
            csv_columns(str(file))

    def test_a_torn_last_line_has_no_say_about_types(self, file):
        file.write_text(f"n,at\n1,{AT}\n2,{AT[:12]}")
        assert csv_columns(str(file)).field("at").type == pa.timestamp("us", "UTC")
        file.write_text(f"n,at\n1,{AT}")
        assert csv_columns(str(file)).field("at").type == pa.timestamp("us", "UTC")
