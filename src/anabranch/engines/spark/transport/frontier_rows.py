"""How far a shard is that is at a frontier of its own, as a row; and how far all shards are by their rows.

Where the frontier of what comes out depends on events (`FinalOnly`, `final`), shards are at different times,
and none can say stable for all. Each tells in every micro-batch where it was and where it is, in a row whose
kind has both and which of how many shards it is. The least of all is the stable of the query: whoever writes
a micro-batch says it when all its rows are there, if it rose. Nothing has to be kept for that, and a
micro-batch that runs again says the same.

| kind | start |
|---|---|
| ``frontier 0/2 17 20`` | 20, in the type of the clock |
"""

import re
from collections.abc import Iterable
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

WORD = "frontier "
_KIND = re.compile(rf"{WORD}(\d+)/(\d+) (-?\d+) (-?\d+)")


class Frontier(NamedTuple):
    """Where a shard was before a micro-batch, and is after it."""

    shard: int
    shards: int
    before: int
    after: int

    def kind(self) -> str:
        """What stands in the column of kinds."""
        return f"{WORD}{self.shard}/{self.shards} {self.before} {self.after}"

    @classmethod
    def of(cls, kind: str) -> "Frontier":
        """What `kind` gave."""
        found = _KIND.fullmatch(kind)
        assert found is not None, "a kind that begins with the word is ours"
        return cls(*map(int, found.groups()))


def least(frontiers: Iterable[Frontier]) -> Frontier | None:
    """The frontier of the shard that is behind, where all have told theirs and the least of them rose."""
    known = {one.shard: one for one in frontiers}
    if not known or len(known) < next(iter(known.values())).shards:
        return None
    last = min(known.values(), key=lambda one: (one.after, one.shard))
    return last if last.after > min(one.before for one in known.values()) else None


def without_frontiers(rows: pa.RecordBatch) -> tuple[pa.RecordBatch, dict[Frontier, pa.RecordBatch]]:
    """The other rows; and of each frontier among them the stable that it would be, as a row."""
    is_frontier = pc.fill_null(pc.starts_with(rows.column("kind"), WORD), False)
    if not pc.any(is_frontier).as_py():
        return rows, {}
    told = rows.filter(is_frontier)
    names = told.column("kind").to_pylist()
    kind = pa.array(["stable"] * len(told), rows.schema.field("kind").type)
    stables = told.set_column(rows.schema.get_field_index("kind"), rows.schema.field("kind"), kind)
    return rows.filter(pc.invert(is_frontier)), {
        Frontier.of(name): stables[n : n + 1] for n, name in enumerate(names)
    }


def with_least(rows: pa.Table) -> pa.Table:
    """All rows of a micro-batch, with one stable in place of its frontiers, or none."""
    frontiers: dict[Frontier, pa.RecordBatch] = {}
    others = []
    for batch in rows.to_batches():
        rest, told = without_frontiers(batch)
        others.append(rest)
        frontiers |= told
    if not frontiers:
        return rows
    behind = least(frontiers)
    said = [] if behind is None else [frontiers[behind]]
    return pa.Table.from_batches([*others, *said], rows.schema)
