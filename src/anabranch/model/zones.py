"""Time zones, and times that name none: local times of the column into which they come.

A local time that comes into a column with a zone, as a value or in a column of local times, is an instant of
that zone: where clocks are set back, the earlier of two, and where they are set forward, as much later as
they are. The same rule holds for texts of times, and is that of Spark. A `datetime` whose ``fold`` is 1 is
the later of two.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

import numpy as np
import pyarrow as pa

from anabranch.model.spelling import did_you_mean

_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{2}))?(?::?(\d{2}))?", re.ASCII)
_FARTHEST = timedelta(hours=23, minutes=59)
_EPOCH = datetime(1970, 1, 1)
_MICROSECOND = timedelta(microseconds=1)
_FIRST = (datetime(1, 1, 2) - _EPOCH) // _MICROSECOND
_LAST = (datetime(9999, 12, 30) - _EPOCH) // _MICROSECOND
"""Between these a local time has a date in every zone; beyond, clocks are ahead as they are at these."""
PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
"""Ticks of a second in each of Arrow's units."""
_QUARTER = 15 * 60
"""Seconds within which clocks change at most once."""


@lru_cache(maxsize=64)
def zone_named(name: str) -> tzinfo:
    """The time zone of a name of the IANA database, or of an offset such as +01:00.

    >>> zone_named("+01:00").utcoffset(None)
    datetime.timedelta(seconds=3600)
    """
    if name in ("Z", "UTC", "Utc", "utc", "GMT", "UT"):
        return UTC
    if found := _OFFSET.fullmatch(name):
        hours, minutes, seconds = (int(part or 0) for part in found.groups()[1:])
        offset = timedelta(hours=hours, minutes=minutes, seconds=seconds)
        if minutes < 60 and seconds < 60 and offset <= _FARTHEST:
            return timezone(-offset if found[1] == "-" else offset)
    else:
        try:
            return ZoneInfo(name)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            pass
    known = sorted(available_timezones())
    ends = [one for one in known if one.split("/")[-1].lower() == name.lower()]
    meant = did_you_mean(name, ends[:1] or known)
    if ends and not meant:
        meant = f", did you mean {ends[0]!r}?"
    error = ValueError(f"a time zone is named as in the IANA database, {name!r} is no name of one{meant}")
    error.add_note("Write for example 'Europe/Berlin', 'UTC' or '+01:00'.")
    raise error


def offset_at(local: int, zone: tzinfo) -> int:
    """How many microseconds a zone is ahead of UTC at a local time, in microseconds since 1970."""
    moment = _EPOCH + timedelta(microseconds=min(max(local, _FIRST), _LAST))
    offset = moment.replace(tzinfo=zone).utcoffset()
    assert offset is not None, "a zone says how far it is from UTC"
    return offset // _MICROSECOND


def instants_of(local: Any, zone: str) -> Any:
    """A column of local times as instants of a zone, in its unit; ArrowInvalid beyond 64 bits.

    Not by Arrow's ``assume_timezone``: it knows of no summer after 2037, and has another rule for times that
    clocks leave out.

    >>> noon = pa.array([datetime(2026, 7, 1, 12)], pa.timestamp("us"))
    >>> str(instants_of(noon, "Europe/Berlin")[0])
    '2026-07-01 12:00:00+02:00'
    """
    dtype = pa.timestamp(local.type.unit, zone)
    there = zone_named(zone)
    if there is UTC:
        return local.cast(dtype)
    per_second = PER_SECOND[dtype.unit]
    ticks = np.asarray(local.cast(pa.int64()).fill_null(0))
    quarters, places = np.unique(ticks // (_QUARTER * per_second), return_inverse=True)
    first = [_seconds(int(quarter) * _QUARTER, there) for quarter in quarters]
    last = [_seconds(int(quarter) * _QUARTER + _QUARTER - 1, there) for quarter in quarters]
    ahead = np.array(first, np.int64)[places]
    for row in np.flatnonzero((np.array(first) != np.array(last))[places]).tolist():
        ahead[row] = _seconds(int(ticks[row]) // per_second, there)
    ahead *= per_second
    moments = ticks - ahead
    if ((ahead > 0) != (moments < ticks))[ahead != 0].any():
        raise pa.ArrowInvalid(f"a local time of {zone} is an instant beyond 64 bits of {dtype.unit}")
    null = np.asarray(local.is_null()) if local.null_count else None
    return pa.array(moments, mask=null).cast(dtype)


def _seconds(local: int, zone: tzinfo) -> int:
    """How many seconds a zone is ahead of UTC at a local time, in seconds since 1970."""
    return offset_at(local * 10**6, zone) // 10**6


def cast(column: Any, dtype: pa.DataType) -> Any:
    """A column in a type, by Arrow's cast, but for local times in it: those are of the zones of the type."""
    kept = local_where(column.type, dtype)
    if kept == dtype:
        return column.cast(dtype)
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    column = column.cast(kept)
    # From the first row: the children of a slice are not cut as it is.
    return _zoned(column if pa.types.is_timestamp(kept) else column.take(pa.array(range(len(column)))), dtype)


def local_where(own: pa.DataType, dtype: pa.DataType) -> pa.DataType:
    """A type without zones where values of another have none."""
    types = pa.types
    own = own.value_type if types.is_dictionary(own) else own
    if types.is_timestamp(dtype):
        return pa.timestamp(dtype.unit) if types.is_timestamp(own) and own.tz is None else dtype
    if types.is_dictionary(dtype):
        kept = local_where(own, dtype.value_type)
        return dtype if kept == dtype.value_type else kept
    if types.is_struct(dtype) and types.is_struct(own):
        named = {field.name: field.type for field in own}
        return pa.struct(
            [field.with_type(local_where(named.get(field.name, field.type), field.type)) for field in dtype]
        )
    if types.is_map(dtype) and types.is_map(own):
        key, item = local_where(own.key_type, dtype.key_type), local_where(own.item_type, dtype.item_type)
        return pa.map_(dtype.key_field.with_type(key), dtype.item_field.with_type(item), dtype.keys_sorted)
    if _is_list(dtype) and _is_list(own):
        return _list_like(dtype, local_where(own.value_type, dtype.value_type))
    return dtype


def _zoned(column: Any, dtype: pa.DataType) -> Any:
    """A column of a type, but for its zones, with its local times as instants of those."""
    types = pa.types
    if column.type == dtype:
        return column
    if types.is_timestamp(dtype):
        return instants_of(column, dtype.tz)
    if types.is_dictionary(dtype):
        return _zoned(column, dtype.value_type).dictionary_encode().cast(dtype)
    if types.is_struct(dtype):
        parts = [_zoned(column.field(n), field.type) for n, field in enumerate(dtype)]
    elif types.is_map(dtype):
        pairs = [_zoned(column.keys, dtype.key_type), _zoned(column.items, dtype.item_type)]
        parts = [pa.StructArray.from_arrays(pairs, fields=[dtype.key_field, dtype.item_field])]
    else:
        parts = [_zoned(column.values, dtype.value_type)]
    own = column.buffers()[: dtype.num_buffers]
    return pa.Array.from_buffers(dtype, len(column), own, children=parts)


def _is_list(dtype: pa.DataType) -> bool:
    return bool(
        pa.types.is_list(dtype) or pa.types.is_large_list(dtype) or pa.types.is_fixed_size_list(dtype)
    )


def in_zones(dtype: pa.DataType, zone_of: Callable[[str], str]) -> pa.DataType:
    """A type with the instants of each of its zones in another.

    >>> in_zones(pa.list_(pa.timestamp("us", "Utc")), known_as).value_type
    TimestampType(timestamp[us, tz=UTC])
    """
    types = pa.types
    if types.is_timestamp(dtype):
        return dtype if dtype.tz is None else pa.timestamp(dtype.unit, zone_of(dtype.tz))
    if types.is_struct(dtype):
        return pa.struct([field.with_type(in_zones(field.type, zone_of)) for field in dtype])
    if types.is_map(dtype):
        return pa.map_(in_zones(dtype.key_type, zone_of), in_zones(dtype.item_type, zone_of))
    if types.is_dictionary(dtype):
        return pa.dictionary(dtype.index_type, in_zones(dtype.value_type, zone_of), dtype.ordered)
    return _list_like(dtype, in_zones(dtype.value_type, zone_of)) if _is_list(dtype) else dtype


def _list_like(dtype: pa.DataType, items: pa.DataType) -> pa.DataType:
    """A list of the same form, of other items."""
    field = dtype.value_field.with_type(items)
    if pa.types.is_fixed_size_list(dtype):
        return pa.list_(field, dtype.list_size)
    return pa.large_list(field) if pa.types.is_large_list(dtype) else pa.list_(field)


@lru_cache(maxsize=64)
def known_as(name: str) -> str:
    """The name of a zone as the IANA database spells it, where only the case of letters differs."""
    known = available_timezones()
    return name if name in known else {one.lower(): one for one in known}.get(name.lower(), name)


def holds_times(dtype: pa.DataType) -> bool:
    """There are timestamps in a type, however deep."""
    return pa.types.is_timestamp(dtype) or any(
        holds_times(dtype.field(n).type) for n in range(dtype.num_fields)
    )


def zoned_values(values: Sequence[Any], dtype: pa.DataType) -> Sequence[Any]:
    """Values of Python's for a type, with their local times as instants of the zones of the type."""
    return [zoned_value(value, dtype) for value in values] if holds_times(dtype) else values


def zoned_value(value: Any, dtype: pa.DataType, of_text: Callable[[str, Any], Any] | None = None) -> Any:
    """A value of Python's for a type, with its local times as instants of the zones of the type.

    ``of_text`` is what a text of a time stands for; None: texts stay texts.
    """
    types = pa.types
    if value is None or not holds_times(dtype):
        return value
    if types.is_timestamp(dtype):
        return of_text(value, dtype) if of_text and isinstance(value, str) else _instant(value, dtype)
    if types.is_struct(dtype) and isinstance(value, Mapping):
        kinds = {field.name: field.type for field in dtype}
        return {
            name: zoned_value(one, kinds[name], of_text) if name in kinds else one
            for name, one in value.items()
        }
    if types.is_map(dtype) and isinstance(value, Mapping | list | tuple):
        pairs: Iterable[Any] = value.items() if isinstance(value, Mapping) else value
        key, item = dtype.key_type, dtype.item_type
        return [(zoned_value(name, key, of_text), zoned_value(one, item, of_text)) for name, one in pairs]
    if _is_list(dtype) and isinstance(value, list | tuple | np.ndarray):
        return [zoned_value(one, dtype.value_type, of_text) for one in value]
    return value


def _instant(value: Any, dtype: pa.DataType) -> Any:
    if dtype.tz is None:
        return value
    if isinstance(value, datetime):
        if value.tzinfo is not None:
            return value
        if value.fold or type(value) is datetime:
            return value.replace(tzinfo=zone_named(dtype.tz))
    elif not isinstance(value, np.datetime64):
        return value
    # Of pandas and numpy, which have units of their own.
    moments = instants_of(pa.array([value], pa.timestamp(dtype.unit)), dtype.tz)
    return moments.cast(pa.timestamp(dtype.unit, "UTC"))[0].as_py()
