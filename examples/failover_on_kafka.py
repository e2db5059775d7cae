"""Two collectors send the same readings to Kafka; one is killed and comes back, the other stalls.

usage: .venv/bin/python examples/failover_on_kafka.py

Real collectors (`scene/collector.py`), a real broker, and a query that runs all the time, from two topics to
one. East is killed with SIGKILL, some readings in hand; when it is back it sends again what is in its spool,
and what was measured in between it never had. West's link stalls later; what it holds comes afterwards.
"""

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from anabranch import Drop
from anabranch import spark as ab
from anabranch.testing.broker import Broker
from scene.contenders import contenders
from scene.feed import Heard, put
from scene.local_spark import local_spark
from scene.readings import Reading, clock, moment, readings, seconds
from scene.topics import records
from scene.verdict import OURS, Outcome, Result, outcome

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

LENGTH = 600
DIES, RETURNS = 200, 360
STALLS, RESUMES = 280, 480
END = LENGTH + 20
TOPICS = {"east": "readings-east", "west": "readings-west"}
OUT = "readings"
DELAY = {"east": (1, 4), "west": (5, 9)}
"""How long a reading is on its way: east hears it first, so an election makes it the leader."""


class Collector:
    """A process that sends what it hears to a topic."""

    def __init__(self, servers: str, name: str, place: Path, now: int) -> None:
        spool = place / f"{name}.spool"
        told = [servers, TOPICS[name], str(spool), str(_millis(now))]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "scene.collector", *told],
            cwd=Path(__file__).parent,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.in_hand = 0

    def hear(self, now: int, reading: Reading) -> None:
        """Tell it a reading, and wait until it has done with it what it does."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        value = {"sensor": reading.sensor, "value": reading.value, "at": moment(reading.at).isoformat()}
        self.process.stdin.write(f"{_millis(now)} {json.dumps(value)}\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise OSError(f"a collector answers every line, and this one ended with {self.process.wait()}")
        self.in_hand = int(answer)

    def kill(self) -> None:
        """End it with SIGKILL, in the middle of what it does."""
        self.process.kill()
        self.process.communicate()

    def close(self) -> None:
        """Let it send the rest and end, unless it has ended."""
        if self.process.poll() is None:
            self.process.communicate()


def arrivals(random: Random, truth: list[Reading]) -> list[Heard]:
    """When readings reach the collectors: soon, in an order of their own, and not while a link is down."""
    found = []
    for reading in truth:
        for name in TOPICS:
            said = reading.at + random.randint(*DELAY[name])
            if name == "west" and STALLS <= said < RESUMES:
                said = RESUMES
            if name == "west" or not DIES <= said < RETURNS:
                found.append(Heard(said, name, reading))
    return sorted(found, key=lambda one: one.said)


def merging(spark: "SparkSession", servers: str, place: Path) -> "StreamingQuery":
    """A query that runs until it is stopped: two topics in, one out."""
    columns = "sensor string, value double, at timestamp"
    feeds = ab.kafka(spark, TOPICS, servers=servers, schema=columns)
    merged = ab.merge(
        feeds,
        replica="replica",
        start="at",
        disorder="1 minute",
        lossy=True,
        replicas=list(TOPICS),
        properties="keyed",
        on_broken=Drop(),
        on_invalid=Drop(),
    )
    return ab.write_kafka(
        merged, OUT, servers=servers, key="sensor", checkpoint=place / "checkpoint", exactly_once=True
    )


def play(servers: str, place: Path, heard: Sequence[Heard], query: "StreamingQuery") -> list[str]:
    """Let the collectors hear it all, in three acts; what happened, in lines."""
    acts = {
        "east is killed, {} readings in hand": (0, DIES),
        "east is started again": (DIES, RETURNS),
        "the end": (RETURNS, END),
    }
    lines, in_hand = ["clock     from east  from west  merged"], 0
    with ExitStack() as stack:
        collectors = {}
        for name in TOPICS:
            collectors[name] = Collector(servers, name, place, 0)
            stack.callback(collectors[name].close)
        for words, (begin, end) in acts.items():
            if begin == RETURNS:
                collectors["east"] = Collector(servers, "east", place, RETURNS)
                stack.callback(collectors["east"].close)
            for one in heard:
                if begin <= one.said < end:
                    collectors[one.replica].hear(one.said, one.reading)
            if end == DIES:
                in_hand = collectors["east"].in_hand
                collectors["east"].kill()
            if end == END:
                stack.close()
            query.processAllAvailable()
            counts = [len(records(servers, topic)) for topic in TOPICS.values()]
            merged = len(_events(servers))
            lines.append(
                f"{clock(end)}  {counts[0]:>9}  {counts[1]:>9}  {merged:>6}  {words.format(in_hand)}"
            )
    return lines


def scene(spark: "SparkSession", broker: Broker, place: Path) -> Outcome:
    """Play it with a broker and in a folder."""
    random, servers = Random(4), broker.servers
    truth = readings(random, sensors=12, every=5, length=LENGTH)
    for name in (*TOPICS.values(), OUT):
        broker.make_topic(name, config={"retention.ms": "-1"})  # the times of its records are in the past
    query = merging(spark, servers, place)
    try:
        lines = play(servers, place, arrivals(random, truth), query)
        status = ab.status(query)
    finally:
        query.stop()
    assert status is not None, "a query that has read rows has a status"
    said = [
        Heard((time - _millis(0)) // 1000, name, _reading(value, "at"))
        for name, topic in TOPICS.items()
        for time, value in records(servers, topic)
    ]
    put(place / "in", said)
    results = {
        OURS: Result(_events(servers), status.live),
        **contenders(spark, place, said, delays=["1 minute", "10 minutes"]),
    }
    return outcome(
        truth,
        results,
        before="\n".join(lines),
        sentence="The merged topic has every reading once: no gap while east was dead or west stalled, and "
        "nothing twice that east sent again.",
    )


def _millis(now: int) -> int:
    return int(moment(now).timestamp() * 1000)


def _reading(value: dict[str, object], time: str) -> Reading:
    at = datetime.fromisoformat(str(value[time]))
    return Reading(seconds(at), str(value["sensor"]), float(str(value["value"])))


def _events(servers: str) -> list[Reading]:
    """What the merged topic has told so far; an adjust of a point can only take it back."""
    told: Counter[Reading] = Counter()
    for _, value in records(servers, OUT):
        if value["kind"] != "stable":
            told[_reading(value, "start")] += 1 if value["kind"] == "insert" else -1
    return list(told.elements())


def main() -> int:
    """Play the scene on a Spark and a broker of its own and say what happened."""
    with (
        TemporaryDirectory(prefix="anabranch-") as folder,
        Broker() as broker,
        local_spark(Path(folder)) as spark,
    ):
        found = scene(spark, broker, Path(folder))
    print(found.text())
    return 0 if found.exact else 1


if __name__ == "__main__":
    sys.exit(main())
