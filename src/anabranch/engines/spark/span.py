"""How long something is, as people write it."""

import re
from datetime import timedelta

_UNITS = {
    "microsecond": timedelta(microseconds=1),
    "millisecond": timedelta(milliseconds=1),
    "second": timedelta(seconds=1),
    "minute": timedelta(minutes=1),
    "hour": timedelta(hours=1),
    "day": timedelta(days=1),
    "week": timedelta(weeks=1),
}


def span(value: int | timedelta | str | None, what: str) -> int | timedelta | None:
    """A span as ticks or as a length of time.

    >>> span("90 seconds", "disorder")
    datetime.timedelta(seconds=90)
    """
    if value is None or isinstance(value, timedelta):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    found = (
        re.fullmatch(r"\s*(\d+)\s+([a-z]+?)s?\s*", value, re.IGNORECASE) if isinstance(value, str) else None
    )
    if found is None or found.group(2).lower() not in _UNITS:
        error = ValueError(f"{what} is a number of ticks or a length of time, {value!r} is neither")
        error.add_note(f"Write for example '30 seconds'; units are {', '.join(_UNITS)}.")
        raise error
    return int(found.group(1)) * _UNITS[found.group(2).lower()]
