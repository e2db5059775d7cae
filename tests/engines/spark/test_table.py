"""The table of element rows: events with their values as they were, counted."""

from collections import Counter

import pytest

from anabranch import spark as ab

MAP = {"a": 1, "b": None}
INNER = "map<string,array<struct<m:map<int,double>,t:string>>>"


def elements(spark, kind: str, *rows):
    """Element rows with one payload column ``v``: kind, start, end, old end, value."""
    columns = f"kind string, start long, end long, old_end long, v {kind}"
    return spark.createDataFrame(list(rows), columns).repartition(3)


def events(rows):
    found = [(row.asDict(recursive=True), row.start, row.end) for row in ab.table(rows).collect()]
    return Counter((repr(payload["v"]), start, end) for payload, start, end in found)


def test_nulls_in_maps_stay_and_maps_are_equal_in_any_order(spark):
    rows = elements(
        spark,
        "map<string,int>",
        ("insert", 1, 5, None, MAP),
        ("adjust", 1, 7, 5, dict(reversed(MAP.items()))),
        ("insert", 1, 9, None, {"a": 1, "b": 0}),
        ("insert", 1, 9, None, None),
        ("insert", 1, 9, None, {}),
        ("insert", 2, None, None, {"a": None}),
        ("insert", 2, None, None, {"a": None}),
    )
    shown = [(row.v, row.start, row.end) for row in ab.table(rows).collect()]
    assert sorted(shown, key=str) == sorted(
        [(MAP, 1, 7), ({"a": 1, "b": 0}, 1, 9), (None, 1, 9), ({}, 1, 9), *[({"a": None}, 2, None)] * 2],
        key=str,
    )


def test_so_do_those_in_maps_within_other_values(spark):
    value = {"k": [{"m": {1: None, 2: 0.5}, "t": None}, None], "z": None}
    turned = {"z": None, "k": [{"m": {2: 0.5, 1: None}, "t": None}, None]}
    other = {"k": [{"m": {1: 0.0, 2: 0.5}, "t": None}, None], "z": None}
    rows = elements(
        spark,
        INNER,
        ("insert", 1, 5, None, value),
        ("adjust", 1, 1, 5, turned),
        ("insert", 1, 5, None, other),
        ("insert", 1, 5, None, value),
    )
    found = [row.asDict(recursive=True)["v"] for row in ab.table(rows).collect()]
    assert sorted(found, key=str) == sorted([value, other], key=str)


def test_a_payload_in_a_struct_is_looked_into(spark):
    payload = "struct<kind:string,`m.x`:map<string,int>>"
    rows = elements(
        spark,
        payload,
        ("insert", 1, 5, None, ("own", MAP)),
        ("insert", 1, 5, None, ("own", {"a": 1})),
        ("insert", 1, 5, None, None),
    ).withColumnRenamed("v", "payload")
    found = [row.payload and row.payload.asDict() for row in ab.table(rows).collect()]
    assert sorted(found, key=str) == sorted(
        [{"kind": "own", "m.x": MAP}, {"kind": "own", "m.x": {"a": 1}}, None], key=str
    )


def test_text_is_told_apart_by_its_bytes_whatever_its_collation(spark):
    rows = elements(
        spark, "string collate UTF8_LCASE", ("insert", 1, 5, None, "Ab"), ("insert", 1, 5, None, "aB")
    )
    assert events(rows) == Counter({("'Ab'", 1, 5): 1, ("'aB'", 1, 5): 1})


def test_payload_columns_may_have_any_name(spark):
    names = ["copies", "copy", "step", "p0", "by_p0", "a.b", "x`y", "End time"]
    rows = elements(spark, "map<string,int>", ("insert", 1, 5, None, MAP))
    rows = rows.select("kind", "start", "end", "old_end", *(rows.v.alias(name) for name in names))
    found = ab.table(rows)
    assert found.columns == [*names, "start", "end"]
    assert [tuple(row) for row in found.collect()] == [(*[MAP] * len(names), 1, 5)]


def test_rows_that_no_merge_gave_are_refused(spark):
    with pytest.raises(ValueError, match="rows that a merge gives, and these have no column 'kind'") as told:
        ab.table(spark.createDataFrame([(1, 2)], "start long, end long"))
    assert "ab.merge" in told.value.__notes__[0]
