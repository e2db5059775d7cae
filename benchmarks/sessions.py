"""Sessions and windows of rows beside DuckDB over the same rows: million rows per CPU second.

    ./run bench sessions
    ./run bench sessions --rows 1000000 --rounds 5

Rows in order of arrival (50,000 a second, 10,000 groups, up to 20 s late) as Arrow tables of 10,000 go
through `anabranch.run`; DuckDB has all of them at once, on one thread. Sessions are beside a query of gaps
and islands, windows of rows beside aggregates over ``ROWS BETWEEN`` of which every so many rows one is kept.
Both emit count, sum, least and greatest; the sums of all are compared first. They run in turn, in one
process; the medians are printed. No two rows have one start, so that both have the same order. Last, pushes
of one row (a record batch) in order, timed one by one, and the state after half of the rows: those of 20 s.
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
GROUPS = 10_000
DISORDER = 20 * SECOND
SESSIONS = """
    SELECT key, count(*) AS n, sum(v)::BIGINT AS s, min(v) AS low, max(v) AS high FROM (
        SELECT *, sum(new) OVER (PARTITION BY key ORDER BY "at") AS nth FROM (
            SELECT *, coalesce("at" - lag("at") OVER (PARTITION BY key ORDER BY "at") >= {gap}, true)::INT
                AS new FROM rows
        )
    ) GROUP BY key, nth
"""
ROWS = """
    SELECT key, n, s, low, high FROM (
        SELECT key, row_number() OVER (PARTITION BY key ORDER BY "at") AS nth, count(*) OVER inside AS n,
            (sum(v) OVER inside)::BIGINT AS s, min(v) OVER inside AS low, max(v) OVER inside AS high FROM rows
        WINDOW inside AS (PARTITION BY key ORDER BY "at" ROWS BETWEEN CURRENT ROW AND {after} FOLLOWING)
    ) WHERE (nth - 1) % {every} = 0
"""


def main() -> None:
    """Measure, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], prog="./run bench sessions")
    parser.add_argument("--rows", type=int, default=2_000_000, help="rows (default %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="how often each is run (default %(default)s)")
    parser.add_argument("--pushes", type=int, default=2_000, help="pushes of one row (default %(default)s)")
    parser.add_argument("--only", default="", help="cases whose name has this")
    given = parser.parse_args()
    rows = rows_of(given.rows)
    tables = [pa.Table.from_batches([rows.slice(n, PIECE)]) for n in range(0, rows.num_rows, PIECE)]
    cases = {name: case for name, case in CASES.items() if given.only in name}
    print(f"{rows.num_rows:,} rows by {GROUPS:,} groups, million per CPU second, median of {given.rounds}")
    for name, (plan, query) in cases.items():
        ours, theirs = [], []
        for turn in range(given.rounds + 1):
            spent, emitted = run(plan, tables)
            other, found = asked(query, rows)
            if not turn:
                assert totals(emitted) == totals(found), f"{name}: {totals(emitted)} and {totals(found)}"
                continue
            ours.append(rows.num_rows / spent / 1e6)
            theirs.append(rows.num_rows / other / 1e6)
        ratio = median(ours) / median(theirs)
        print(f"  {name:<24} {median(ours):6.2f}   DuckDB {median(theirs):6.2f}   {ratio:5.2f}", flush=True)
    print(f"a push of one row, {given.pushes:,} of them: median milliseconds, and 99 of 100 within")
    for name, (plan, _) in cases.items():
        each, nbytes = single(plan, rows, given.pushes)
        took = f"{median(each) * 1e3:6.3f} {np.quantile(each, 0.99) * 1e3:7.3f}"
        print(f"  {name:<24} {took}   {nbytes / 2**20:6.1f} MiB of state", flush=True)


def rows_of(count: int) -> pa.RecordBatch:
    """Rows in order of arrival, no two of one start."""
    random = np.random.default_rng(1)
    at = np.arange(count) * SECOND // 50_000 - random.integers(0, DISORDER - SECOND // 10, count)
    order = np.argsort(at, kind="stable")
    at[order] = np.maximum.accumulate(at[order] - np.arange(count)) + np.arange(count)
    return pa.record_batch(
        {"at": at, "key": random.integers(0, GROUPS, count), "v": random.integers(0, 1_000_000, count)}
    )


def source() -> ab.Stream:
    """Where the rows come in."""
    columns = {"at": "int64", "key": "int64", "v": "int64"}
    return ab.source("rows", columns, start="at", payload=["key", "v"], disorder=DISORDER)


def session(gap: float) -> tuple[ab.Stream, str]:
    """Sessions by a gap of seconds, and the query for them."""
    ticks = int(gap * SECOND)
    return source().session(ticks).group_by("key").agg(**MADE), SESSIONS.format(gap=ticks)


def windows(size: int, every: int) -> tuple[ab.Stream, str]:
    """Windows of rows, and the query for them."""
    return source().rows(size, every).group_by("key").agg(**MADE), ROWS.format(after=size - 1, every=every)


MADE = {"n": ab.count(), "s": col("v").sum(), "low": col("v").min(), "high": col("v").max()}
CASES = {
    "session, gap 50 ms": session(0.05),
    "session, gap 500 ms": session(0.5),
    "session, gap 5 s": session(5),
    "rows 5": windows(5, 5),
    "rows 10 every 2": windows(10, 2),
}


def run(plan: ab.Stream, tables: list[pa.Table]) -> tuple[float, list[pa.Table]]:
    """CPU seconds of a run, and what it emits."""
    begun = process_time()
    emitted = [part.payload for part in ab.run(plan, {"rows": tables})]
    return process_time() - begun, [pa.Table.from_batches([part]) for part in emitted]


def asked(query: str, rows: pa.RecordBatch) -> tuple[float, list[pa.Table]]:
    """CPU seconds of DuckDB, and what it finds."""
    con = duckdb.connect()
    con.execute("SET threads = 1")
    con.register("rows", pa.Table.from_batches([rows]))
    begun = process_time()
    found = con.sql(query).to_arrow_table()
    return process_time() - begun, [found]


def totals(parts: list[pa.Table]) -> tuple[int, ...]:
    """How many rows there are, and the sums of their columns."""
    full = [part.drop_null() for part in parts if "n" in part.schema.names]
    names = ("n", "s", "low", "high")
    sums = [sum(int(part.column(name).to_numpy().sum()) for part in full) for name in names]
    return (sum(part.num_rows for part in full), *sums)


def single(plan: ab.Stream, rows: pa.RecordBatch, count: int) -> tuple[list[float], int]:
    """Seconds of each push of one row, and bytes of state; in order, so that each row moves the stable."""
    job, taken = plan.open(), []
    rows = rows.take(pa.array(np.argsort(rows.column("at").to_numpy())))
    ready = rows.num_rows // 2
    for n in range(0, ready, PIECE):
        job.push("rows", rows.slice(n, min(PIECE, ready - n)))
    nbytes = job.status().nbytes
    for n in range(ready, ready + count):
        row = rows.slice(n, 1)
        begun = perf_counter()
        job.push("rows", row)
        taken.append(perf_counter() - begun)
    return taken, nbytes


if __name__ == "__main__":
    main()
