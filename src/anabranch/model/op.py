"""What happens to a row of a table."""

from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from anabranch.model.batch import Kind


class Op(IntEnum):
    """What happens to a row, as a number in a column."""

    INSERT = 0
    UPDATE = 1
    DELETE = 2
    UPSERT = 3
    SNAPSHOT = 4
    INCREMENTAL = 5


def of_snapshot(kind: NDArray[np.int8], op: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which changes are rows of a snapshot."""
    return (kind == Kind.INSERT) & (op == Op.SNAPSHOT)
