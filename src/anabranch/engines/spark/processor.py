"""The stateful operator: rows of parcels in, what the shards say out, one shard per key."""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from anabranch.engines.spark.fragment import Fragment
from anabranch.engines.spark.journal import Journal, kept_by_spark
from anabranch.engines.spark.query.failure import told_to_driver
from anabranch.engines.spark.query.status import ShardStatus, shard_status
from anabranch.engines.spark.transport import parcel
from anabranch.engines.spark.transport.slices import whole_bodies
from anabranch.engines.spark.transport.unpacking import Unpacking
from anabranch.model.batch import Batch
from anabranch.rows import refusal
from anabranch.rows.refusal import Refusal, answered


class Answer(NamedTuple):
    """What a shard says about a micro-batch."""

    output: list[Batch]
    refused: list[Refusal]
    status: ShardStatus


class ShardProcessor(StatefulProcessor):
    """Runs a fragment. The state variables hold bytes that say their own version."""

    def __init__(
        self,
        fragment: Fragment,
        ids: tuple[int, ...],
        name: str = "fragment",
        unpacking: Unpacking | None = None,
        *,
        always: bool = False,
    ) -> None:
        self.fragment, self.ids, self.name, self.always = fragment, ids, name, always
        self.unpacking = unpacking

    def init(self, handle: Any) -> None:
        """Make the state variables known."""
        self.journal = Journal(
            self.fragment,
            len(self.ids),
            handle.getValueState("head", "body binary"),
            handle.getMapState("snapshot", "chunk int", "body binary"),
            handle.getMapState("heard", "chunk int", "body binary"),
        )

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:  # noqa: N802, N803
        """What comes of the rows of a micro-batch for one shard, as frames of rows, its status last.

        They leave the process that made them as Arrow, which Spark has only for data frames of pandas.
        """
        from anabranch.engines.spark.transport.frames import frame

        assert self.unpacking is not None, "what comes of it are rows"
        with told_to_driver():
            given = (row for one in rows for row in one.itertuples(index=False))
            said = self.answer(key[0], given)
            for batch in self.unpacking.said(said.output, said.refused, said.status):
                yield frame(batch)

    def answer(self, key: int, rows: Iterable[Any]) -> Answer:
        """Run the fragment on the rows of a micro-batch for one shard, and keep what it is then."""
        given, refused = [], []
        for row in rows:
            if row.body is not None:
                given.append(row)
            if row.refused is not None:
                refused += refusal.from_bytes(row.refused)
        bodies = whole_bodies(given)
        read = len(refused)
        refused = answered(refused, self.fragment.on_invalid)
        dropped = read - len(refused)
        name = self.name, key
        now = micro_batch()
        with kept_by_spark():
            head, shard = self.journal.recall(name, self.ids.index(key), now, always=self.always)
        before = shard.frontier
        heard = shard.hear([parcel.from_bytes(body) for body in bodies])
        with kept_by_spark():
            state_bytes = self.journal.record(name, head, shard, bodies, now)
        refused += heard.refused
        status = shard_status(shard, heard, before, len(refused), state_bytes, dropped)
        return Answer(heard.output, refused, status)

    def close(self) -> None:
        """Nothing is open."""


def micro_batch() -> int:
    """The number of the micro-batch that this task is of; -1 outside of a query."""
    from pyspark import TaskContext

    context = TaskContext.get()
    number = context.getLocalProperty("streaming.sql.batchId") if context else None
    return -1 if number is None else int(number)
