"""Rounds of kills, drawn from a seed: data, queries, kills, and whether the sinks are right in the end.

A round is one session with three queries over the same two replicas: from folders to a folder, from topics
to a topic (exactly once), and from a frame of Spark's own to a table of validity intervals, one of Delta's in
every other round and one of Parquet alone in the others. Right is what holds the relation that the replicas
mean, and row by row what the same queries give that nobody kills.
"""

import json
import os
import shutil
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pyarrow.parquet as pq
from deltalake import DeltaTable
from element_rows import element_rows, named, put
from survival.killing import Kill, Killing, Point
from survival.places import AT_THE_END, IN_TASKS

from anabranch import FOREVER, Case, Insert, Relation
from anabranch.connectors.tables.parquet import ABOUT, LATEST, VERSIONS
from anabranch.model.batch import Batch
from anabranch.testing.broker import Broker
from anabranch.testing.presentations import present
from anabranch.testing.references import Shape, reference

SUBJECTS = ("folder", "kafka", "table")
TABLES = ("delta", "parquet")
VICTIMS = ("driver", "worker", "executor")
KILLS = {"driver": 4, "worker": 6, "executor": 6}
"""How many a round has: of the driver all queries at once, of others one query at a time."""
BATCHES = 7
LAST = BATCHES - 3
"""The last micro-batch that a kill is drawn for: a second arrival may be in the one after."""
PARTITIONS = 2
BEGAN = 1_767_225_600


@dataclass
class Round:
    """One session and its kills."""

    name: str
    random: Random
    master: str
    kills: list[Kill]
    subjects: tuple[str, ...] = SUBJECTS
    batches: int = BATCHES
    table: str = "delta"

    @classmethod
    def drawn(cls, seed: int, number: int, victim: str, first: int) -> "Round":
        """A round by its number; its kills are numbered from the first on."""
        random = Random(f"{seed}/{number}/{victim}")
        masters = {
            "driver": ["local[6]"],
            "worker": ["local[6]", "local[6,4]"],
            "executor": ["local-cluster[2,1,1024]"],
        }
        master = random.choice(masters[victim])
        each = KILLS[victim] if victim == "driver" else KILLS[victim] // len(SUBJECTS)
        points = {subject: _points(random, subject, victim, each) for subject in SUBJECTS}
        if victim == "driver":
            groups = list(zip(*points.values(), strict=True))
        else:
            groups = [(point,) for turn in zip(*points.values(), strict=True) for point in turn]
        kills = [
            Kill(first + n, _victim(random, victim), group, random.choice((0.0, random.random() / 4)))
            for n, group in enumerate(groups)
        ]
        return cls(f"{seed}-{number}", random, master, kills, table=TABLES[number % len(TABLES)])

    async def run(self, folder: Path, broker: Broker) -> dict[str, str]:
        """What is wrong with each subject in the end; nothing, where the sinks are right."""
        folder.mkdir(parents=True)
        case = self.random.choice((Case.R3, Case.R4))
        events = reference(self.random, case=case, shape=Shape(events=60, payloads=20, horizon=80))
        copies = {name: present(events, self.random, case=case) for name in ("east", "west")}
        copies = dict(zip(copies, named(copies.values()), strict=True))
        plan = laid_out(folder, broker, self.name, copies, self.batches)
        plan |= {"master": self.master, "case": case.name, "subjects": self.subjects}
        plan["table"] = self.table
        await Killing(folder, plan, self.kills).run()
        [told] = named([[Insert(e.payload, e.start, e.end) for e in events]])
        meant = Counter((e.payload["value"], e.start, e.end) for e in told)
        return {subject: wrong for subject in self.subjects if (wrong := fault(plan, subject, meant))}


def _points(random: Random, subject: str, victim: str, count: int) -> list[Point]:
    places = list(IN_TASKS if subject != "table" else IN_TASKS[:3])
    places += ["sent"] if subject == "kafka" else []
    places += AT_THE_END if victim == "driver" or (victim == "worker" and subject != "table") else ()
    batches = sorted(random.randint(0, LAST) for _ in range(count))
    return [Point(subject, batch, random.choice(places), random.randint(1, 2)) for batch in batches]


def _victim(random: Random, victim: str) -> str:
    return random.choice(["worker"] * 3 + ["other worker"]) if victim == "worker" else victim


def laid_out(folder: Path, broker: Broker, name: str, copies: dict[str, list], batches: int) -> dict:
    """Replicas as files and in topics, cut into as many micro-batches; the plan of queries over them."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": broker.servers, "log_level": 0})
    topics = {replica: f"{name}-{replica}" for replica in copies}
    for replica, copy in copies.items():
        size = -(-len(copy) // batches)
        for number in range(batches):
            put(folder / "in", replica, number, copy[number * size : (number + 1) * size])
            written = BEGAN + number  # Spark's own source reads files in the order of their times
            os.utime(folder / "in" / replica / f"{number:04}.parquet", (written, written))
        broker.make_topic(topics[replica])
        for row in element_rows(copy).to_pylist():
            producer.produce(topics[replica], json.dumps(row))
    assert producer.flush(60) == 0
    sinks = {}
    for calm in ("", "calm-"):
        sinks |= {f"{calm}{subject}": str(folder / f"{calm}{subject}") for subject in ("folder", "table")}
        sinks[f"{calm}kafka"] = f"{name}-{calm}out"
        broker.make_topic(sinks[f"{calm}kafka"], partitions=PARTITIONS)
    rows = sum(map(len, copies.values()))
    return {
        "servers": broker.servers,
        "topics": topics,
        "rows_per_trigger": -(-rows // batches),
        "sinks": sinks,
    }


def fault(plan: dict, subject: str, meant: Counter) -> str | None:
    """What is wrong with a sink, if anything."""
    found, calm = (rows_in(plan, subject, plan["sinks"][name]) for name in (subject, f"calm-{subject}"))
    for what, rows in (("it", found), ("the run without kills", calm)):
        events = events_of(subject, rows)
        if events != meant:
            return f"{what} lacks {shown(meant - events)} and has besides {shown(events - meant)}"
    more, fewer = (
        Counter(map(str, one)) - Counter(map(str, two)) for one, two in ((found, calm), (calm, found))
    )
    if more or fewer:
        return f"rows that the run without kills has not: {shown(more)}; that only it has: {shown(fewer)}"
    if subject == "table" and (batches := transactions(plan["sinks"][subject])) != sorted(set(batches)):
        return f"micro-batches were committed in the order {batches}"
    return None


def shown(rows: Counter) -> str:
    """A few of them."""
    few = ", ".join(f"{count} × {row}" for row, count in list(rows.items())[:5])
    return f"{sum(rows.values())} ({few})" if rows else "nothing"


def rows_in(plan: dict, subject: str, sink: str) -> list[dict]:
    """The rows of a sink, in an order that respects its own."""
    match subject:
        case "folder":
            assert not list(Path(sink).glob("_quarantine/*"))
            files = sorted(Path(sink).glob("*.parquet"), key=lambda file: file.name.split("-", 1)[1])
            return [row for file in files for row in pq.read_table(file).to_pylist()]
        case "kafka":
            return in_topic(plan["servers"], sink)
        case _ if plan["table"] == "parquet":
            return pq.read_table(Path(sink, LATEST)).to_pylist()
        case _:
            return DeltaTable(sink).to_pyarrow_table().to_pylist()


def events_of(subject: str, rows: list[dict]) -> Counter:
    """The events that the rows of a sink mean."""
    if subject == "table":
        ends = {None: FOREVER}
        return Counter((r["value"], r["valid_from"], ends.get(r["valid_to"], r["valid_to"])) for r in rows)
    relation = Relation()
    data = [row for row in rows if row["kind"] != "stable"]
    relation.apply(Batch.from_arrow(_as_elements(data)))
    return Counter((e.payload["value"], e.start, e.end) for e in relation.events())


def _as_elements(rows: list[dict]):
    import pyarrow as pa

    times = [(name, pa.int64()) for name in ("start", "end", "old_end")]
    return pa.Table.from_pylist(rows, pa.schema([("kind", pa.string()), *times, ("value", pa.string())]))


def in_topic(servers: str, topic: str) -> list[dict]:
    """The committed records of a topic, partition by partition."""
    from confluent_kafka import Consumer, KafkaError, TopicPartition

    settings = {"bootstrap.servers": servers, "group.id": "judge", "enable.partition.eof": True}
    consumer = Consumer(settings | {"log_level": 0, "isolation.level": "read_committed"})
    found = []
    for partition in range(PARTITIONS):
        consumer.assign([TopicPartition(topic, partition, 0)])
        while (message := consumer.poll(60)) is not None and message.error() is None:
            found.append(json.loads(message.value()))
        assert message is not None
        assert message.error().code() == KafkaError._PARTITION_EOF
    consumer.close()
    return found


def transactions(table: str) -> list[int]:
    """The micro-batches that a table has, in the order of its versions."""
    versions = sorted(Path(table, VERSIONS).glob(f"0*/{ABOUT}"))
    if versions:
        return [json.loads(file.read_text())["batch"] for file in versions]
    files = sorted(Path(table, "_delta_log").glob("*.json"))
    actions = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    return [action["txn"]["version"] for action in actions if "txn" in action]


def forget(folder: Path) -> None:
    """Remove the files of a round."""
    shutil.rmtree(folder, ignore_errors=True)
