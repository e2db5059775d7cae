"""The clock of a stream: what its ticks are to people, as texts and as lengths of time.

Ticks are numbers, or microseconds since 1970 of one place or of all, or days. `model/clock_columns.py` has
the same of columns.
"""

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from enum import Enum

from anabranch.errors import AnabranchError
from anabranch.model.span import span_text
from anabranch.model.time import BEGINNING, FOREVER, LONGEST_SPAN, ticks

_EPOCH = datetime(1970, 1, 1)
_MICROSECOND = timedelta(microseconds=1)


class Clock(Enum):
    """What ticks are to people."""

    TICKS = "ticks"
    MOMENTS = "microseconds since 1970-01-01 UTC"
    LOCAL = "microseconds since 1970-01-01, local time"
    DAYS = "days since 1970-01-01"

    @property
    def word(self) -> str:
        """What a time is."""
        return {"TICKS": "number", "MOMENTS": "instant", "LOCAL": "local time", "DAYS": "day"}[self.name]

    @property
    def tick(self) -> timedelta | None:
        """How long a tick is; None: it is a number."""
        return {"TICKS": None, "DAYS": timedelta(days=1)}.get(self.name, _MICROSECOND)


class UnitError(AnabranchError, ValueError):
    """A length that is not one of this clock: it has no unit, one that is no ticks, or too many of them."""


def in_ticks(length: int | timedelta, clock: Clock, what: str) -> int:
    """A length in ticks of a clock; a number is one already.

    >>> in_ticks(timedelta(minutes=1), Clock.MOMENTS, "the size of windows")
    60000000
    """
    if isinstance(length, int):
        return _short_enough(length, length, what)
    if clock.tick is None or length % clock.tick:
        error = UnitError(f"{what} is {span_text(length)}, and times are {clock.word}s")
        error.add_note("Give an int of ticks." if clock.tick is None else "Give whole days.")
        raise error
    return _short_enough(length // clock.tick, span_text(length), what)


def _short_enough(ticks: int, written: object, what: str) -> int:
    """A length that two of which add up to an int64."""
    if abs(ticks) < LONGEST_SPAN:
        return ticks
    error = UnitError(f"{what} is below 2**62 ticks, and {written} is not")
    error.add_note("Times are int64. Give a shorter length.")
    raise error


def check_unit(length: int | timedelta, clock: Clock, what: str) -> None:
    """Raise where people give a number and times are none; nothing is nothing in any unit."""
    if length and isinstance(length, int) and clock.tick is not None:
        error = UnitError(f"{what} is {length} without a unit, and times are {clock.word}s")
        error.add_note(f"Write '{length} {'days' if clock is Clock.DAYS else 'seconds'}', if that is meant.")
        raise error


def length_text(length: int, clock: Clock) -> str:
    """So many ticks of a clock as people read them.

    >>> length_text(90_000_000, Clock.MOMENTS), length_text(90_000_000, Clock.TICKS)
    ('1 minute 30 seconds', '90000000')
    """
    try:
        return str(length) if clock.tick is None else span_text(length * clock.tick)
    except OverflowError:
        return str(length)


@dataclass(frozen=True, slots=True)
class Dial:
    """What a clock shows: ticks as the rows of a stream have them.

    >>> print(Dial(Clock.DAYS).text(20_000), Dial().text(20_000), Dial(Clock.DAYS).text(FOREVER))
    2024-10-04 20000 ∞
    """

    clock: Clock = Clock.TICKS
    zone: tzinfo | None = None
    """Where moments are told; None: in UTC."""

    def shown(self, tick: int) -> int | date:
        """A tick as rows show it; one that no date of Python's is stays a tick."""
        try:
            match self.clock:
                case Clock.TICKS:
                    return tick
                case Clock.DAYS:
                    return _EPOCH.date() + timedelta(tick)
                case Clock.LOCAL:
                    return _EPOCH + timedelta(microseconds=tick)
                case Clock.MOMENTS:
                    moment = _EPOCH + timedelta(microseconds=tick)
                    return moment.replace(tzinfo=UTC).astimezone(self.zone or UTC)
        except (ValueError, OverflowError):
            return tick

    def text(self, tick: int) -> str:
        """A tick as people read it."""
        if tick in (FOREVER, BEGINNING):
            return tick_text(tick)
        return str(self.shown(tick))

    def lifetime(self, start: int, end: int) -> str:
        """A lifetime as people read it."""
        return f"[{self.text(start)}, {self.text(end)})"


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
            moment = _EPOCH + timedelta(microseconds=tick)
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
