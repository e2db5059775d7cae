"""Plans of several shapes over files of readings, and what they give in the embedded engine."""

import os
from collections import Counter
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq

import anabranch as ab
from anabranch import spark as sp
from anabranch.oracle.payload import payload_key

COLUMNS = {"at": "int64", "room": "string", "level": "int64"}
SCHEMA = "at long, room string, level long"


def source(name: str, **more) -> ab.Stream:
    """Readings that last 5 ticks and come at most 3 late."""
    return ab.source(name, COLUMNS, start="at", duration=5, disorder=3, **more)


class Feed:
    """State: folders of files, one for each source, that rows are put into part by part."""

    def __init__(self, folder: Path, names: str, *, seed: int = 1, parts: int = 3) -> None:
        self.folder, self.names, self.done = folder, list(names), 0
        random = Random(seed)
        self.rows = {name: [self._part(random, n) for n in range(parts)] for name in self.names}

    @staticmethod
    def _part(random: Random, number: int) -> list[dict]:
        first = 20 * number
        return [
            {"at": first + n + random.randint(0, 2), "room": f"r{random.randint(0, 2)}", "level": n % 7}
            for n in range(20)
        ]

    def put(self) -> None:
        """The next part of every source."""
        schema = pa.schema([("at", pa.int64()), ("room", pa.string()), ("level", pa.int64())])
        for name in self.names:
            (self.folder / name).mkdir(parents=True, exist_ok=True)
            table = pa.Table.from_pylist(self.rows[name][self.done], schema=schema)
            part = self.folder / name / f".{self.done}"
            pq.write_table(table, part)
            os.utime(part, (self.done, self.done))  # Spark reads files in the order of their times
            part.rename(self.folder / name / f"{self.done}.parquet")
        self.done += 1

    def frames(self, spark) -> dict:
        """The sources as frames of Spark's."""
        read = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
        return {name: read.parquet(str(self.folder / name)) for name in self.names}

    def meant(self, stream: ab.Stream) -> Counter:
        """What the embedded engine gives for the parts that were put."""
        job, relation = stream.open(on_invalid=ab.Quarantine()), ab.Relation()
        for number in range(self.done):
            for name in self.names:
                relation.apply(job.push(name, pa.Table.from_pylist(self.rows[name][number])))
        return bag(relation)


def bag(relation: ab.Relation) -> Counter:
    """The events of a relation."""
    return Counter((payload_key(event.payload), event.start, event.end) for event in relation.events())


def run(frame, folder: Path) -> None:
    """Let a query read all there is."""
    query = sp.write_folder(frame, folder / "out", checkpoint=folder / "checkpoint", available_now=True)
    sp.wait(query)


def several_levels() -> ab.Stream:
    """A merge by all columns, and what is final by room alone."""
    both = ab.merge(source("a"), source("b"))
    return ab.union(both, source("c")).select("room").lasting(4).final()


def side_source() -> ab.Stream:
    """What is sorted is on one shard, and so is what it is united with."""
    return ab.union(ab.merge(source("a"), source("b")).sort(), source("c").filter(ab.col("level") > 2))


def over_one_source() -> ab.Stream:
    """Two plans over one source, merged."""
    one = source("a")
    return ab.merge({"x": one.lasting(7).filter(ab.col("level") < 9), "y": one.lasting(7)})


def diamond() -> ab.Stream:
    """A merge that two operators read, which meet on the second level."""
    both = ab.merge(source("a"), source("b"))
    return ab.union(both.sort(), both.filter(ab.col("room") == "r1"), source("c"))


PLANS = {
    "one level": (lambda: ab.union(source("a"), source("b").filter(ab.col("level") > 3)).lasting(9), "ab"),
    "several levels": (several_levels, "abc"),
    "side source": (side_source, "abc"),
    "over one source": (over_one_source, "a"),
    "diamond": (diamond, "abc"),
}
