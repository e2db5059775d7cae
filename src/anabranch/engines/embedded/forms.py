"""Output in the form in which a caller speaks."""

from typing import Any

import pyarrow as pa

from anabranch.model.batch import Batch, concat
from anabranch.model.elements import Adjust, Insert, Stable


def whole(parts: list[Batch]) -> Batch:
    """Parts as one batch, with the columns of those that say something."""
    return concat([part for part in parts if len(part)] or parts[:1])


def like(given: Any, output: Batch, unit: pa.DataType | None = None) -> Any:
    """Output in the form of what was given; times of Arrow data are of this type, or ticks."""
    match given:
        case Batch():
            return output
        case pa.RecordBatch():
            return output.to_arrow(unit=unit)
        case pa.Table() | pa.RecordBatchReader():
            return pa.Table.from_batches([output.to_arrow(unit=unit)])
        case Insert() | Adjust() | Stable():
            return list(output.elements())
        case _ if hasattr(given, "__arrow_c_stream__") or hasattr(given, "__arrow_c_array__"):
            return pa.Table.from_batches([output.to_arrow(unit=unit)])
        case _:
            return list(output.elements())
