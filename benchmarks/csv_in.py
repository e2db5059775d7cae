"""CSV by the public API: seconds of CPU for a million rows, beside Polars reading the same columns and types.

    ./run bench csv_in
    ./run bench csv_in --rows 1000000 --rounds 5

A file of six columns (an instant, two texts, an integer, two floats) is read with the types given, by
`anabranch.run` of a plan of its source alone, which also checks every row and infers how far the source has
come, and by `polars.read_csv`. They run in turn in one process, Polars on one thread; medians are printed.
"""

import argparse
import os

os.environ["POLARS_MAX_THREADS"] = "1"

import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from time import process_time

import numpy as np
import polars as pl
import pyarrow as pa
from pyarrow import csv

import anabranch as ab

COLUMNS = {
    "at": "timestamp[us, tz=UTC]",
    "sensor": "string",
    "room": "string",
    "count": "int64",
    "level": "float64",
    "share": "float64",
}
TYPES = {"sensor": pl.String, "room": pl.String, "count": pl.Int64, "level": pl.Float64, "share": pl.Float64}


def main() -> None:
    """Measure, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], prog="./run bench csv_in")
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows (default %(default)s)")
    parser.add_argument("--rounds", type=int, default=5, help="how often each is run (default %(default)s)")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = written(Path(folder) / "rows.csv", given.rows)
        print(f"{given.rows:,} rows, {path.stat().st_size / 1e6:,.0f} MB, CPU, median of {given.rounds}")
        spent: dict[str, list[float]] = {}
        for _ in range(given.rounds):
            for name, read in READERS.items():
                begun = process_time()
                assert read(path) == given.rows
                spent.setdefault(name, []).append(process_time() - begun)
    least = median(spent["Polars"])
    for name, seconds in spent.items():
        took = median(seconds)
        rate = given.rows / took / 1e6
        print(f"  {name:<10} {took:6.2f} s   {rate:5.2f} M rows a second   {least / took:4.2f}")


def written(path: Path, count: int) -> Path:
    """A file of so many rows, in order of their times."""
    random = np.random.default_rng(1)
    first = datetime(2026, 3, 1, tzinfo=UTC)
    times = [(first + timedelta(seconds=n)).isoformat() for n in range(count)]
    table = pa.table(
        {
            "at": times,
            "sensor": [f"sensor {n}" for n in random.integers(0, 10_000, count).tolist()],
            "room": [f"room {n}" for n in random.integers(0, 100, count).tolist()],
            "count": random.integers(0, 1_000_000, count),
            "level": random.normal(20, 5, count).round(3),
            "share": random.random(count).round(6),
        }
    )
    csv.write_csv(table, path)
    return path


def by_run(path: Path) -> int:
    """How many events a plan of the source alone has of a file."""
    plan = ab.source("rows", COLUMNS, start="at", disorder="1 minute")
    return sum(int((batch.kind == 0).sum()) for batch in ab.run(plan, {"rows": path}))


def by_polars(path: Path) -> int:
    """How many rows Polars reads of it."""
    times = pl.col("at").str.to_datetime(time_unit="us", time_zone="UTC")
    return pl.read_csv(path, schema={"at": pl.String, **TYPES}).with_columns(times).height


READERS = {"Polars": by_polars, "anabranch": by_run}

if __name__ == "__main__":
    main()
