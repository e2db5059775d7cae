"""A merge driven as Spark drives it, with no Spark: tasks pack rows, shards run behind `TwsTester`."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import msgspec
import pyarrow as pa
from engines.spark.merges import Merging, assignment_of
from pyspark.sql import Row
from pyspark.sql.streaming import TwsTester

from anabranch import BEGINNING, FOREVER, Adjust, Attach, Detach, Insert, Stable
from anabranch.engines.spark import journal
from anabranch.engines.spark.parcel_rows import parcel_rows
from anabranch.engines.spark.processor import ShardProcessor
from anabranch.engines.spark.query.failure import errors_to_driver
from anabranch.engines.spark.query.status import ShardStatus
from anabranch.engines.spark.rows_merge import ROWS_SOURCE
from anabranch.engines.spark.shard import Shard
from anabranch.engines.spark.transport import parcel
from anabranch.engines.spark.transport.packing import Packing
from anabranch.engines.spark.transport.shards import shard_ids
from anabranch.model.batch import Batch
from anabranch.model.elements import Control, Element
from anabranch.progress.channel_rows import Stretch
from anabranch.rows import refusal
from anabranch.rows.layout import Layout
from anabranch.rows.reading import Place, read_rows

TASK_ROWS = 1 << 40
ROWS = pa.schema(
    [
        ("kind", pa.string()),
        ("start", pa.int64()),
        ("end", pa.int64()),
        ("old_end", pa.int64()),
        ("replica", pa.string()),
        ("channel", pa.string()),
        ("sequence", pa.int64()),
        ("value", pa.string()),
    ]
)
UNORDERED = Layout(
    "start", "end", "old_end", kind="kind", replica="replica", channel="channel", payload=("value",)
)
ORDERED = Layout(
    "start",
    "end",
    "old_end",
    kind="kind",
    replica="replica",
    channel="channel",
    sequence="sequence",
    payload=("value",),
)


@dataclass(frozen=True)
class Said:
    """One row before it is packed."""

    replica: str
    element: Element | Control
    channel: str = ""
    sequence: int = 0

    def row(self) -> tuple[Any, ...]:
        """The row; what is infinite is null."""
        who = self.replica, self.channel, self.sequence
        match self.element:
            case Insert(payload, start, end):
                return "insert", start, _null(end), None, *who, payload["value"]
            case Adjust(payload, start, old_end, end):
                return "adjust", start, _null(end), _null(old_end), *who, payload["value"]
            case Stable(time):
                return "stable", _null(time), None, None, *who, None
            case Attach(guarantee):
                start = None if guarantee == BEGINNING else guarantee
                return "attach", start, None, None, *who, None
            case Detach():
                return "detach", None, None, None, *who, None


def _null(time: int) -> int | None:
    return None if time == FOREVER else time


def record_batch(said: Sequence[Said]) -> pa.RecordBatch:
    """What is said, as the rows that a task is given."""
    columns = zip(*(one.row() for one in said), strict=True) if said else [[]] * len(ROWS)
    return pa.RecordBatch.from_arrays(
        [pa.array(column, field.type) for column, field in zip(columns, ROWS, strict=True)], schema=ROWS
    )


def parcels(tasks: Iterable[Sequence[Said]], packing: Packing, ids: tuple[int, ...]) -> Iterator[Row]:
    """The rows of parcels that tasks make of what they are given, so many rows at a time."""
    for number, task in enumerate(tasks):
        rows = record_batch(task)
        places = [
            Place(f"task {number}", begin, number * TASK_ROWS + begin)
            for begin in range(0, len(task), packing.rows)
        ]
        reads = [read_rows(packing.layout, rows.slice(place.first, packing.rows), place) for place in places]
        packing = replace(packing, edge=ROWS_SOURCE)
        for packed in parcel_rows([[read] for read in reads], packing, ids):
            yield from (Row(**row) for row in packed.to_pylist())


@dataclass(frozen=True)
class Answer:
    """What one shard says about one micro-batch."""

    bodies: list[bytes]
    refused: list[bytes]
    status: ShardStatus

    @classmethod
    def of(cls, rows: list[Row]) -> "Answer":
        return cls(
            [bytes(row.body) for row in rows if row.body is not None],
            [bytes(row.refused) for row in rows if row.refused is not None],
            msgspec.json.decode(rows[-1].status, type=ShardStatus),
        )

    def elements(self) -> list[Element]:
        return [e for body in self.bodies for e in parcel.from_bytes(body).batch(slice(None)).elements()]

    def told(self) -> tuple[Any, ...]:
        """All of it but the size of the state, and how Arrow pads bytes: those tell when it was written."""
        operators = {
            name: {what: count for what, count in counts.items() if what != "bytes"}
            for name, counts in self.status.operators.items()
        }
        status = msgspec.structs.replace(self.status, state_bytes=0, operators=operators)
        schemas = [parcel.from_bytes(body).payload.schema for body in self.bodies]
        return self.elements(), schemas, self.refused, status


Kept = tuple[dict[str, dict[Any, Any]], dict[str, dict[Any, dict[Any, Any]]]]


class MergeProcessor(ShardProcessor):
    """Runs a merge as a plan of one level; what it says are parcels, refusals, and its status last."""

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:  # noqa: N802, N803
        with errors_to_driver():
            said = self.answer(key[0], rows)
        yield from said_in_rows(key[0], said.result.output, said.refused, said.status)


def said_in_rows(
    key: int, output: list[Batch], refused: list[refusal.Refusal], status: ShardStatus
) -> Iterator[Row]:
    """What a shard says as parcels, refusals, and its status last."""
    stretch = Stretch("", str(status.shard))
    for batch in output:
        body = parcel.to_bytes(parcel.Parcel.of(stretch, batch))
        yield Row(shard=key, body=memoryview(body), refused=None, status=None)
    if refused:
        yield Row(shard=key, body=None, refused=refusal.to_bytes(refused), status=None)
    yield Row(shard=key, body=None, refused=None, status=msgspec.json.encode(status).decode())


class Query:
    """State: what Spark keeps of the shards of a merge, and what the worker that runs them holds."""

    def __init__(self, merging: Merging, shards: int = 1, name: str = "merging") -> None:
        self.merging, self.ids, self.name = merging, shard_ids(shards), name
        journal.forget_all()
        self._start()

    def _start(self) -> None:
        self.assignment = assignment_of(ORDERED, self.merging, ROWS, len(self.ids))
        self.tester = TwsTester(MergeProcessor(self.assignment, self.ids, self.name))

    def receive(self, rows: Iterable[Row]) -> dict[int, Answer]:
        """What the shards that are given anything say about a micro-batch, by their numbers."""
        answers: dict[int, list[Row]] = {}
        for row in self.rows(rows):
            answers.setdefault(self.ids.index(row.shard), []).append(row)
        return {number: Answer.of(said) for number, said in answers.items()}

    def rows(self, rows: Iterable[Row]) -> list[Row]:
        """What the shards say about a micro-batch, as Spark has it."""
        groups: dict[int, list[Row]] = {}
        for row in rows:
            groups.setdefault(row.shard, []).append(row)
        return [row for key in self.ids if key in groups for row in self.tester.test(key, groups[key])]

    def restart(self) -> None:
        """Go on in another process, with what Spark keeps."""
        kept = self.kept()
        journal.forget_all()
        self._start()
        self.keep(kept)

    def kept(self) -> Kept:
        """A copy of what Spark keeps."""
        handle = self.tester.handle
        return (
            {name: dict(variable.state) for name, variable in handle.value_states.items()},
            {
                name: {key: dict(entries) for key, entries in variable.state.items()}
                for name, variable in handle.map_states.items()
            },
        )

    def keep(self, kept: Kept) -> None:
        """Let Spark keep this instead."""
        values, maps = kept
        handle = self.tester.handle
        for name, state in values.items():
            handle.value_states[name].state = dict(state)
        for name, groups in maps.items():
            handle.map_states[name].state = {key: dict(entries) for key, entries in groups.items()}

    def held(self) -> dict[Any, tuple[bytes, int, bytes]]:
        """The shards that the worker holds, as bytes: a shard that goes on is changed."""
        return {
            name: (held.stamp, held.shard.number, held.shard.dump()) for name, held in journal._held.items()
        }

    def hold(self, held: dict[Any, tuple[bytes, int, bytes]]) -> None:
        """Let the worker hold these instead."""
        journal.forget_all()
        for name, (stamp, number, dump) in held.items():
            journal._held[name] = journal.Held(stamp, Shard.load(self.assignment, number, dump))


def shuffled(rows: Sequence[Any], random: Random) -> list[Any]:
    """The same rows in another order."""
    return random.sample(rows, len(rows))
