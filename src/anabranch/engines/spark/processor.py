"""The stateful operator of a level: rows of parcels in, and out come parcels for later levels, or rows.

It is given and gives data frames of pandas, which Spark carries as Arrow; a shard packs what it says for the
next level itself, split by the columns that must meet there. Rows for a level that is not the next pass
unopened, and so does what was refused, until the last.
"""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from anabranch.engines.spark.assignment import Assignment
from anabranch.engines.spark.journal import Journal, kept_by_spark
from anabranch.engines.spark.next_level import for_later_levels
from anabranch.engines.spark.query.failure import errors_to_driver
from anabranch.engines.spark.query.shard_status import shard_status
from anabranch.engines.spark.query.status import ShardStatus
from anabranch.engines.spark.shard import ShardResult
from anabranch.engines.spark.transport import parcel
from anabranch.engines.spark.transport.level_rows import (
    DECIDED,
    called_by,
    calling_row,
    passed_on,
    refused_row,
    status_row,
)
from anabranch.engines.spark.transport.slices import whole_bodies
from anabranch.engines.spark.transport.unpacking import Unpacking
from anabranch.rows import refusal
from anabranch.rows.refusal import Refusal, answered


class Answer(NamedTuple):
    """The result of a shard in a micro-batch, and how it is after it."""

    result: ShardResult
    advanced: dict[str, int]
    """What goes out and is stable further than before, and until when."""
    refused: list[Refusal]
    status: ShardStatus
    before: int
    """The micro-batch whose state it went on from; -1: it had none."""


class ShardProcessor(StatefulProcessor):
    """Runs a level. The state variables hold bytes that say their own version."""

    def __init__(
        self,
        assignment: Assignment,
        ids: tuple[int, ...],
        name: str = "level",
        unpacking: Unpacking | None = None,
        *,
        always: bool = False,
    ) -> None:
        self.assignment, self.ids, self.name, self.always = assignment, ids, name, always
        self.unpacking = unpacking

    def init(self, handle: Any) -> None:
        """Make the state variables known."""
        self.journal = Journal(
            self.assignment,
            len(self.ids),
            handle.getValueState("head", "body binary"),
            handle.getMapState("snapshot", "chunk int", "body binary"),
            handle.getMapState("parcels", "chunk int", "body binary"),
        )

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:  # noqa: N802, N803
        """What comes of the rows of a micro-batch for one shard, as frames of rows, its status last."""
        from anabranch.engines.spark.transport.frames import frame

        number = self.assignment.level.number
        with errors_to_driver():
            mine: list[Any] = []
            later: list[Any] = []
            for one in rows:
                for row in one.itertuples(index=False):
                    (mine if getattr(row, "level", number) == number else later).append(row)
            if later:
                yield frame(passed_on(later))
            for batch in self.rows(key[0], mine):
                yield frame(batch)

    def rows(self, key: int, rows: Iterable[Any]) -> Iterator[pa.RecordBatch]:
        """The result of the shard, as rows for Spark."""
        answer = self.answer(key, rows)
        if self.unpacking is not None:
            yield from self.unpacking.rows_of(answer.result.output, answer.refused, answer.status)
            return
        yield from for_later_levels(
            self.assignment, self.ids, answer.status.shard, answer.result, answer.advanced
        )
        yield calling_row(self.assignment.level.number + 1, key, answer.before)
        if answer.refused:
            yield refused_row(self.assignment.last, self.ids[0], refusal.to_bytes(answer.refused))
        yield status_row(self.assignment.last, key, msgspec.json.encode(answer.status).decode())

    def answer(self, key: int, rows: Iterable[Any]) -> Answer:
        """Run the level on the rows of a micro-batch for one shard, and keep what it is then."""
        given: list[Any] = []
        malformed: list[Refusal] = []
        refused: list[Refusal] = []
        called: int | None = None
        for row in rows:
            called = called_by(row) if called is None else called
            if row.body is not None:
                given.append(row)
            if row.refused is not None:
                (refused if row.parcel == DECIDED else malformed).extend(refusal.from_bytes(row.refused))
        bodies = whole_bodies(given)
        refused += (aside := answered(malformed, self.assignment.answers.on_invalid))
        dropped = len(malformed) - len(aside)
        name, now = (self.name, key), micro_batch()
        with kept_by_spark():
            head, shard = self.journal.recall(
                name, self.ids.index(key), now, always=self.always, called=called
            )
        state_of = -1 if head is None else head.batch
        before, frontiers = shard.frontier, shard.stables()
        result = shard.receive([parcel.from_bytes(body) for body in bodies])
        shard.step_on(result)
        with kept_by_spark():
            state_bytes = self.journal.record(name, head, shard, bodies, now, called=called is not None)
        refused += result.refused
        status = shard_status(shard, result, before, len(refused), state_bytes, dropped)
        advanced = {out: time for out, time in shard.stables().items() if time > frontiers[out]}
        return Answer(result, advanced, refused, status, state_of)

    def close(self) -> None:
        """Nothing is open."""


def micro_batch() -> int:
    """The number of the micro-batch that this task is of; -1 outside of a query."""
    from pyspark import TaskContext

    context = TaskContext.get()
    number = context.getLocalProperty("streaming.sql.batchId") if context else None
    return -1 if number is None else int(number)
