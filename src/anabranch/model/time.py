"""Time is a line of int64 ticks with two ends that are never reached.

A tick means what the user says it means. Timestamps map to microseconds since 1970-01-01 UTC.
"""

from datetime import UTC, date, datetime, timedelta
from enum import Enum

FOREVER = 2**63 - 1
"""The end of an event that is not known to end, and the stable after which nothing changes."""

BEGINNING = -(2**63)
"""Before every tick: the frontier of a stream that has not promised anything yet."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class Clock(Enum):
    """What ticks are to people."""

    TICKS = "ticks"
    MOMENTS = "microseconds since 1970-01-01 UTC"
    LOCAL = "microseconds since 1970-01-01, local time"
    DAYS = "days since 1970-01-01"


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


def lifetime_text(start: int, end: int, clock: Clock = Clock.TICKS) -> str:
    """A lifetime as people read it.

    >>> lifetime_text(3, FOREVER)
    '[3, ∞)'
    >>> lifetime_text(20_000, 20_001, Clock.DAYS)
    '[2024-10-04, 2024-10-05)'
    """
    return f"[{tick_text(start, clock)}, {tick_text(end, clock)})"


def tick_text(tick: int, clock: Clock = Clock.TICKS) -> str:
    """A tick as people read it: a number, a time in UTC, a date, or ∞; one that no calendar has is a number.

    >>> tick_text(1767225600250000, Clock.MOMENTS)
    '2026-01-01 00:00:00.25'
    """
    if tick in (FOREVER, BEGINNING):
        return "∞" if tick == FOREVER else "-∞"
    try:
        if clock is Clock.DAYS:
            return str(date.fromordinal(_EPOCH.toordinal() + tick))
        if clock in (Clock.MOMENTS, Clock.LOCAL):
            moment = (_EPOCH + timedelta(microseconds=tick)).replace(tzinfo=None)
            return moment.isoformat(" ", "microseconds").rstrip("0").rstrip(".")
    except (ValueError, OverflowError):
        pass
    return str(tick)


def iso_text(tick: int, clock: Clock) -> str | int:
    """A tick as it is written in lines: ISO 8601 where it is a moment or a day, else the number.

    >>> iso_text(1772359200500000, Clock.MOMENTS), iso_text(20_000, Clock.DAYS), iso_text(7, Clock.LOCAL)
    ('2026-03-01T10:00:00.5Z', '2024-10-04', 7)
    """
    if clock is Clock.DAYS:
        return tick_text(tick, clock)
    if clock is Clock.MOMENTS:
        text = tick_text(tick, clock)
        return tick if text == str(tick) else f"{text.replace(' ', 'T')}Z"
    return tick


def tick_of_iso(text: str) -> tuple[int, Clock]:
    """The tick of a text as `iso_text` writes it, and its clock; a moment names its time zone."""
    try:
        if len(text) == len("2026-01-01"):
            return date.fromisoformat(text).toordinal() - _EPOCH.toordinal(), Clock.DAYS
    except ValueError:
        pass
    return ticks(text), Clock.MOMENTS


def one_clock(found: Clock | None, clock: Clock) -> Clock:
    """The clock of a stream, after a time on one more; times are on one clock."""
    if found is not None and found is not clock:
        error = ValueError(f"the times of a stream are on one clock: {found.value}, then {clock.value}")
        error.add_note("Give all of them numbers, or all of them timestamps, or all of them dates.")
        raise error
    return clock
