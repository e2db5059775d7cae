"""What values of any form are read as: rows, and those that are no rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Values:
    """Rows, the number of the value that each comes of, and the values that are no rows."""

    rows: pa.RecordBatch
    origin: NDArray[np.int64]
    refused: list[tuple[int, str]]


class Format(Protocol):
    """How values are read."""

    def read(self, values: Sequence[bytes | None], columns: pa.Schema) -> Values:
        """The rows that values stand for."""
        ...
