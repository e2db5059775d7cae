"""Texts of times: ISO 8601, and what they mean where they name no time zone.

    2026-03-01T10:00:00Z    2026-03-01 10:00:00.123456789+01:00    2026-03-01T10:00:00    2026-03-01

A text that names no zone is a time in the zone of its column; where clocks are set back, the earlier of two,
and where they are set forward, as much later as they are. Digits beyond microseconds are cut off. All this is
what Spark's reader of JSON makes of the same text, so that a text is one time whoever reads it. A column
without a zone holds local times, and a text that names a zone is none.
"""

import re
from datetime import datetime, timedelta
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from anabranch.model.zones import PER_SECOND, instants_of, offset_at, zone_named

_TEXT = re.compile(
    r"(\d{4})-(\d{1,2})-(\d{1,2})"
    r"(?:[T ](\d{1,2})(?::(\d{1,2})(?::(\d{1,2})(?:\.(\d*))?)?)?\s*(Z|[+-]\d.*|[A-Za-z].*)?)?",
    re.ASCII,
)
_ZONED = r"[T ].*(Z|[+-][0-9]{2}(:?[0-9]{2})?)$"
_LONG, _CUT = r"\.[0-9]{7}", r"(\.[0-9]{6})[0-9]+"
_EPOCH = datetime(1970, 1, 1)
_MICROSECOND = timedelta(microseconds=1)


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
    return since - offset_at((local - _EPOCH) // _MICROSECOND, zone_named(named or zone))


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
        return micros_of(text, dtype.tz) * PER_SECOND[dtype.unit] // 10**6
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
    found, rest = divmod(length // _MICROSECOND * PER_SECOND[dtype.unit], 10**6)
    if rest:
        raise ValueError(f"{text!r} is finer than {dtype}")
    return found


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
        found = instants_of(texts.cast(local), dtype.tz)
    else:
        nothing = pa.scalar(None, texts.type)
        said = pc.if_else(zoned, texts, nothing).cast(instant)
        others = instants_of(pc.if_else(zoned, nothing, texts).cast(local), dtype.tz)
        found = pc.coalesce(said, others.cast(instant))
    return found.cast(dtype, safe=False)
