"""Aggregates of windows that are more than a number, each beside DuckDB's own: rows per CPU second.

    ./run bench window_aggregates
    ./run bench window_aggregates --rows 2000000 --only "top 3" n_unique

Rows in order of arrival (50,000 a second, up to 20 seconds late) are grouped by an integer key into windows
of ten seconds. Ours gets pieces of 10,000: ready-made batches with a stable after each ("kernel"), and Arrow
tables whose times are a column, by `anabranch.run` ("run"). DuckDB gets all at once, on one thread. They run
in turn, in one process; results are compared first. Ratios are of the medians.
"""

import argparse
from collections.abc import Callable
from statistics import median
from time import process_time

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import anabranch as ab
from anabranch import Aggregate, Batch, col

SECOND = 1_000_000
PIECE = 10_000
NEAR = 0.05
"""How far a quantile of ours may be from DuckDB's, which lies between two values."""
CASES: dict[str, tuple[Callable[[], Aggregate], str]] = {
    "sum": (lambda: col("v").sum(), "sum(v)::BIGINT"),
    "top 3": (lambda: col("v").top_k(3), "unnest(max(v, 3))"),
    "top 10, carried": (
        lambda: col("v").top_k(10, carry=["name", "n"]),
        "unnest(max_by({'v': v, 'name': name, 'n': n}, v, 10)).v",
    ),
    "first": (lambda: col("v").first(), 'arg_min(v, ("at", v))'),
    "last": (lambda: col("v").last(), 'arg_max(v, ("at", v))'),
    "first text": (lambda: col("name").first(), 'arg_min(name, ("at", name))'),
    "least text": (lambda: col("name").min(), "min(name)"),
    "greatest text": (lambda: col("name").max(), "max(name)"),
    "n_unique": (lambda: col("v").n_unique(), "count(DISTINCT v)"),
    "n_unique text": (lambda: col("name").n_unique(), "count(DISTINCT name)"),
    "median": (lambda: col("v").approx_median(), "quantile_disc(v, 0.5)"),
}
QUERY = 'SELECT key, {made} AS y FROM rows GROUP BY key, "at" // {every}'


def main() -> None:
    """Measure, print."""
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0], prog="./run bench window_aggregates"
    )
    parser.add_argument("--rows", type=int, default=2_000_000, help="rows (default %(default)s)")
    parser.add_argument("--groups", type=int, default=10_000, help="how many groups (default %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="how often each is run (default %(default)s)")
    parser.add_argument("--only", nargs="+", default=list(CASES), metavar="CASE", help=", ".join(CASES))
    given = parser.parse_args()
    rows = rows_of(given.rows, given.groups)
    tables = [pa.Table.from_batches([rows.slice(n, PIECE)]) for n in range(0, rows.num_rows, PIECE)]
    batches = list(map(ready_made, range(len(tables)), tables))
    print(f"{given.rows:,} rows, {given.groups:,} groups, million per CPU second, median of {given.rounds}")
    for name in given.only:
        compare(name, rows, batches, tables, given.rounds)


def rows_of(count: int, groups: int) -> pa.RecordBatch:
    """Rows in order of arrival."""
    random = np.random.default_rng(1)
    sent = np.arange(count) * SECOND // 50_000
    at = np.maximum(sent - random.integers(0, 20 * SECOND, count), 0)
    names = pa.array([f"seller {n:06}" for n in range(100_000)])
    return pa.record_batch(
        {
            "at": at,
            "key": random.integers(0, groups, count),
            "v": random.integers(0, 1_000_000, count),
            "n": np.arange(count),
            "name": names.take(pa.array(random.integers(0, len(names), count))),
        }
    )


def ready_made(piece: int, table: pa.Table) -> tuple[Batch, Batch]:
    """Events of a piece, and the stable behind them."""
    (payload,) = table.drop_columns("at").to_batches()
    start = table.column("at").to_numpy()
    nothing = np.zeros(len(start), np.int64)
    events = Batch(nothing.astype(np.int8), start, start + 1, nothing, payload)
    promise = (piece * PIECE + len(start)) * SECOND // 50_000 - 20 * SECOND
    return events, Batch.stable(promise, payload.schema)


def compare(
    name: str, rows: pa.RecordBatch, batches: list[tuple[Batch, Batch]], tables: list[pa.Table], rounds: int
) -> None:
    """One row of the table: million rows a CPU second of each, and the ratios."""
    made, query = CASES[name]
    spent: dict[str, list[float]] = {"kernel": [], "run": [], "DuckDB": []}
    for turn in range(rounds + 1):
        found = {
            "kernel": pushed(made().alias("y"), batches),
            "run": run(made().alias("y"), tables),
            "DuckDB": grouped(rows, query),
        }
        if not turn:
            agree({way: said for way, (_, said) in found.items()}, near=name == "median")
            continue
        for way, (seconds, _) in found.items():
            spent[way].append(rows.num_rows / seconds / 1e6)
    rates = {way: median(each) for way, each in spent.items()}
    ratios = "   ".join(
        f"{way} {rates[way]:6.2f} ({rates[way] / rates['DuckDB']:4.2f})" for way in ("kernel", "run")
    )
    print(f"  {name:<18} {ratios}   DuckDB {rates['DuckDB']:6.2f}", flush=True)


def pushed(made: Aggregate, batches: list[tuple[Batch, Batch]]) -> tuple[float, pa.Table]:
    """CPU seconds of ready-made batches, and what comes out."""
    schema = batches[0][0].payload.schema
    source = ab.source("rows", schema, properties="insert only")
    job = source.window(10 * SECOND).group_by("key").agg(made).open()
    out = []
    begun = process_time()
    for events, stable in [*batches, (None, Batch.stable(ab.FOREVER, schema))]:
        if events is not None:
            job.passes.push("rows", events)
        out.append(job.passes.push("rows", stable)[""])
    spent = process_time() - begun
    return spent, payloads(out)


def run(made: Aggregate, tables: list[pa.Table]) -> tuple[float, pa.Table]:
    """CPU seconds of a run, and what comes out."""
    columns = tables[0].schema
    source = ab.source("rows", columns, start="at", payload=columns.names[1:], disorder=20 * SECOND)
    plan = source.window(10 * SECOND).group_by("key").agg(made)
    begun = process_time()
    out = list(ab.run(plan, {"rows": tables}))
    return process_time() - begun, payloads(out)


def payloads(out: list[Batch]) -> pa.Table:
    """The key and the value of each row that comes out."""
    rows = [one.payload.slice(0, int((one.kind < 2).sum())) for one in out]
    return pa.Table.from_batches([one.select(["key", "y"]) for one in rows if one.num_rows])


def grouped(rows: pa.RecordBatch, query: str) -> tuple[float, pa.Table]:
    """CPU seconds of DuckDB, and what it says."""
    con = duckdb.connect()
    con.execute("SET threads = 1")
    con.register("rows", pa.Table.from_batches([rows]))
    begun = process_time()
    found = con.sql(QUERY.format(made=query, every=10 * SECOND)).to_arrow_table()
    return process_time() - begun, found


def agree(found: dict[str, pa.Table], *, near: bool) -> None:
    """All say the same of each key; what is near a value is compared key by key as a mean."""
    if near:
        means = [
            table.group_by("key").aggregate([("y", "mean")]).sort_by("key").column("y_mean")
            for table in found.values()
        ]
        assert all(np.allclose(one, means[-1], rtol=NEAR) for one in means), "medians are near each other"
        return
    keys = [("key", "ascending"), ("y", "ascending")]
    tables = [
        pa.table({"key": table.column("key"), "y": pc.cast(table.column("y"), kind)}).sort_by(keys)
        for table in found.values()
        for kind in [found["DuckDB"].column("y").type]
    ]
    same = all(table.combine_chunks().equals(tables[-1].combine_chunks()) for table in tables)
    assert same, "all say the same"


if __name__ == "__main__":
    main()
