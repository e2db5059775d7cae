"""Other payloads: each column of the output is an expression over the columns of the input.

Events whose payloads become equal stay as many as they were.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from anabranch.expressions.evaluation import Evaluation
from anabranch.expressions.tree import Tree, plain_column
from anabranch.kernels.failed import failed
from anabranch.kernels.kernel import Result
from anabranch.model.application import STABLE
from anabranch.model.batch import Batch
from anabranch.model.rows import rows_without_columns


class Select:
    """A step. ``columns`` are names with expressions, and ``schema`` what they give."""

    def __init__(self, columns: Sequence[tuple[str, Tree]], schema: pa.Schema) -> None:
        self.columns, self.schema = [Evaluation(tree) for _, tree in columns], schema
        plain = [plain_column(tree) for _, tree in columns]
        self._plain = None if None in plain else [name for name in plain if name is not None]

    def map(self, batch: Batch) -> Result:
        """The same elements with other payloads; one for which an expression fails is refused."""
        if self._plain is not None:
            return Result(batch.with_new_payload(self._renamed(batch.payload)))
        bad: dict[int, str] = {}
        arrays = []
        for column in self.columns:
            values = column.of(batch.payload, batch.start, batch.end)
            arrays.append(values.values)
            for row, reason in zip(values.failed.tolist(), values.why, strict=True):
                bad.setdefault(row, reason)
        payload = pa.RecordBatch.from_arrays(arrays, schema=self.schema)
        output = batch.with_new_payload(payload)
        if not bad:
            return Result(output)
        rows = np.array(sorted(bad))
        keep = np.ones(len(batch), np.bool_)
        keep[rows] = False
        keep |= batch.kind == STABLE
        return Result(output.take(keep), failed(batch, rows, [bad[row] for row in rows.tolist()]))

    def reached(self, time: int) -> int:
        """As far as the input."""
        return time

    def _renamed(self, payload: pa.RecordBatch) -> pa.RecordBatch:
        if not self._plain:
            return rows_without_columns(payload.num_rows)
        chosen = payload.select(self._plain)
        if chosen.schema.equals(self.schema):
            return chosen
        return pa.RecordBatch.from_arrays(chosen.columns, schema=self.schema)
