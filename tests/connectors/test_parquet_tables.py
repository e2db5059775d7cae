"""A table of plain Parquet files that a query keeps: each micro-batch once, and readers see one version."""

import datetime as dt
import os
import shutil
from collections import Counter
from pathlib import Path
from random import Random

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from test_tables import COLUMNS, Rows, latest, micro_batches, rows_of, stream_of

from anabranch import FOREVER, Adjust, Insert, Stable
from anabranch import spark as ab
from anabranch.connectors.tables.parquet import LATEST, VERSIONS, ParquetTarget
from anabranch.connectors.tables.sink import TableWriter, view_of, write_table
from anabranch.connectors.tables.table_error import TableError
from anabranch.jobs.ends import TableSinkSection
from anabranch.oracle.relation import denoted

LOW, HIGH = {"sensor": 1, "level": "low"}, {"sensor": 1, "level": "high"}
KINDS = ["elements", "history", "current"]


def view(kind, columns=COLUMNS, key=("sensor",)):
    return view_of(kind, columns, key if kind == "current" else (), open_only=False, final=False)


def writer(folder: Path, kind="history", *, columns=COLUMNS, query="q", settings="", **options):
    """What a query that is started with this table calls for each micro-batch."""
    (folder / "checkpoint").mkdir(exist_ok=True)
    mark = folder / "checkpoint" / "mark"
    target = ParquetTarget(folder / "table", query, view(kind, columns), settings, mark, **options)
    target.prepare()
    return TableWriter(target, columns, folder / "table" / "_quarantine")


def rows_in(folder: Path) -> list[dict]:
    """What a plain reader sees of a table: the files that a pattern finds."""
    files = sorted((folder / "table").glob("latest/*.parquet"))
    return pa.concat_tables([pq.ParquetFile(file).read() for file in files]).to_pylist()


def shown(folder: Path, kind: str):
    """What a table shows, in the form of the slow one."""
    table = Rows(view(kind))
    for row in rows_in(folder):
        table.rows[tuple(row[name] for name in table.view.by)] = row
    return table.events() if kind == "history" else table.values()


def versions(folder: Path) -> list[str]:
    return sorted(one.name for one in (folder / "table" / VERSIONS).iterdir())


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("kind", KINDS)
def test_a_table_is_what_the_prefix_denotes_and_every_micro_batch_may_run_twice(tmp_path, kind, seed):
    random = Random(seed)
    prefix, made = [], writer(tmp_path, kind, compact_every=3)
    slow = Rows(view("current"))
    for number, part in enumerate(micro_batches(random, stream_of(random))):
        prefix += part
        rows = rows_of(random.sample(part, len(part)))
        if random.random() < 0.5:
            made = writer(tmp_path, kind, compact_every=3)
        made.write(rows, number)
        version = os.readlink(tmp_path / "table" / LATEST)
        writer(tmp_path, kind).write(rows, number)
        assert os.readlink(tmp_path / "table" / LATEST) == version, "no version is made twice"
        match kind:
            case "elements":
                assert Counter(map(str, rows_in(tmp_path))) == Counter(map(str, rows_of(prefix).to_pylist()))
            case "history":
                assert shown(tmp_path, kind) == denoted(prefix).bag()
            case "current":
                slow.apply(part)
                assert shown(tmp_path, kind) == slow.values()
                expected = {key: start for key, (start, _) in latest(prefix).items()}
                assert {key: start for key, (start, _) in slow.values().items()} == expected


@pytest.mark.parametrize("kind", KINDS)
def test_an_empty_table_is_read_too_and_what_changes_nothing_makes_no_version(tmp_path, kind):
    made = writer(tmp_path, kind)
    assert rows_in(tmp_path) == []
    made.write(rows_of([Insert(LOW, 1, 5), Adjust(LOW, 1, 5, 1)]), 0)
    made.write(rows_of([Stable(2)]), 1)
    assert len(rows_in(tmp_path)) == (3 if kind == "elements" else 0)
    assert os.readlink(tmp_path / "table" / LATEST) == f"{VERSIONS}/{2 if kind == 'elements' else 0:09}"
    made.write(rows_of([Insert(LOW, 3, 5)]), 2)
    made.write(rows_of([Adjust(LOW, 3, 5, 3)]), 3)
    assert len(rows_in(tmp_path)) == (5 if kind == "elements" else 0)


def test_a_version_shares_the_files_that_have_no_row_that_changes(tmp_path):
    made = writer(tmp_path)
    for number in range(5):
        made.write(rows_of([Insert({"sensor": n}, 100 * number + n, FOREVER) for n in range(9)]), number)
    before = {file.name: file.stat().st_ino for file in (tmp_path / "table" / LATEST).glob("*.parquet")}
    made.write(rows_of([Adjust({"sensor": 3}, 203, FOREVER, 500)]), 5)
    after = {file.name: file.stat().st_ino for file in (tmp_path / "table" / LATEST).glob("*.parquet")}
    assert len(before) == 5
    assert len(before.items() & after.items()) == 4
    assert all(name.startswith("000000006-") for name in after.keys() - before.keys())


def test_a_reader_that_listed_a_version_reads_it_whole_or_is_told_that_a_file_is_gone(tmp_path):
    made = writer(tmp_path)
    made.write(rows_of([Insert({"sensor": 1}, 1, FOREVER)]), 0)
    made.write(rows_of([Insert({"sensor": 2}, 2, FOREVER)]), 1)
    listed = sorted((tmp_path / "table" / LATEST).glob("*.parquet"))
    here = (tmp_path / "table" / LATEST).resolve()
    made.write(rows_of([Insert({"sensor": 3}, 3, FOREVER)]), 2)
    assert sorted(row["sensor"] for file in listed for row in pq.ParquetFile(file).read().to_pylist()) == [
        1,
        2,
    ]
    made.write(rows_of([Adjust({"sensor": 1}, 1, FOREVER, 9)]), 3)
    with pytest.raises(FileNotFoundError):
        [pq.ParquetFile(file) for file in listed]
    assert sorted(row["valid_to"] or 0 for row in pq.read_table(here).to_pylist()) == [0, 0]
    assert len(rows_in(tmp_path)) == 3


@pytest.mark.parametrize("cut", ["before the folder is whole", "before the link is replaced"])
def test_what_a_run_left_that_was_cut_short_is_never_seen_and_made_again(tmp_path, cut):
    made = writer(tmp_path)
    made.write(rows_of([Insert(LOW, 1, 5)]), 0)
    left = tmp_path / "table" / VERSIONS / ("." + f"{2:09}" if cut.endswith("whole") else f"{2:09}")
    left.mkdir()
    pq.write_table(pa.table({"half": [1]}), left / "000000002-0.parquet")
    (tmp_path / "table" / f".{LATEST}").symlink_to("nowhere")
    assert len(rows_in(tmp_path)) == 1
    writer(tmp_path).write(rows_of([Insert(HIGH, 3, 9)]), 1)
    assert shown(tmp_path, "history") == denoted([Insert(LOW, 1, 5), Insert(HIGH, 3, 9)]).bag()
    assert versions(tmp_path) == [f"{n:09}" for n in range(3)]


def test_small_files_are_put_together_and_old_versions_removed(tmp_path):
    made = writer(tmp_path, compact_every=4, keep=dt.timedelta(0))
    for number in range(8):
        made.write(rows_of([Insert({"sensor": number}, number, FOREVER)]), number)
        files = list((tmp_path / "table" / LATEST).glob("*.parquet"))
        assert len(files) == (1 if number % 4 == 3 else number % 4 + 1 + (number > 3))
        assert len(versions(tmp_path)) == 1
    assert len(rows_in(tmp_path)) == 8
    kept = writer(tmp_path, keep=dt.timedelta(hours=1))
    for number in range(8, 11):
        kept.write(rows_of([Insert({"sensor": number}, number, FOREVER)]), number)
    assert len(versions(tmp_path)) == 4


def test_files_are_copied_where_they_cannot_be_linked(tmp_path, monkeypatch):
    def refuses(*_):
        raise PermissionError("no links here")

    monkeypatch.setattr("anabranch.connectors.tables.parquet.os.link", refuses)
    made = writer(tmp_path)
    for number in range(3):
        made.write(rows_of([Insert({"sensor": number}, number, FOREVER)]), number)
    assert sorted(row["sensor"] for row in rows_in(tmp_path)) == [0, 1, 2]


def test_a_table_that_is_not_the_querys_is_refused(tmp_path):
    made = writer(tmp_path, query="other")
    made.write(rows_of([Insert(LOW, 1, 5)]), 0)
    with pytest.raises(TableError, match="is a table that this query did not make") as caught:
        writer(tmp_path, query="mine")
    assert "new checkpoint" in caught.value.__notes__[0]
    for wrong, what in (
        ({"kind": "current"}, "was made as history, and this is current"),
        ({"settings": "{}"}, "was made as , and this is {}"),
        (
            {"columns": pa.schema([*list(COLUMNS)[:-1], pa.field("level", pa.float64())])},
            r"column 'level' of the table .* is string, and in this query double",
        ),
    ):
        with pytest.raises(TableError, match=what):
            writer(tmp_path, query="other", **wrong)
    shutil.copytree(tmp_path / "table", tmp_path / "copy", symlinks=True)
    shutil.rmtree(tmp_path / "table")
    for call in (
        lambda: made.write(rows_of([Insert(LOW, 2, 5)]), 1),
        lambda: writer(tmp_path, query="other"),
    ):
        with pytest.raises(TableError, match="that this query has written is gone"):
            call()
    (tmp_path / "checkpoint" / "mark").unlink()
    writer(tmp_path, query="other")
    shutil.rmtree(tmp_path / "table")
    shutil.move(tmp_path / "copy", tmp_path / "table")
    with pytest.raises(TableError, match="it was made anew"):
        writer(tmp_path, query="other")


def test_a_table_that_cannot_be_made_is_named_with_a_way_out(tmp_path):
    (tmp_path / "plain").touch()
    for place in (Path("/proc/lake"), tmp_path / "plain", tmp_path / "plain" / "table"):
        target = ParquetTarget(place, "q", view("history"), "", tmp_path / "mark")
        with pytest.raises(TableError, match=f"the table {place} cannot be made: ") as caught:
            target.prepare()
        assert "this user may write to" in caught.value.__notes__[0]
    assert [file.name for file in tmp_path.iterdir()] == ["plain"]


def test_what_parquet_has_no_type_for_and_folders_in_use_are_refused(tmp_path):
    for kind in (pa.list_(pa.null()), pa.duration("us"), pa.struct([])):
        odd = pa.schema([*COLUMNS, pa.field("odd", kind)])
        with pytest.raises(TableError, match=r"column 'odd' is .* which Parquet does not hold"):
            writer(tmp_path, columns=odd)
    (tmp_path / "table").mkdir()
    (tmp_path / "table" / "mine.csv").touch()
    with pytest.raises(TableError, match=r"is no Parquet table and not empty, it has 'mine.csv'"):
        writer(tmp_path)


def test_rows_that_someone_else_removed_are_missed_when_they_change(tmp_path):
    made = writer(tmp_path)
    made.write(rows_of([Insert(LOW, 1, 5)]), 0)
    [file] = (tmp_path / "table" / LATEST).glob("*.parquet")
    pq.write_table(pq.ParquetFile(file).read()[:0], file)
    with pytest.raises(TableError, match="changes, and the table does not have it"):
        made.write(rows_of([Adjust(LOW, 1, 5, 8)]), 1)


def test_a_query_that_is_restarted_keeps_tables_that_spark_duckdb_and_polars_read(spark, tmp_path):
    (tmp_path / "in").mkdir()
    elements = [
        [Insert(LOW, 1, FOREVER), Insert(HIGH, 5, FOREVER), Insert({"sensor": 2, "level": "x"}, 2, 9)],
        [Adjust(HIGH, 5, FOREVER, 5), Adjust(LOW, 1, FOREVER, 7), Stable(20)],
    ]
    for number, part in enumerate(elements):
        pq.write_table(rows_of(part), tmp_path / "in" / f"{number}.parquet")
        for kind in ("history", "current")[: number + 1]:
            merged = ab.merge(
                ab.folder(spark, tmp_path / "in"),
                kind="kind",
                start="start",
                end="end",
                old_end="old_end",
                case="R4",
            )
            query = write_table(
                merged,
                tmp_path / kind,
                kind=kind,
                format="parquet",
                key="sensor" if kind == "current" else (),
                checkpoint=tmp_path / f"{kind}-checkpoint",
                available_now=True,
            )
            assert ab.wait(query)
    events = [("low", 1, 7), ("x", 2, 9)]
    files = f"{tmp_path}/history/latest/*.parquet"
    history = spark.read.parquet(f"{tmp_path}/history/latest").orderBy("valid_from")
    assert [tuple(row) for row in history.select("level", "valid_from", "valid_to").collect()] == events
    said = duckdb.sql(f"select level, valid_from, valid_to from read_parquet('{files}') order by valid_from")
    assert said.fetchall() == events
    table = pl.scan_parquet(files).select("level", "valid_from", "valid_to").sort("valid_from").collect()
    assert table.rows() == events
    values = pl.scan_parquet(f"{tmp_path}/current/latest/*.parquet").sort("sensor").collect()
    assert values.select("sensor", "level", "valid_from").rows() == [(1, "low", 1), (2, "x", 2)]
    with pytest.raises(ValueError, match="one of delta, parquet, 'orc' is none"):
        write_table(merged, tmp_path / "t", kind="history", format="orc", checkpoint=tmp_path / "c")


def test_a_job_file_may_ask_for_plain_parquet():
    TableSinkSection(path="t", kind="history", format="parquet").check()
    with pytest.raises(ValueError, match=r"\[sink.table\] format is one of 2 words, 'orc' is none"):
        TableSinkSection(path="t", kind="history", format="orc").check()
