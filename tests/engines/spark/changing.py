"""Shards that hear changes of a small table."""

from dataclasses import replace

import pyarrow as pa
from engines.spark.merges import Merging, assignment_of
from laws.table_histories import SCHEMA, Said

from anabranch import FinalOnly, Relation, Stable
from anabranch.engines.spark.rows_merge import ROWS_SOURCE
from anabranch.engines.spark.shard import Shard as OfALevel
from anabranch.engines.spark.transport import parcel
from anabranch.engines.spark.transport.packing import Packing
from anabranch.kernels.merge.merge import Merge
from anabranch.kernels.merge_changes import MergeChanges
from anabranch.rows.change_words import spellings
from anabranch.rows.layout import Layout
from anabranch.rows.reading import Place, read_rows

TASK_ROWS = 1 << 40
LAYOUT = Layout(
    "at", kind="op", replica="replica", payload=("site", "id", "v"), key=("site", "id"), ops=spellings()
)
UNORDERED = LAYOUT
ORDERED = replace(LAYOUT, sequence="number")
MERGING = Merging()


class Shard(OfALevel):
    """A shard of a merge of changes, which is a plan of one node."""

    @property
    def changes(self) -> MergeChanges:
        """The kernel."""
        ((_, _, kernel),) = self.flow.kernels()
        assert isinstance(kernel, MergeChanges)
        return kernel

    @property
    def merge(self) -> Merge:
        """What merges the rows."""
        return self.changes.merge


def shard_of(merging: Merging, layout: Layout = LAYOUT) -> Shard:
    """The one shard of a merge of changes."""
    return Shard(assignment_of(layout, merging, SCHEMA, 1))


class Query:
    """State: the shards of a query, and what has come out of them."""

    def __init__(self, layout: Layout, merging: Merging = MERGING, shards: int = 1, rows: int = 5) -> None:
        names = [name for name in SCHEMA.names if name not in layout.roles().values()]
        layout.check(SCHEMA)
        assert set(layout.key) <= set(names)
        self.packing = Packing(layout, shards, rows, ordered=layout.sequence is not None, edge=ROWS_SOURCE)
        merging = replace(merging, by_time=merging.by_time or not self.packing.ordered)
        self.policy = merging.policy
        assignment = assignment_of(layout, merging, SCHEMA, shards)
        self.shards = [Shard(assignment, number) for number in range(shards)]
        self.output, self.refused = Relation(), []

    def receive(self, *tasks: list[Said]) -> None:
        """One micro-batch of what each task reads."""
        parcels = [[] for _ in self.shards]
        for task, rows in enumerate(tasks):
            batch = pa.RecordBatch.from_pylist([vars(said) for said in rows], SCHEMA)
            read = read_rows(self.packing.layout, batch, Place(f"task {task}", 0, task * TASK_ROWS))
            self.refused += read.refused
            for number, part in self.packing.parcels([[read]]):
                parcels[number].append(parcel.from_bytes(parcel.to_bytes(part)))
        for shard, mine in zip(self.shards, parcels, strict=True):
            heard = shard.receive(mine)
            for batch in heard.output:
                self.output.apply(batch)
            self.refused += heard.refused
        frontiers = {shard.frontier for shard in self.shards}
        assert len(frontiers) == 1 or isinstance(self.policy, FinalOnly)
        self.output.apply(Stable(min(frontiers)))

    def store(self) -> None:
        """Go on in another process."""
        self.shards = [Shard.load(shard.assignment, shard.number, shard.dump()) for shard in self.shards]


def shown(query: Query) -> list[tuple[str, int, int]]:
    return sorted((event.payload["v"], event.start, event.end) for event in query.output.events())
