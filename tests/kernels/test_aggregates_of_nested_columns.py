"""States of aggregates over structs, lists and maps are saved and loaded, where an aggregate takes them."""

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

import anabranch as ab
from anabranch import Batch, Insert, PlanError, Stable, col
from anabranch.expressions.tree import ExpressionError

NESTED = {
    "struct": (pa.struct([("a", pa.int64()), ("b", pa.string())]), {"a": 1, "b": "x"}, {"a": 2, "b": "x"}),
    "list": (pa.list_(pa.string()), ["x", "y"], []),
    "large list": (pa.large_list(pa.int64()), [1], [2, None]),
    "list of structs": (pa.list_(pa.struct([("a", pa.int64())])), [{"a": 1}], [{"a": 2}, None]),
    "map": (pa.map_(pa.string(), pa.int64()), [("x", 1)], [("x", 2)]),
    "nothing": (pa.null(), None, None),
}


def first_of(rows):
    return rows.column("c")


AGGREGATES = {
    "count": lambda: col("c").count(),
    "n_unique": lambda: col("c").n_unique(),
    "min": lambda: col("c").min(),
    "max": lambda: col("c").max(),
    "first": lambda: col("c").first(),
    "last": lambda: col("c").last(),
    "sum": lambda: col("c").sum(),
    "mean": lambda: col("c").mean(),
    "var": lambda: col("c").var(),
    "std": lambda: col("c").std(),
    "median": lambda: col("c").approx_median(),
    "top_k": lambda: col("c").top_k(2),
    "carried": lambda: col("n").top_k(2, carry=["c"]),
    "own": lambda: ab.aggregate(lift=first_of, combine=lambda one, other: one, finish=lambda state: state),
}
TAKEN = {"count", "n_unique", "carried", "own"}
WINDOWS = {
    "windows": lambda rows: rows.window(10),
    "hopping": lambda rows: rows.window(10, 5),
    "sessions": lambda rows: rows.session(3),
    "rows": lambda rows: rows.rows(2),
}


def bag(elements):
    return Counter(repr(one) for one in elements)


@pytest.mark.parametrize("windows", WINDOWS)
@pytest.mark.parametrize("kind", NESTED)
@pytest.mark.parametrize("name", sorted(TAKEN))
def test_a_state_over_a_nested_column_goes_on_as_it_was(name, kind, windows):
    dtype, one, two = NESTED[kind]
    schema = pa.schema([("k", pa.string()), ("n", pa.int64()), ("c", dtype)])
    rows = ab.source("s", schema, properties=["insert only"])
    stream = WINDOWS[windows](rows).group_by("k").agg(x=AGGREGATES[name]())
    payloads = [{"k": "ab"[n % 2], "n": n, "c": c} for n, c in enumerate([one, two, one, None])]
    elements = [Insert(payload, n, n + 1) for n, payload in enumerate(payloads)]
    payload = pa.RecordBatch.from_pylist(payloads, schema=schema)
    events = Batch.of(elements, schema=schema) if kind != "map" else _batch(payload)
    whole, job = stream.open(), stream.open()
    meant = [*whole.push("s", events), *whole.push("s", events), *whole.push("s", [Stable(40)])]
    found = [*job.push("s", events)]
    job = stream.open(job.dump())
    found += [*job.push("s", events), *job.push("s", [Stable(40)])]
    assert bag(found) == bag(meant)
    assert meant


def _batch(payload):
    start = np.arange(len(payload))
    nothing = np.zeros(len(payload), np.int64)
    return Batch(nothing.astype(np.int8), start, start + 1, nothing, payload)


@pytest.mark.parametrize("kind", sorted({*NESTED} - {"nothing"}))
@pytest.mark.parametrize("name", sorted({*AGGREGATES} - TAKEN))
def test_other_aggregates_refuse_nested_columns(name, kind):
    windows = ab.source("s", {"n": "int64", "c": NESTED[kind][0]}).window(10)
    with pytest.raises((ExpressionError, PlanError)):
        windows.agg(x=AGGREGATES[name]())


def test_groups_of_nested_columns_are_saved():
    kind, one, two = NESTED["struct"]
    stream = ab.source("s", {"c": kind}).window(10).group_by("c").agg(ab.count())
    job = stream.open()
    job.push("s", [Insert({"c": one}, 1, 2), Insert({"c": two}, 1, 2)])
    out = stream.open(job.dump()).push("s", [Insert({"c": one}, 1, 2), Stable(10)])
    assert sorted(e.payload["count"] for e in out[:-1]) == [1, 2]
