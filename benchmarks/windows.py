"""Windows beside one GROUP BY of DuckDB over all rows: rows per CPU second, and bytes of state.

    ./run bench windows
    ./run bench windows --rows 2000000 --groups 10000 1000000 --rounds 3

Both are given the same rows in memory, in order of arrival (50,000 a second, up to 20 seconds late), and say
count, sum, least and greatest of each window and group, as columns of Arrow. Ours gets them in pushes of
10,000 with a stable after each; DuckDB all at once, on one thread. They run in turn, in one process; what is
said is compared first. Ratios are of the medians.
"""

import argparse
from statistics import median
from time import process_time

import duckdb
import numpy as np
import pyarrow as pa

import anabranch as ab
from anabranch import Batch, col

SECOND = 1_000_000
SIZES = {"tumbling 10 s": (10, 10), "sliding 60/10 s": (60, 10)}
QUERY = """
    WITH panes AS (
        SELECT "at" // {every} AS pane, key, count(*) AS n, sum(v) AS s, min(v) AS low, max(v) AS high
        FROM rows GROUP BY ALL
    )
    SELECT key, pane - k AS w, sum(n)::BIGINT AS n, sum(s)::BIGINT AS s, min(low) AS low, max(high) AS high
    FROM panes, range({panes}) AS t(k) GROUP BY ALL
"""
PLAIN = """
    SELECT key, "at" // {every} AS w, count(*) AS n, sum(v)::BIGINT AS s, min(v) AS low, max(v) AS high
    FROM rows GROUP BY ALL
"""


def main() -> None:
    """Measure, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], prog="./run bench windows")
    parser.add_argument("--rows", type=int, default=4_000_000, help="rows (default %(default)s)")
    parser.add_argument("--groups", type=int, nargs="+", default=[10_000, 1_000_000], help="how many groups")
    parser.add_argument("--keys", nargs="+", default=["integer", "dictionary", "text"], help="kinds of keys")
    parser.add_argument("--rounds", type=int, default=3, help="how often each is run (default %(default)s)")
    given = parser.parse_args()
    print(f"{given.rows:,} rows, million per CPU second, median of {given.rounds}")
    for groups in given.groups:
        for keys in given.keys:
            for name, (size, every) in SIZES.items():
                compare(
                    name, rows_of(given.rows, groups, keys), size, every, given.rounds, f"{groups:,} {keys}"
                )


def rows_of(count: int, groups: int, keys: str) -> pa.RecordBatch:
    """Rows in order of arrival."""
    random = np.random.default_rng(1)
    sent = np.arange(count) * SECOND // 50_000
    at = np.maximum(sent - random.integers(0, 20 * SECOND, count), 0)
    numbers = random.integers(0, groups, count)
    key = pa.array(numbers)
    if keys != "integer":
        texts = pa.array([f"sensor {n:07}" for n in range(groups)])
        key = pa.DictionaryArray.from_arrays(pa.array(numbers.astype(np.int32)), texts)
        key = key if keys == "dictionary" else key.dictionary_decode()
    return pa.record_batch({"at": at, "key": key, "v": random.integers(0, 1_000_000, count)})


def compare(name: str, rows: pa.RecordBatch, size: int, every: int, rounds: int, what: str) -> None:
    """One table row: ours, DuckDB's, the ratio, and bytes of state for each open pane and group."""
    ours, theirs = [], []
    nbytes = 0.0
    for turn in range(rounds + 1):
        spent, said, most = windowed(rows, size, every)
        other, answer = grouped(rows, size, every)
        if not turn:
            assert totals(said) == totals(answer), "both say the same"
            continue
        ours.append(rows.num_rows / spent)
        theirs.append(rows.num_rows / other)
        nbytes = most
    ratio = median(ours) / median(theirs)
    print(
        f"  {what:<22} {name:<16} {median(ours) / 1e6:6.2f}   DuckDB {median(theirs) / 1e6:6.2f}"
        f"   ratio {ratio:5.2f}   {nbytes:4.0f} bytes for each pane and group",
        flush=True,
    )


def windowed(rows: pa.RecordBatch, size: int, every: int) -> tuple[float, list[pa.RecordBatch], float]:
    """CPU seconds of the windows, what they say, and how many bytes a pane and group has at most."""
    payload = rows.select(["key", "v"])
    source = ab.source("rows", payload.schema, properties="insert only")
    v = col("v")
    made = {"n": ab.count(), "s": v.sum(), "low": v.min(), "high": v.max()}
    job = source.window(size * SECOND, every * SECOND).group_by("key").agg(**made).open()
    at = rows.column("at").to_numpy()
    batches = []
    for begin in range(0, len(at), 10_000):
        start = at[begin : begin + 10_000]
        promise = (begin + len(start)) * SECOND // 50_000 - 20 * SECOND
        nothing = np.zeros(len(start), np.int64)
        kinds = np.zeros(len(start), np.int8)
        events = Batch(kinds, start, start + 1, nothing, payload.slice(begin, len(start)))
        batches.append((events, Batch.stable(promise, payload.schema)))
    said, most = [], 0.0
    spent = 0.0
    for number, (events, stable) in enumerate(batches):
        begun = process_time()
        job.passes.push("rows", events)
        said.append(job.passes.push("rows", stable)[""])
        spent += process_time() - begun
        if number == len(batches) // 2:
            status = job.status()
            most = status.nbytes / max(status.live, 1)
    begun = process_time()
    said.append(job.passes.push("rows", Batch.stable(ab.FOREVER, payload.schema))[""])
    return (
        spent + process_time() - begun,
        [one.payload.slice(0, int((one.kind < 2).sum())) for one in said],
        most,
    )


def grouped(rows: pa.RecordBatch, size: int, every: int) -> tuple[float, list[pa.RecordBatch]]:
    """CPU seconds of DuckDB, and what it says."""
    con = duckdb.connect()
    con.execute("SET threads = 1")
    con.register("rows", pa.Table.from_batches([rows]))
    query = PLAIN if size == every else QUERY
    begun = process_time()
    found = con.sql(query.format(every=every * SECOND, panes=size // every)).to_arrow_table()
    return process_time() - begun, found.to_batches()


def totals(parts: list[pa.RecordBatch]) -> tuple[int, ...]:
    """Sums over all rows that are said, and how many there are."""
    full = [part for part in parts if part.num_rows and "n" in part.schema.names]
    sums = [
        sum(int(part.column(name).to_numpy().sum()) for part in full) for name in ("n", "s", "low", "high")
    ]
    return (sum(part.num_rows for part in full), *sums)


if __name__ == "__main__":
    main()
