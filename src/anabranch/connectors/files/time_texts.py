"""Texts of times: ISO 8601, and what they mean where they name no time zone.

    2026-03-01T10:00:00Z    2026-03-01 10:00:00.123456789+01:00    2026-03-01T10:00:00    2026-03-01

A text that names no zone is a time in the zone of its column; where clocks are set back, the earlier of two,
and where they are set forward, as much later as they are. Digits beyond microseconds are cut off. All this is
what Spark's reader of JSON makes of the same text, so that a text is one time whoever reads it. A column
without a zone holds local times, and a text that names a zone is none.
"""

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anabranch.model.spelling import did_you_mean

_TEXT = re.compile(
    r"(\d{4})-(\d{1,2})-(\d{1,2})"
    r"(?:[T ](\d{1,2})(?::(\d{1,2})(?::(\d{1,2})(?:\.(\d*))?)?)?\s*(Z|[+-]\d.*|[A-Za-z].*)?)?",
    re.ASCII,
)
_ZONED = r"[T ].*(Z|[+-][0-9]{2}(:?[0-9]{2})?)$"
_LONG, _CUT = r"\.[0-9]{7}", r"(\.[0-9]{6})[0-9]+"
_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{2}))?(?::?(\d{2}))?", re.ASCII)
_FARTHEST = timedelta(hours=23, minutes=59)
_EPOCH = datetime(1970, 1, 1)
_MICROSECOND = timedelta(microseconds=1)
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


@lru_cache(maxsize=64)
def zone_named(name: str) -> tzinfo:
    """The time zone of a name of the IANA database, or of an offset such as +01:00.

    >>> zone_named("+01:00").utcoffset(None)
    datetime.timedelta(seconds=3600)
    """
    if name in ("Z", "UTC", "GMT", "UT"):
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


def micros_of(text: str, zone: str | None) -> int:
    """The microseconds since 1970 that a text stands for, in a column of this zone.

    >>> micros_of("1970-01-01T01:00:00", "Europe/Berlin"), micros_of("1970-01-01T01:00:00.5", None)
    (0, 3600500000)
    """
    found = _TEXT.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"a time is ISO 8601 text, {text!r} is not")
    *parts, fraction, named = found.groups()
    try:
        local = datetime(*(int(part or 0) for part in parts))  # type: ignore[arg-type]
    except ValueError as reason:
        raise ValueError(f"{text!r} is no time: {reason}") from None
    since = (local - _EPOCH) // _MICROSECOND + int((fraction or "")[:6].ljust(6, "0"))
    if zone is None:
        if named:
            raise ValueError(f"a local time has no time zone, {text!r} has one")
        return since
    return since - _offset((local - _EPOCH) // _MICROSECOND, zone_named(named or zone))


def times_of(texts: Any, dtype: pa.DataType) -> Any:
    """A column of texts as times of a type; ValueError where one is none."""
    texts = texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts
    try:
        return _all_at_once(texts, dtype)
    except (pa.ArrowException, ValueError):
        found = [None if text is None else ticks_of(text, dtype) for text in texts.to_pylist()]
        return pa.array(found, pa.int64()).cast(dtype)


def ticks_of(text: str, dtype: pa.DataType) -> int:
    """What a text stands for, in the unit of a type."""
    try:
        return micros_of(text, dtype.tz) * _PER_SECOND[dtype.unit] // 10**6
    except ValueError as reason:
        try:
            return int(_all_at_once(pa.array([text]), dtype)[0].value)
        except (pa.ArrowException, ValueError):
            raise reason from None


def length_of(text: str, dtype: pa.DataType) -> int:
    """The length of time that an ISO 8601 duration stands for, in the unit of a type.

    >>> length_of("P1DT0.5S", pa.duration("ms"))
    86400500
    """
    try:
        length = msgspec.convert(text, timedelta)
    except msgspec.ValidationError:
        rule = "a length of time is an ISO 8601 duration such as PT1.5S"
        raise ValueError(f"{rule}, {text!r} is not") from None
    found, rest = divmod(length // _MICROSECOND * _PER_SECOND[dtype.unit], 10**6)
    if rest:
        raise ValueError(f"{text!r} is finer than {dtype}")
    return found


def in_zone(value: Any, dtype: pa.DataType) -> Any:
    """A value whose local times, and texts of times, are instants of the zone of their column."""
    if pa.types.is_timestamp(dtype):
        if isinstance(value, str):
            return ticks_of(value, dtype)
        if isinstance(value, datetime) and value.tzinfo is None and dtype.tz is not None:
            return value.replace(tzinfo=zone_named(dtype.tz))
    elif pa.types.is_list(dtype) and isinstance(value, list) and holds_times(dtype):
        return [in_zone(one, dtype.value_type) for one in value]
    elif pa.types.is_struct(dtype) and isinstance(value, dict) and holds_times(dtype):
        return {field.name: in_zone(value.get(field.name), field.type) for field in dtype}
    return value


def holds_times(dtype: pa.DataType) -> bool:
    """There are timestamps in a type, however deep."""
    return pa.types.is_timestamp(dtype) or any(
        holds_times(dtype.field(n).type) for n in range(dtype.num_fields)
    )


def _all_at_once(texts: Any, dtype: pa.DataType) -> Any:
    """Texts as most writers write them; an error of Arrow's where one is written otherwise."""
    if pc.any(pc.match_substring_regex(texts, _LONG)).as_py():
        texts = pc.replace_substring_regex(texts, _CUT, r"\1")
    instant, local = pa.timestamp("us", "UTC"), pa.timestamp("us")
    if dtype.tz is None:
        return texts.cast(local).cast(dtype, safe=False)
    zoned = pc.match_substring_regex(texts, _ZONED)
    if pc.all(zoned, min_count=0).as_py():
        found = texts.cast(instant)
    elif not pc.any(zoned).as_py():
        found = _assumed(texts.cast(local), dtype.tz)
    else:
        nothing = pa.scalar(None, texts.type)
        said = pc.if_else(zoned, texts, nothing).cast(instant)
        found = pc.coalesce(said, _assumed(pc.if_else(zoned, nothing, texts).cast(local), dtype.tz))
    return found.cast(dtype, safe=False)


def _assumed(local: Any, zone: str) -> Any:
    """Local times as instants.

    Not by Arrow's ``assume_timezone``: it knows of no summer after 2037, and has another rule for times that
    clocks leave out.
    """
    there = zone_named(zone)
    micros = np.asarray(local.cast(pa.int64()).fill_null(0))
    quarters, places = np.unique(micros // _QUARTER, return_inverse=True)
    first = [_offset(int(quarter) * _QUARTER, there) for quarter in quarters]
    last = [_offset(int(quarter) * _QUARTER + _QUARTER - 1, there) for quarter in quarters]
    offsets = np.array(first, np.int64)[places]
    for row in np.flatnonzero((np.array(first) != np.array(last))[places]).tolist():
        offsets[row] = _offset(int(micros[row]), there)
    moments = pa.array(micros - offsets, mask=np.asarray(local.is_null()) if local.null_count else None)
    return moments.cast(pa.timestamp("us", "UTC"))


_QUARTER = 15 * 60 * 10**6
"""Within a quarter of an hour clocks change at most once."""


def _offset(local: int, zone: tzinfo) -> int:
    """How many microseconds a zone is ahead of UTC at a local time; ValueError beyond the calendar."""
    try:
        offset = (_EPOCH + timedelta(microseconds=local)).replace(tzinfo=zone).utcoffset()
    except OverflowError as reason:
        raise ValueError(str(reason)) from None
    assert offset is not None, "a zone says how far it is from UTC"
    return offset // _MICROSECOND
