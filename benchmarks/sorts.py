"""Sort and distinct beside Polars and DuckDB: rows per CPU second in one run, and pushes of one row.

    ./run bench sorts
    ./run bench sorts --rows 1000000 --rounds 3

Rows are up to 20 seconds late. By `anabranch.run`, in Arrow tables of 10,000 rows: their times are a column,
and how late they may be is declared. By the kernel: batches of 10,000 events, after each the stable that the
rows allow. Polars sorts all rows by the same columns and DuckDB orders them so; for distinct DuckDB selects
the distinct rows, four of five of which are the first of their kind. Both have one thread, and give Arrow.
Results are compared first. CPU seconds are of this process; the contenders take their turns.
"""

import argparse
import os
from collections.abc import Callable, Iterator
from statistics import median
from time import perf_counter, process_time

os.environ["POLARS_MAX_THREADS"] = "1"

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa

import anabranch as ab
from anabranch import Batch
from anabranch.kernels.sort import Sort
from anabranch.model.batch import Kind
from anabranch.model.time import FOREVER

SECOND = 1_000_000
LATE = 20 * SECOND
PIECE = 10_000
PACE = 50_000
"""Rows a second."""


def main() -> None:
    """Measure, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], prog="./run bench sorts")
    parser.add_argument("--rows", type=int, default=2_000_000, help="rows (default %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="how often each is run (default %(default)s)")
    parser.add_argument("--pushes", type=int, default=1_000, help="pushes of one row (default %(default)s)")
    given = parser.parse_args()
    rows, twice = rows_of(given.rows), rows_of(given.rows, twice=0.2)
    pieces, pieces_twice = in_pieces(rows), in_pieces(twice)
    check(twice)
    print(f"million rows per CPU second, {rows.num_rows:,} rows, median of {given.rounds}")
    compare(
        "sort",
        {
            "Polars": lambda: sorted_by_polars(rows),
            "DuckDB": lambda: sorted_by_duckdb(rows),
            "anabranch.run": lambda: run(source().sort(), pieces),
        },
        rows.num_rows,
        given.rounds,
    )
    batches = list(with_stables(rows))
    compare(
        "the source alone",
        {"anabranch.run": lambda: run(source(), pieces)},
        rows.num_rows,
        given.rounds,
    )
    compare(
        "sort, the kernel by itself",
        {"Polars": lambda: sorted_by_polars(rows), "kernel": lambda: by_kernel(batches)},
        rows.num_rows,
        given.rounds,
    )
    compare(
        "distinct",
        {
            "DuckDB": lambda: distinct_by_duckdb(twice),
            "anabranch.run": lambda: run(source().distinct(), pieces_twice),
        },
        rows.num_rows,
        given.rounds,
    )
    print(f"a push of one row, median milliseconds of {given.pushes:,}")
    plans = {"sort": source().sort(), "distinct": source().distinct()}
    plans["join"] = source().join(source("other"), on="key", within=SECOND)
    for name, plan in plans.items():
        print(f"  {name:<16} {single(plan, rows, given.pushes) * 1e3:6.3f}")


def compare(name: str, contenders: dict[str, Callable[[], object]], rows: int, rounds: int) -> None:
    """All in turn; the first is what the others are compared with."""
    spent: dict[str, list[float]] = {}
    for _ in range(rounds):
        for who, work in contenders.items():
            begun = process_time()
            work()
            spent.setdefault(who, []).append(process_time() - begun)
    first = median(next(iter(spent.values())))
    print(name)
    for who, seconds in spent.items():
        print(f"  {who:<16} {rows / median(seconds) / 1e6:6.2f}   {first / median(seconds):5.2f}")


def in_pieces(rows: pa.RecordBatch) -> list[pa.Table]:
    """The rows as tables of some."""
    return [pa.Table.from_batches([rows.slice(n, PIECE)]) for n in range(0, rows.num_rows, PIECE)]


def check(twice: pa.RecordBatch) -> None:
    """The same rows come of all, and those of a sort in the order of time."""
    mine, theirs = emitted(source().sort(), in_pieces(twice)), pl.from_arrow(sorted_by_polars(twice))
    assert mine["at"].equals(theirs["at"]), "both are in the order of time"
    columns = ["at", "key", "v"]
    assert mine.sort(columns).equals(theirs.select(columns).sort(columns)), "both have the same rows"
    mine, theirs = emitted(source().distinct(), in_pieces(twice)), pl.from_arrow(distinct_by_duckdb(twice))
    assert mine.sort(columns).equals(theirs.select(columns).sort(columns)), "both have the same distinct rows"


def rows_of(count: int, *, twice: float = 0.0) -> pa.RecordBatch:
    """Rows in order of arrival, up to 20 seconds late, some share of them as one a little before."""
    random = np.random.default_rng(1)
    sent = np.arange(count) * SECOND // PACE
    columns = {
        "at": sent - random.integers(0, LATE, count) + LATE,
        "key": random.integers(0, 10_000, count),
        "v": random.integers(0, 1_000_000, count),
    }
    again = np.flatnonzero(random.random(count) < twice)
    again = again[again > 100]
    for column in columns.values():
        column[again] = column[again - 100]
    return pa.record_batch(columns)


def source(name: str = "rows") -> ab.Stream:
    """Where the rows come in."""
    columns = {"at": "int64", "key": "int64", "v": "int64"}
    return ab.source(name, columns, start="at", payload=["key", "v"], disorder=LATE + SECOND)


def emitted(plan: ab.Stream, pieces: list[pa.Table]) -> pl.DataFrame:
    """The events that come of a run, by their starts."""
    parts = []
    for batch in ab.run(plan, {"rows": pieces}):
        assert (batch.kind != Kind.ADJUST).all(), "nothing is removed"
        events = batch.take(batch.kind == Kind.INSERT)
        parts.append(pl.from_arrow(pa.Table.from_batches([events.payload])).with_columns(at=events.start))
    return pl.concat([part.select("at", "key", "v") for part in parts if len(part)])


def run(plan: ab.Stream, pieces: list[pa.Table]) -> None:
    """All rows through a plan."""
    for _ in ab.run(plan, {"rows": pieces}):
        pass


def with_stables(rows: pa.RecordBatch) -> Iterator[tuple[Batch, int]]:
    """Batches of events, and what they are followed by."""
    start = rows.column("at").to_numpy()
    least = np.minimum.accumulate(start[::-1])[::-1]
    payload = rows.select(["key", "v"])
    for begin in range(0, len(start), PIECE):
        part = start[begin : begin + PIECE].copy()
        nothing = np.zeros(len(part), np.int64)
        stable = FOREVER if begin + PIECE >= len(start) else int(least[begin + PIECE])
        yield Batch(nothing.astype(np.int8), part, part + 1, nothing, payload.slice(begin, PIECE)), stable


def by_kernel(batches: list[tuple[Batch, int]]) -> int:
    """All batches through the kernel of sort; how many events come."""
    kernel, count = Sort(), 0
    for batch, stable in batches:
        kernel.push("", batch.plain())
        count += len(kernel.advance("", stable).events)
    return count


def sorted_by_polars(rows: pa.RecordBatch) -> pa.Table:
    """The rows by time."""
    return pl.from_arrow(pa.Table.from_batches([rows])).sort("at").to_arrow()


def sorted_by_duckdb(rows: pa.RecordBatch) -> pa.Table:
    """The rows by time."""
    return by_duckdb(rows, 'SELECT * FROM rows ORDER BY "at"')


def distinct_by_duckdb(rows: pa.RecordBatch) -> pa.Table:
    """Each row once."""
    return by_duckdb(rows, "SELECT DISTINCT * FROM rows")


def by_duckdb(rows: pa.RecordBatch, query: str) -> pa.Table:
    """What one thread gives."""
    with duckdb.connect() as connection:
        connection.execute("SET threads = 1")
        connection.register("rows", pa.Table.from_batches([rows]))
        return connection.sql(query).to_arrow_table()


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
