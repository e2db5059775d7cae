"""A Delta table that a query keeps: each micro-batch once, by itself, and nobody else's table."""

import datetime as dt
import json
import shutil
from collections import Counter
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pytest
from deltalake import DeltaTable, Field, TableFeatures, write_deltalake
from test_tables import COLUMNS, Rows, latest, micro_batches, rows_of, stream_of

from anabranch import FOREVER, Adjust, Insert, Stable
from anabranch.connectors.tables.delta import TRIES, DeltaTarget
from anabranch.connectors.tables.micro_batch import MicroBatch
from anabranch.connectors.tables.sink import TableWriter, view_of
from anabranch.connectors.tables.table_error import TableError
from anabranch.connectors.tables.views import plain_columns
from anabranch.oracle.relation import denoted

LOW, HIGH = {"sensor": 1, "level": "low"}, {"sensor": 1, "level": "high"}
KINDS = ["elements", "history", "current"]


def view(kind, columns=COLUMNS, key=("sensor",)):
    return view_of(kind, columns, key if kind == "current" else (), open_only=False, final=False)


def writer(folder: Path, kind="history", *, columns=COLUMNS, query="q", key=("sensor",), **settings):
    """What a query that is started with this table calls for each micro-batch."""
    (folder / "checkpoint").mkdir(exist_ok=True)
    target = DeltaTarget(
        folder / "table", query, view(kind, columns, key), "", folder / "checkpoint" / "mark", **settings
    )
    target.prepare()
    return TableWriter(target, columns, folder / "table" / "_quarantine")


def table_of(folder: Path) -> DeltaTable:
    return DeltaTable(folder / "table")


def shown(folder: Path, kind: str):
    """What a table shows, in the form of the slow one."""
    table = Rows(view(kind))
    for row in table_of(folder).to_pyarrow_table().to_pylist():
        table.rows[tuple(row[name] for name in table.view.by)] = row
    return table.events() if kind == "history" else table.values()


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("kind", KINDS)
def test_a_table_is_what_the_prefix_denotes_and_every_micro_batch_may_run_twice(tmp_path, kind, seed):
    random = Random(seed)
    prefix, made = [], writer(tmp_path, kind, compact_every=2)
    slow = Rows(view("current"))
    for number, part in enumerate(micro_batches(random, stream_of(random))):
        prefix += part
        rows = rows_of(random.sample(part, len(part)))
        if random.random() < 0.5:
            made = writer(tmp_path, kind, compact_every=2)
        made.write(rows, number)
        version = [h for h in table_of(tmp_path).history() if h["operation"] in ("WRITE", "MERGE")]
        writer(tmp_path, kind).write(rows, number)
        again = [h for h in table_of(tmp_path).history() if h["operation"] in ("WRITE", "MERGE")]
        assert len(again) == len(version), "no commit is made twice"
        match kind:
            case "elements":
                there = table_of(tmp_path).to_pyarrow_table().to_pylist()
                assert Counter(map(str, there)) == Counter(map(str, rows_of(prefix).to_pylist()))
            case "history":
                assert shown(tmp_path, kind) == denoted(prefix).bag()
            case "current":
                slow.apply(part)
                assert shown(tmp_path, kind) == slow.values()
                expected = {key: start for key, (start, _) in latest(prefix).items()}
                assert {key: start for key, (start, _) in slow.values().items()} == expected


@pytest.mark.parametrize("kind", KINDS)
def test_a_micro_batch_is_one_commit(tmp_path, kind):
    made = writer(tmp_path, kind)
    made.write(rows_of([Insert(LOW, 1, 5), Insert(LOW, 1, 5), Insert(HIGH, 3, 9), Stable(1)]), 0)
    made.write(rows_of([Adjust(LOW, 1, 5, 4), Adjust(HIGH, 3, 9, 3), Insert({"sensor": 2}, 5, 9)]), 1)
    assert table_of(tmp_path).version() == 2
    made.write(rows_of([Stable(2)]), 2)
    assert table_of(tmp_path).version() == (3 if kind == "elements" else 2)


def test_the_files_that_cannot_have_a_row_that_changes_are_left_alone(tmp_path):
    made = writer(tmp_path, "history")
    for number in range(5):
        made.write(rows_of([Insert({"sensor": n}, 100 * number + n, FOREVER) for n in range(9)]), number)
    before = set(table_of(tmp_path).file_uris())
    made.write(rows_of([Adjust({"sensor": 3}, 203, FOREVER, 500)]), 5)
    assert len(before - set(table_of(tmp_path).file_uris())) == 1


@dataclass(frozen=True)
class Raced:
    """A view whose table is written to by someone else while it works, a number of times."""

    view: Any
    path: Path
    left: list[int] = field(default_factory=list)

    def __getattr__(self, name):
        return getattr(self.view, name)

    def changes(self, batch, find):
        changes = self.view.changes(batch, find)
        if self.left:
            number = self.left.pop()
            row = {"sensor": 50, "valid_from": 1, "valid_to": 9, "_event": b"%016d" % number, "_copy": 0}
            write_deltalake(self.path, pa.Table.from_pylist([row], self.view.schema), mode="append")
        return changes


def test_a_commit_that_is_raced_is_made_again_from_what_is_there_then(tmp_path):
    made = writer(tmp_path, "history")
    made.write(rows_of([Insert(LOW, 1, 5), Insert(HIGH, 3, 9)]), 0)
    made.target.view = Raced(made.target.view, tmp_path / "table", [1, 2])
    made.write(rows_of([Adjust(LOW, 1, 5, 7), Adjust(HIGH, 3, 9, 3)]), 1)
    ours = [row for row in table_of(tmp_path).to_pyarrow_table().to_pylist() if row["sensor"] == 1]
    assert [(row["valid_from"], row["valid_to"]) for row in ours] == [(1, 7)]


def test_a_commit_that_is_raced_for_ever_is_a_named_error(tmp_path):
    made = writer(tmp_path, "history")
    made.write(rows_of([Insert(LOW, 1, 5)]), 0)
    made.target.view = Raced(made.target.view, tmp_path / "table", list(range(TRIES)))
    with pytest.raises(TableError, match=r"micro-batch 1 could not be written .* in 5 tries") as caught:
        made.write(rows_of([Adjust(LOW, 1, 5, 7)]), 1)
    assert "Stop them" in caught.value.__notes__[0]


@dataclass(frozen=True)
class Overtaken(Raced):
    """A view during whose work another run of the query writes the same micro-batch."""

    def changes(self, batch, find):
        changes = self.view.changes(batch, find)
        if self.left:
            writer(self.path.parent, self.view.kind).target.write(self.left.pop(), batch)
        return changes


@pytest.mark.parametrize("kind", KINDS)
def test_of_two_runs_of_one_query_one_writes_a_micro_batch(tmp_path, kind):
    made = writer(tmp_path, kind)
    made.write(rows_of([Insert(LOW, 1, 5)]), 0)
    made.target.view = Overtaken(made.target.view, tmp_path / "table", [1])
    made.write(rows_of([Insert(LOW, 2, 5), Insert({"sensor": 3}, 4, 6)]), 1)
    assert table_of(tmp_path).version() == 2
    assert table_of(tmp_path).to_pyarrow_table().num_rows == {"elements": 3, "history": 3, "current": 2}[kind]


def test_a_table_that_is_not_the_querys_is_refused(tmp_path):
    write_deltalake(tmp_path / "table", pa.table({"a": [1]}))
    with pytest.raises(TableError, match="is a table that this query did not make"):
        writer(tmp_path)
    shutil.rmtree(tmp_path / "table")
    writer(tmp_path, query="other")
    with pytest.raises(TableError, match="is a table that this query did not make") as caught:
        writer(tmp_path, query="mine")
    assert "new checkpoint" in caught.value.__notes__[0]


def test_a_table_that_cannot_be_made_is_named_with_a_way_out(tmp_path):
    (tmp_path / "plain").touch()
    for place in (Path("/proc/lake"), tmp_path / "plain", tmp_path / "plain" / "table"):
        target = DeltaTarget(place, "q", view("history"), "", tmp_path / "mark")
        with pytest.raises(TableError, match=f"the table {place} cannot be made: ") as caught:
            target.prepare()
        assert "this user may write to" in caught.value.__notes__[0]
    assert [file.name for file in tmp_path.iterdir()] == ["plain"]


def test_a_folder_that_holds_something_else_is_refused(tmp_path):
    (tmp_path / "table").mkdir()
    (tmp_path / "table" / "_quarantine").mkdir()
    (tmp_path / "table" / "1.parquet").touch()
    with pytest.raises(TableError, match=r"is no Delta table and not empty, it has '1.parquet'"):
        writer(tmp_path)


def test_a_table_that_was_deleted_is_not_begun_again(tmp_path):
    made = writer(tmp_path)
    made.write(rows_of([Insert(LOW, 1, 5)]), 0)
    shutil.rmtree(tmp_path / "table")
    with pytest.raises(TableError, match="that this query has written is gone"):
        made.write(rows_of([Insert(LOW, 2, 5)]), 1)
    with pytest.raises(TableError, match="that this query has written is gone"):
        writer(tmp_path)


def test_a_table_that_was_made_anew_is_not_taken_for_the_old_one(tmp_path):
    made = writer(tmp_path)
    made.write(rows_of([Insert(LOW, 1, 5)]), 0)
    shutil.move(tmp_path / "checkpoint", tmp_path / "aside")
    shutil.rmtree(tmp_path / "table")
    writer(tmp_path)
    shutil.rmtree(tmp_path / "checkpoint")
    shutil.move(tmp_path / "aside", tmp_path / "checkpoint")
    for again in (made, None):
        with pytest.raises(TableError, match="it was made anew"):
            (again or writer(tmp_path)).write(rows_of([Insert(LOW, 2, 5)]), 1)


def test_a_query_that_died_between_making_the_table_and_noting_it_goes_on(tmp_path):
    writer(tmp_path)
    (tmp_path / "checkpoint" / "mark").unlink()
    writer(tmp_path).write(rows_of([Insert(LOW, 1, 5)]), 0)
    assert table_of(tmp_path).to_pyarrow_table().num_rows == 1


def test_a_table_of_another_kind_or_key_is_refused(tmp_path):
    writer(tmp_path, "history")
    with pytest.raises(TableError, match="was made as history, and this is current"):
        writer(tmp_path, "current")
    made = writer(tmp_path)
    with pytest.raises(TableError, match=r'was made as , and this is \{"key": 1\}'):
        replace(made.target, settings='{"key": 1}').prepare()


def test_other_columns_are_refused_before_and_while_a_query_runs(tmp_path):
    made = writer(tmp_path)
    other = pa.schema([*list(COLUMNS)[:-1], pa.field("level", pa.float64())])
    with pytest.raises(
        TableError, match=r"column 'level' of the table .* is string, and in this query double"
    ) as caught:
        writer(tmp_path, columns=other)
    assert "new table" in caught.value.__notes__[0]
    table_of(tmp_path).alter.add_columns([Field("more", "long")])
    with pytest.raises(TableError, match=r"column 'more' of the table .* and in this query not there"):
        made.write(rows_of([Insert(LOW, 1, 5)]), 0)


def test_features_that_cannot_be_read_are_named(tmp_path):
    made = writer(tmp_path)
    made.write(rows_of([Insert(LOW, 1, 5)]), 0)
    more = TableFeatures.DeletionVectors
    table_of(tmp_path).alter.add_feature(more, allow_protocol_versions_increase=True)
    with pytest.raises(TableError, match="features that deltalake does not know") as caught:
        made.write(rows_of([Adjust(LOW, 1, 5, 9)]), 1)
    assert "DROP FEATURE" in caught.value.__notes__[0]


def test_rows_that_someone_else_removed_are_missed_only_when_they_change(tmp_path):
    made = writer(tmp_path)
    made.write(rows_of([Insert(LOW, 1, 5), Insert(HIGH, 3, 9)]), 0)
    table_of(tmp_path).delete("valid_from = 1")
    made.write(rows_of([Adjust(HIGH, 3, 9, 8)]), 1)
    with pytest.raises(TableError, match=r"the event .*low.* of 1 changes, and the table does not have it"):
        made.write(rows_of([Adjust(LOW, 1, 5, 8)]), 2)


def test_upkeep_puts_files_together_and_removes_the_old_and_the_orphaned(tmp_path):
    made = writer(tmp_path, "history", compact_every=4, keep=dt.timedelta(0))
    (tmp_path / "table" / "_quarantine").mkdir()
    (tmp_path / "table" / "_quarantine" / "x.jsonl").touch()
    (tmp_path / "table" / "part-orphan.parquet").touch()
    for number in range(8):
        made.write(rows_of([Insert({"sensor": number}, number, FOREVER)]), number)
        files = [f for f in (tmp_path / "table").iterdir() if f.suffix == ".parquet"]
        assert len(table_of(tmp_path).file_uris()) == (
            1 if number % 4 == 3 else number % 4 + 1 + (number > 3)
        )
        if number % 4 == 3:
            assert len(files) == 1
    assert (tmp_path / "table" / "_quarantine" / "x.jsonl").exists()
    assert table_of(tmp_path).to_pyarrow_table().num_rows == 8


def test_a_reader_of_an_older_version_is_not_disturbed_by_upkeep(tmp_path):
    made = writer(tmp_path, "current", compact_every=1)
    made.write(rows_of([Insert(LOW, 1, 5)]), 0)
    reader = table_of(tmp_path)
    for number in range(1, 4):
        made.write(rows_of([Insert({"sensor": number}, number, 9)]), number)
    assert reader.to_pyarrow_table().num_rows == 1
    assert table_of(tmp_path).to_pyarrow_table().num_rows == 3


def test_upkeep_is_made_up_for_when_a_micro_batch_runs_again(tmp_path):
    for number in range(3):
        writer(tmp_path, compact_every=None).write(rows_of([Insert({"sensor": number}, number, 9)]), number)
    assert len(table_of(tmp_path).file_uris()) == 3
    writer(tmp_path, compact_every=3).write(rows_of([Insert({"sensor": 2}, 2, 9)]), 2)
    assert len(table_of(tmp_path).file_uris()) == 1


def test_refused_rows_are_set_aside_and_replaced_when_a_micro_batch_runs_again(tmp_path):
    refused = pa.struct([("rule", pa.string()), ("reason", pa.string())])
    columns = COLUMNS.append(pa.field("refused", refused))
    rows = rows_of([Insert(LOW, 1, 5)]).append_column("refused", pa.nulls(1, refused))
    bad = pa.Table.from_pylist([{"refused": {"rule": "malformed", "reason": "no start"}}], columns)
    made = writer(tmp_path)
    for _ in range(2):
        made.write(pa.concat_tables([rows, bad]), 0)
    [file] = (tmp_path / "table" / "_quarantine").iterdir()
    assert [json.loads(line)["rule"] for line in file.read_text().splitlines()] == ["malformed"]
    made.write(rows, 0)
    assert not list((tmp_path / "table" / "_quarantine").iterdir())
    assert table_of(tmp_path).to_pyarrow_table().num_rows == 1


ODD = pa.schema(
    [
        ("id", pa.int32()),
        ("back`tick", pa.int8()),
        ('quo"te', pa.string()),
        ("dot.ted", pa.bool_()),
        ("with space, (and) {more}; =", pa.float32()),
        ("Größe", pa.float64()),
        ("class", pa.binary()),
        ("_x", pa.date32()),
        ("instant", pa.timestamp("us", "UTC")),
        ("local", pa.timestamp("us")),
        ("exact", pa.decimal128(38, 18)),
        (
            "list",
            pa.list_(pa.struct([("a b", pa.list_(pa.decimal128(5, 2))), ("t", pa.timestamp("us", "UTC"))])),
        ),
        ("struct", pa.struct([("in.side", pa.struct([("d", pa.date32())])), ("b", pa.binary())])),
        ("map", pa.map_(pa.string(), pa.list_(pa.int64()))),
    ]
)
FULL = {
    "id": 1,
    "back`tick": -3,
    'quo"te': "it's \"\\ 😀",
    "dot.ted": True,
    "with space, (and) {more}; =": 0.5,
    "Größe": float("inf"),
    "class": b"\x00\xff",
    "_x": dt.date(1969, 12, 31),
    "instant": dt.datetime(2026, 3, 1, 10, 0, 0, 1, tzinfo=dt.UTC),
    "local": dt.datetime(1, 1, 1, 0, 0, 0, 1),
    "exact": Decimal("-12345678901234567890.123456789012345678"),
    "list": [{"a b": [Decimal("1.50"), None], "t": dt.datetime(2026, 3, 1, tzinfo=dt.UTC)}, None],
    "struct": {"in.side": {"d": dt.date(2026, 3, 1)}, "b": None},
    "map": [("k", [1, None]), ("l", None)],
}


@pytest.mark.parametrize("kind", KINDS)
def test_types_and_names_survive(tmp_path, kind):
    columns = pa.schema([*list(COLUMNS)[:4], *ODD])
    made = writer(tmp_path, kind, columns=columns, key=("id",))
    other = {**FULL, "id": 2}
    made.write(rows_of([Insert(FULL, 1, 5), Insert({"id": 1}, 2, 5), Insert(other, 3, 9)], columns), 0)
    made.write(rows_of([Adjust({"id": 1}, 2, 5, 2), Adjust(other, 3, 9, FOREVER)], columns), 1)
    got = table_of(tmp_path).to_pyarrow_table()
    payloads = got.select(ODD.names).cast(ODD).to_pylist()
    if kind == "elements":
        assert [row for row in payloads if row["id"] == 1 and row["class"]] == [FULL]
    else:
        assert sorted(payloads, key=lambda row: row["id"]) == [FULL, other]
    assert pl.read_delta(str(tmp_path / "table")).height == got.num_rows
    assert len(duckdb.from_arrow(table_of(tmp_path).to_pyarrow_dataset()).fetchall()) == got.num_rows


@pytest.mark.parametrize("clock", [pa.timestamp("us", "UTC"), pa.timestamp("us"), pa.date32()])
@pytest.mark.parametrize("kind", ["history", "current"])
def test_every_clock_is_kept(tmp_path, clock, kind):
    narrow = pa.int32() if pa.types.is_date(clock) else pa.int64()
    columns = pa.schema([f.with_type(clock) if f.name in ("start", "end", "old_end") else f for f in COLUMNS])

    def rows(elements):
        whole = rows_of(elements)
        kept = [
            c.cast(narrow).cast(f.type) if f.type == clock else c
            for c, f in zip(whole.columns, columns, strict=True)
        ]
        return pa.Table.from_arrays(kept, schema=columns)

    made = writer(tmp_path, kind, columns=columns)
    made.write(rows([Insert(LOW, -5, 7), Insert(HIGH, 3, FOREVER)]), 0)
    made.write(rows([Adjust(HIGH, 3, FOREVER, 3), Adjust(LOW, -5, 7, FOREVER)]), 1)
    [row] = table_of(tmp_path).to_pyarrow_table().to_pylist()
    assert row["level"] == "low"
    assert pa.scalar(row["valid_from"], clock).cast(narrow).as_py() == -5
    assert row.get("valid_to") is None


@pytest.mark.parametrize(
    ("kind", "what"),
    [
        (pa.duration("us"), "duration"),
        (pa.null(), "columns without a type"),
        (pa.list_(pa.struct([("x", pa.time64("us"))])), "time64"),
        (pa.struct([]), "structs without fields"),
        (pa.month_day_nano_interval(), "interval"),
    ],
)
def test_what_delta_cannot_hold_is_refused_before_the_query_starts(tmp_path, kind, what):
    columns = pa.schema([*COLUMNS, pa.field("odd", kind)])
    with pytest.raises(
        TableError, match=f"column 'odd' is .*, and a Delta table holds no .*{what}"
    ) as caught:
        writer(tmp_path, columns=columns)
    assert "Cast" in caught.value.__notes__[0]
    assert not (tmp_path / "table").exists()


def test_columns_that_differ_in_case_only_are_refused(tmp_path):
    with pytest.raises(TableError, match="Duplicate field name"):
        writer(tmp_path, columns=pa.schema([*COLUMNS, pa.field("Level", pa.string())]))


def test_a_name_that_merging_needs_is_refused(tmp_path):
    columns = pa.schema([*COLUMNS, pa.field("_change", pa.string())])
    with pytest.raises(TableError, match="'_change'"):
        writer(tmp_path, columns=columns)
    writer(tmp_path, "elements", columns=columns)


def test_non_null_columns_of_a_frame_may_be_null_in_a_table():
    inner = pa.struct([pa.field("x", pa.int64(), nullable=False)])
    columns = pa.schema([pa.field("a", pa.list_(pa.field("item", inner, nullable=False)), nullable=False)])
    assert str(plain_columns(columns).field("a")) == "pyarrow.Field<a: list<item: struct<x: int64>>>"
    assert MicroBatch(rows_of([])).net.count.tolist() == []
