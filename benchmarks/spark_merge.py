"""Logical merge on Spark beside Spark's own de-duplication and an identity pass, on the same rows.

usage: spark_merge.py [doors|stages|growth|live|shards|latency] [OPTIONS]; --help lists them

All contenders run in one process on the same files: three replicas of one stream, each with its own
disorder. A round is one micro-batch of all of a file of each replica; the first two warm up and are not
counted. Figures are rows per second of the median round, input rows counted once per copy.
"""

import argparse
import os
import shutil
import statistics
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from anabranch import spark as ab
from anabranch.engines.spark.query.watch import status_in
from anabranch.engines.spark.transport.packing import Packing
from anabranch.rows.layout import Layout

WARM = 2
REPLICAS = ("a", "b", "c")
STORE = "spark.sql.streaming.stateStore."
SPARKS = {
    "the same, RocksDB as Spark sets it": {
        f"{STORE}rocksdb.changelogCheckpointing.enabled": "false",
        f"{STORE}rocksdb.trackTotalNumberOfRows": "true",
    },
    "the same, HDFS-backed store": {
        f"{STORE}providerClass": "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
    },
}
"""De-duplication with the settings that Spark comes with, instead of those that suit it and us."""
STEADY = {
    "start": "at",
    "replica": "replica",
    "disorder": "1 second",
    "lossy": False,
    "case": "R3",
    "identity": "id",
}


def written(
    place: Path, events: int, width: int, rounds: int, *, first: int = 0, begin: int = 0, disorder: int = 1000
) -> None:
    """Files of three replicas: events in each round, shuffled a little and differently in each."""
    random = np.random.default_rng(7)
    alphabet = np.frombuffer(b"0123456789abcdefghijklmnopqrstuvwxyz", np.uint8)
    for n in range(rounds):
        ids = begin + np.arange(n * events, (n + 1) * events)
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
            pq.write_table(
                table, place / name / f"{first + n:06}.parquet", row_group_size=max(events // 8, 65_536)
            )


def timed(frame, place: Path, name: str) -> tuple[list[float], dict]:
    """Seconds of every round after those that warm up, and the last progress."""
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
    return seconds[WARM:], progress[-1]


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

    def deduplicated():
        return files().withWatermark("at", disorder).dropDuplicatesWithinWatermark(["id", "text"])

    merging = {"start": "at", "replica": "replica", "disorder": disorder, "lossy": False, "case": "R3"}
    return {
        "scan": files,
        "identity mapInArrow": lambda: files().mapInArrow(same, schema),
        "dropDuplicatesWithinWatermark": deduplicated,
        "the same, RocksDB as Spark sets it": deduplicated,
        "the same, HDFS-backed store": deduplicated,
        "generic door": lambda: ab.merge(files(), **merging),
        "native door": lambda: ab.merge(
            ab.folder(spark, place, files_per_trigger=len(REPLICAS)), **merging
        ),
    }


def doors(options) -> None:
    """Both doors beside the others."""
    for width in options.width:
        with workplace() as place:
            written(place / "in", options.events, width, options.rounds + WARM)
            spark = started(options.shards)
            rows = options.events * len(REPLICAS)
            print(f"\n{width}-byte payloads, {rows:,} rows a round, {options.shards} shards")
            found = {}
            for name, frame in contenders(spark, place / "in").items():
                if options.only and not any(word in name for word in options.only):
                    continue
                with settings(spark, SPARKS.get(name, {})):
                    seconds, _ = timed(frame(), place, "doors")
                found[name] = rows / statistics.median(seconds)
                each = " ".join(f"{s:.2f}" for s in seconds)
                print(f"  {name:32} {found[name]:12,.0f} rows/s   {each} s", flush=True)
            for name in ("generic door", "native door"):
                for other in ("dropDuplicatesWithinWatermark", *SPARKS, "identity mapInArrow"):
                    if name in found and other in found:
                        print(f"  {name} / {other}: {found[name] / found[other]:.2f}x")


def stages(options) -> None:
    """Where a round of the native door goes: each line does what the one before does, and more."""
    from anabranch.engines.spark.transport.shards import shard_ids

    packing = Packing(Layout("at", replica="replica", disorder=1_000_000), options.shards, ordered=True)
    ids = shard_ids(options.shards)
    for width in options.width:
        with workplace() as place:
            written(place / "in", options.events, width, options.rounds + WARM)
            spark = started(options.shards)
            print(f"\n{width}-byte payloads, {options.events * len(REPLICAS):,} rows a round")

            def parcels(spark=spark, place=place):
                return ab.folder(spark, place / "in", files_per_trigger=len(REPLICAS)).parcels(packing, ids)

            def counted(echo, parcels=parcels):
                passing = Passing(echo=echo)
                return parcels().groupBy("shard").transformWithState(passing, Passing.OUT, "Append", "None")

            steps = {
                "read and pack": parcels,
                "and shuffle": lambda parcels=parcels: parcels().repartition(options.shards, "shard"),
                "and a stateful operator that counts bytes": lambda counted=counted: counted(False),
                "and gives all back": lambda counted=counted: counted(True),
                "the whole merge": contenders(spark, place / "in")["native door"],
            }
            for name, frame in steps.items():
                seconds, _ = timed(frame(), place, "stages")
                print(f"  {name:44} {statistics.median(seconds):.2f} s", flush=True)


class Passing(StatefulProcessor):
    """A stateful operator without a state."""

    OUT = "shard int, body binary"

    def __init__(self, *, echo: bool) -> None:
        self.echo = echo

    def init(self, handle) -> None:
        """One state variable is the least."""
        self.nothing = handle.getValueState("nothing", "n long")

    def handleInputRows(self, key, rows, timerValues):  # noqa: N802, N803
        """How many bytes came."""
        size = 0
        for row in rows:
            size += len(row.body or b"")
            if self.echo:
                yield Row(shard=key[0], body=row.body)
        yield Row(shard=key[0], body=str(size).encode())

    def close(self) -> None:
        """Nothing is open."""


def growth(options) -> None:
    """Seconds of a round at the beginning of a long stream and at its end."""
    with workplace() as place:
        rounds, events = options.rounds * 10, options.events // 10
        written(place / "in", events, 100, rounds + WARM)
        spark = started(options.shards)
        print(f"\n{rounds} rounds of {events * len(REPLICAS):,} rows through the native door")
        seconds, last = timed(contenders(spark, place / "in")["native door"](), place, "growth")
        third = len(seconds) // 3
        first, end = statistics.median(seconds[:third]), statistics.median(seconds[-third:])
        print(f"  first third {first:.2f} s a round, last third {end:.2f} s: {end / first:.2f}x")
        print(f"  state in the checkpoint at the end {status_in(last).state_bytes:,} bytes")


def live(options) -> None:
    """Seconds of a round while a million events and more are live, beside few."""
    events, rounds = options.events // 20, options.rounds * 4
    for disorder in ("1 second", "100000 seconds"):
        with workplace() as place:
            filled = options.shards * 1_000_000
            written(place / "in", filled, 100, 1)
            written(place / "in", events, 100, rounds, first=1, begin=filled)
            spark = started(options.shards)
            frame = contenders(spark, place / "in", disorder)["native door"]()
            seconds, last = timed(frame, place, "live")
            now = status_in(last)
            print(
                f"\n  disorder of {disorder}: {now.live:,} live events in {options.shards} shards, "
                f"{events * len(REPLICAS):,} rows a round"
            )
            print(f"  median {statistics.median(seconds):.2f} s, most {max(seconds):.2f} s a round")
            print(f"  {now.state_bytes:,} bytes of state, {[f'{s:.2f}' for s in seconds]}", flush=True)


def shards(options) -> None:
    """Two shards beside one, and more than there are cores."""
    with workplace() as place:
        written(place / "in", options.events, 100, options.rounds + WARM)
        found = {}
        for count in (1, 2, 8):
            spark = started(count)
            seconds, _ = timed(contenders(spark, place / "in")["native door"](), place, "shards")
            found[count] = options.events * len(REPLICAS) / statistics.median(seconds)
            print(
                f"  {count} shards: {found[count]:12,.0f} rows/s, {found[count] / found[1]:.2f}x", flush=True
            )


def latency(options) -> None:
    """From arrival to output at a steady 10,000 rows a second, beside plain Spark's."""
    schema = "replica string, at timestamp, id long, text string, sent long"
    for name in ("files as they are", "dropDuplicatesWithinWatermark", "generic door", "native door"):
        with workplace() as place:
            for replica in REPLICAS:
                (place / "in" / replica).mkdir(parents=True)
            steady(place / "in", 0)
            spark = started(options.shards)
            rows = (
                spark.readStream.schema(schema)
                .option("recursiveFileLookup", "true")
                .parquet(str(place / "in"))
            )
            frame = {
                "files as they are": lambda rows=rows: rows,
                "dropDuplicatesWithinWatermark": lambda rows=rows: rows.withWatermark(
                    "at", "1 second"
                ).dropDuplicatesWithinWatermark(["id"]),
                "generic door": lambda rows=rows: ab.merge(rows, **STEADY),
                "native door": lambda place=place, spark=spark: ab.merge(
                    ab.folder(spark, place / "in"), **STEADY
                ),
            }[name]()
            waits = []

            def arrived(batch, _, waits=waits):
                from pyspark.sql import functions as f

                shares = [n / 20 for n in range(1, 20)]
                [row] = (
                    batch.where("sent is not null")
                    .agg(f.percentile_approx("sent", shares).alias("sent"))
                    .collect()
                )
                now = time.time_ns() // 1000
                waits.extend((now - sent) / 1e6 for sent in row.sent or ())

            query = (
                frame.writeStream.foreachBatch(arrived)
                .option("checkpointLocation", str(place / "checkpoint"))
                .start()
            )
            query.processAllAvailable()
            waits.clear()
            begin = time.monotonic()
            for n in range(1, options.seconds * 2 + 1):
                steady(place / "in", n)
                time.sleep(max(0.0, begin + n / 2 - time.monotonic()))
            query.processAllAvailable()
            query.stop()
            middle, high = statistics.median(waits), sorted(waits)[int(len(waits) * 0.95)]
            print(f"  {name:32} median {middle:.2f} s, 95 of 100 within {high:.2f} s", flush=True)


def steady(place: Path, number: int, rows: int = 5_000) -> None:
    """What the replicas send in half a second, as files that appear whole."""
    count = rows // len(REPLICAS)
    ids = np.arange(number * count, (number + 1) * count)
    for name in REPLICAS:
        table = pa.table(
            {
                "replica": pa.repeat(pa.scalar(name), count),
                "at": pa.array(ids * (500_000 // count)).cast(pa.timestamp("us", "UTC")),
                "id": ids,
                "text": pa.repeat(pa.scalar("x" * 92), count),
                "sent": pa.repeat(pa.scalar(time.time_ns() // 1000), count),
            }
        )
        part = place / name / f".{number:06}"
        pq.write_table(table, part)
        part.rename(place / name / f"{number:06}.parquet")


@contextmanager
def settings(spark, wanted):
    """A session with other settings for a while."""
    before = {key: spark.conf.get(key) for key in wanted}
    for key, value in wanted.items():
        spark.conf.set(key, value)
    yield
    for key, value in before.items():
        spark.conf.set(key, value)


@contextmanager
def workplace():
    """A folder for the files of one measurement."""
    place = Path(tempfile.mkdtemp(prefix="spark-merge-"))
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


def started(count: int):
    """A session with so many shards, quiet."""
    spark = ab.session("local[2]", shards=count, log=os.devnull)
    spark.sparkContext.setLogLevel("OFF")
    return spark


PARTS = {part.__name__: part for part in (doors, stages, growth, live, shards, latency)}


def main() -> None:
    """Run one part."""
    parser = argparse.ArgumentParser()
    parser.add_argument("part", nargs="?", default="doors", choices=PARTS)
    parser.add_argument("--events", type=int, default=400_000, help="distinct events a round")
    parser.add_argument("--width", type=int, nargs="+", default=[100, 1000])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--shards", type=int, default=2)
    parser.add_argument("--seconds", type=int, default=20, help="how long rows are sent (latency)")
    parser.add_argument("--only", nargs="*", help="words of the contenders to run (doors)")
    options = parser.parse_args()
    PARTS[options.part](options)


if __name__ == "__main__":
    main()
