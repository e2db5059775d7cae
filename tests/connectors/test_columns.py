"""The columns of plain rows, whatever holds them, and a merge of such as one expression."""

import json
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import anabranch as ab
from anabranch.model.schema import SchemaError

AT = datetime(2026, 3, 1, 10, tzinfo=UTC)
ROWS = [{"at": AT + timedelta(minutes=n), "room": "AB"[n % 2], "level": n} for n in range(8)]
NORTH, SOUTH = ROWS[:2] + ROWS[3:], ROWS[:5] + ROWS[6:]
COLUMNS = {"at": "timestamp[us, tz=UTC]", "room": "string", "level": "int64"}


def merged(feeds: dict[str, Any], **settings: Any) -> ab.Relation:
    rows = ab.source(
        "rows",
        ab.columns(feeds, replica="feed", **settings),
        start="at",
        duration="5 minutes",
        disorder="1 minute",
        replica="feed",
        lossy=True,
    )
    relation = ab.Relation()
    relation.apply(ab.run(rows.merge(), {"rows": feeds}).table())
    return relation


def levels(relation: ab.Relation) -> list[Any]:
    return sorted(event.payload["level"] for event in relation.events())


def relation_of(rows: list[Any]) -> Any:
    table = pa.Table.from_pylist(rows)
    return duckdb.from_arrow(table)


FORMS = {
    "pyarrow": pa.Table.from_pylist,
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "duckdb": relation_of,
}


@pytest.mark.parametrize(("first", "second"), list(pairwise([*FORMS, *FORMS][:5])))
def test_tables_of_any_two_libraries_are_merged_by_one_expression(first, second):
    relation = merged({"north": FORMS[first](NORTH), "south": FORMS[second](SOUTH)})
    assert levels(relation) == list(range(8))


def test_a_table_and_a_file_are_replicas_of_one_stream(tmp_path):
    lines = [json.dumps({**row, "at": row["at"].isoformat()}) + "\n" for row in SOUTH]
    (tmp_path / "south.jsonl").write_text("".join(lines))
    relation = merged({"north": pl.DataFrame(NORTH), "south": tmp_path / "south.jsonl"})
    assert levels(relation) == list(range(8))


def test_the_index_of_a_frame_of_pandas_is_no_column():
    frame = pd.DataFrame(ROWS)
    odd = frame[frame.level % 2 == 1]
    assert ab.columns({"north": frame, "south": odd}).names == ["at", "room", "level"]
    assert levels(merged({"north": frame, "south": odd})) == list(range(8))


def test_the_table_of_a_run_is_what_is_written_of_it(tmp_path):
    plan = ab.source("rows", COLUMNS, start="at", duration="5 minutes", disorder="0 minutes")
    table = ab.run(plan, {"rows": pa.Table.from_pylist(ROWS)}).table()
    ab.write(tmp_path / "out.parquet", ab.run(plan, {"rows": pa.Table.from_pylist(ROWS)}))
    written = pq.read_table(tmp_path / "out.parquet")
    assert table.schema.field("start").type == written.schema.field("start").type == pa.timestamp("us", "UTC")
    assert table.to_pylist() == written.to_pylist()


def test_the_table_of_a_run_without_rows_has_its_columns():
    plan = ab.source("rows", COLUMNS, start="at", duration="5 minutes", disorder="0 minutes")
    table = ab.run(plan, {"rows": []}).table()
    assert table.schema.field("level").type == pa.int64()
    assert not [row for row in table.to_pylist() if row["kind"] == "insert"]


def test_a_table_is_of_one_output():
    plan = ab.source("rows", COLUMNS, start="at", disorder=0)
    with pytest.raises(ValueError, match=r"a table is of one output, and this run has 'all', 'same'"):
        ab.run({"all": plan, "same": plan}, {"rows": []}).table()


def write(folder: Path, name: str, text: str) -> str:
    (folder / name).write_text(text)
    return str(folder / name)


class TestTypes:
    def test_numbers_are_wide_enough_for_all_replicas(self, tmp_path):
        one, other = write(tmp_path, "a.csv", "at,n\n1,1\n"), write(tmp_path, "b.csv", "at,n\n1,1.5\n")
        assert ab.columns({"a": one, "b": other}).types == [pa.int64(), pa.float64()]

    def test_cells_of_two_forms_are_text_as_in_one_file(self, tmp_path):
        one, other = write(tmp_path, "a.csv", "at,n\n1,7\n"), write(tmp_path, "b.csv", "at,n\n1,007\n")
        assert ab.columns({"a": one, "b": other}).types == [pa.int64(), pa.string()]

    def test_a_column_without_values_has_the_type_that_others_give_it(self, tmp_path):
        one, other = write(tmp_path, "a.csv", "at,n\n1,\n"), write(tmp_path, "b.jsonl", '{"at":1,"n":2}\n')
        assert ab.columns({"a": one, "b": other}).types == [pa.int64(), pa.int64()]
        assert ab.columns(one).types == [pa.int64(), pa.string()]

    def test_values_of_two_sorts_in_files_of_other_formats_are_refused(self, tmp_path):
        one, other = write(tmp_path, "a.csv", "at,n\n1,x\n"), write(tmp_path, "b.jsonl", '{"at":1,"n":2}\n')
        with pytest.raises(SchemaError, match=r"'n' of .*a.csv holds string, and that of .*b.jsonl int64"):
            ab.columns({"a": one, "b": other})

    def test_a_declared_type_goes_before_the_sample(self, tmp_path):
        one = write(tmp_path, "a.csv", "at,n\n1,7\n")
        assert ab.columns(one, schema={"n": "string"}).types == [pa.int64(), pa.string()]
        with pytest.raises(SchemaError, match="schema names column 'm', and no row has it"):
            ab.columns(one, schema={"m": "string"})

    def test_times_without_a_zone_are_in_the_one_that_is_given(self, tmp_path):
        one = write(tmp_path, "a.csv", "at\n2026-03-01T10:00:00\n")
        two = write(tmp_path, "b.csv", "at\n2026-03-01T09:00:00Z\n")
        known = ab.columns({"a": one, "b": two}, zone="Europe/Berlin")
        assert known.field("at").type == pa.timestamp("us", "Europe/Berlin")

    def test_local_times_in_columns_are_in_the_zone_that_is_given_as_texts_are(self, tmp_path):
        table = pa.table({"at": pa.array([datetime(2026, 3, 1)], pa.timestamp("ms"))})
        text = write(tmp_path, "a.csv", "at\n2026-03-01T00:00:00\n")
        known = ab.columns({"a": table, "b": text}, zone="Europe/Berlin")
        assert known.field("at").type == pa.timestamp("us", "Europe/Berlin")
        assert ab.columns(table).field("at").type == pa.timestamp("ms")

    def test_times_that_spark_writes_in_96_bits_are_instants(self, tmp_path):
        table = pa.table({"at": pa.array([AT.replace(tzinfo=None)], pa.timestamp("us")), "level": [1]})
        pq.write_table(table, tmp_path / "north.parquet", use_deprecated_int96_timestamps=True)
        south = write(tmp_path, "south.csv", "at,level\n2026-03-01T10:00:00Z,1\n2026-03-01T10:05:00Z,2\n")
        feeds = {"north": tmp_path / "north.parquet", "south": south}
        assert ab.columns(feeds).field("at").type == pa.timestamp("us", "UTC")
        assert levels(merged(feeds)) == [1, 2]

    def test_a_zone_may_be_declared_of_local_times_in_columns(self):
        table = pa.table({"at": pa.array([datetime(2026, 3, 1)], pa.timestamp("us"))})
        known = ab.columns(table, schema={"at": "timestamp[us, tz=Europe/Berlin]"})
        assert known.field("at").type == pa.timestamp("us", "Europe/Berlin")


class TestNames:
    def test_replicas_whose_columns_differ_are_refused(self, tmp_path):
        one, other = write(tmp_path, "a.csv", "at,level\n1,2\n"), write(tmp_path, "b.csv", "at,levle\n1,2\n")
        with pytest.raises(SchemaError, match=r"a.csv has column 'level', and .*b.csv has not, did you mean"):
            ab.columns({"a": one, "b": other})

    def test_a_line_of_json_may_leave_out_what_is_null(self, tmp_path):
        one, other = write(tmp_path, "a.csv", "at,n\n1,2\n"), write(tmp_path, "b.jsonl", '{"at":1}\n')
        assert ab.columns({"a": one, "b": other}).names == ["at", "n"]

    def test_files_without_rows_and_header_have_no_say(self, tmp_path):
        one, other = write(tmp_path, "a.csv", "at,n\n1,2\n"), write(tmp_path, "b.csv", "")
        assert ab.columns({"a": one, "b": other}) == ab.columns(one)
        with pytest.raises(SchemaError, match="columns are those of the first rows or of a header"):
            ab.columns(other)
        assert ab.columns(other, schema={"at": "int64"}).names == ["at"]

    def test_rows_at_hand_have_columns_that_are_written(self):
        with pytest.raises(TypeError, match="columns are those of a table or of a file"):
            ab.columns({"north": [{"at": 1}]})


def test_the_rows_of_a_replica_are_no_folder(tmp_path):
    plan = ab.source(
        "rows", {**COLUMNS, "feed": "string"}, start="at", disorder="0s", replica="feed", lossy=True
    )
    with pytest.raises(ValueError, match="what is read for a replica is one file, and that of 'north' is"):
        ab.run(plan.merge(), {"rows": {"north": str(tmp_path)}}).table()


def test_elements_of_replicas_are_read_from_their_files(tmp_path):
    one, other = (
        write(tmp_path, "a.txt", "+ a [3, 9)\n| inf\n"),
        write(tmp_path, "b.txt", "+ b [4, 6)\n| inf\n"),
    )
    plan = ab.source("feed", {"value": "string"}, replica="who", lossy=True)
    relation = ab.Relation()
    relation.apply(ab.run(plan.merge(), {"feed": {"a": one, "b": other}}).table())
    assert [event.payload["value"] for event in relation.events()] == ["a", "b"]


@pytest.mark.parametrize(
    "form",
    [
        lambda table: table,
        pl.from_arrow,
        duckdb.from_arrow,
        lambda table: table.to_pandas(types_mapper=pd.ArrowDtype),
    ],
    ids=["pyarrow", "polars", "duckdb", "pandas"],
)
@pytest.mark.parametrize("ending", ["parquet", "arrow", "jsonl"])
def test_a_table_of_elements_is_written_with_its_times(tmp_path, form, ending):
    feeds = {"north": pa.Table.from_pylist(NORTH), "south": pa.Table.from_pylist(SOUTH)}
    columns = ab.columns(feeds, replica="feed")
    rows = ab.source("rows", columns, start="at", disorder="1 minute", replica="feed", lossy=True)
    table = ab.run(rows.merge(), {"rows": feeds}).table()
    path = tmp_path / f"out.{ending}"
    assert ab.write(path, form(table)) == table.num_rows
    back = ab.Relation()
    for batch in ab.read(str(path)):
        back.apply(batch)
    assert levels(back) == list(range(8))
    if ending == "parquet":
        assert pa.types.is_timestamp(pq.read_schema(path).field("start").type)
    if ending == "jsonl":
        assert '"2026-03-01T10:00:00Z"' in path.read_text()


def test_a_table_that_is_not_of_elements_is_not_written(tmp_path):
    with pytest.raises(SchemaError, match="kind"):
        ab.write(tmp_path / "out.parquet", pa.table({"a": [1]}))
    assert list(tmp_path.iterdir()) == []


def test_columns_whose_values_cannot_be_compared_are_refused_before_a_merge_reads_them():
    columns = {"at": "timestamp[us, tz=UTC]", "for": pa.list_(pa.month_day_nano_interval()), "feed": "string"}
    rows = ab.source("rows", columns, start="at", disorder="1 minute", replica="feed", lossy=True)
    with pytest.raises(TypeError, match="column 'for' has type month_day_nano_interval") as caught:
        rows.merge()
    assert any("Cast it" in note for note in caught.value.__notes__)
