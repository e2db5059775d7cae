"""Two gateways pass on the tips of rain gauges, where equal rows are rain and no repetition; one dies.

usage: .venv/bin/python examples/true_repeat.py

The bucket of a gauge tips once for every 0.2 mm, and the gauge says so with the time in seconds. In heavy
rain it tips twice in a second: two readings, equal in everything.
"""

import sys
from collections import Counter
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from anabranch import spark as ab
from scene.contenders import contenders
from scene.feed import Heard, put, stream
from scene.local_spark import local_spark
from scene.readings import Reading, clock, seconds
from scene.verdict import OURS, Outcome, Result, outcome

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LENGTH = 240
GAUGES = ("dam", "mill", "weir")
TIP = 0.2
CLOUDBURST = range(60, 180)
CHANCE = {True: 0.45, False: 0.08}
"""Of a tip in half a second, in the cloudburst and outside it."""
DIES = 120
DELAY = {"east": (1, 6), "west": (7, 12)}
"""How long a tip is on its way: east hears it first, so an election makes it the leader."""


def tips(random: Random) -> list[Reading]:
    """All tips of all gauges; a gauge tips at most twice in a second."""
    halves = [(at, gauge) for at in range(LENGTH) for gauge in GAUGES for _ in range(2)]
    return [Reading(at, gauge, TIP) for at, gauge in halves if random.random() < CHANCE[at in CLOUDBURST]]


def heard(random: Random, truth: list[Reading]) -> list[Heard]:
    """What the gateways say: both hear everything, in different orders, until east dies."""
    found = [Heard(one.at + random.randint(*DELAY[name]), name, one) for one in truth for name in DELAY]
    alive = [one for one in found if one.replica == "west" or one.said < DIES]
    return sorted(alive, key=lambda one: one.said)


def merged(feed: "DataFrame", place: Path) -> Result:
    """The tips of both gateways as one table."""
    rows = ab.merge(
        feed, replica="replica", start="at", payload=["sensor", "value"], disorder="1 minute", lossy=False
    )
    query = ab.write_folder(rows, place / "out", checkpoint=place / "checkpoint", available_now=True)
    ab.wait(query)
    table = ab.table(feed.sparkSession.read.parquet(str(place / "out"))).collect()
    status = ab.status(query)
    assert status is not None, "a query that has read rows has a status"
    return Result([Reading(seconds(one["start"]), one["sensor"], one["value"]) for one in table], status.live)


def scene(spark: "SparkSession", place: Path) -> Outcome:
    """Play it in a folder."""
    random = Random(8)
    truth = tips(random)
    said = heard(random, truth)
    files = put(place / "in", said)
    results = {
        OURS: merged(stream(spark, files), place / "merged"),
        **contenders(spark, place, said, delays=["1 minute"]),
    }
    twice = sum(count == 2 for count in Counter(truth).values())
    rain = {name: len(one.readings) * TIP for name, one in results.items()}
    least = min(rain.values())
    return outcome(
        truth,
        results,
        before=f"{len(GAUGES)} gauges tip {len(truth)} times, {twice} times twice in a second: "
        f"{len(truth) * TIP:.1f} mm. East dies at {clock(DIES)}.",
        sentence=f"The merge has every tip, {rain[OURS]:.1f} mm of rain; who takes equal rows for repetition "
        f"has {least:.1f} mm.",
    )


def main() -> int:
    """Play the scene on a Spark of its own and say what happened."""
    with TemporaryDirectory(prefix="anabranch-") as folder, local_spark(Path(folder)) as spark:
        found = scene(spark, Path(folder))
    print(found.text())
    return 0 if found.exact else 1


if __name__ == "__main__":
    sys.exit(main())
