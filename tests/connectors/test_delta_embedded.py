"""Changes of Delta tables as sources of plans, without Spark."""

import json
import os

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

import anabranch as ab
from anabranch import Insert
from anabranch.connectors.tables.table_error import TableError

STOCK = pa.schema([("id", pa.int64()), ("item", pa.string())])
COLUMNS = {"id": "int64", "item": "string", "op": "string", "time": "timestamp[us, tz=UTC]"}


def made(path):
    DeltaTable.create(path, schema=STOCK, configuration={"delta.enableChangeDataFeed": "true"})
    return path


def put(path, rows):
    write_deltalake(path, pa.table({"id": list(rows), "item": list(rows.values())}, STOCK), mode="append")


def changes(**more):
    return ab.source("stock", COLUMNS | more.pop("columns", {}), start="time", **more)


def said(run):
    elements = [e for batch in run for e in batch.elements() if isinstance(e, Insert)]
    return [(e.payload["op"], e.payload["id"], e.payload["item"]) for e in elements]


def test_what_changed_is_read_version_by_version(tmp_path):
    table = made(tmp_path / "stock")
    put(table, {1: "apple"})
    put(table, {2: "pear"})
    DeltaTable(table).update(predicate="id = 2", updates={"item": "'plum'"})
    DeltaTable(table).delete("id = 1")
    told = []
    run = ab.run(changes(), {"stock": ab.delta_changes(table)}, progress=told.append)
    assert said(run) == [
        ("insert", 1, "apple"),
        ("insert", 2, "pear"),
        ("delete", 2, "pear"),
        ("insert", 2, "plum"),
        ("delete", 1, "apple"),
    ]
    assert told[-1] == 1.0


def test_columns_of_a_table_may_be_left_out_and_its_version_be_one(tmp_path):
    table = made(tmp_path / "stock")
    put(table, {1: "apple"})
    source = ab.source("stock", {"id": "int64", "v": "int64", "time": "timestamp[us, tz=UTC]"}, start="time")
    run = ab.run(source, {"stock": ab.delta_changes(table, version="v")})
    (event,) = [e for batch in run for e in batch.elements() if isinstance(e, Insert)]
    assert event.payload == {"id": 1, "v": 1}


def test_a_snapshot_is_the_rows_that_are_there(tmp_path):
    table = made(tmp_path / "stock")
    put(table, {1: "apple"})
    put(table, {2: "pear"})
    found = said(ab.run(changes(), {"stock": ab.delta_changes(table, start="snapshot")}))
    assert sorted(row[1:] for row in found) == [(1, "apple"), (2, "pear")]


def test_tables_are_replicas_of_a_source_that_has_some(tmp_path):
    tables = {name: made(tmp_path / name) for name in ("home", "mirror")}
    put(tables["home"], {1: "apple"})
    put(tables["mirror"], {2: "pear"})
    source = changes(columns={"who": "string"}, replica="who", lossy=True, disorder="1 day")
    found = said(ab.run(source.merge(), {"stock": ab.delta_changes(tables)}))
    assert sorted(row[1:] for row in found) == [(1, "apple"), (2, "pear")]


def test_changes_of_tables_that_are_replicas_are_merged_as_rows(tmp_path):
    tables = {name: made(tmp_path / name) for name in ("home", "mirror")}
    for path in tables.values():
        put(path, {1: "apple"})
    source = changes(columns={"who": "string"}, op="op", key="id", replica="who", disorder="1 day")
    found = [
        e for batch in ab.run(source.merge(), {"stock": ab.delta_changes(tables)}) for e in batch.elements()
    ]
    assert {e.payload["item"] for e in found if isinstance(e, Insert)} == {"apple"}


def test_a_live_table_is_followed(tmp_path):
    table = made(tmp_path / "stock")
    put(table, {1: "apple"})
    run = ab.run(changes(), {"stock": ab.delta_changes(table)}, live=True)
    assert [e.payload["item"] for e in next(run).elements()] == ["apple"]
    put(table, {2: "pear"})
    assert [e.payload["item"] for e in next(run).elements()] == ["pear"]
    run.close()


def test_several_tables_need_a_source_of_replicas(tmp_path):
    door = ab.delta_changes([made(tmp_path / "a"), made(tmp_path / "b")])
    with pytest.raises(ab.PlanError, match="not of replicas"):
        ab.run(changes(), {"stock": door})


def logged_otherwise(path, version, change):
    """The log of a version, with every action changed."""
    log = path / "_delta_log" / f"{version:020}.json"
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    for action in actions:
        change(action)
    log.write_text("".join(json.dumps(action) + "\n" for action in actions))


def with_deletion_vector(action):
    if "add" in action:
        vector = {"storageType": "i", "pathOrInlineDv": "0", "sizeInBytes": 1, "cardinality": 1}
        action["add"]["deletionVector"] = vector


def without_values(action):
    action.get("remove", {}).pop("partitionValues", None)


def with_names_for_columns(action):
    if "metaData" in action:
        action["metaData"]["configuration"]["delta.columnMapping.mode"] = "name"


@pytest.mark.parametrize(
    ("version", "change", "message"),
    [
        (1, with_deletion_vector, "version 1 of .* changed rows by deletion vectors"),
        (2, without_values, "version 2 of .* does not say which 'item' the rows of .* have"),
        (0, with_names_for_columns, "the columns of .* have other names in its files"),
    ],
)
def test_what_files_alone_do_not_tell_is_refused(tmp_path, version, change, message):
    path = tmp_path / "stock"
    DeltaTable.create(
        path, schema=STOCK, partition_by=["item"], configuration={"delta.enableChangeDataFeed": "true"}
    )
    put(path, {1: "apple"})
    DeltaTable(path).delete("item = 'apple'")
    logged_otherwise(path, version, change)
    with pytest.raises(TableError, match=message) as raised:
        list(ab.run(changes(), {"stock": ab.delta_changes(path)}))
    assert raised.value.__notes__


def test_a_commit_without_a_time_has_that_of_its_log(tmp_path):
    table = made(tmp_path / "stock")
    put(table, {1: "apple"})
    logged_otherwise(table, 1, lambda action: action.pop("commitInfo", None))
    os.utime(table / "_delta_log" / f"{1:020}.json", (86_400, 86_400))
    [insert, _] = [
        e for batch in ab.run(changes(), {"stock": ab.delta_changes(table)}) for e in batch.elements()
    ]
    assert insert.start == 86_400_000_000
