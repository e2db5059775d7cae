"""A plan that merges replicas of changes, driven as Spark drives it: two tasks read a micro-batch."""

from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from engines.spark.plan_driving import LeveledQuery
from laws.table_histories import SCHEMA, Said

from anabranch import Batch, Quarantine, Relation
from anabranch.engines.spark.query.status import ShardStatus
from anabranch.engines.spark.transport.frontier_rows import with_least
from anabranch.kernels.answers import Answers
from anabranch.plan.stream import Stream

_ELEMENTS = ("kind", "start", "end", "old_end", "site", "id", "v")


class DrivenLevels:
    """State: a query of levels, and what a sink has written of it."""

    def __init__(self, stream: Stream, shards: int = 2) -> None:
        self.query = LeveledQuery(stream, shards, Answers(Quarantine(), Quarantine(), Quarantine()))
        self.output, self.refused, self.live = Relation(), list[Any](), dict[int, int]()

    def receive(self, said: list[Said]) -> None:
        """Let the tasks of one micro-batch read rows, in turn."""
        tasks = [pa.RecordBatch.from_pylist([vars(one) for one in said[n::2]], SCHEMA) for n in range(2)]
        batches = self.query.receive({"table": tasks})
        if not batches:
            return
        rows = with_least(pa.Table.from_batches(batches))
        self.refused += rows.filter(pc.is_valid(rows["refused"]))["refused"].to_pylist()
        for text in rows.filter(pc.is_valid(rows["status"]))["status"].to_pylist():
            status = msgspec.json.decode(text, type=ShardStatus)
            self.live[status.shard] = status.live
        elements = rows.filter(pc.is_valid(rows["kind"])).select(_ELEMENTS)
        is_stable = pc.equal(elements["kind"], "stable")
        for part in (elements.filter(pc.invert(is_stable)), elements.filter(is_stable)):
            self.output.apply(Batch.from_arrow(part))

    def restart(self) -> None:
        """Go on in other processes."""
        self.query.restart()

    def finish(self) -> int:
        """Nothing is left to be said; how much the last level holds."""
        return sum(self.live.values())
