"""Rows for which a function fails, before, between and behind the levels of a plan: set aside and counted."""

import json
from collections import Counter
from random import Random

import pyarrow as pa
import pytest
from engines.spark.plan_driving import LeveledQuery
from engines.spark.plan_laws import statuses

import anabranch as ab
from anabranch.kernels.answers import Answers

COLUMNS = {"value": "string", "n": "int64", "at": "int64"}
SCHEMA = pa.schema([(name, pa.type_for_alias(dtype)) for name, dtype in COLUMNS.items()])


def source(name):
    return ab.source(name, COLUMNS, start="at", disorder=4)


def unless_odd(rows):
    if any(n % 2 for n in rows.column("n").to_pylist()):
        raise ValueError("n is odd")
    return rows


def applied(stream, place, here, *, pure):
    return stream.apply(unless_odd, stream.schema, pure=pure) if place == here else stream


def n_of(raw):
    row = json.loads(raw)
    return row.get("payload", row)["n"]


def plan(place, *, pure):
    """Three levels at most: a merge, an operator by one column, and one by the other."""
    a = applied(source("a"), place, "at a source", pure=pure)
    both = ab.merge({"x": a, "y": applied(source("b"), place, "at a source", pure=pure)}).final()
    one = applied(both, place, "behind level 1", pure=pure).distinct("value").final()
    two = ab.union(applied(one, place, "behind level 2", pure=pure), source("c")).distinct("n").final()
    return applied(two, place, "behind the last", pure=pure)


@pytest.mark.parametrize("pure", [True, False])
@pytest.mark.parametrize("place", ["at a source", "behind level 1", "behind level 2", "behind the last"])
def test_a_row_for_which_a_function_fails_is_set_aside_wherever_the_function_is(place, pure):
    for seed in range(4):
        random = Random(seed)
        rows = [
            {"value": f"v{random.randint(0, 2)}", "n": random.randint(0, 9), "at": at} for at in range(12)
        ]
        aside = ab.Quarantine()
        job = plan(place, pure=pure).open(on_invalid=aside)
        answers = Answers(ab.Quarantine(), ab.Quarantine(), ab.Quarantine())
        query = LeveledQuery(plan(place, pure=pure), random.randint(1, 3), answers)
        said = []
        for part in (rows[:6], rows[6:]):
            batch = pa.RecordBatch.from_pylist(part, schema=SCHEMA)
            for name in "abc":
                job.push(name, batch)
            said += query.receive({name: [batch] for name in "abc"})
        told = [row["refused"] for batch in said for row in batch.to_pylist() if row["refused"]]
        meant = Counter(one.element.payload["n"] for one in aside.violations)
        assert meant
        assert Counter(n_of(one["raw"]) for one in told) == meant
        assert all("ValueError: n is odd" in one["reason"] for one in told)
        assert sum(one.quarantined for one in statuses(said)) == len(told)


@pytest.mark.parametrize("shards", [1, 2, 3])
def test_a_stable_of_a_replica_that_left_is_refused_once_in_however_many_shards(shards):
    columns = {"kind": "string", "at": "int64", "who": "string", "n": "int64"}
    merged = ab.source("s", columns, start="at", kind="kind", replica="who", lossy=False).merge()
    query = LeveledQuery(merged, shards, Answers(ab.Quarantine(), ab.Quarantine(), ab.Quarantine()))
    schema = pa.schema([(name, pa.type_for_alias(dtype)) for name, dtype in columns.items()])
    left = [("stable", 3, "b", None), ("insert", 4, "b", 7), ("stable", 5, "b", None)]
    micro_batches = [
        [("insert", 1, "a", 1), ("insert", 1, "b", 1)],
        [("detach", None, "b", None)],
        [*left, ("stable", 9, "a", None)],
    ]
    given = []
    for rows in micro_batches:
        batch = pa.RecordBatch.from_pylist([dict(zip(columns, row, strict=True)) for row in rows], schema)
        given += query.receive({"s": [batch]})
    told = [row["refused"] for batch in given for row in batch.to_pylist() if row["refused"]]
    assert sorted(json.loads(one["raw"])["at"] for one in told) == [3, 4, 5]
    assert {one["rule"] for one in told} == {"detached-input"}
    assert sum(one.quarantined for one in statuses(given)) == 3
