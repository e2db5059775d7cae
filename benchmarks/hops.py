"""Pushes of one row into windows that overlap many times: milliseconds, by how many slides a window is long.

    ./run bench hops
    ./run bench hops --sizes 60 1440 --pushes 2000

A row a tick, by ten groups, into windows that begin at every tick: each push closes one window, whose groups
are emitted. Windows of all sizes take their pushes in turn, in one process, each after as many rows as a
window and a half has. Plans: what can be taken away again (count, sum, mean); what cannot (the least and the
greatest); values that are counted (distinct count). Last, a row into a tumbling window that is emitted early.
"""

import argparse
from statistics import median
from time import perf_counter

import numpy as np
import pyarrow as pa

import anabranch as ab
from anabranch import col

GROUPS = 10


def main() -> None:
    """Measure, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], prog="./run bench hops")
    parser.add_argument("--sizes", type=int, nargs="+", default=[60, 240, 1440], help="slides of a window")
    parser.add_argument("--pushes", type=int, default=1_500, help="timed pushes (default %(default)s)")
    given = parser.parse_args()
    print(f"milliseconds for a push of one row, {given.pushes:,} pushes: median, 99 of 100 within, most")
    for name, made in AGGREGATES.items():
        jobs = [(size, windows(size, 1, made)) for size in given.sizes]
        shortest = 0.0
        for size, taken in in_turn(jobs, given.pushes):
            shortest = shortest or median(taken)
            ratio = f"   {median(taken) / shortest:5.2f} of {given.sizes[0]}"
            print(f"  {name:<18} {size:5} every 1   {line(taken)}{ratio}", flush=True)
    early = [(100, windows(100, 100, AGGREGATES["count, sum, mean"], early=True))]
    for _, taken in in_turn(early, given.pushes):
        print(f"  {'early, tumbling':<18}   100         {line(taken)}")


AGGREGATES = {
    "count, sum, mean": {"n": ab.count(), "s": col("v").sum(), "mean": col("x").mean()},
    "least, greatest": {"low": col("v").min(), "high": col("x").max()},
    "distinct count": {"n": col("v").n_unique()},
}


def windows(size: int, every: int, made: dict[str, ab.Aggregate], *, early: bool = False) -> ab.Stream:
    """Windows of rows that are late by up to two ticks."""
    columns = {"at": "int64", "key": "int64", "v": "int64", "x": "float64"}
    source = ab.source("rows", columns, start="at", payload=["key", "v", "x"], disorder=2)
    return source.window(size, every).group_by("key").agg(early=early, **made)


def in_turn(plans: list[tuple[int, ab.Stream]], pushes: int) -> list[tuple[int, list[float]]]:
    """The seconds of each push, by size."""
    jobs = [(size, plan.open(), rows_of(size + size // 2 + pushes)) for size, plan in plans]
    for size, job, rows in jobs:
        for n in range(size + size // 2):
            job.push("rows", rows.slice(n, 1))
    found: list[tuple[int, list[float]]] = [(size, []) for size, _, _ in jobs]
    for n in range(pushes):
        for (size, job, rows), (_, taken) in zip(jobs, found, strict=True):
            row = rows.slice(size + size // 2 + n, 1)
            begun = perf_counter()
            job.push("rows", row)
            taken.append(perf_counter() - begun)
    return found


def rows_of(count: int) -> pa.RecordBatch:
    """A row a tick."""
    random = np.random.default_rng(1)
    return pa.record_batch(
        {
            "at": np.arange(count),
            "key": random.integers(0, GROUPS, count),
            "v": random.integers(0, 1_000, count),
            "x": random.normal(size=count),
        }
    )


def line(taken: list[float]) -> str:
    """The median, the 99th of a hundred, and the most."""
    each = np.array(taken) * 1e3
    return f"{median(each):7.3f}  {np.quantile(each, 0.99):7.3f}  {each.max():7.3f}"


if __name__ == "__main__":
    main()
