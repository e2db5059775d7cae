"""Joins on time beside DuckDB's batch join of the same rows: elements per CPU second, in one run.

    ./run bench joins
    ./run bench joins --events 500000 --rounds 3

Two streams of as many events each, disordered by up to 20 seconds, a stable every 10,000 rows, 100,000 keys
and a match for every second event within 120 seconds; three columns come out. By batches of events and
stables that are pushed, and by `anabranch.run` of tables of 10,000 rows, with their starts in a column and
how late they may be declared. DuckDB joins all rows at once with one thread, and gives the same columns as
Arrow. Then half of the events have one key, starts are equal, and the right is 5,000 ticks behind, so that
thousands of its events are alive. CPU seconds are of this process; rows are drawn before.
"""

import argparse
from statistics import median
from time import process_time

import duckdb
import numpy as np
import pyarrow as pa

import anabranch as ab
from anabranch import Batch
from anabranch.model.batch import Kind
from anabranch.model.time import FOREVER

WITHIN = 120_000
"""Milliseconds: ticks here."""
PIECE = 10_000
DISORDER = 20_000
SQL = """
SELECT l.key, l.a, r.b FROM left_rows l JOIN right_rows r
ON l.key = r.key AND r.start BETWEEN l.start - {within} AND l.start + {within}
"""
SQL_OF_EQUAL_STARTS = """
SELECT l.key, l.a, r.b FROM left_rows l JOIN right_rows r ON l.key = r.key AND r.start = l.start
"""
"""A band of no width would be tried for every pair of a key."""


def main() -> None:
    """Measure, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], prog="./run bench joins")
    parser.add_argument(
        "--events", type=int, default=2_000_000, help="events of each side (default %(default)s)"
    )
    parser.add_argument("--rounds", type=int, default=3, help="how often each is run (default %(default)s)")
    given = parser.parse_args()
    for name, rows, within in (
        ("100,000 keys", spread(given.events, 100_000), WITHIN),
        ("a hot key", hot(given.events), 0),
    ):
        measure(name, rows, within, given.rounds)


def measure(name: str, rows: list[pa.Table], within: int, rounds: int) -> None:
    """One kind of rows through both, in turn."""
    batches = [pieces(table) for table in rows]
    run(batches[0][:3], batches[1][:3], rows, within)
    run_rows([table[: 3 * PIECE] for table in rows], within)
    contenders = {
        "DuckDB, batch": lambda: batch_join(rows, within),
        "batches": lambda: run(*batches, rows, within),
        "anabranch.run": lambda: run_rows(rows, within),
    }
    spent: dict[str, list[float]] = {who: [] for who in contenders}
    found = set()
    for _ in range(rounds):
        for who, work in contenders.items():
            begun = process_time()
            found.add(work())
            spent[who].append(process_time() - begun)
    assert len(found) == 1, f"all give as many pairs, these are {found}"
    elements, theirs = sum(len(table) for table in rows), median(spent["DuckDB, batch"])
    print(f"{name}: {elements:,} elements, {found.pop():,} pairs")
    print(f"million elements per CPU second, median of {rounds}, and how often DuckDB's")
    for who, seconds in spent.items():
        print(f"  {who:<14} {elements / median(seconds) / 1e6:6.2f}   {theirs / median(seconds):5.2f}")


def run(left: list[Batch], right: list[Batch], rows: list[pa.Table], within: int) -> int:
    """Both sides through a plan, piece by piece; how many pairs come."""
    streams = [
        ab.source(name, table.schema.remove(0), properties="insert only")
        for name, table in zip(("left", "right"), rows, strict=True)
    ]
    job = streams[0].join(streams[1], on="key", within=(within, within)).select("key", "a", "b").open()
    count = 0
    for one, other in zip(left, right, strict=True):
        for name, batch in (("left", one), ("right", other)):
            count += int((job.push(name, batch).kind == Kind.INSERT).sum())
    return count


def run_rows(rows: list[pa.Table], within: int) -> int:
    """Both sides as rows; how many pairs come."""
    names = ("left", "right")
    streams = [
        ab.source(
            name, table.schema, start="start", payload=table.column_names[1:], disorder=DISORDER + 1_000
        )
        for name, table in zip(names, rows, strict=True)
    ]
    plan = streams[0].join(streams[1], on="key", within=(within, within)).select("key", "a", "b")
    tables = [[table[begin : begin + PIECE] for begin in range(0, len(table), PIECE)] for table in rows]
    parts = ab.run(plan, dict(zip(names, tables, strict=True)))
    return sum(int((part.kind == Kind.INSERT).sum()) for part in parts)


def batch_join(rows: list[pa.Table], within: int) -> int:
    """The same pairs by one query."""
    with duckdb.connect() as connection:
        connection.execute("SET threads = 1")
        connection.register("left_rows", rows[0])
        connection.register("right_rows", rows[1])
        query = SQL.format(within=within) if within else SQL_OF_EQUAL_STARTS
        return len(connection.sql(query).to_arrow_table())


def spread(events: int, keys: int) -> list[pa.Table]:
    """Both sides at one pace, so that an event has about one match."""
    random = np.random.default_rng(1)
    pace = 2 * WITHIN / keys
    return [table(random, random.integers(0, keys, events), pace, 0, column) for column in "ab"]


def hot(events: int) -> list[pa.Table]:
    """Half of the events of one key, one of each side at each tick; the right is behind."""
    random = np.random.default_rng(2)
    tables = []
    for number, column in enumerate("ab"):
        keys = np.where(np.arange(events) % 2 == 0, 0, random.integers(1, 10_000, events))
        tables.append(table(random, keys, 0.5, -number * HELD // 2, column))
    return tables


HELD = 10_000
"""Events of a hot key that are alive."""


def table(random: np.random.Generator, keys: np.ndarray, pace: float, shift: int, column: str) -> pa.Table:
    """Events of these keys, so many ticks apart, each a little out of order."""
    start = (np.arange(len(keys)) * pace).astype(np.int64) + shift + DISORDER
    order = np.argsort(start + random.integers(0, DISORDER if pace > 1 else 100, len(keys)), kind="stable")
    values = random.integers(0, 1000, len(keys))
    columns = {"start": start[order], "key": keys[order].astype(np.int64), column: values[order]}
    return pa.table(columns)


def pieces(rows: pa.Table) -> list[Batch]:
    """Batches as a source has them, each with the stable that it allows at its end."""
    found = []
    starts = rows.column("start").to_numpy()
    least = np.minimum.accumulate(starts[::-1])[::-1]
    payload = rows.drop(["start"]).combine_chunks().to_batches()[0]
    for begin in range(0, len(starts), PIECE):
        end = min(begin + PIECE, len(starts))
        stable = FOREVER if end == len(starts) else int(least[end])
        kind = np.zeros(end - begin + 1, np.int8)
        kind[-1] = Kind.STABLE
        start = np.append(starts[begin:end], stable)
        nothing = np.zeros(len(start), np.int64)
        part = pa.Table.from_batches([payload.slice(begin, end - begin), nulls(payload.schema)])
        batch = part.combine_chunks().to_batches()[0]
        found.append(Batch(kind, start, np.where(kind == 0, start + 1, 0), nothing, batch))
    return found


def nulls(schema: pa.Schema) -> pa.RecordBatch:
    """A row of nulls."""
    return pa.RecordBatch.from_arrays([pa.nulls(1, one.type) for one in schema], schema=schema)


if __name__ == "__main__":
    main()
