"""What shards say, as rows again: element columns, the payload as it came, and what was refused."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import msgspec
import pyarrow as pa

from anabranch.engines.spark.query.status import ShardStatus
from anabranch.engines.spark.transport.frontier_rows import Frontier
from anabranch.model.arrow import RESERVED
from anabranch.model.batch import KINDS, Batch, Kind
from anabranch.model.clock_columns import times
from anabranch.model.schema import conformed
from anabranch.model.time import BEGINNING, FOREVER
from anabranch.rows.element_columns import REFUSED, TIMES
from anabranch.rows.refusal import FIELDS, Refusal

STATUS = "status"
BYTES = 4 << 20
"""Bytes of rows that leave a shard together, about."""


@dataclass(frozen=True)
class Unpacking:
    """How what a shard says becomes rows."""

    payload: pa.Schema
    clock: pa.DataType
    refusals: bool
    shards: int
    held: bool = False
    """Shards are at frontiers of their own, and each tells where it is."""

    @property
    def nested(self) -> bool:
        """The payload is one struct column, because one of its columns has the name of another column.

        To Spark, names that differ only in case are one.
        """
        return not {name.lower() for name in self.payload.names}.isdisjoint({*RESERVED, REFUSED})

    def schema(self) -> pa.Schema:
        """The columns of the rows."""
        fields = [pa.field("kind", pa.string()), *(pa.field(name, self.clock) for name in TIMES)]
        if self.nested:
            fields.append(pa.field("payload", pa.struct(list(self.payload))))
        else:
            fields += list(self.payload)
        if self.refusals:
            fields.append(pa.field(REFUSED, pa.struct([pa.field(name, pa.string()) for name in FIELDS])))
        return pa.schema(fields)

    @property
    def status(self) -> str:
        """The name of the column in which shards tell their status, which no other column has."""
        name, others = STATUS, {name.lower() for name in self.schema().names}
        while name in others:
            name += "_"
        return name

    def rows_of(
        self, output: Iterable[Batch], refused: list[Refusal], status: ShardStatus
    ) -> Iterator[pa.RecordBatch]:
        """What a shard says, as rows with a column for its status, which is said last.

        Where all are at one frontier, the last says it for all, because its rows come last.
        """
        for batch in output:
            rows = self.row_batch(batch)
            each = max(1, BYTES * rows.num_rows // max(rows.nbytes, 1))
            for begin in range(0, rows.num_rows, each):
                yield self._with_status(rows.slice(begin, each))
        if refused and self.refusals:
            yield self._with_status(self._refused(refused))
        if self.held:
            yield self._with_status(self._frontier(status))
        elif status.shard == self.shards - 1 and status.advanced:
            yield self._with_status(self.row_batch(Batch.stable(status.frontier)))
        nothing = [pa.nulls(1, field.type) for field in self.schema()]
        told = pa.array([msgspec.json.encode(status).decode()])
        yield pa.RecordBatch.from_arrays([*nothing, told], names=[*self.schema().names, self.status])

    def _with_status(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        columns = [*rows.columns, pa.nulls(rows.num_rows, pa.string())]
        return pa.RecordBatch.from_arrays(columns, names=[*rows.schema.names, self.status])

    def row_batch(self, batch: Batch) -> pa.RecordBatch:
        """Elements as rows."""
        kind = batch.kind
        event = kind <= Kind.ADJUST
        columns: list[Any] = [
            pa.DictionaryArray.from_arrays(pa.array(kind, pa.int8()), pa.array(KINDS)).cast(pa.string()),
            times(batch.start, ~event & (batch.start == FOREVER), self.clock),
            times(batch.end, ~event | (batch.end == FOREVER), self.clock),
            times(batch.old_end, (kind != Kind.ADJUST) | (batch.old_end == FOREVER), self.clock),
        ]
        payload = conformed(batch.payload, self.payload)
        columns += [payload.to_struct_array()] if self.nested else payload.columns
        schema = self.schema()
        if self.refusals:
            columns.append(pa.nulls(len(batch), schema.field(REFUSED).type))
        return pa.RecordBatch.from_arrays(columns, schema=schema)

    def _frontier(self, status: ShardStatus) -> pa.RecordBatch:
        """Where a shard was and is; there is no time for the beginning, and none is needed."""
        told = Frontier(status.shard, self.shards, status.before, status.frontier)
        time = FOREVER if told.after == BEGINNING else told.after
        rows = self.row_batch(Batch.stable(time))
        kind = pa.array([told.kind()], pa.string())
        return rows.set_column(rows.schema.get_field_index("kind"), "kind", kind)

    def _refused(self, refusals: list[Refusal]) -> pa.RecordBatch:
        schema = self.schema()
        values = [{field: getattr(one, field) for field in FIELDS} for one in refusals]
        columns = [pa.nulls(len(values), field.type) for field in schema][:-1]
        return pa.RecordBatch.from_arrays(
            [*columns, pa.array(values, schema.field(REFUSED).type)], schema=schema
        )
