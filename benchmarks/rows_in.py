"""Rows through plans by the public API: nanoseconds a row, beside DuckDB where it can, and single rows.

    ./run bench rows_in
    ./run bench rows_in --rows 1000000 --rounds 3

Arrow tables of 10,000 rows go in by `job.push` and by `anabranch.run`; their times are a column, and how late
they may be is stated. Plans: the source alone; a filter and a new column; count, sum, least and greatest of
tumbling windows by 10,000 groups, beside DuckDB's GROUP BY over all rows on one thread, and the same windows
emitted early and corrected. They run in turn in one process; the medians are printed. A list of dicts is
beside the table of its rows. Pushes of one row (a record batch) are timed one by one.
"""

import argparse
from statistics import median
from time import perf_counter, process_time

import duckdb
import numpy as np
import pyarrow as pa

import anabranch as ab
from anabranch import col

SECOND = 1_000_000
PIECE = 10_000
LISTED = 100_000
"""Rows that are given as dicts, beside the table of them."""
QUERY = """
    SELECT key, "at" // {every} AS w, count(*) AS n, sum(v)::BIGINT AS s, min(v) AS low, max(v) AS high
    FROM rows GROUP BY ALL
"""


def main() -> None:
    """Measure, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], prog="./run bench rows_in")
    parser.add_argument("--rows", type=int, default=2_000_000, help="rows (default %(default)s)")
    parser.add_argument("--rounds", type=int, default=5, help="how often each is run (default %(default)s)")
    parser.add_argument("--pushes", type=int, default=1_000, help="pushes of one row (default %(default)s)")
    given = parser.parse_args()
    rows = rows_of(given.rows)
    tables = [pa.Table.from_batches([rows.slice(n, PIECE)]) for n in range(0, rows.num_rows, PIECE)]
    print(f"{rows.num_rows:,} rows in tables of {PIECE:,}, CPU, median of {given.rounds}")
    few = rows.slice(0, LISTED)
    forms = {"a table": pa.Table.from_batches([few]), "a list of dicts": few.to_pylist()}
    spent: dict[str, list[float]] = {}
    listed: dict[str, list[float]] = {}
    for _ in range(given.rounds):
        for name, plan in PLANS.items():
            spent.setdefault(f"{name}, push", []).append(pushed(plan(), tables))
            spent.setdefault(f"{name}, run", []).append(run(plan(), tables))
        for form, listing in forms.items():
            listed.setdefault(form, []).append(run(source(), listing))
        spent.setdefault("DuckDB, tumbling window", []).append(grouped(rows))
    duck = median(spent["DuckDB, tumbling window"])
    for name, seconds in spent.items():
        each = median(seconds) / rows.num_rows
        ratio = f"   {duck / median(seconds):5.2f} of DuckDB" if name.startswith("tumbling") else ""
        print(f"  {name:<28} {each * 1e9:7.1f} ns a row   {1e-6 / each:6.2f} M a second{ratio}")
    print(f"{few.num_rows:,} rows by anabranch.run, source alone")
    for form, seconds in listed.items():
        print(f"  {form:<28} {median(seconds) / few.num_rows * 1e9:7.1f} ns a row")
    beside = emitted(windowed(early=True), tables) / rows.num_rows
    both = (1 + beside) * rows.num_rows / median(spent["early window, push"])
    print(
        f"an early window emits {beside:.2f} elements a row: {both / 1e6:.2f} M a second in and out by push"
    )
    print(f"a push of one row, median of {given.pushes:,}, milliseconds")
    for name, plan in {**PLANS, **SINGLE}.items():
        print(f"  {name:<28} {single(plan(), rows, given.pushes) * 1e3:7.3f}")


def rows_of(count: int) -> pa.RecordBatch:
    """Rows in order of arrival, 50,000 a second, up to 20 seconds late."""
    random = np.random.default_rng(1)
    sent = np.arange(count) * SECOND // 50_000
    at = np.maximum(sent - random.integers(0, 20 * SECOND, count), 0)
    return pa.record_batch(
        {"at": at, "key": random.integers(0, 10_000, count), "v": random.integers(0, 1_000_000, count)}
    )


def source(name: str = "rows") -> ab.Stream:
    """Where the rows come in."""
    columns = {"at": "int64", "key": "int64", "v": "int64"}
    return ab.source(name, columns, start="at", payload=["key", "v"], disorder=20 * SECOND)


def windowed(*, early: bool = False) -> ab.Stream:
    """Four aggregates by group."""
    v = col("v")
    made = {"n": ab.count(), "s": v.sum(), "low": v.min(), "high": v.max()}
    return source().window(10 * SECOND).group_by("key").agg(early=early, **made)


PLANS = {
    "source": source,
    "filter, with_columns": lambda: source().filter(col("v") > 100_000).with_columns(w=col("v") + col("key")),
    "tumbling window": windowed,
    "early window": lambda: windowed(early=True),
}
SINGLE = {
    "filter, select, merge": lambda: ab.merge(
        source().filter(col("v") >= 0).select("key", "v"), source("other")
    ),
    "join": lambda: source().join(source("other"), on="key", within=SECOND),
}


def emitted(plan: ab.Stream, tables: list[pa.Table]) -> int:
    """How many elements come out of pushes."""
    job = plan.open()
    return sum(job.push("rows", table).num_rows for table in tables)


def pushed(plan: ab.Stream, tables: list[pa.Table]) -> float:
    """CPU seconds of pushes."""
    job = plan.open()
    begun = process_time()
    for table in tables:
        job.push("rows", table)
    return process_time() - begun


def run(plan: ab.Stream, tables: list[pa.Table]) -> float:
    """CPU seconds of a run."""
    begun = process_time()
    for _ in ab.run(plan, {"rows": tables}):
        pass
    return process_time() - begun


def grouped(rows: pa.RecordBatch) -> float:
    """CPU seconds of DuckDB."""
    con = duckdb.connect()
    con.execute("SET threads = 1")
    con.register("rows", pa.Table.from_batches([rows]))
    begun = process_time()
    con.sql(QUERY.format(every=10 * SECOND)).to_arrow_table()
    return process_time() - begun


def single(plan: ab.Stream, rows: pa.RecordBatch, count: int) -> float:
    """Median seconds of a push of one row."""
    job, taken = plan.open(), []
    for n in range(count):
        row = rows.slice(n, 1)
        begun = perf_counter()
        job.push("rows", row)
        taken.append(perf_counter() - begun)
    return median(taken[count // 5 :])


if __name__ == "__main__":
    main()
