"""Shards that hear changes of a small table, and random histories of it."""

from dataclasses import dataclass, replace
from random import Random

import pyarrow as pa

from anabranch import FinalOnly, Relation, Stable
from anabranch.engines.spark.fragment import Fragment
from anabranch.engines.spark.shard import Shard
from anabranch.engines.spark.transport import parcel
from anabranch.engines.spark.transport.packing import Packing
from anabranch.oracle.changes import Change
from anabranch.rows.change_words import spellings
from anabranch.rows.layout import Layout
from anabranch.rows.reading import Place, read_rows

TASK_ROWS = 1 << 40
SCHEMA = pa.schema(
    [
        ("op", pa.string()),
        ("at", pa.int64()),
        ("replica", pa.string()),
        ("number", pa.int64()),
        ("site", pa.string()),
        ("id", pa.int64()),
        ("v", pa.string()),
    ]
)
LAYOUT = Layout(
    "at", kind="op", replica="replica", payload=("site", "id", "v"), key=("site", "id"), ops=spellings()
)
UNORDERED = LAYOUT
ORDERED = replace(LAYOUT, sequence="number")
FRAGMENT = Fragment(key=("site", "id"))


@dataclass(frozen=True)
class Said:
    """A row of a change, or of progress."""

    replica: str
    op: str
    at: int | None
    site: str | None = None
    id: int | None = None
    v: str | None = None
    number: int = 0

    def change(self) -> Change:
        named = {"site": self.site, "id": self.id} | ({} if self.v is None else {"v": self.v})
        return Change(self.op, self.at, named)


class Query:
    """State: the shards of a query, and what has come out of them."""

    def __init__(self, layout: Layout, fragment: Fragment = FRAGMENT, shards: int = 1, rows: int = 5) -> None:
        names = [name for name in SCHEMA.names if name not in layout.roles().values()]
        layout.check(SCHEMA)
        assert set(layout.key) <= set(names)
        self.packing = Packing(layout, shards, rows, ordered=layout.sequence is not None)
        fragment = replace(fragment, by_time=fragment.by_time or not self.packing.ordered)
        self.shards = [Shard(fragment, number) for number in range(shards)]
        self.output, self.refused = Relation(), []

    def hear(self, *tasks: list[Said]) -> None:
        """One micro-batch of what each task reads."""
        parcels = [[] for _ in self.shards]
        for task, rows in enumerate(tasks):
            batch = pa.RecordBatch.from_pylist([vars(said) for said in rows], SCHEMA)
            read = read_rows(self.packing.layout, batch, Place(f"task {task}", 0, task * TASK_ROWS))
            self.refused += read.refused
            for number, part in self.packing.parcels([[read]]):
                parcels[number].append(parcel.from_bytes(parcel.to_bytes(part)))
        for shard, mine in zip(self.shards, parcels, strict=True):
            heard = shard.hear(mine)
            for batch in heard.output:
                self.output.apply(batch)
            self.refused += heard.refused
        frontiers = {shard.frontier for shard in self.shards}
        assert len(frontiers) == 1 or isinstance(self.shards[0].fragment.policy, FinalOnly)
        self.output.apply(Stable(min(frontiers)))

    def store(self) -> None:
        """Go on in another process."""
        self.shards = [Shard.load(shard.fragment, shard.number, shard.dump()) for shard in self.shards]


def shown(query: Query) -> list[tuple[str, int, int]]:
    return sorted((event.payload["v"], event.start, event.end) for event in query.output.events())


def history(random: Random, length: int, *, step: int) -> list[Said]:
    """Changes of one table at even times in the order of their commits, for one key so far apart."""
    there, log, now, last = set(), [], 0, {}
    for _ in range(length):
        now += random.choice((0, 0, 2, 6))
        key = random.choice("xy"), random.randrange(3)
        at = max(now, last.get(key, -9) + step)
        op = random.choice(("update", "update", "delete")) if key in there else "insert"
        there = there - {key} if op == "delete" else there | {key}
        log.append(Said("", op, at, *key, None if op == "delete" else random.choice("abc")))
        last[key] = at
    return sorted(log, key=lambda said: said.at)


def cut(random: Random, rows: list, most: int = 6) -> list[list]:
    bounds = sorted(random.randrange(len(rows) + 1) for _ in range(random.randrange(most)))
    return [rows[a:b] for a, b in zip([0, *bounds], [*bounds, len(rows)], strict=True)]
