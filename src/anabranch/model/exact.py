"""Values of Python's as a column of a type, none of them changed.

Arrow cuts off what a type has no room for: the fraction of a number that is to be whole, the hours of a
moment that is to be a day. Here that is an error. A `datetime` that names no zone is in that of its column.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, time
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from anabranch.model.zones import zoned_values

_FRACTIONS = (float, Decimal, np.floating)
_COARSE = {"s": 1_000_000, "ms": 1_000}
"""Microseconds of the units in which not every moment of Python's can be told."""


def exact_column(values: Sequence[Any], dtype: pa.DataType) -> Any:
    """Values as a column; one that the type does not hold as it is raises `pyarrow.ArrowInvalid`.

    >>> exact_column([1.0, None, 2], pa.int64()).to_pylist()
    [1, None, 2]
    """
    column = pa.array(zoned_values(values, dtype), dtype)
    _check_kept(values, dtype)
    return column


def _check_kept(values: Iterable[Any], dtype: pa.DataType) -> None:
    if pa.types.is_integer(dtype) or pa.types.is_date(dtype) or pa.types.is_timestamp(dtype):
        for value in values:
            if isinstance(value, _FRACTIONS) and value != int(value):
                raise pa.ArrowInvalid(f"{value!r} is not whole, as {dtype} is")
            if isinstance(value, datetime) and _has_rest(value, dtype):
                raise pa.ArrowInvalid(f"{value!r} is finer than {dtype} is")
    elif pa.types.is_struct(dtype):
        some = [value for value in values if isinstance(value, Mapping)]
        for one in dtype:
            _check_kept([value.get(one.name) for value in some], one.type)
    elif pa.types.is_list(dtype) or pa.types.is_large_list(dtype) or pa.types.is_fixed_size_list(dtype):
        _check_kept([item for value in values if value is not None for item in value], dtype.value_type)


def _has_rest(moment: datetime, dtype: pa.DataType) -> bool:
    if pa.types.is_date(dtype):
        return moment.time() != time()
    return pa.types.is_timestamp(dtype) and moment.microsecond % _COARSE.get(dtype.unit, 1) != 0
