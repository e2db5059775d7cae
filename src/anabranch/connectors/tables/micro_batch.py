"""The element rows of one micro-batch, and what they change in all.

Rows of a micro-batch come from several shards in no order. Their net effect does not depend on it: an insert
adds an event, an adjust takes one with the old end away and adds one with the new end, and what is added as
often as it is taken away changes nothing.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from anabranch.model.batch import KINDS, Batch, Kind
from anabranch.model.events import Events
from anabranch.model.identity import Words
from anabranch.model.rows import rows_without_columns
from anabranch.model.time import BEGINNING, FOREVER
from anabranch.rows.element_columns import REFUSED, TIMES

NESTED = "payload"


@dataclass(frozen=True)
class MicroBatch:
    """Element rows, none of them refused."""

    rows: pa.Table
    before: int = BEGINNING
    """The stable that was known before; more of what is kept can be forgotten where it is known."""

    @cached_property
    def elements(self) -> Batch:
        """The rows as elements; dates are day ticks, timestamps microseconds, a null is infinite."""
        kind = pc.index_in(self.rows.column("kind"), pa.array(KINDS))
        start, end, old_end = (ticks_of(self.rows.column(name)) for name in TIMES)
        return Batch(kind.to_numpy().astype(np.int8), start, end, old_end, self._payload())

    @cached_property
    def net(self) -> Events:
        """The events that are more than before, and with negative counts those that are fewer."""
        return Events.changed_by(self.elements)

    @property
    def frontier(self) -> int:
        """The greatest stable so far, that of these rows included."""
        stables = self.elements.start[self.elements.kind == Kind.STABLE]
        return int(stables.max(initial=self.before))

    def _payload(self) -> pa.RecordBatch:
        fields = payload_of(self.rows.schema)
        if not len(fields):
            return rows_without_columns(self.rows.num_rows)
        if NESTED in self.rows.schema.names:
            columns = in_one(self.rows.column(NESTED)).flatten()
        else:
            columns = [in_one(self.rows.column(name)) for name in fields.names]
        return pa.RecordBatch.from_arrays(columns, schema=fields)


def payload_of(rows: pa.Schema) -> pa.Schema:
    """The payload columns of element rows, which are in one struct where they would not be told apart."""
    own = [field for field in rows if field.name not in ("kind", *TIMES, REFUSED)]
    return pa.schema(list(own[0].type) if [field.name for field in own] == [NESTED] else own)


def ticks_of(column: Any) -> NDArray[np.int64]:
    """Times as ticks; a null is infinite."""
    kind = column.type
    if pa.types.is_date(kind):
        column = column.cast(pa.int32())
    return np.asarray(column.cast(pa.int64()).fill_null(FOREVER).to_numpy(), np.int64)


def ids_of(words: Words) -> Any:
    """Identities as a column of 16 bytes each."""
    data = pa.py_buffer(np.ascontiguousarray(words))
    return pa.FixedSizeBinaryArray.from_buffers(pa.binary(16), len(words), [None, data]).cast(pa.binary())


def words_of(column: Any) -> Words:
    """What `ids_of` was given."""
    ids = in_one(column).cast(pa.binary(16))
    words = np.frombuffer(ids.buffers()[1], np.uint64, 2 * len(ids), 16 * ids.offset)
    return words.reshape(-1, 2)


def in_one(column: Any) -> Any:
    """A column in one piece."""
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
