"""Text that is not UTF-8: neither Spark nor readers of Parquet look, and neither JSON nor tables hold it."""

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray


def broken_text(column: Any) -> NDArray[np.bool_] | None:
    """Which rows of a column hold text that is not UTF-8, alone or inside of other values; None: none does.

    Arrow looks at ten gigabytes a second; only where it finds something are rows looked at one by one.
    """
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        return np.array([_is_broken(value) for value in column], np.bool_)
    return None


def without(column: Any, rows: NDArray[np.bool_]) -> Any:
    """The column with null in place of some rows."""
    return column.take(pa.array(np.arange(len(column)), mask=rows))


def _is_broken(value: Any) -> bool:
    try:
        value.as_py()
    except UnicodeDecodeError:
        return True
    except (ValueError, OverflowError):  # a time that Python has none for
        return False
    return False
