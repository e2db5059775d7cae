"""The clock of a column: what its times are, and ticks in its type."""

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anabranch.model.arrow import times
from anabranch.model.schema import SchemaError


def clock_of(kind: pa.DataType, name: str) -> str:
    """What a tick is in a column of this type."""
    if pa.types.is_timestamp(kind):
        return "local time" if kind.tz is None else "instant"
    if pa.types.is_date(kind):
        return "day"
    if pa.types.is_integer(kind):
        return "number"
    error = SchemaError(f"a time is a timestamp, a date or an integer, column {name!r} holds {kind}")
    error.add_note("Cast it, for example with to_timestamp().")
    raise error


def on_clock(ticks: NDArray[np.int64], null: NDArray[np.bool_], kind: pa.DataType) -> Any:
    """Ticks in the type of the clock they came from."""
    if pa.types.is_timestamp(kind):
        return times(ticks, null, kind)
    column = pa.array(ticks, mask=null if null.any() else None)
    if pa.types.is_date(kind):
        return column.cast(pa.int32()).cast(pa.date32())
    return column
