"""Text in rows that is not UTF-8, and rows as text.

Neither Spark nor readers of Parquet look whether text is UTF-8, and neither JSON nor tables hold any other.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
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


def plain(value: Any) -> Any:
    """A value as Python has it; a time that Python has none for is ticks, and text is mended to be UTF-8."""
    try:
        return value.as_py()
    except UnicodeDecodeError as reason:
        return reason.object.decode(errors="replace")
    except (OverflowError, ValueError):
        return getattr(value, "value", f"a {value.type} that is out of range")


def text_of(row: Mapping[str, Any]) -> str:
    """A row as text, for people; values that JSON has no type for are shown as they print."""
    return msgspec.json.encode(row, enc_hook=str).decode()
