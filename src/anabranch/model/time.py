"""Time is a line of int64 ticks with two ends that are never reached.

A tick means what the user says it means (`model/clock.py`). Timestamps map to microseconds since 1970-01-01
UTC.
"""

from datetime import UTC, datetime, timedelta

FOREVER = 2**63 - 1
"""The end of an event that is not known to end, and the stable after which nothing changes."""

BEGINNING = -(2**63)
"""Before every tick: the frontier of a stream that has not promised anything yet."""

LONGEST_SPAN = 2**62
"""Every length in ticks is less than this: two such lengths add up to an int64."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def ticks(moment: datetime | str) -> int:
    """Microseconds from 1970-01-01 UTC to a moment, a datetime or ISO 8601 text with its time zone.

    >>> from datetime import UTC, datetime
    >>> ticks(datetime(2026, 1, 1, tzinfo=UTC)), ticks("2026-01-01T01:00:00+01:00")
    (1767225600000000, 1767225600000000)
    """
    found: object = _moment_of(moment) if isinstance(moment, str) else moment
    if not isinstance(found, datetime):
        wrong = TypeError(f"a moment is a datetime or ISO 8601 text, not {moment!r}")
        wrong.add_note("Pass an aware datetime, for example datetime(2026, 1, 1, tzinfo=timezone.utc).")
        raise wrong
    if found.tzinfo is None:
        error = ValueError(f"a moment needs a time zone to be a point in time, {moment!r} has none")
        error.add_note("Pass an aware datetime, for example datetime(2026, 1, 1, tzinfo=timezone.utc),")
        error.add_note("or text that ends in Z or an offset, for example '2026-01-01T00:00:00Z'.")
        raise error
    return (found - _EPOCH) // _MICROSECOND


def _moment_of(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        error = ValueError(f"the text of a moment is ISO 8601, {text!r} is not")
        error.add_note("Write it as '2026-01-01T00:00:00Z'.")
        raise error from None


def timestamp(tick: int) -> datetime | None:
    """The moment a tick of microseconds stands for; None for the two ends of time.

    >>> timestamp(1767225600000000).isoformat()
    '2026-01-01T00:00:00+00:00'
    """
    if tick in (FOREVER, BEGINNING):
        return None
    return _EPOCH + timedelta(microseconds=tick)


def checked_tick(tick: object, what: str) -> int:
    """A tick as given, if it is one; the error names what it was meant to be."""
    if type(tick) is not int:
        if hasattr(tick, "__index__") and not isinstance(tick, bool):
            return checked_tick(tick.__index__(), what)
        wrong = TypeError(f"{what} is an int of ticks, not {tick!r}")
        wrong.add_note("Turn a datetime into ticks with anabranch.ticks(moment); FOREVER means no end.")
        raise wrong
    if not BEGINNING <= tick <= FOREVER:
        raise OverflowError(f"{what} is an int64 of ticks, {tick} does not fit")
    return tick
