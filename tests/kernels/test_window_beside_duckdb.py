"""DuckDB over the final rows says what windows say at their close, however the rows are cut and ordered."""

from fractions import Fraction
from random import Random

import duckdb
import pyarrow as pa
import pytest
from kernels.windows import schema
from quick import cases

import anabranch as ab
from anabranch import Batch, Insert, Stable, col
from anabranch.model.time import FOREVER

AGGREGATES = {
    "n": (ab.count(), "count(*)"),
    "there": (col("i").count(), "count(i)"),
    "s": (col("i").sum(), "sum(i)::BIGINT"),
    "low": (col("i").min(), "min(i)"),
    "high": (col("i").max(), "max(i)"),
    "least": (col("text").min(), "min(text)"),
    "most": (col("text").max(), "max(text)"),
    "kinds": (col("text").n_unique(), "count(DISTINCT text)"),
    "x": (col("x").sum(), "list(x)"),
    "first": (col("i").first(), "min_by(i, [since, i]) FILTER (i IS NOT NULL)"),
    "first text": (col("text").first(), "min_by(text, {'a': since, 'b': text}) FILTER (text IS NOT NULL)"),
    "last text": (col("text").last(), "max_by(text, {'a': since, 'b': text}) FILTER (text IS NOT NULL)"),
    "last": (col("i").last(), "max_by(i, [since, i]) FILTER (i IS NOT NULL)"),
}


def payload(random):
    row = {
        "k": random.choice([0, 1, None]),
        "text": random.choice(["", "a", "ab", "ä", None]),
        "i": random.choice([None, random.randint(-(2**55), 2**55), 7, 7]),
        "x": random.choice([None, 1e16, 1.0, -1e16, 0.1, 1e-9, random.gauss(0, 1e5)]),
    }
    return {name: value for name, value in row.items() if value is not None}


def judged(events, size, every):
    rows = [{**event.payload, "since": event.start} for event in events]
    columns = pa.schema([*schema(), ("since", pa.int64())])
    given = pa.Table.from_pylist(rows, columns)
    made = ", ".join(f'{query} AS "{name}"' for name, (_, query) in AGGREGATES.items())
    floor = f"(since - ((since % {every}) + {every}) % {every})"
    found = duckdb.sql(f"""
        SELECT k, w, {made} FROM (
            SELECT *, {floor} - m * {every} AS w FROM given, range({-(-size // every)}) AS r(m)
        ) WHERE since < w + {size} GROUP BY k, w
    """).to_arrow_table()
    assert given.num_rows == len(events)
    return sorted(map(_plain, map(_exact_floats, found.to_pylist())), key=repr)


def _plain(row):
    return row | {"k": None if row["k"] is None else int(row["k"])}


def _exact_floats(row):
    values = [value for value in row["x"] or [] if value is not None]
    return row | {"x": float(sum(map(Fraction, values), Fraction(0))) if values else None}


@pytest.mark.parametrize("seed", range(cases(12)))
def test_windows_are_what_duckdb_says(seed):
    random = Random(seed)
    base = random.choice([0, -50, 2**53 + 1, 2**61])
    every = random.randint(1, 20)
    size = random.choice([every, 2 * every, 3 * every, random.randint(every, 40)])
    ends = [1, 100, None]
    starts = [base + random.randint(0, 80) for _ in range(200)]
    events = [
        Insert(payload(random), start, FOREVER if end is None else start + end)
        for start, end in ((start, random.choice(ends)) for start in starts)
    ]
    given = {
        "k": random.choice(["int64", "int32", "float64"]),
        "text": "string",
        "i": "int64",
        "x": "float64",
    }
    stream = ab.source("s", given, properties="insert only")
    made = {name: one for name, (one, _) in AGGREGATES.items()}
    job = stream.window(size, every, start="w").group_by("k").agg(**made).open()
    out = []
    for first in range(0, len(events), 37):
        out += job.push("s", events[first : first + 37])
    out += job.push("s", [Stable(FOREVER)])
    names = ["k", "w", *AGGREGATES]
    said = [{name: one.payload.get(name) for name in names} for one in out if isinstance(one, Insert)]
    assert sorted(map(_plain, said), key=repr) == judged(events, size, every)


@pytest.mark.parametrize("kind", ["int64", "string", "dictionary"])
def test_groups_come_and_go_and_their_numbers_are_used_again(kind):
    random = Random(1)
    stream = ab.source("s", {"k": "int64", "v": "int64"}, properties="insert only")
    if kind != "int64":
        column = pa.string() if kind == "string" else pa.dictionary(pa.int32(), pa.string())
        stream = ab.source("s", pa.schema([("k", column), ("v", pa.int64())]), properties="insert only")
    job = stream.window(10).group_by("k").agg(n=ab.count(), s=col("v").sum()).open()
    meant, said, most = {}, {}, 0
    for step in range(60):
        keys = [random.choice([step * 50 + random.randrange(200), 10**12 + step]) for _ in range(100)]
        values = [random.randrange(100) for _ in keys]
        for key, value in zip(keys, values, strict=True):
            n, s = meant.get((str(key), step * 10), (0, 0))
            meant[str(key), step * 10] = n + 1, s + value
        named = pa.array(keys) if kind == "int64" else pa.array([str(key) for key in keys])
        named = named.dictionary_encode() if kind == "dictionary" else named
        rows = pa.record_batch({"k": named, "v": values})
        start = pa.array([step * 10 + random.randrange(10) for _ in keys]).to_numpy()
        empty = 0 * start
        job.passes.push("s", Batch(empty.astype("int8"), start, start + 1, empty, rows))
        for one in job.passes.push("s", Batch.stable(step * 10, rows.schema))[""].elements():
            if isinstance(one, Insert):
                said[str(one.payload["k"]), one.start] = one.payload["n"], one.payload["s"]
        most = max(most, job.status().live)
    for one in job.passes.push("s", Batch.stable(FOREVER, rows.schema))[""].elements():
        if isinstance(one, Insert):
            said[str(one.payload["k"]), one.start] = one.payload["n"], one.payload["s"]
    assert said == meant
    assert most < 300
    assert job.status().live == 0
