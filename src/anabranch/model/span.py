"""How long something is, as people write it and as they read it.

A length of time is numbers with units (``30 seconds``, ``5m``, ``1 hour 30 minutes``) or ISO 8601 (``PT5M``,
``P1DT2H``). Months and years are not lengths: no two need be equally long.
"""

import re
from datetime import timedelta
from fractions import Fraction

from anabranch.model.spelling import did_you_mean

_UNITS = {
    "microsecond": timedelta(microseconds=1),
    "millisecond": timedelta(milliseconds=1),
    "second": timedelta(seconds=1),
    "minute": timedelta(minutes=1),
    "hour": timedelta(hours=1),
    "day": timedelta(days=1),
    "week": timedelta(weeks=1),
}
_SHORT = {
    "us": "microsecond",
    "µs": "microsecond",
    "ms": "millisecond",
    "s": "second",
    "sec": "second",
    "m": "minute",
    "min": "minute",
    "h": "hour",
    "hr": "hour",
    "d": "day",
    "w": "week",
}
_NOT_LENGTHS = {"month": "month", "mon": "month", "year": "year", "yr": "year", "y": "year"}
_PART = re.compile(r"\s*(\d+)\s*([a-zµ]+)\s*,?", re.IGNORECASE)
_ISO = re.compile(
    r"P(?:(?P<year>\d+)Y)?(?:(?P<month>\d+)M)?(?:(?P<week>\d+)W)?(?:(?P<day>\d+)D)?"
    r"(?:T(?:(?P<hour>\d+)H)?(?:(?P<minute>\d+)M)?(?:(?P<second>\d+(?:[.,]\d+)?)S)?)?",
    re.IGNORECASE,
)
_MICROSECOND = timedelta(microseconds=1)


def span(value: int | timedelta | str, what: str) -> int | timedelta:
    """A span as ticks or as a length of time.

    >>> span("90 seconds", "disorder"), span("PT1M30S", "disorder")
    (datetime.timedelta(seconds=90), datetime.timedelta(seconds=90))
    """
    if isinstance(value, timedelta):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    found = _length(value.strip(), what) if isinstance(value, str) else None
    if found is None:
        error = ValueError(
            f"{what} is a number of ticks or a length of time, {value!r} is neither{unit_meant(value)}"
        )
        error.add_note(f"Write for example '30 seconds'; units are {', '.join(_UNITS)}.")
        raise error
    return found


def signed_span(value: int | timedelta | str, what: str) -> int | timedelta:
    """A span that may go back: as text it has a minus before it.

    >>> signed_span("-90 seconds", "a shift") == timedelta(seconds=-90)
    True
    """
    if isinstance(value, str) and value.strip().startswith("-"):
        return -span(value.strip()[1:], what)
    return span(value, what)


def span_or_none(value: int | timedelta | str | None, what: str) -> int | timedelta | None:
    """A span that may be left out."""
    return None if value is None else span(value, what)


def _length(text: str, what: str) -> timedelta | None:
    """The length of time that a text is, or None."""
    iso = _ISO.fullmatch(text)
    if iso is not None and text[-1] not in "PpTt":
        parts = [(number.replace(",", "."), unit) for unit, number in iso.groupdict().items() if number]
    else:
        parts, end = [], 0
        while match := _PART.match(text, end):
            parts.append((match[1], _unit(match[2])))
            end = match.end()
        if end < len(text) or text.endswith(","):
            return None
    units = [unit for _, unit in parts]
    for unit in units:
        if unit in _NOT_LENGTHS:
            error = ValueError(f"{what} is a length of time, and a {unit} is none: {text!r}")
            error.add_note("Months and years are not equally long; count days, for example '30 days'.")
            raise error
    if not parts or len(set(units)) < len(units) or not all(unit in _UNITS for unit in units):
        return None
    microseconds = sum(
        (Fraction(number) * (_UNITS[unit] // _MICROSECOND) for number, unit in parts), Fraction()
    )
    try:
        return timedelta(microseconds=int(microseconds)) if microseconds.denominator == 1 else None
    except OverflowError:
        return None


def _unit(word: str) -> str:
    """The unit that a word names; a capital M is a month to some and a minute to others, so it is none."""
    if word == "M":
        return word
    word = word.lower()
    found = _SHORT.get(word) or _SHORT.get(word.removesuffix("s")) or word.removesuffix("s")
    return _NOT_LENGTHS.get(word.removesuffix("s"), found)


def unit_meant(value: object) -> str:
    """The end of the message where a word of a text is no unit, but like one."""
    words = re.findall(r"\d\s*([^\W\d]+)", value) if isinstance(value, str) else []
    known = [name + end for name in _UNITS for end in ("", "s")]
    odd = next((word for word in words if _unit(word) not in _UNITS), None)
    return "" if odd is None else did_you_mean(odd, known)


def span_text(length: timedelta) -> str:
    """A length of time as people write it.

    >>> span_text(timedelta(hours=1, minutes=30)), span_text(timedelta(milliseconds=1))
    ('1 hour 30 minutes', '1 millisecond')
    """
    if not length:
        return "0 seconds"
    if length < timedelta(0):
        return f"-{span_text(-length)}"
    words = []
    for name, unit in sorted(_UNITS.items(), key=lambda one: one[1], reverse=True)[1:]:
        count, length = divmod(length, unit)
        if count:
            words.append(f"{count:,} {name}{'' if count == 1 else 's'}")
    return " ".join(words)
