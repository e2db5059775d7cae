"""Logical merge from Kafka to Kafka and to Delta, beside the loop a user would write and Spark's own scan.

usage: kafka_merge.py [rates|latency] [OPTIONS]; --help lists them

A real broker on this machine has three topics with the same events, each in its own disorder, as JSON. All
contenders run in one process on the same records. A round is so many records of each topic; the first two
warm up and are not counted. Figures are records per second of the median round.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event, Thread

import numpy as np
from confluent_kafka import Consumer, Producer
from spark_merge import started, workplace

from anabranch import spark as ab
from anabranch.testing.broker import Broker

WARM = 2
WARM_SECONDS = 10
REPLICAS = ("a", "b", "c")
SCHEMA = "id long, at timestamp, text string"
MERGING = {
    "start": "at",
    "replica": "replica",
    "disorder": "1 second",
    "lossy": False,
    "case": "R3",
    "identity": "id",
}
BEGAN = datetime(2026, 1, 1, tzinfo=UTC)


def records(events: int, width: int, rounds: int) -> Iterator[tuple[int, str, bytes]]:
    """Round, replica and value of each record, in the order of each topic."""
    random = np.random.default_rng(7)
    for number in range(rounds):
        ids = np.arange(number * events, (number + 1) * events)
        texts = random.integers(0, 1 << 30, events)
        for name in REPLICAS:
            order = np.argsort(ids + random.integers(0, 1000, events), kind="stable")
            for n, text in zip(ids[order].tolist(), texts[order].tolist(), strict=True):
                yield number, name, value(n, f"{text:x}".rjust(width - 8, "x"))


def value(number: int, text: str) -> bytes:
    """One record."""
    at = BEGAN + timedelta(milliseconds=number)
    return json.dumps({"id": number, "at": at.isoformat(), "text": text}).encode()


def filled(broker: Broker, place: Path, options) -> None:
    """The records in topics, and the same bytes in files."""
    producer = Producer(
        {"bootstrap.servers": broker.servers, "linger.ms": 50, "queue.buffering.max.messages": 2_000_000}
    )
    for name in REPLICAS:
        broker.make_topic(name, partitions=options.partitions)
        (place / "files").mkdir(exist_ok=True)
    files: dict[Path, list[bytes]] = {}
    for n, (number, name, body) in enumerate(records(options.events, options.width, options.rounds + WARM)):
        producer.produce(name, body, partition=n % options.partitions)
        files.setdefault(place / "files" / f"{number:06}-{name}.json", []).append(body)
        if n % 10_000 == 0:
            producer.poll(0)
    for path, lines in files.items():
        path.write_bytes(b"\n".join(lines))
    producer.flush()


def loop(broker: Broker, options, out: str | None) -> list[float]:
    """What a user would write: one consumer of all topics, a set of what was seen."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.servers,
            "group.id": f"loop-{time.monotonic_ns()}",
            "auto.offset.reset": "earliest",
        }
    )
    producer = Producer({"bootstrap.servers": broker.servers, "linger.ms": 5}) if out else None
    consumer.subscribe(list(REPLICAS))
    seen: set[int] = set()
    seconds, count, begin = [], 0, time.monotonic()
    each = options.events * len(REPLICAS)
    while len(seconds) < options.rounds + WARM:
        for message in consumer.consume(min(10_000, each - count), 1.0):
            record = json.loads(message.value())
            count += 1
            if record["id"] not in seen:
                seen.add(record["id"])
                if producer is not None:
                    producer.produce(out, message.value())
        if producer is not None:
            producer.poll(0)
        if count == each:
            now = time.monotonic()
            seconds.append(now - begin)
            count, begin = 0, now
    if producer is not None:
        producer.flush()
    consumer.close()
    return seconds[WARM:]


def timed(start, place: Path) -> list[float]:
    """Seconds of every round after those that warm up of a query that `start` starts."""
    query = start(place / f"checkpoint-{time.monotonic_ns()}")
    query.awaitTermination()
    progress = [p for p in query.recentProgress if p["numInputRows"]]
    return [p["durationMs"]["triggerExecution"] / 1000 for p in progress][WARM:]


def contenders(spark, broker: Broker, place: Path, options):
    """What is compared, by name: each gives seconds of its rounds."""
    each = options.events * len(REPLICAS)

    def files():
        return (
            spark.readStream.schema(SCHEMA)
            .option("maxFilesPerTrigger", len(REPLICAS))
            .json(str(place / "files"))
        )

    def deduplicated():
        return files().withWatermark("at", "1 second").dropDuplicatesWithinWatermark(["id"])

    def merged():
        topics = {name: name for name in REPLICAS}
        feeds = ab.kafka(spark, topics, servers=broker.servers, schema=SCHEMA, rows_per_trigger=each)
        return ab.merge(feeds, **MERGING)

    def noop(frame):
        return lambda checkpoint: (
            frame.writeStream.format("noop")
            .option("checkpointLocation", str(checkpoint))
            .trigger(availableNow=True)
            .start()
        )

    def to_kafka(name, **more):
        broker.make_topic(name, partitions=2)
        return lambda checkpoint: ab.write_kafka(
            merged(),
            name,
            servers=broker.servers,
            key="id",
            checkpoint=checkpoint,
            available_now=True,
            **more,
        )

    def to_table(**more):
        return lambda checkpoint: ab.write_table(
            merged(),
            place / f"table-{time.monotonic_ns()}",
            checkpoint=checkpoint,
            available_now=True,
            **more,
        )

    def loop_to(name):
        if name:
            broker.make_topic(name, partitions=2)
        return loop(broker, options, name)

    return {
        "loop with a set": lambda: loop_to(None),
        "loop with a set, to Kafka": lambda: loop_to("from-loop"),
        "Spark's scan of the same bytes": lambda: timed(noop(files()), place),
        "and its de-duplication": lambda: timed(noop(deduplicated()), place),
        "merge": lambda: timed(noop(merged()), place),
        "merge, to Kafka": lambda: timed(to_kafka("once-or-more"), place),
        "merge, to Kafka exactly once": lambda: timed(to_kafka("once", exactly_once=True), place),
        "merge, to Delta": lambda: timed(to_table(kind="elements"), place),
        "merge, to Delta as current values": lambda: timed(to_table(kind="current", key="id"), place),
    }


def rates(options) -> None:
    """Records per second."""
    with workplace() as place, Broker() as broker:
        filled(broker, place, options)
        spark = started(options.shards)
        each = options.events * len(REPLICAS)
        print(
            f"\n{options.width}-byte payloads as JSON, {each:,} records a round, "
            f"{options.partitions} partitions"
        )
        found = {}
        for name, run in contenders(spark, broker, place, options).items():
            if options.only and not any(word in name for word in options.only):
                continue
            seconds = run()
            found[name] = each / statistics.median(seconds)
            print(
                f"  {name:36} {found[name]:10,.0f} records/s   {' '.join(f'{s:.2f}' for s in seconds)} s",
                flush=True,
            )
        for name in [name for name in found if name.startswith("merge")]:
            ratios = [
                f"{found[name] / found[other]:.2f}x {other}"
                for other in found
                if not other.startswith("merge")
            ]
            print(f"  {name}: {', '.join(ratios)}")


def latency(options) -> None:
    """From a record sent to its event in the topic of the output, at a steady rate."""
    for name in ("loop with a set", "merge, to Kafka", "merge, to Kafka exactly once"):
        with workplace() as place, Broker() as broker:
            for topic in (*REPLICAS, "out"):
                broker.make_topic(topic, partitions=options.partitions)
            waits: list[tuple[float, float]] = []
            stages = {}
            stopped = Event()
            listener = Thread(target=listen, args=(broker, waits, stopped), daemon=True)
            listener.start()
            if name == "loop with a set":
                process = subprocess.Popen([sys.executable, __file__, "loop", "--servers", broker.servers])
                number = sent(broker, options, WARM_SECONDS)
                begin = time.time()
                sent(broker, options, options.seconds, number)
                process.terminate()
                process.wait()
            else:
                spark = started(options.shards)
                topics = {replica: replica for replica in REPLICAS}
                feeds = ab.kafka(spark, topics, servers=broker.servers, schema=f"{SCHEMA}, sent double")
                merged = ab.merge(feeds, **MERGING)
                query = ab.write_kafka(
                    merged,
                    "out",
                    servers=broker.servers,
                    key="id",
                    checkpoint=place / "checkpoint",
                    exactly_once="exactly" in name,
                )
                number = sent(broker, options, WARM_SECONDS)
                query.processAllAvailable()
                begin = time.time()
                sent(broker, options, options.seconds, number)
                query.processAllAvailable()
                progress = [p["durationMs"] for p in query.recentProgress if p["numInputRows"]][
                    len(query.recentProgress) // 4 :
                ]
                stages = {
                    stage: statistics.median(p.get(stage, 0) for p in progress) for stage in progress[-1]
                }
                query.stop()
            time.sleep(1)
            stopped.set()
            listener.join()
            late = sorted(wait for at, wait in waits if at - wait > begin)
            middle, high = late[len(late) // 2], late[int(len(late) * 0.99)]
            print(
                f"  {name:32} median {middle:.3f} s, 99 of 100 within {high:.3f} s, of {len(late):,}",
                flush=True,
            )
            if stages:
                print(
                    f"    a micro-batch, median ms: {', '.join(f'{k} {v:.0f}' for k, v in stages.items())}",
                    flush=True,
                )


def sent(broker: Broker, options, seconds: int, number: int = 0) -> int:
    """Send so many records a second, all replicas together, in steps of 10 ms; the number after the last."""
    producer = Producer({"bootstrap.servers": broker.servers, "linger.ms": 1})
    step, text = options.rate // len(REPLICAS) // 100, "x" * (options.width - 8)
    begin = time.monotonic()
    for tick in range(seconds * 100):
        now = time.time()
        for n in range(number, number + step):
            at = (BEGAN + timedelta(microseconds=n * 1_000_000 // (step * 100))).isoformat()
            body = f'{{"id":{n},"at":"{at}","text":"{text}","sent":{now}}}'
            for name in REPLICAS:
                producer.produce(name, body, partition=n % options.partitions)
        number += step
        producer.poll(0)
        time.sleep(max(0.0, begin + (tick + 1) / 100 - time.monotonic()))
    producer.flush()
    return number


def listen(broker: Broker, waits: list[tuple[float, float]], stopped: Event) -> None:
    """Note when an event comes out, and how long after it was sent first."""
    consumer = Consumer(
        {"bootstrap.servers": broker.servers, "group.id": "listener", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe(["out"])
    while not stopped.is_set():
        for message in consumer.consume(10_000, 0.05):
            record = json.loads(message.value())
            if record.get("sent"):
                now = time.time()
                waits.append((now, now - record["sent"]))
    consumer.close()


def follow(options) -> None:
    """The loop as a process of its own."""
    consumer = Consumer(
        {"bootstrap.servers": options.servers, "group.id": "loop", "auto.offset.reset": "earliest"}
    )
    producer = Producer({"bootstrap.servers": options.servers, "linger.ms": 1})
    consumer.subscribe(list(REPLICAS))
    seen: set[int] = set()
    while True:
        for message in consumer.consume(1000, 0.01):
            number = json.loads(message.value())["id"]
            if number not in seen:
                seen.add(number)
                producer.produce("out", message.value())
        producer.poll(0)


PARTS = {"rates": rates, "latency": latency, "loop": follow}


def main() -> None:
    """Run one part."""
    parser = argparse.ArgumentParser()
    parser.add_argument("part", nargs="?", default="rates", choices=PARTS)
    parser.add_argument("--events", type=int, default=100_000, help="distinct events a round")
    parser.add_argument("--width", type=int, default=100, help="bytes of a payload, about")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--shards", type=int, default=2)
    parser.add_argument("--partitions", type=int, default=2)
    parser.add_argument("--rate", type=int, default=10_000, help="records a second (latency)")
    parser.add_argument("--seconds", type=int, default=30, help="how long records are sent (latency)")
    parser.add_argument("--only", nargs="*", help="words of the contenders to run (rates)")
    parser.add_argument("--servers", help="the broker (loop)")
    options = parser.parse_args()
    PARTS[options.part](options)


if __name__ == "__main__":
    main()
