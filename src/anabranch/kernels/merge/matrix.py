"""Rows of int64 cells as Arrow columns and back, as states are dumped."""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray


def columns_of(cells: NDArray[np.int64]) -> pa.RecordBatch:
    """One column per cell."""
    names = [str(column) for column in range(cells.shape[1])]
    columns = [pa.array(np.ascontiguousarray(cells[:, column])) for column in range(cells.shape[1])]
    return pa.RecordBatch.from_arrays(columns, names=names)


def matrix_of(columns: pa.RecordBatch) -> NDArray[np.int64]:
    """One row per row."""
    cells = np.empty((columns.num_rows, columns.num_columns), np.int64)
    for place, column in enumerate(columns.columns):
        cells[:, place] = column.to_numpy()
    return cells
