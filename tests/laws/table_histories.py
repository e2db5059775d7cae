"""Random histories of a small table, and what its replicas say of it: changes, progress, and snapshots."""

from dataclasses import dataclass, replace
from random import Random

import pyarrow as pa

from anabranch import FOREVER, Batch, Insert, Relation, Stable
from anabranch.model.identity import identities
from anabranch.model.rows import rows_of
from anabranch.oracle.changes import Change, ChangedTable

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


def standing(op: str, row: dict) -> tuple[int, int, bool]:
    """The order of changes of one key at one time that have no numbers: a delete comes last."""
    place = {"insert": 0, "delete": 2}.get(op, 1)
    return place, int(identities(rows_of([row]))[0, 0]), op == "update"


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


def table_of(log: list[Said]) -> ChangedTable:
    table = ChangedTable(("site", "id"), by_time=False)
    for said in log:
        assert table.push(said.change())
    return table


def relation_of(versions) -> Relation:
    relation = Relation()
    relation.apply(Batch.of([Insert(*version) for version in versions]))
    relation.apply(Stable(FOREVER))
    return relation


def rows_at(log: list[Said], position: int) -> list[tuple]:
    """The rows that are there after so many changes."""
    return [
        (version.row["site"], version.row["id"], version.row.get("v"))
        for version in table_of(log[:position]).versions()
        if version.end == FOREVER
    ]


def with_progress(random: Random, name: str, log: list[Said]) -> list[Said]:
    """Changes of a log as a replica says them, with stables that they allow."""
    said = []
    for n, one in enumerate(log):
        said.append(replace(one, replica=name))
        if random.random() < 0.3:
            said.append(Said(name, "stable", log[n + 1].at if n + 1 < len(log) else one.at))
    return said


def snapshot_of(random: Random, name: str, log: list[Said], position: int) -> tuple[int, list[Said]]:
    """The rows after so many changes as they are read, each a little later, and when the last was read."""
    time = log[position - 1].at + random.choice((0, 0, 1, 5))
    rows = [Said(name, "snapshot", time + random.choice((0, 0, 3)), *row) for row in rows_at(log, position)]
    random.shuffle(rows)
    return max((row.at for row in rows), default=time), rows


def numbered(said: list[Said]) -> list[Said]:
    return [replace(one, number=n) for n, one in enumerate(said)]


def interleaved(random: Random, copies: list[list[Said]]) -> list[list[Said]]:
    """Micro-batches in which each replica goes on in its own order, and some begin late."""
    batches = [[] for _ in range(8)]
    for copy in copies:
        parts = cut(random, copy, 5)
        places = sorted(random.choices(range(8), k=len(parts)))
        for part, place in zip(parts, places, strict=True):
            batches[place] += part
    return batches


def logs(random: Random, length: int = 40) -> list[Said]:
    return history(random, length, step=random.choice((0, 2)))


def time_heard(batches: list[list[Said]], name: str) -> int:
    """The least time of the rows of a snapshot in the first micro-batch that has some."""
    heard = [
        [said.at for said in batch if (said.replica, said.op) == (name, "snapshot")] for batch in batches
    ]
    return min(next(times for times in heard if times))
