"""Other payloads by a function of record batches, for what no expression says.

The function is given the payload rows of events, never of stables, and gives as many rows in return. Where it
raises, the rows are halved until those for which it does stand alone, and these are refused.
"""

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anabranch.errors import AnabranchError
from anabranch.kernels.failed import failed
from anabranch.kernels.kernel import Result
from anabranch.model.batch import Batch, Kind
from anabranch.model.rows import stacked
from anabranch.model.zones import cast

Function = Callable[[pa.RecordBatch], pa.RecordBatch]


class Apply:
    """A step. What the function gives is cast to ``schema``."""

    def __init__(self, function: Function, schema: pa.Schema) -> None:
        self.function, self.schema = function, schema

    def map(self, batch: Batch) -> Result:
        """The same events with the payloads that the function gives."""
        events = np.flatnonzero(batch.kind <= Kind.ADJUST)
        given = batch if len(events) == len(batch) else batch.take(events)
        parts, rows, bad, why = [], [], [], []
        for some, answer in self._answers(given.payload, np.arange(len(given))):
            if isinstance(answer, pa.RecordBatch):
                parts.append(answer)
                rows.append(some)
            else:
                bad.append(int(some[0]))
                why.append(answer)
        keep = np.concatenate(rows) if rows else np.empty(0, np.int64)
        output = given.take(keep) if bad else given
        payload = stacked(parts) if parts else _no_rows(self.schema)
        return Result(output.with_new_payload(payload), failed(given, np.array(bad, np.int64), why))

    def reached(self, time: int) -> int:
        """As far as the input."""
        return time

    def _answers(
        self, payload: pa.RecordBatch, rows: NDArray[np.int64]
    ) -> Iterator[tuple[NDArray[np.int64], pa.RecordBatch | str]]:
        """Rows with what the function gives for them; a row alone with the reason why it gives nothing."""
        if not len(rows):
            return
        try:
            answer = conformed_answer(self.function(payload), payload.num_rows, self.schema)
        except AnswerError:
            raise
        except Exception as reason:  # whatever a user's function raises
            if len(rows) == 1:
                yield rows, f"{type(reason).__name__}: {reason}"
                return
            half = len(rows) // 2
            yield from self._answers(payload.slice(0, half), rows[:half])
            yield from self._answers(payload.slice(half), rows[half:])
        else:
            yield rows, answer


class AnswerError(AnabranchError, TypeError):
    """A function gives something that is no answer to the rows it was given."""


def conformed_answer(answer: object, count: int, schema: pa.Schema | None) -> pa.RecordBatch:
    """What a function gives, as a record batch of as many rows, in the columns it promised."""
    if hasattr(answer, "__arrow_c_stream__") and not isinstance(answer, pa.RecordBatch):
        table = pa.table(answer).combine_chunks()
        answer = table.to_batches()[0] if table.num_rows else _no_rows(table.schema)
    elif isinstance(answer, dict):
        answer = pa.RecordBatch.from_pydict(answer)
    if not isinstance(answer, pa.RecordBatch):
        error = AnswerError(f"a function that is applied gives a record batch, not {type(answer).__name__}")
        error.add_note("Give a pyarrow.RecordBatch, a mapping of columns, or a frame that speaks Arrow.")
        raise error
    if answer.num_rows != count:
        raise AnswerError(
            f"a function that is applied gives a row for each row, not {answer.num_rows} for {count}"
        )
    if schema is None or answer.schema.equals(schema):
        return answer
    missing = [name for name in schema.names if name not in answer.schema.names]
    if missing:
        raise AnswerError(f"the function was to give column {missing[0]!r}, and has not")
    columns = [cast(answer.column(one.name), one.type) for one in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _no_rows(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([], one.type) for one in schema], schema=schema)
