"""Windows of a plan on Spark beside Spark's own with both of its stores, and what a second level costs.

    ./run bench spark_windows
    ./run bench spark_windows --groups 10000 --slide 2
    ./run bench spark_windows levels

All contenders read the same files in one process, a file in each micro-batch; the first two warm up and are
not counted. Before anything is timed the windows that all of them have closed are compared, row by row.
Figures are rows per second of the median micro-batch. ``levels`` has micro-batches of 2,000 rows: a window by
key, and behind it windows by another column, for which rows are dealt out anew.
"""

import argparse
import shutil
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from spark_merge import WARM, settings, started, workplace

import anabranch
from anabranch import col
from anabranch import spark as ab

SCHEMA = "at timestamp, key long, side long, v long"
COLUMNS = {"at": "timestamp[us, UTC]", "key": "int64", "side": "int64", "v": "int64"}
SECOND = 1_000_000
A_SECOND = 200_000
"""Rows that are sent in a second."""
SIZE = 10
LATE = 2
"""Seconds of a window, and by how many a row is late at most."""
STORE = "spark.sql.streaming.stateStore."
HEAP = {
    f"{STORE}providerClass": "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
}
ROCKS = {
    f"{STORE}providerClass": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    f"{STORE}rocksdb.changelogCheckpointing.enabled": "true",
}


def written(place: Path, rows: int, rounds: int, groups: int) -> None:
    """A file for each micro-batch: rows of many groups, some of them late."""
    random = np.random.default_rng(11)
    place.mkdir(parents=True)
    for n in range(rounds):
        sent = (n * rows + np.arange(rows)) * SECOND // A_SECOND
        at = sent - random.integers(0, LATE * SECOND, rows) + 100 * SIZE * SECOND
        table = pa.table(
            {
                "at": pa.array(at).cast(pa.timestamp("us", "UTC")),
                "key": random.integers(0, groups, rows),
                "side": random.integers(0, 10, rows),
                "v": random.integers(0, 1_000_000, rows),
            }
        )
        pq.write_table(table, place / f"{n:06}.parquet", row_group_size=max(rows // 8, 65_536))


def files(spark: Any, place: Path) -> Any:
    """The rows as Spark reads them."""
    return spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(place))


def windowed(every: float) -> anabranch.Stream:
    """Count, sum, least and greatest of each window of each group."""
    v = col("v")
    rows = anabranch.source("rows", COLUMNS, start="at", disorder=f"{LATE} seconds")
    windows = rows.window(f"{SIZE} seconds", f"{every:g} seconds").group_by("key")
    return windows.agg(n=anabranch.count(), s=v.sum(), low=v.min(), high=v.max())


def spark_windowed(spark: Any, place: Path, every: float) -> Any:
    """The same by Spark's own operators."""
    from pyspark.sql import functions as f

    late = files(spark, place).withWatermark("at", f"{LATE} seconds")
    window = f.window("at", f"{SIZE} seconds", f"{every:g} seconds")
    made = late.groupBy(window, "key").agg(
        f.count("*").alias("n"), f.sum("v").alias("s"), f.min("v").alias("low"), f.max("v").alias("high")
    )
    return made.select(f.col("window.start").alias("start"), "key", "n", "s", "low", "high")


def contenders(spark: Any, place: Path, every: float) -> dict[str, tuple[Callable[[], Any], dict[str, str]]]:
    """What is compared, by name, and the settings of each."""
    plan = windowed(every)
    return {
        "native": (lambda: ab.frame(plan, {"rows": ab.folder(spark, place, files_per_trigger=1)}), {}),
        "generic": (lambda: ab.frame(plan, {"rows": files(spark, place)}), {}),
        "Spark, heap store": (lambda: spark_windowed(spark, place, every), HEAP),
        "Spark, RocksDB": (lambda: spark_windowed(spark, place, every), ROCKS),
    }


def timed(frame: Any, place: Path, output: Path | None = None) -> list[float]:
    """Seconds of every micro-batch with rows after those that warm up."""
    checkpoint = place / f"checkpoint-{time.monotonic_ns()}"
    writer = frame.writeStream.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
    writer = writer.format("noop") if output is None else writer.format("parquet").option("path", str(output))
    query = writer.start()
    query.awaitTermination()
    spent = [p["durationMs"]["triggerExecution"] / 1000 for p in query.recentProgress if p["numInputRows"]]
    shutil.rmtree(checkpoint, ignore_errors=True)
    return spent[WARM:]


def closed(output: Path) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    """The windows that a contender has closed: what each is, by start and key."""
    table = ds.dataset(output, format="parquet", exclude_invalid_files=True).to_table()
    if "kind" in table.schema.names:
        table = table.filter(ds.field("kind") == "insert")
    columns = [table[name].to_pylist() for name in ("start", "key", "n", "s", "low", "high")]
    return {(start.timestamp(), key): tuple(made) for start, key, *made in zip(*columns, strict=True)}


def compared(spark: Any, place: Path, every: float) -> int:
    """How many windows all contenders have closed; it ends with an error where they differ."""
    found = {}
    for name, (frame, wanted) in contenders(spark, place / "small", every).items():
        with settings(spark, wanted):
            timed(frame(), place, place / "out" / name)
        found[name] = closed(place / "out" / name)
    common = set.intersection(*(set(one) for one in found.values()))
    first = found["native"]
    for name, one in found.items():
        wrong = [window for window in common if one[window] != first[window]]
        if wrong or len(one) > len(first):
            raise SystemExit(f"{name} has {len(one):,} windows beside {len(first):,}, {len(wrong):,} differ")
    return len(common)


def windows(options: argparse.Namespace) -> None:
    """Windows of so many groups beside Spark's."""
    every = SIZE / options.slide
    for groups in options.groups:
        with workplace() as place:
            written(place / "small", 300_000, 12, min(groups, 1_000))
            written(place / "in", options.rows, options.rounds + WARM, groups)
            spark = started(options.shards)
            same = compared(spark, place, every)
            print(f"\n{groups:,} groups, {SIZE} s every {every:g} s, {options.rows:,} rows a micro-batch")
            print(f"  {same:,} windows of a smaller run are the same")
            spent: dict[str, list[float]] = {}
            for _ in range(options.times):
                for name, (frame, wanted) in contenders(spark, place / "in", every).items():
                    with settings(spark, wanted):
                        spent.setdefault(name, []).extend(timed(frame(), place))
            rate = {name: options.rows / statistics.median(seconds) for name, seconds in spent.items()}
            for name, found in rate.items():
                each = " ".join(f"{second:.2f}" for second in spent[name])
                print(f"  {name:20} {found:12,.0f} rows/s   {each} s", flush=True)
            for ours in ("native", "generic"):
                for other in ("Spark, heap store", "Spark, RocksDB"):
                    print(f"  {ours} / {other}: {rate[ours] / rate[other]:.2f}")


def levels(options: argparse.Namespace) -> None:
    """Seconds of a small warm micro-batch with one level and with two."""
    rows = anabranch.source("rows", COLUMNS, start="at", disorder=f"{LATE} seconds")
    one = rows.window("1 second").group_by("key", "side").agg(n=anabranch.count(), s=col("v").sum())
    two = one.window("10 seconds").group_by("side").agg(n=col("n").sum(), s=col("s").sum())
    with workplace() as place:
        written(place / "in", 2_000, 20 + WARM, 100)
        spark = started(options.shards)
        spent: dict[str, list[float]] = {}
        for _ in range(options.times):
            for name, plan in (("one level", one), ("two levels", two)):
                frame = ab.frame(plan, {"rows": ab.folder(spark, place / "in", files_per_trigger=1)})
                spent.setdefault(name, []).extend(timed(frame, place))
        found = {name: statistics.median(seconds) for name, seconds in spent.items()}
        for name, seconds in found.items():
            print(f"  {name:12} {seconds:.2f} s a micro-batch of 2,000 rows")
        print(f"  the second level adds {found['two levels'] - found['one level']:.2f} s")


PARTS = {"windows": windows, "levels": levels}


def main() -> None:
    """Run one part."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], prog="./run bench spark_windows")
    parser.add_argument("part", nargs="?", default="windows", choices=PARTS)
    parser.add_argument("--groups", type=int, nargs="+", default=[10_000, 1_000_000])
    parser.add_argument("--slide", type=int, default=1, help="windows that a row is in (default %(default)s)")
    parser.add_argument("--rows", type=int, default=1_000_000, help="of a micro-batch (default %(default)s)")
    parser.add_argument("--rounds", type=int, default=4, help="micro-batches (default %(default)s)")
    parser.add_argument("--times", type=int, default=2, help="runs of each in turn (default %(default)s)")
    parser.add_argument("--shards", type=int, default=2)
    options = parser.parse_args()
    PARTS[options.part](options)


if __name__ == "__main__":
    main()
