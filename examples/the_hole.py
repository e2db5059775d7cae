"""Two gateways hear the same sensors, each misses some readings, and together they have them all.

usage: .venv/bin/python examples/the_hole.py
"""

import sys
from collections import defaultdict
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from anabranch import spark as ab
from scene.contenders import contenders
from scene.feed import Heard, put, stream
from scene.local_spark import local_spark
from scene.readings import Reading, clock, readings, seconds
from scene.verdict import OURS, Outcome, Result, outcome

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LENGTH = 240
LOST = 0.1
"""The share of readings that one gateway misses and the other hears; as many the other way round."""
HOLE = range(100, 140)
"""When east hears nothing at all."""
SIGNAL = {"east": range(-60, -40), "west": range(-90, -70)}


def heard(random: Random, truth: list[Reading]) -> list[Heard]:
    """What the gateways say, each with a delay and a signal of its own."""
    found = []
    for reading in truth:
        luck = random.random()
        deaf = "east" if reading.at in HOLE or luck < LOST else "west" if luck < 2 * LOST else None
        for name, signal in SIGNAL.items():
            delay, strength = random.randint(1, 5), random.choice(signal)
            if name != deaf:
                found.append(Heard(reading.at + delay, name, reading, strength))
    return sorted(found, key=lambda one: one.said)


def told() -> tuple[list[Reading], list[Heard]]:
    """What was measured, and what the gateways say of it."""
    random = Random(2)
    truth = readings(random, sensors=10, every=5, length=LENGTH)
    return truth, heard(random, truth)


def merged(feed: "DataFrame", place: Path, *, lossy: bool) -> tuple[Result, ab.Status]:
    """The readings of both gateways as one table, and how the query was doing at the end."""
    rows = ab.merge(
        feed,
        replica="replica",
        start="at",
        disorder="1 minute",
        lossy=lossy,
        payload=["sensor", "value", "signal"],
        identity=["sensor", "value"],
    )
    query = ab.write_folder(rows, place / "out", checkpoint=place / "checkpoint", available_now=True)
    ab.wait(query)
    table = ab.table(feed.sparkSession.read.parquet(str(place / "out"))).collect()
    status = ab.status(query)
    assert status is not None, "a query that has read rows has a status"
    return Result(
        [Reading(seconds(one["start"]), one["sensor"], one["value"]) for one in table], status.live
    ), status


def scene(spark: "SparkSession", place: Path) -> Outcome:
    """Play it in a folder."""
    truth, said = told()
    files = put(place / "in", said)
    ours, status = merged(stream(spark, files, signal=True), place / "lossy", lossy=True)
    strict, _ = merged(stream(spark, files, signal=True, at_once=True), place / "complete", lossy=False)
    results = {
        OURS: ours,
        f"{OURS}, without lossy=True": strict,
        **contenders(spark, place, said, delays=["1 minute"]),
    }
    has = defaultdict(set)
    for one in said:
        has[one.replica].add(one.reading)
    frontier = seconds(datetime.fromtimestamp(status.frontier // 1_000_000, UTC))
    holes = ", ".join(f"{name} {one.holes}" for name, one in sorted(status.replicas.items()))
    return outcome(
        truth,
        results,
        before=f"East heard {len(has['east'])} of {len(truth)} readings, and none from {clock(HOLE.start)} "
        f"to {clock(HOLE.stop)}; west heard {len(has['west'])}.",
        sentence="The merge has every reading once, from whoever heard it. Holes that it has counted before "
        f"{clock(frontier)}: {holes}.",
    )


def main() -> int:
    """Play the scene on a Spark of its own and say what happened."""
    with TemporaryDirectory(prefix="anabranch-") as folder, local_spark(Path(folder)) as spark:
        found = scene(spark, Path(folder))
    print(found.text())
    return 0 if found.exact else 1


if __name__ == "__main__":
    sys.exit(main())
