"""Queries of Nexmark beside DuckDB's SQL over all rows at once: events per CPU second.

    ./run bench nexmark
    ./run bench nexmark --events 2000000 --queries 5 7 --rounds 3

Both are given the same tables in memory, in the order in which rows are heard. Ours reads its sources side by
side, 10,000 rows at a time, each with the promise of its bound on disorder; DuckDB has all at once, on one
thread. They run in turn, in one process; answers are compared first, of fewer events. An event is a row of
any source that the query reads. Ratios are of the medians.
"""

import argparse
import sys
from pathlib import Path
from statistics import median
from time import process_time

import duckdb
import pyarrow as pa

import anabranch as ab

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))

from auction_house.data import happened
from auction_house.queries import QUERIES
from scene.query import Query, answered, counted, in_ticks, judged, read_by

RATE = 10_000
"""Events of a second."""
PUSHED = 10_000
COMPARED = 100_000
"""Of how many events answers are compared, row by row."""


def main() -> None:
    """Measure, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], prog="./run bench nexmark")
    parser.add_argument("--events", type=int, default=1_000_000, help="how many (default %(default)s)")
    parser.add_argument("--queries", nargs="+", default=list(QUERIES), choices=QUERIES, help="which")
    parser.add_argument("--rounds", type=int, default=3, help="how often each is run (default %(default)s)")
    given = parser.parse_args()
    print(f"{given.events:,} events, million per CPU second, median of {given.rounds}")
    few, tables = happened(COMPARED, rate=RATE), happened(given.events, rate=RATE)
    for name in given.queries:
        query = QUERIES[name]
        assert counted(answered(query, few)) == counted(judged(query, few)), f"both say the same of {name}"
        compare(query, tables, given.rounds)


def compare(query: Query, tables: dict[str, pa.Table], rounds: int) -> None:
    """One row of the table."""
    read = read_by(query.plan(), tables)
    events = sum(table.num_rows for table in read.values())
    ours, theirs = [], []
    for turn in range(rounds + 1):
        spent, other = said(query, read), asked(query, tables)
        if turn:
            ours.append(events / spent)
            theirs.append(events / other)
    print(
        f"  {query.name:<3} {query.words:<72} {median(ours) / 1e6:6.2f}   DuckDB {median(theirs) / 1e6:6.2f}"
        f"   ratio {median(ours) / median(theirs):5.2f}",
        flush=True,
    )


def said(query: Query, tables: dict[str, pa.Table]) -> float:
    """CPU seconds of a plan."""
    begun = process_time()
    for _ in ab.run(query.plan(), tables, rows=PUSHED):
        pass
    return process_time() - begun


def asked(query: Query, tables: dict[str, pa.Table]) -> float:
    """CPU seconds of DuckDB."""
    con = duckdb.connect()
    con.execute("SET threads = 1")
    for name, table in tables.items():
        con.register(name, in_ticks(table))
    begun = process_time()
    con.sql(query.sql).to_arrow_table()
    return process_time() - begun


if __name__ == "__main__":
    main()
