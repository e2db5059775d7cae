"""Arrow's types as texts, for people and for the wire."""

import base64
import re

import pyarrow as pa

from anabranch.expressions.tree import ExpressionError
from anabranch.model.schema import type_meant

_DECIMAL = re.compile(r"decimal(32|64|128|256)\((\d+), ?(-?\d+)\)")
_ZONED = re.compile(r"timestamp\[(s|ms|us|ns), tz=(.+)\]")
_STORED = "arrow:"


def type_named(name: pa.DataType | str) -> pa.DataType:
    """The type of a name, as Arrow writes types.

    >>> type_named("decimal128(10, 2)"), type_named("timestamp[us, tz=UTC]")
    (Decimal128Type(decimal128(10, 2)), TimestampType(timestamp[us, tz=UTC]))
    """
    if isinstance(name, pa.DataType):
        return name
    try:
        if decimal := _DECIMAL.fullmatch(name):
            return getattr(pa, f"decimal{decimal[1]}")(int(decimal[2]), int(decimal[3]))
        if zoned := _ZONED.fullmatch(name):
            return pa.timestamp(zoned[1], zoned[2])
        if name.startswith(_STORED):
            return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(name[len(_STORED) :]))).field(0).type
        return pa.type_for_alias(name)
    except (TypeError, ValueError, AttributeError, pa.ArrowException):
        error = ExpressionError(f"a type is one of Arrow's or its name, {name!r} is not{type_meant(name)}")
        error.add_note("Write for example 'int64', 'string', 'timestamp[us, tz=UTC]', or pyarrow.list_(…).")
        raise error from None


def type_name(dtype: pa.DataType) -> str:
    """A name by which `type_named` finds the type again, readable for those that are not nested."""
    name = str(dtype)
    try:
        if type_named(name).equals(dtype, check_metadata=True):
            return name
    except ExpressionError:
        pass
    return _STORED + base64.b64encode(pa.schema([pa.field("", dtype)]).serialize()).decode()
