"""The change data feeds of Delta tables: each version is heard once, in order, as the table has it."""

import datetime as dt
import shutil
from collections import Counter
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from random import Random

import msgspec
import pyarrow as pa
import pytest
from deltalake import DeltaTable, Field, write_deltalake
from deltalake.schema import PrimitiveType
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxFiles, ReadMaxRows

from anabranch import EveryChange
from anabranch import spark as ab
from anabranch.connectors.delta.reading import VERSION_ROWS
from anabranch.connectors.delta.source import ChangesReader
from anabranch.engines.spark.query.failure import failure
from anabranch.engines.spark.transport import parcel
from anabranch.engines.spark.transport.packing import Packing
from anabranch.model.op import Op
from anabranch.model.schema import SchemaError
from anabranch.rows.change_words import spellings
from anabranch.rows.layout import Layout

STOCK = pa.schema([("id", pa.int64()), ("item", pa.string())])
FEED = {"delta.enableChangeDataFeed": "true"}


def made(path: Path, columns=STOCK, properties=FEED) -> Path:
    DeltaTable.create(path, schema=columns, configuration=properties)
    return path


def put(path: Path, rows: dict[int, str], mode="append") -> None:
    write_deltalake(path, pa.table({"id": list(rows), "item": list(rows.values())}, STOCK), mode=mode)


def put_in_place(path: Path, rows: dict[int, str], gone=()) -> None:
    """One MERGE that inserts, updates and deletes."""
    source = pa.table({"id": [*rows, *gone], "item": [*rows.values(), *[None] * len(gone)]}, STOCK)
    merge = DeltaTable(path).merge(source, "t.id = s.id", source_alias="s", target_alias="t")
    merge.when_matched_delete("s.item IS NULL").when_matched_update_all(
        "s.item IS NOT NULL"
    ).when_not_matched_insert_all("s.item IS NOT NULL").execute()


def rows_at(path: Path, version: int) -> dict[int, str]:
    rows = DeltaTable(path, version=version).to_pyarrow_table()
    return dict(zip(*(rows.column(name).to_pylist() for name in ("id", "item")), strict=True))


def reader(spark, tables, *, tasks=2, replica=None, by="time", **options) -> ChangesReader:
    """What Spark is given to read with."""
    feeds = ab.delta_changes(spark, tables, **options).feeds
    layout = Layout(by, kind="op", replica=replica, key=("id",), ops=spellings())
    packing = Packing(layout, 1, 100, ordered=True)
    said = {"feeds": feeds, "packing": packing, "shards": [0]}
    return ChangesReader(
        {name: msgspec.json.encode(one).decode() for name, one in said.items()} | {"tasks": tasks}
    )


def heard(source, start, end):
    """What the tasks of a micro-batch say, in order: (replica, version, what happened, the row)."""
    found = []
    for task in source.partitions(start, end):
        for rows in source.read(task):
            body = rows.column(1)[0]
            one = parcel.from_bytes(body.as_py()) if body.is_valid else None
            for n, stretch in enumerate(one.stretches if one is not None else ()):
                mine = (one.stretch == n).nonzero()[0]
                batch = one.batch(mine)
                for at, op, row in zip(
                    (stretch.sequence + one.row[mine]).tolist(),
                    batch.old_end.tolist(),
                    batch.payload.to_pylist(),
                    strict=True,
                ):
                    found.append((stretch.replica, at, Op(op).name.lower(), row))
    return [(who, at // VERSION_ROWS, op, row) for who, at, op, row in sorted(found, key=lambda one: one[:2])]


def plain(found):
    return [(version, op, row["id"], row["item"]) for _, version, op, row in found]


def everything(source, start=None, limit=None):
    """The offsets of the micro-batches that read all there is."""
    offsets = [source.initialOffset() if start is None else start]
    while True:
        end = source.latestOffset(offsets[-1], limit or source.getDefaultReadLimit())
        if end == offsets[-1]:
            return offsets
        offsets.append(end)


def error_of(call) -> BaseException:
    """What is raised, as a query would tell it."""
    with pytest.raises(Exception) as caught:  # noqa: PT011
        call()
    return failure(caught.value)


def changed(random: Random, path: Path) -> None:
    """One more version, of any kind."""
    now = rows_at(path, DeltaTable(path).version())
    new = {n: f"{n}-{random.random():.6f}" for n in random.sample(range(100), 3) if n not in now}
    some = random.sample(sorted(now), min(2, len(now)))
    match random.randrange(7):
        case 0:
            put_in_place(path, {**new, **{n: f"{n}~{random.random():.6f}" for n in some[:1]}}, some[1:])
        case 1 if some:
            DeltaTable(path).update(
                updates={"item": f"'u{random.random():.6f}'"}, predicate=f"id = {some[0]}"
            )
        case 2 if some:
            DeltaTable(path).delete(f"id = {some[0]}")
        case 3 if some:
            DeltaTable(path).update(updates={"id": "id + 100"}, predicate=f"id = {some[0]} and id < 100")
        case 4 if len(now) > 4:
            put(path, {**new, some[0]: f"o{random.random():.6f}"}, mode="overwrite")
        case 5:
            DeltaTable(path).optimize.compact()
        case _:
            put(path, new)


@pytest.mark.parametrize("seed", range(3))
def test_versions_applied_one_after_the_other_are_the_table_at_each_of_them(spark, tmp_path, seed):
    random = Random(seed)
    path = made(tmp_path / "stock")
    for _ in range(14):
        changed(random, path)
    source = reader(spark, path, versions_per_trigger=random.randint(1, 4), tasks=random.randint(1, 3))
    offsets = everything(source)
    rows, reached = {}, 0
    for start, end in pairwise(offsets):
        said = plain(heard(source, start, end))
        [place] = end.values()
        for version in range(reached, place["next"]):
            for _, op, key, item in (one for one in said if one[0] == version):
                if op == "delete":
                    assert rows.pop(key) == item
                else:
                    assert op == "insert"
                    assert rows.setdefault(key, item) is item
            assert rows == rows_at(path, version)
        reached = place["next"]
    assert reached == DeltaTable(path).version() + 1


def test_rows_that_go_are_heard_before_those_that_come_and_a_key_may_change(spark, tmp_path):
    path = made(tmp_path / "stock")
    put(path, {1: "tea", 2: "milk"})
    DeltaTable(path).update(updates={"id": "id + 1"})
    put(path, {2: "tea", 9: "jam"}, mode="overwrite")
    source = reader(spark, path)
    said = plain(heard(source, *everything(source)))
    assert said[:2] == [(1, "insert", 1, "tea"), (1, "insert", 2, "milk")]
    assert [one[1] for one in said if one[0] == 2] == ["delete"] * 2 + ["insert"] * 2
    assert {one[2:] for one in said if one[:2] == (2, "insert")} == {(2, "tea"), (3, "milk")}
    assert [one[1] for one in said if one[0] == 3] == ["delete"] * 2 + ["insert"] * 2


def test_a_limit_on_versions_is_kept_and_tables_advance_together(spark, tmp_path):
    paths = [made(tmp_path / name) for name in ("east", "west")]
    for path in paths:
        for n in range(4):
            put(path, {n: "x"})
    source = reader(spark, paths, versions_per_trigger=2, replica="replica")
    offsets = everything(source)
    assert [{name: place["next"] for name, place in one.items()} for one in offsets[1:]] == [
        {"east": n, "west": n} for n in (2, 4, 5)
    ]
    assert len(everything(source, limit=ReadMaxFiles(1))) == 1 + 5
    assert len(everything(source, limit=ReadMaxRows(1))) == 1 + 3
    assert len(everything(source, limit=ReadAllAvailable())) == 1 + 1
    said = heard(source, *everything(source, limit=ReadAllAvailable()))
    assert Counter(who for who, *_ in said) == {"east": 4, "west": 4}
    assert "replica" not in said[0][3]


def test_what_comes_after_the_start_of_a_run_over_what_is_there_waits_for_the_next(spark, tmp_path):
    path = made(tmp_path / "stock")
    put(path, {1: "tea"})
    source = reader(spark, path, versions_per_trigger=1)
    source.prepareForTriggerAvailableNow()
    put(path, {2: "milk"})
    assert everything(source)[-1]["stream"]["next"] == 2
    again = reader(spark, path)
    offsets = everything(again, everything(source)[-1])
    assert plain(heard(again, *offsets)) == [(2, "insert", 2, "milk")]


def test_a_new_checkpoint_begins_where_it_is_told_to(spark, tmp_path):
    path = made(tmp_path / "stock")
    put(path, {1: "tea"})
    put(path, {2: "milk"})
    for start, first in (
        ("earliest", [(1, "insert", 1, "tea"), (2, "insert", 2, "milk")]),
        (2, [(2, "insert", 2, "milk")]),
        ("snapshot", [(2, "snapshot", 1, "tea"), (2, "snapshot", 2, "milk")]),
        ("latest", []),
    ):
        source = reader(spark, path, start=start)
        offsets = everything(source)
        assert sorted(plain(heard(source, *offsets))) == first
    put(path, {3: "jam"})
    assert plain(heard(source, offsets[-1], everything(source, offsets[-1])[-1])) == [(3, "insert", 3, "jam")]
    assert "begins at version 9, and the last is 3" in str(
        error_of(lambda: everything(reader(spark, path, start=9)))
    )


def test_rows_of_the_first_version_are_a_snapshot_unless_a_column_says_since_when_they_are_there(
    spark, tmp_path
):
    path = tmp_path / "stock"
    rows = pa.table(
        {"id": [1, 2], "item": ["tea", "milk"], "since": [dt.datetime(2026, 3, 1, tzinfo=dt.UTC)] * 2}
    )
    write_deltalake(path, rows, configuration=FEED)
    write_deltalake(path, rows, mode="append")
    for time, first in (("time", "snapshot"), ("since", "insert")):
        source = reader(spark, path, time="time" if time == "time" else None, by=time)
        found = plain(heard(source, *everything(source)))
        assert [(version, op) for version, op, *_ in found] == [(0, first)] * 2 + [(1, "insert")] * 2


@pytest.mark.parametrize("start", ["latest", "snapshot"])
def test_a_first_micro_batch_that_runs_again_reads_what_it_read(spark, tmp_path, start):
    path = made(tmp_path / "stock")
    put(path, {1: "tea"})
    source = reader(spark, path, start=start)
    end = source.latestOffset(source.initialOffset(), source.getDefaultReadLimit())
    before = heard(source, source.initialOffset(), end)
    put(path, {1: "milk"}, mode="overwrite")
    again = reader(spark, path, start=start)
    assert heard(again, again.initialOffset(), end) == before


def test_a_table_that_was_made_anew_or_put_back_is_not_taken_for_the_old_one(spark, tmp_path):
    path = made(tmp_path / "stock")
    put(path, {1: "tea"})
    shutil.copytree(path, tmp_path / "copy")
    put(path, {2: "milk"})
    source = reader(spark, path)
    start, end = everything(source)
    shutil.rmtree(path)
    shutil.copytree(tmp_path / "copy", path)
    wrong = error_of(lambda: everything(source, end))
    assert isinstance(wrong, ab.TableError)
    assert "was read up to version 2, and its last is 1" in str(wrong)
    shutil.rmtree(path)
    assert "no Delta table" in str(error_of(lambda: everything(source, end)))
    made(path)
    for call in (lambda: everything(source, end), lambda: heard(source, start, end)):
        wrong = error_of(call)
        assert "was deleted and made again since it was read" in str(wrong)
        assert "new checkpoint" in wrong.__notes__[0]


def test_versions_that_are_gone_before_they_were_read_are_named(spark, tmp_path):
    path = made(tmp_path / "stock")
    put(path, {1: "tea"})
    DeltaTable(path).update(updates={"item": "'milk'"})
    source = reader(spark, path, tasks=1)
    offsets = everything(source)
    DeltaTable(path).vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False, full=True)
    wrong = error_of(lambda: heard(source, *offsets))
    assert isinstance(wrong, ab.TableError)
    assert f"version 1 of {path} is no longer there" in str(wrong)
    assert "start='snapshot'" in wrong.__notes__[0]
    DeltaTable(path).create_checkpoint()
    (path / "_delta_log" / f"{0:020}.json").unlink()
    assert "version 0" in str(error_of(lambda: heard(source, *offsets)))
    fresh = reader(spark, path, start="snapshot")
    assert [one[1:] for one in plain(heard(fresh, *everything(fresh)))] == [("snapshot", 1, "milk")]


def test_a_table_whose_feed_is_or_was_off_is_named(spark, tmp_path):
    path = made(tmp_path / "stock", properties=None)
    put(path, {1: "tea"})
    with pytest.raises(ab.TableError, match=r"the change data feed of .* is off") as caught:
        ab.delta_changes(spark, path)
    assert "delta.enableChangeDataFeed" in caught.value.__notes__[0]
    DeltaTable(path).alter.set_table_properties(FEED)
    source = reader(spark, path)
    offsets = everything(source)
    assert "was off at version 0" in str(error_of(lambda: heard(source, *offsets)))
    since = reader(spark, path, start=2)
    put(path, {2: "milk"})
    assert plain(heard(since, *everything(since))) == [(3, "insert", 2, "milk")]


def test_the_columns_are_those_that_the_table_had_at_the_start(spark, tmp_path):
    path = made(tmp_path / "stock")
    source = reader(spark, path)
    DeltaTable(path).alter.add_columns([Field("price", PrimitiveType("double"))])
    write_deltalake(path, pa.table({"id": [1], "item": ["tea"], "price": [2.5]}), mode="append")
    [_, (_, _, op, row)] = [None, *heard(source, *everything(source))]
    assert (op, row) == ("insert", {"id": 1, "item": "tea"})
    later = reader(spark, path)
    assert [row for *_, row in heard(later, *everything(later))] == [{"id": 1, "item": "tea", "price": 2.5}]
    narrow = pa.table({"id": [2]})
    write_deltalake(path, narrow, mode="overwrite", schema_mode="overwrite")
    wrong = error_of(lambda: heard(source, *everything(source)))
    assert isinstance(wrong, SchemaError)
    assert "has no column 'item'" in str(wrong)


def test_types_and_names_survive(spark, tmp_path):
    stamp = pa.timestamp("us", "UTC")
    columns = pa.schema(
        [
            ("id", pa.int64()),
            ("a dot.ted name", pa.string()),
            ("raw", pa.binary()),
            ("price", pa.decimal128(20, 4)),
            ("day", pa.date32()),
            ("local", pa.timestamp("us")),
            ("at", stamp),
            ("tags", pa.list_(pa.struct([("n", pa.int32()), ("t", pa.string())]))),
            ("more", pa.map_(pa.string(), pa.float64())),
        ]
    )
    row = {
        "id": 1,
        "a dot.ted name": "x",
        "raw": b"\x00\xff",
        "price": Decimal("1234.5678"),
        "day": dt.date(1960, 2, 29),
        "local": dt.datetime(2026, 3, 8, 2, 30),
        "at": dt.datetime(2026, 3, 8, 2, 30, tzinfo=dt.UTC),
        "tags": [{"n": 1, "t": "x"}, None],
        "more": [("k", 1.5), ("l", None)],
    }
    path = made(tmp_path / "stock", columns)
    write_deltalake(path, pa.Table.from_pylist([row, {"id": 2}], columns), mode="append")
    DeltaTable(path).update(updates={"price": "2"}, predicate="id = 1")
    source = reader(spark, path)
    said = [(op, one) for *_, op, one in heard(source, *everything(source))]
    assert said[0] == ("insert", row)
    assert said[1] == ("insert", {name: {"id": 2}.get(name) for name in columns.names})
    assert said[2:] == [("delete", row), ("insert", {**row, "price": Decimal(2)})]


def test_what_cannot_be_read_is_refused_before_a_query_starts(spark, tmp_path):
    path = made(tmp_path / "stock")
    for wrong, what in (
        ({"versions_per_trigger": 0}, "versions_per_trigger is 1 or more"),
        ({"start": "now"}, "earliest, latest, snapshot or at a version, not 'now'"),
        ({"start": -1}, "not -1"),
        ({"op": "Item"}, "op is the column 'Item', and the table has one of that name"),
        ({"op": "x", "time": "x"}, "different names"),
    ):
        with pytest.raises(ValueError, match=what):
            ab.delta_changes(spark, path, **wrong)
    with pytest.raises(ValueError, match="at least one table"):
        ab.delta_changes(spark, [])
    with pytest.raises(ValueError, match="is an address of s3"):
        ab.delta_changes(spark, "s3://lake/stock")
    with pytest.raises(ab.TableError, match="is no Delta table that is there"):
        ab.delta_changes(spark, tmp_path / "nothing")
    other = made(tmp_path / "other" / "stock", pa.schema([("id", pa.int64()), ("item", pa.int64())]))
    with pytest.raises(ValueError, match="two are called 'stock'"):
        ab.delta_changes(spark, [path, other])
    with pytest.raises(SchemaError, match=r"column 'item' of .* is string, and .* has int64"):
        ab.delta_changes(spark, {"a": path, "b": other})


def test_a_replica_that_was_read_must_be_given_again(spark, tmp_path):
    east, west = made(tmp_path / "east"), made(tmp_path / "west")
    end = everything(reader(spark, [east, west], replica="replica"))[-1]
    alone = reader(spark, [east], replica="replica")
    for call in (lambda: everything(alone, end), lambda: alone.partitions({}, end)):
        assert "has read a replica 'west', and it is not given now" in str(error_of(call))


def lifetimes(path: Path) -> Counter:
    """The events of a table by its versions: which rows there were, from when to when."""
    table = DeltaTable(path)
    times = {one["version"]: one["timestamp"] * 1000 for one in table.history()}
    events, since, before = Counter(), {}, {}
    for version in range(table.version() + 1):
        now, at = rows_at(path, version), times[version]
        for key, item in before.items():
            if now.get(key) != item and since[key] < at:
                events[key, item, since[key], at] += 1
        since = {key: since[key] if before.get(key) == item else at for key, item in now.items()}
        before = now
    events.update((key, item, since[key], None) for key, item in before.items())
    return events


def shown(path: Path) -> Counter:
    rows = DeltaTable(path).to_pyarrow_table()
    names = ("valid_from", "valid_to")
    ticks = [rows.column(name).cast(pa.int64()).to_pylist() for name in names]
    return Counter(zip(rows.column("id").to_pylist(), rows.column("item").to_pylist(), *ticks, strict=True))


@pytest.mark.slow
def test_two_copies_of_a_table_are_merged_into_its_history_over_restarts(spark, tmp_path):
    random = Random(4)
    east, west = made(tmp_path / "east"), tmp_path / "west"

    def run():
        tables = ab.delta_changes(spark, [east, west], versions_per_trigger=4)
        merged = ab.merge_changes(
            tables, key="id", time="time", replica="replica", disorder="0 seconds", policy=EveryChange()
        )
        query = ab.write_table(
            merged,
            tmp_path / "history",
            kind="history",
            checkpoint=tmp_path / "checkpoint",
            available_now=True,
        )
        ab.wait(query)
        assert ab.status(query).quarantined == 0

    for behind in (4, 0):
        for _ in range(6):
            changed(random, east)
        shutil.copytree(east, west, dirs_exist_ok=True)
        for _ in range(behind):
            changed(random, east)
        run()
        assert shown(tmp_path / "history") == lifetimes(east)


def test_a_table_that_is_filled_from_another_goes_on_with_rows_as_they_are(spark, tmp_path):
    east, west = made(tmp_path / "east"), tmp_path / "west"
    put(east, {1: "tea"})
    put(east, {2: "milk"})
    write_deltalake(west, DeltaTable(east).to_pyarrow_table(), configuration=FEED)
    put(east, {3: "jam"})
    tables = ab.delta_changes(spark, [east, west])
    merged = ab.merge_changes(tables, key="id", time="time", replica="replica", disorder="0 seconds")
    places = {"checkpoint": tmp_path / "checkpoint", "available_now": True}
    ab.wait(ab.write_table(merged, tmp_path / "history", kind="history", **places))
    assert shown(tmp_path / "history") == lifetimes(east)


def test_a_feed_never_says_how_far_it_has_come(spark, tmp_path):
    changes = ab.delta_changes(spark, made(tmp_path / "stock"), op="did")
    with pytest.raises(ValueError, match="its source never says stable, and disorder is not given") as told:
        ab.merge_changes(changes, key="id", time="time", op="did")
    assert "disorder='10 minutes'" in told.value.__notes__[0]


def test_what_is_wrong_with_a_table_stops_the_query_with_its_name(spark, tmp_path):
    path = made(tmp_path / "stock")
    put(path, {1: "tea"})

    def run():
        merged = ab.merge_changes(ab.delta_changes(spark, path), key="id", time="time", disorder="0 seconds")
        return ab.write_folder(
            merged, tmp_path / "out", checkpoint=tmp_path / "checkpoint", available_now=True
        )

    ab.wait(run())
    shutil.rmtree(path)
    put(made(path), {1: "tea"})
    with pytest.raises(ab.TableError, match="was deleted and made again since it was read"):
        ab.wait(run())
