"""Changes of Delta tables as sources of plans, without Spark."""

from collections import Counter

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

import anabranch as ab
from anabranch import FOREVER, Relation

STOCK = pa.schema([("id", pa.int64()), ("item", pa.string())])
COLUMNS = {"id": "int64", "item": "string", "op": "string", "time": "timestamp[us, tz=UTC]"}


def made(path):
    DeltaTable.create(path, schema=STOCK, configuration={"delta.enableChangeDataFeed": "true"})
    return path


def put(path, rows):
    write_deltalake(path, pa.table({"id": list(rows), "item": list(rows.values())}, STOCK), mode="append")


def changes(**more):
    return ab.source(
        "stock",
        COLUMNS | more.pop("columns", {}),
        start="time",
        key="id",
        op="op",
        disorder="1 second",
        **more,
    )


def open_rows(run):
    relation = Relation()
    for batch in run:
        relation.apply(batch)
    return Counter((e.payload["id"], e.payload["item"]) for e in relation.events() if e.end == FOREVER)


def test_a_plan_over_the_changes_of_a_table_has_its_rows(tmp_path):
    table = made(tmp_path / "stock")
    put(table, {1: "apple", 2: "pear"})
    put(table, {3: "fig"})
    DeltaTable(table).update(predicate="id = 2", updates={"item": "'plum'"})
    DeltaTable(table).delete("id = 1")
    found = open_rows(ab.run(changes(), {"stock": ab.delta_changes(table)}))
    assert found == Counter([(2, "plum"), (3, "fig")])


def test_a_snapshot_is_the_rows_that_are_there(tmp_path):
    table = made(tmp_path / "stock")
    put(table, {1: "apple"})
    put(table, {2: "pear"})
    found = open_rows(ab.run(changes(), {"stock": ab.delta_changes(table, start="snapshot")}))
    assert found == Counter([(1, "apple"), (2, "pear")])


def test_a_live_table_is_followed(tmp_path):
    table = made(tmp_path / "stock")
    put(table, {1: "apple"})
    run = ab.run(changes(), {"stock": ab.delta_changes(table)}, live=True)
    assert [e.payload["item"] for e in next(run).elements() if hasattr(e, "payload")] == ["apple"]
    put(table, {2: "pear"})
    assert [e.payload["item"] for e in next(run).elements() if hasattr(e, "payload")] == ["pear"]
    run.close()


def test_several_tables_need_a_source_of_replicas(tmp_path):
    door = ab.delta_changes([made(tmp_path / "a"), made(tmp_path / "b")])
    with pytest.raises(ab.PlanError, match="not of replicas"):
        ab.run(changes(), {"stock": door})
