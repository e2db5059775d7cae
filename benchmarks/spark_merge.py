"""Logical merge on Spark beside Spark's own de-duplication and an identity pass, on the same rows.

usage: spark_merge.py [doors|growth|live|shards|latency] [--events N] [--width BYTES …] [--rounds N]

All contenders run in one process on the same files: three replicas of one stream, each with its own
disorder. A round is one micro-batch of all of a file of each replica; the first round warms up and is not
counted. Figures are rows per second of the median round, input rows counted once per copy.
"""

import argparse
import shutil
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from anabranch import spark as ab

REPLICAS = ("a", "b", "c")
SECOND = 1_000_000


def written(place: Path, events: int, width: int, rounds: int, disorder: int = 1000) -> None:
    """Files of three replicas: events in each round, shuffled a little and differently in each."""
    random = np.random.default_rng(7)
    alphabet = np.frombuffer(b"0123456789abcdefghijklmnopqrstuvwxyz", np.uint8)
    for n in range(rounds):
        ids = np.arange(n * events, (n + 1) * events)
        text = alphabet[random.integers(0, 36, (events, width - 8), np.uint8)]
        offsets = pa.py_buffer(np.arange(events + 1, dtype=np.int32) * (width - 8))
        texts = pa.StringArray.from_buffers(events, offsets, pa.py_buffer(text.tobytes()))
        for name in REPLICAS:
            order = np.argsort(ids + random.integers(0, disorder, events), kind="stable")
            table = pa.table(
                {
                    "replica": pa.repeat(pa.scalar(name), events),
                    "at": pa.array(ids[order] * 1000).cast(pa.timestamp("us", "UTC")),
                    "id": ids[order],
                    "text": texts.take(pa.array(order)),
                }
            )
            (place / name).mkdir(parents=True, exist_ok=True)
            pq.write_table(table, place / name / f"{n:06}.parquet", row_group_size=max(events // 8, 65_536))


def timed(frame, place: Path, rows: int, name: str) -> tuple[list[float], dict]:
    """Seconds of every round but the first, and the last progress."""
    checkpoint = place / f"checkpoint-{name}-{time.monotonic_ns()}"
    query = (
        frame.writeStream.format("noop")
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    progress = [p for p in query.recentProgress if p["numInputRows"]]
    seconds = [p["durationMs"]["triggerExecution"] / 1000 for p in progress]
    return seconds[1:], progress[-1]


def contenders(spark, place: Path, disorder: str = "1 second"):
    """What is compared, by name."""
    schema = "replica string, at timestamp, id long, text string"

    def files():
        return (
            spark.readStream.schema(schema)
            .option("recursiveFileLookup", "true")
            .option("maxFilesPerTrigger", len(REPLICAS))
            .parquet(str(place))
        )

    def same(batches):
        yield from batches

    settings = {"start": "at", "replica": "replica", "disorder": disorder, "case": "R3"}
    return {
        "scan": files,
        "identity mapInArrow": lambda: files().mapInArrow(same, schema),
        "dropDuplicatesWithinWatermark": lambda: (
            files().withWatermark("at", disorder).dropDuplicatesWithinWatermark(["id", "text"])
        ),
        "generic door": lambda: ab.merge(files(), **settings),
        "native door": lambda: ab.merge(ab.folder(spark, place, files_per_trigger=len(REPLICAS)), **settings),
    }


def doors(options) -> None:
    """Both doors beside the others."""
    for width in options.width:
        place = Path(tempfile.mkdtemp(prefix="spark-merge-"))
        try:
            written(place / "in", options.events, width, options.rounds + 1)
            spark = ab.session("local[2]", shards=options.shards)
            spark.sparkContext.setLogLevel("ERROR")
            rows = options.events * len(REPLICAS)
            print(f"\n{width}-byte payloads, {rows:,} rows a round, {options.shards} shards")
            found = {}
            for name, frame in contenders(spark, place / "in").items():
                if options.only and not any(word in name for word in options.only):
                    continue
                seconds, _ = timed(frame(), place, rows, name.replace(" ", "-"))
                found[name] = rows / statistics.median(seconds)
                print(
                    f"  {name:32} {found[name]:12,.0f} rows/s   {[f'{s:.2f}' for s in seconds]}", flush=True
                )
            for name in ("generic door", "native door"):
                for other in ("dropDuplicatesWithinWatermark", "identity mapInArrow"):
                    if name in found and other in found:
                        print(f"  {name} / {other}: {found[name] / found[other]:.2f}x")
        finally:
            shutil.rmtree(place, ignore_errors=True)


def main() -> None:
    """Run one part."""
    parser = argparse.ArgumentParser()
    parser.add_argument("part", nargs="?", default="doors", choices=["doors"])
    parser.add_argument("--events", type=int, default=400_000, help="distinct events a round")
    parser.add_argument("--width", type=int, nargs="+", default=[100, 1000])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--shards", type=int, default=2)
    parser.add_argument("--only", nargs="*")
    options = parser.parse_args()
    globals()[options.part](options)


if __name__ == "__main__":
    main()
