"""Output in the form in which a caller speaks."""

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from anabranch.model.batch import Batch, concat


def whole(parts: list[Batch]) -> Batch:
    """Parts as one batch, with the columns of those that say something."""
    return concat([part for part in parts if len(part)] or parts[:1])


def like(given: Any, output: Batch, clock: pa.DataType | None = None) -> Any:
    """Output in the form of what was given; its times are on the clock of the stream, in elements ticks."""
    match given:
        case Batch():
            return output
        case pa.RecordBatch():
            return output.to_arrow(unit=clock)
        case pa.Table() | pa.RecordBatchReader():
            return pa.Table.from_batches([output.to_arrow(unit=clock)])
        case Mapping():
            return output.to_arrow(unit=clock).to_pylist()
        case [Mapping(), *_]:
            return output.to_arrow(unit=clock).to_pylist()
        case _ if hasattr(given, "__arrow_c_stream__") or hasattr(given, "__arrow_c_array__"):
            return pa.Table.from_batches([output.to_arrow(unit=clock)])
        case _:
            return list(output.elements())
