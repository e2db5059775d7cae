"""The clock of a stream in columns: of which type its times are, and ticks from and to that type."""

from datetime import tzinfo
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anabranch.model.clock import Clock, Dial
from anabranch.model.schema import SchemaError
from anabranch.model.time import FOREVER

_FACTORS = {"ns": -1_000, "ms": 1_000, "s": 1_000_000}
"""How many microseconds a unit is; below 0: how many of the unit a microsecond is."""


def clock_of(dtype: pa.DataType | None, column: str = "start") -> Clock:
    """What a tick is in a column of this type; None: it is what it is."""
    if dtype is None or pa.types.is_integer(dtype):
        return Clock.TICKS
    if pa.types.is_timestamp(dtype):
        return Clock.LOCAL if dtype.tz is None else Clock.MOMENTS
    if pa.types.is_date(dtype):
        return Clock.DAYS
    error = SchemaError(f"a time is a timestamp, a date or an integer, column {column!r} holds {dtype}")
    error.add_note("Cast it, for example with to_timestamp().")
    raise error


def clock_of_elements(columns: pa.Schema) -> Clock:
    """What a tick is where elements have these columns."""
    return clock_of(columns.field("start").type if "start" in columns.names else None)


def dial_of(dtype: pa.DataType | None) -> Dial:
    """How times of this type are shown."""
    clock = clock_of(dtype)
    return Dial(clock, _zone(dtype) if clock is Clock.MOMENTS else None)


@cache
def _zone(dtype: pa.DataType) -> tzinfo | None:
    return pa.scalar(0, dtype).as_py().tzinfo


def time_type(clock: Clock) -> pa.DataType | None:
    """The type of times on a clock; None: int64."""
    return {
        Clock.TICKS: None,
        Clock.MOMENTS: pa.timestamp("us", "UTC"),
        Clock.LOCAL: pa.timestamp("us"),
        Clock.DAYS: pa.date32(),
    }[clock]


def full_type(dtype: pa.DataType) -> pa.DataType:
    """The type of times on the clock of this one that holds every tick: microseconds, in the same zone."""
    return pa.timestamp("us", dtype.tz) if pa.types.is_timestamp(dtype) else dtype


def times(
    ticks: NDArray[np.int64], null: NDArray[np.bool_] | None = None, dtype: pa.DataType | None = None
) -> Any:
    """Ticks as a column of times, with nulls where told, or else where they are infinite."""
    if null is None:
        null = ticks == FOREVER
    column = pa.array(ticks, mask=null if null.any() else None)
    match clock_of(dtype):
        case Clock.TICKS:
            return column
        case Clock.DAYS:
            return column.cast(pa.int32()).cast(pa.date32()).cast(dtype)
        case _:
            return column.cast(pa.timestamp("us")).cast(dtype)


def no_ticks(column: Any) -> NDArray[np.bool_] | None:
    """Which times of a column are no ticks, finer than a microsecond or beyond int64; None: all are."""
    factor = _FACTORS.get(column.type.unit) if pa.types.is_timestamp(column.type) else None
    if factor is None:
        return None
    values, most = np.asarray(column.cast(pa.int64()).fill_null(0)), FOREVER // factor
    wrong = values % -factor != 0 if factor < 0 else (values > most) | (values < -most)
    return wrong if wrong.any() else None


def ticks_of(column: Any, *, exact: bool = True) -> Any:
    """A column of times as one of ticks; where some are none (`no_ticks`) it fails, or they are cut off."""
    dtype = column.type
    if pa.types.is_date(dtype):
        column = column.cast(pa.date32()).cast(pa.int32())
    elif pa.types.is_timestamp(dtype):
        column = column.cast(pa.timestamp("us", dtype.tz), safe=exact)
    return column.cast(pa.int64())
