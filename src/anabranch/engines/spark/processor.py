"""The stateful operator: rows of parcels in, rows of parcels out, one shard per key."""

from collections.abc import Iterator
from typing import Any

import msgspec
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from anabranch.engines.spark import parcel, refusal
from anabranch.engines.spark.failure import told_to_driver
from anabranch.engines.spark.fragment import Fragment
from anabranch.engines.spark.journal import Journal, kept_by_spark
from anabranch.engines.spark.refusal import answered, on_the_clock
from anabranch.engines.spark.status import shard_status


class ShardProcessor(StatefulProcessor):
    """Runs a fragment. The state variables hold bytes that say their own version."""

    def __init__(
        self, fragment: Fragment, ids: tuple[int, ...], name: str = "fragment", *, always: bool = False
    ) -> None:
        self.fragment, self.ids, self.name, self.always = fragment, ids, name, always

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
        """What comes of the rows of a micro-batch for one shard."""
        with told_to_driver():
            yield from self._heard(key[0], rows)

    def _heard(self, key: int, rows: Iterator[Any]) -> Iterator[Any]:
        bodies, refused = [], []
        for row in rows:
            if row.body is not None:
                bodies.append(bytes(row.body))
            if row.refused is not None:
                refused += refusal.from_bytes(row.refused)
        refused = answered(refused, self.fragment.on_invalid)
        name = self.name, key
        now = micro_batch()
        with kept_by_spark():
            head, shard = self.journal.recall(name, self.ids.index(key), now, always=self.always)
        before = shard.frontier
        heard = shard.hear([parcel.from_bytes(body) for body in bodies])
        with kept_by_spark():
            state_bytes = self.journal.record(name, head, shard, bodies, now)
        voice = parcel.Voice("", str(shard.number))
        for batch in heard.output:
            yield Row(
                shard=key, body=parcel.to_bytes(parcel.Parcel.of(voice, batch)), refused=None, status=None
            )
        refused += [on_the_clock(one, self.fragment.clock) for one in heard.refused]
        if refused:
            yield Row(shard=key, body=None, refused=refusal.to_bytes(refused), status=None)
        status = shard_status(shard, heard, before, len(refused), state_bytes)
        yield Row(shard=key, body=None, refused=None, status=msgspec.json.encode(status).decode())

    def close(self) -> None:
        """Nothing is open."""


def micro_batch() -> int:
    """The number of the micro-batch that this task is of; -1 outside of a query."""
    from pyspark import TaskContext

    context = TaskContext.get()
    number = context.getLocalProperty("streaming.sql.batchId") if context else None
    return -1 if number is None else int(number)
