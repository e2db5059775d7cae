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
CHANGES = COLUMNS | {"op": "string", "who": "string", "number": "int64"}
TABLE = "t"
"""The source of changes of a table, of rooms and their levels, by two replicas; others have readings."""


def source(name: str, **more) -> ab.Stream:
    """Readings that last 5 ticks and come at most 3 late."""
    return ab.source(name, COLUMNS, start="at", duration=5, disorder=3, **more)


def changes() -> ab.ReplicasOfChanges:
    """What two replicas say of the table."""
    return ab.source(
        TABLE,
        CHANGES,
        start="at",
        op="op",
        key="room",
        replica="who",
        replicas=("x", "y"),
        sequence="number",
        disorder=3,
    )


class Feed:
    """State: folders of files, one for each source, that rows are put into part by part."""

    def __init__(self, folder: Path, names: str, *, seed: int = 1, parts: int = 3) -> None:
        self.folder, self.names, self.done = folder, list(names), 0
        random = Random(seed)
        self.rows = {
            name: _both(random, parts) if name == TABLE else [self._part(random, n) for n in range(parts)]
            for name in self.names
        }

    @staticmethod
    def _part(random: Random, number: int) -> list[dict]:
        first = 20 * number
        return [
            {"at": first + n + random.randint(0, 2), "room": f"r{random.randint(0, 2)}", "level": n % 7}
            for n in range(20)
        ]

    def put(self) -> None:
        """The next part of every source."""
        for name in self.names:
            (self.folder / name).mkdir(parents=True, exist_ok=True)
            table = _table(name, self.rows[name][self.done])
            part = self.folder / name / f".{self.done}"
            pq.write_table(table, part)
            os.utime(part, (self.done, self.done))  # Spark reads files in the order of their times
            part.rename(self.folder / name / f"{self.done}.parquet")
        self.done += 1

    def frames(self, spark) -> dict:
        """The sources as frames of Spark's."""
        return {
            name: spark.readStream.schema(_ddl(name))
            .option("maxFilesPerTrigger", 1)
            .parquet(str(self.folder / name))
            for name in self.names
        }

    def meant(self, stream: ab.Stream) -> Counter:
        """What the embedded engine gives for the parts that were put."""
        job, relation = stream.open(on_invalid=ab.Quarantine()), ab.Relation()
        for number in range(self.done):
            for name in self.names:
                relation.apply(job.push(name, _table(name, self.rows[name][number])))
        return bag(relation)


def _both(random: Random, parts: int) -> list[list[dict]]:
    """Changes of a table by two replicas, in parts; one begins with a snapshot when the other has gone on."""
    log, there = [], set[str]()
    for at in range(2, 20 * parts, 2):
        room = f"r{random.randint(0, 2)}"
        op = random.choice(("update", "update", "delete")) if room in there else "insert"
        there = there - {room} if op == "delete" else there | {room}
        log.append({"at": at, "room": room, "level": None if op == "delete" else at % 7, "op": op})
    begun = len(log) // parts + 3
    rows = {change["room"]: change for change in log[:begun]}
    snapshot = [row | {"op": "snapshot", "at": 2 * begun} for row in rows.values() if row["op"] != "delete"]
    copies = {"x": log, "y": [*snapshot, *log[begun:]]}
    found: list[list[dict]] = [[] for _ in range(parts)]
    for who, copy in copies.items():
        for number, row in enumerate(copy):
            late = 1 if who == "y" and row["at"] % 20 > 12 else 0
            part = min(row["at"] // 20 + late, parts - 1)
            found[part].append(row | {"who": who, "number": number})
    for part in found:
        random.shuffle(part)
    return found


def _columns(name: str) -> dict[str, str]:
    return CHANGES if name == TABLE else COLUMNS


def _table(name: str, rows: list[dict]) -> pa.Table:
    schema = pa.schema([(column, pa.type_for_alias(dtype)) for column, dtype in _columns(name).items()])
    return pa.Table.from_pylist(rows, schema=schema)


def _ddl(name: str) -> str:
    """The columns of a source as Spark has them."""
    return ", ".join(
        f"{column} {'long' if dtype == 'int64' else dtype}" for column, dtype in _columns(name).items()
    )


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


def replicas_of_changes() -> ab.Stream:
    """Rows of a table by their key, and how often which level was there by level, beside readings."""
    rows = changes().merge().filter(ab.col("level") > 1)
    return ab.union(rows.select("level"), source("c").select("level")).final()


def windows_over_a_join() -> ab.Stream:
    """Pairs of a room, once each, in windows by room; beside sessions, which are on a level of their own."""
    pairs = source("a").join(source("b"), on="room", within=4).distinct("room", "level")
    counts = pairs.window(6).group_by("room").agg(n=ab.count(), most=ab.col("level").max())
    sessions = source("b").filter(ab.col("level") > 1).session(2).group_by("level").agg(n=ab.count())
    return ab.union(counts.select("n"), sessions.select("n"))


PLANS = {
    "windows over a join": (windows_over_a_join, "ab"),
    "one level": (lambda: ab.union(source("a"), source("b").filter(ab.col("level") > 3)).lasting(9), "ab"),
    "several levels": (several_levels, "abc"),
    "side source": (side_source, "abc"),
    "over one source": (over_one_source, "a"),
    "diamond": (diamond, "abc"),
    "replicas of changes": (replicas_of_changes, "tc"),
}
