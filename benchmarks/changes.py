"""Changes of a keyed table to elements: how many a second, in order and late, beside a dict of latest rows.

./run bench changes

A million upserts of 200,000 keys with payloads of 100 bytes, in batches of 50,000, a stable after each that
is 200,000 changes behind; late ones are up to 100,000 changes late. The dict knows the latest row of each
key, as a consumer would keep it, and takes changes as they come: it has no history, and late changes make it
wrong. Changes per second of wall time, the median of three runs, all in one process.
"""

import statistics
import time
from collections.abc import Callable
from functools import partial

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anabranch.kernels.changes import Changes, changes
from anabranch.model.op import Op

COUNT, KEYS, PART, BEHIND, LATE = 1_000_000, 200_000, 50_000, 200_000, 100_000
RUNS = 3

Log = list[tuple[NDArray[np.int64], pa.RecordBatch]]


def log(late: int) -> Log:
    """Commit times and rows in parts, in the order in which they come."""
    random = np.random.default_rng(1)
    key, commit = random.integers(0, KEYS, COUNT), np.arange(COUNT)
    order = np.argsort(commit + random.integers(0, late, COUNT), kind="stable") if late else commit
    text = pa.array([f"{n:092}" for n in range(COUNT)])
    rows = pa.RecordBatch.from_pydict({"id": key, "v": text}).take(pa.array(order))
    return [(commit[order[at : at + PART]], rows.slice(at, PART)) for at in range(0, COUNT, PART)]


def to_elements(parts: Log, *, by_time: bool) -> str:
    """Let the kernel hear all; what is left in memory."""
    table = Changes(["id"], by_time=by_time)
    for number, (commit, rows) in enumerate(parts, 1):
        told = table.push("", changes(np.full(len(commit), Op.UPSERT), commit, rows))
        table.advance("", number * PART - BEHIND)
        assert not len(told.refused)
    return f"{table.nbytes / 1e6:.0f} MB of state"


def to_dict(parts: Log) -> str:
    """Keep the latest row of each key in a dict; what a user has of it."""
    latest = {}
    for commit, rows in parts:
        for key, at, text in zip(rows["id"].to_pylist(), commit.tolist(), rows["v"].to_pylist(), strict=True):
            latest[key] = at, text
    return f"{len(latest):,} rows"


def rate(read: Callable[[Log], str], parts: Log) -> tuple[float, str]:
    """Changes per second, and what there is in the end."""
    seconds, left = [], ""
    for _ in range(RUNS + 1):
        begun = time.perf_counter()
        left = read(parts)
        seconds.append(time.perf_counter() - begun)
    return COUNT / statistics.median(seconds[1:]), left


def main() -> None:
    """Print a line for each."""
    by_time, as_they_come = partial(to_elements, by_time=True), partial(to_elements, by_time=False)
    in_order, late = log(0), log(LATE)
    for order, what, read, parts in (
        ("in order", "elements of a log", as_they_come, in_order),
        ("in order", "elements by time", by_time, in_order),
        ("late", "elements by time", by_time, late),
        ("in order", "dict of latest rows", to_dict, in_order),
    ):
        found, left = rate(read, parts)
        print(f"{order:>8}  {what:<20}  {found:>10,.0f} changes/s   {left}", flush=True)


if __name__ == "__main__":
    main()
