"""A plan driven as Spark drives it, with no Spark: tasks pack rows, levels run behind `TwsTester`."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
from engines.spark.driving import TASK_ROWS, Kept
from pyspark import TaskContext
from pyspark.sql import Row
from pyspark.sql.streaming import TwsTester

from anabranch import Raise
from anabranch.engines.spark import journal
from anabranch.engines.spark.parcel_rows import parcel_rows
from anabranch.engines.spark.plan_sources import Read, layout_of
from anabranch.engines.spark.planned_query import PlannedQuery
from anabranch.engines.spark.processor import ShardProcessor
from anabranch.engines.spark.transport.level_rows import LEVEL_SCHEMA, passed_on
from anabranch.engines.spark.transport.packing import Packing
from anabranch.engines.spark.transport.shards import shard_ids
from anabranch.kernels.answers import Answers
from anabranch.plan.graph import Graph
from anabranch.plan.levels import levels
from anabranch.plan.source import Source
from anabranch.plan.stream import Stream
from anabranch.rows.reading import Place, read_rows

ShardState = tuple[dict[str, Any], dict[str, dict[Any, Any]]]


class LeveledQuery:
    """State: what Spark keeps of all levels of a query, and what the workers that run them hold."""

    def __init__(
        self, stream: Stream, shards: int = 1, answers: Answers | None = None, *, native: bool = True
    ) -> None:
        self.batch = -1
        self.ids = shard_ids(shards)
        sources = {node.name: node for node in Graph([stream.node]).nodes if isinstance(node, Source)}
        self.reads = {
            name: Read(source, None, layout, source.columns, layout.sequence is not None, is_native=native)
            for name, source in sources.items()
            for layout in [layout_of(source)]
        }
        self.parts = levels(stream.node, shards)
        self.query = PlannedQuery(
            self.parts, self.reads, self.ids, answers or Answers(Raise(), Raise(), Raise())
        )
        journal.forget_all()
        self._start()

    def _start(self) -> None:
        self.testers = [
            TwsTester(
                ShardProcessor(
                    self.query.assignment(level),
                    self.ids,
                    f"level {level.number}",
                    self.query.unpacking() if self.query.is_last(level) else None,
                    always=self.query.always(level),
                )
            )
            for level in self.parts
        ]

    def receive(self, given: Mapping[str, Sequence[pa.RecordBatch]]) -> list[pa.RecordBatch]:
        """What comes out of the last level for what the tasks of sources read in one micro-batch."""
        self.batch += 1
        with _of_micro_batch(self.batch):
            return self._hear(given)

    def _hear(self, given: Mapping[str, Sequence[pa.RecordBatch]]) -> list[pa.RecordBatch]:
        said: list[pa.RecordBatch] = []
        for level, tester in zip(self.parts, self.testers, strict=True):
            rows = pa.Table.from_batches(said, LEVEL_SCHEMA).to_pylist() if said else []
            for edge in level.edges:
                if edge.source is not None and edge.source.name in given:
                    packing = self.query.packing(edge, level)
                    rows += _packed(packing, given[edge.source.name], self.ids, level.number)
            said = self._run(tester, level.number, rows)
        return said

    def _run(self, tester: TwsTester, level: int, rows: list[dict[str, Any]]) -> list[pa.RecordBatch]:
        groups: dict[int, list[dict[str, Any]]] = {}
        for row in rows:
            if row.get("status") is None:
                groups.setdefault(row["shard"], []).append(row)
        out: list[pa.RecordBatch] = []
        processor = tester.processor
        for key in self.ids:
            if key in groups:
                tester.handle.setGroupingKey(key)
                mine = [Row(**row) for row in groups[key] if row["level"] == level]
                later = [Row(**row) for row in groups[key] if row["level"] != level]
                out += [passed_on(later)] if later else []
                out += list(processor.rows(key, mine))
        return out

    def state(self, level: int, shard: int) -> ShardState:
        """What Spark keeps of one shard of a level."""
        values, maps = _kept(self.testers[level - 1])
        key = self.ids[shard]
        of = {name: state[key] for name, state in values.items() if key in state}
        return of, {name: dict(state[key]) for name, state in maps.items() if key in state}

    def put(self, level: int, shard: int, state: ShardState) -> None:
        """Let Spark have kept something else of one shard of a level, and go on in other processes."""
        handle, key = self.testers[level - 1].handle, self.ids[shard]
        for kept, variables in zip(state, (handle.value_states, handle.map_states), strict=True):
            for name, variable in variables.items():
                variable.state.pop(key, None)
                if name in kept:
                    variable.state[key] = kept[name]
        self.restart()

    def restart(self) -> None:
        """Go on in other processes, with what Spark keeps."""
        kept = [_kept(tester) for tester in self.testers]
        journal.forget_all()
        self._start()
        for tester, one in zip(self.testers, kept, strict=True):
            _keep(tester, one)


@contextmanager
def _of_micro_batch(number: int) -> Iterator[None]:
    """Tasks in it know of which micro-batch they are, as Spark tells them."""
    context = TaskContext._getOrCreate()
    context._localProperties = {"streaming.sql.batchId": str(number)}
    try:
        yield
    finally:
        TaskContext._setTaskContext(None)


def _packed(
    packing: Packing, tasks: Sequence[pa.RecordBatch], ids: tuple[int, ...], level: int
) -> list[dict[str, Any]]:
    rows = []
    for number, task in enumerate(tasks):
        read = read_rows(packing.layout, task, Place(f"task {number}", 0, number * TASK_ROWS))
        for batch in parcel_rows([[read]], packing, ids):
            rows += [{**row, "level": level, "status": None} for row in batch.to_pylist()]
    return rows


def _kept(tester: TwsTester) -> Kept:
    handle = tester.handle
    return (
        {name: dict(variable.state) for name, variable in handle.value_states.items()},
        {
            name: {key: dict(entries) for key, entries in variable.state.items()}
            for name, variable in handle.map_states.items()
        },
    )


def _keep(tester: TwsTester, kept: Kept) -> None:
    values, maps = kept
    for name, state in values.items():
        tester.handle.value_states[name].state = dict(state)
    for name, groups in maps.items():
        tester.handle.map_states[name].state = {key: dict(entries) for key, entries in groups.items()}
