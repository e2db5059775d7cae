"""What expressions of text, times, lists and structs have: ``.str``, ``.dt``, ``.list``, ``.struct``."""

import re
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from anabranch.expressions.tree import ExpressionError
from anabranch.model.span import span

if TYPE_CHECKING:
    from anabranch.expressions.expression import Expression

_CALENDAR = re.compile(r"(\d+)\s*(w|week|mo|month|q|quarter|y|year)s?")
_CALENDAR_UNITS = {"w": "week", "mo": "month", "q": "quarter", "y": "year"}
_UNITS = {
    "day": timedelta(days=1),
    "hour": timedelta(hours=1),
    "minute": timedelta(minutes=1),
    "second": timedelta(seconds=1),
    "millisecond": timedelta(milliseconds=1),
    "microsecond": timedelta(microseconds=1),
}
_GROUP = re.compile(r"\$\$|\$(\d+)(?![0-9A-Za-z_])|\$\{(\d+)\}|\$|\\")


@dataclass(frozen=True, slots=True)
class Texts:
    """What an expression of text has. Patterns are regular expressions (RE2) unless they are literal."""

    of: "Expression"

    def to_uppercase(self) -> "Expression":
        """In capitals."""
        return self.of.applied("utf8_upper")

    def to_lowercase(self) -> "Expression":
        """In small letters."""
        return self.of.applied("utf8_lower")

    def len_chars(self) -> "Expression":
        """How many characters it has."""
        return self.of.applied("utf8_length")

    def len_bytes(self) -> "Expression":
        """How many bytes it has in UTF-8."""
        return self.of.applied("binary_length")

    def contains(self, pattern: str, *, literal: bool = False) -> "Expression":
        """Whether a pattern is somewhere in it."""
        return self.of.applied("match_substring" if literal else "match_substring_regex", pattern=pattern)

    def starts_with(self, prefix: str) -> "Expression":
        """Whether it starts with a text."""
        return self.of.applied("starts_with", pattern=prefix)

    def ends_with(self, suffix: str) -> "Expression":
        """Whether it ends with a text."""
        return self.of.applied("ends_with", pattern=suffix)

    def slice(self, offset: int, length: int | None = None) -> "Expression":
        """So many characters from an offset on, which counts from the end where it is negative."""
        stop = None if length is None else offset + length
        if stop is None or (offset < 0 <= stop):
            return self.of.applied("utf8_slice_codeunits", start=offset)
        return self.of.applied("utf8_slice_codeunits", start=offset, stop=stop)

    def replace(self, pattern: str, value: str, *, literal: bool = False, n: int = 1) -> "Expression":
        """With the first places of a pattern replaced; ``$1`` is what its first group matched."""
        if literal:
            return self.of.applied(
                "replace_substring", pattern=pattern, replacement=value, max_replacements=n
            )
        value = _GROUP.sub(_group, value)
        return self.of.applied(
            "replace_substring_regex", pattern=pattern, replacement=value, max_replacements=n
        )

    def replace_all(self, pattern: str, value: str, *, literal: bool = False) -> "Expression":
        """With all places of a pattern replaced."""
        return self.replace(pattern, value, literal=literal, n=-1)

    def strip_chars(self, characters: str | None = None) -> "Expression":
        """Without these characters at both ends; None: without white space."""
        if characters is None:
            return self.of.applied("utf8_trim_whitespace")
        return self.of.applied("utf8_trim", characters=characters)

    def split(self, by: str) -> "Expression":
        """The texts between the places of another."""
        return self.of.applied("split_pattern", pattern=by)


def _group(found: re.Match[str]) -> str:
    """A reference to a group as RE2 writes it."""
    if found[0] in ("$$", "\\"):
        return {"$$": "$", "\\": r"\\"}[found[0]]
    number = found[1] or found[2]
    if number is None or len(number) > 1:
        error = ExpressionError("in a replacement $ stands before the number of a group, 0 to 9: $1 or ${1}")
        error.add_note("Write $$ for the sign itself, or pass literal=True.")
        raise error
    return f"\\{number}"


@dataclass(frozen=True, slots=True)
class Times:
    """What an expression of dates or times has; those with a time zone are as its clocks show them."""

    of: "Expression"

    def year(self) -> "Expression":
        """The year."""
        return self.of.applied("year")

    def month(self) -> "Expression":
        """The month, from 1."""
        return self.of.applied("month")

    def day(self) -> "Expression":
        """The day of the month, from 1."""
        return self.of.applied("day")

    def hour(self) -> "Expression":
        """The hour, from 0."""
        return self.of.applied("hour")

    def minute(self) -> "Expression":
        """The minute, from 0."""
        return self.of.applied("minute")

    def second(self) -> "Expression":
        """The second, from 0."""
        return self.of.applied("second")

    def weekday(self) -> "Expression":
        """The day of the week, Monday is 1 and Sunday is 7."""
        return self.of.applied("day_of_week", count_from_zero=False, week_start=1)

    def truncate(self, every: str | timedelta) -> "Expression":
        """The last multiple of ``1h``, ``15 minutes``, ``1mo`` or the like that is not after it."""
        found = _CALENDAR.fullmatch(every.strip()) if isinstance(every, str) else None
        if found:
            unit = _CALENDAR_UNITS.get(found[2], found[2])
            return self.of.applied("floor_temporal", multiple=int(found[1]), unit=unit)
        length = span(every, "truncate")
        if not isinstance(length, timedelta) or length <= timedelta(0):
            raise ExpressionError(f"times are truncated to multiples of a length of time, {every!r} is none")
        unit = next(unit for unit, size in _UNITS.items() if not length % size)
        return self.of.applied("floor_temporal", multiple=length // _UNITS[unit], unit=unit)


@dataclass(frozen=True, slots=True)
class Lists:
    """What an expression of lists has."""

    of: "Expression"

    def len(self) -> "Expression":
        """How many items it has."""
        return self.of.applied("list_value_length")

    def get(self, index: int) -> "Expression":
        """The item at a place, from 0; a row whose list is shorter is refused."""
        if index < 0:
            raise ExpressionError(f"items of a list are counted from 0, Arrow has none at {index}")
        return self.of.applied("list_element", index)


@dataclass(frozen=True, slots=True)
class Structs:
    """What an expression of structs has."""

    of: "Expression"

    def field(self, name: str) -> "Expression":
        """The value of a field."""
        return self.of.applied("struct_field", indices=[name])
