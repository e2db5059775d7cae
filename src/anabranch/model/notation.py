"""The text notation: one element per line, for tests, documents, golden files and people.

    + a [3, 9)                      insert
    ~ a [3, 9) -> [3, 7)            adjust
    | 5                             stable
    east: + {"id": 7, "v": 2.5} [3, ∞)
    east: attach from 12
    east: detach

Times are numbers of ticks, or all of them moments (``2026-03-01T10:00:00Z``) or dates (``2026-03-01``).
A payload is a JSON object, or one value that stands for the object ``{"value": …}``; text that looks like a
name needs no quotes. ∞ may be written ``inf``. Empty lines and lines that begin with ``#`` say nothing.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import date, datetime, time, timedelta
from typing import Any, assert_never

import msgspec

from anabranch.errors import AnabranchError
from anabranch.model.clock import Clock, iso_text, one_clock, tick_of_iso, tick_text
from anabranch.model.elements import Adjust, Attach, Control, Detach, Element, Insert, Payload, Stable, Tagged
from anabranch.model.json_lines import LEVELS, MalformedError, check_depth, json_payload, with_unique_keys
from anabranch.model.time import BEGINNING, FOREVER

_TIME = r"(\d{4}-\d\d-\d\d(?:T[^\s,)]+)?|-?\d+|-?∞|-?inf)"
_LIFETIME = rf"\[\s*{_TIME}\s*,\s*{_TIME}\s*\)"
_INSERT = re.compile(rf"\+\s*(.*\S)\s*{_LIFETIME}", re.DOTALL)
_ADJUST = re.compile(rf"~\s*(.*\S)\s*{_LIFETIME}\s*->\s*{_LIFETIME}", re.DOTALL)
_STABLE = re.compile(rf"\|\s*{_TIME}")
_ATTACH = re.compile(rf"attach(?:\s+from\s+{_TIME})?")
_INPUT = re.compile(r'([\w.-]+|"(?:[^"\\]|\\.)*")\s*:\s*(.*)', re.DOTALL)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_JSON_WORDS = {"true", "false", "null", "NaN", "Infinity"}


class NotationError(AnabranchError, ValueError):
    """A line is not in the notation, or a value cannot be written in it."""


def parse(text: str) -> list[Element | Tagged]:
    """The elements of a text.

    >>> parse("+ a [3, 9)\\n| 5")
    [Insert(payload={'value': 'a'}, start=3, end=9), Stable(time=5)]
    """
    return list(parse_lines(text.split("\n")))


def parse_lines(lines: Iterable[str]) -> Iterator[Element | Tagged]:
    """The elements of lines, one at a time; an error names the line."""
    for number, line in enumerate(lines, 1):
        try:
            element = parse_line(line)
        except NotationError as error:
            error.add_note(f"In line {number}.")
            raise
        if element is not None:
            yield element


def parse_line(line: str) -> Element | Tagged | None:
    """The element of one line, or None where the line says nothing."""
    return read_line(line)[0]


def read_line(line: str) -> tuple[Element | Tagged | None, Clock | None]:
    """The element of one line, and the clock of its times; None where it says none."""
    times = _Times()
    return _parse_line(line, times), times.clock


class _Times:
    """State: the clock of the times of a line, which is one."""

    __slots__ = ("clock",)

    def __init__(self) -> None:
        self.clock: Clock | None = None

    def tick(self, text: str) -> int:
        if "-" in text[1:]:
            try:
                tick, clock = tick_of_iso(text)
                self.clock = one_clock(self.clock, clock)
            except ValueError as reason:
                raise NotationError(str(reason)) from None
            return tick
        if text.lstrip("-").isdecimal():
            try:
                self.clock = one_clock(self.clock, Clock.TICKS)
            except ValueError as reason:
                raise NotationError(str(reason)) from None
        return _parse_time(text)


def _parse_line(line: str, times: _Times) -> Element | Tagged | None:
    body = line.strip()
    if not body or body.startswith("#"):
        return None
    if match := _INPUT.fullmatch(body):
        return Tagged(_parse_name(match[1]), _parse_body(match[2], line, times))
    element = _parse_body(body, line, times)
    if isinstance(element, Attach | Detach):
        raise NotationError(f"attach and detach name their input, {line!r} names none")
    return element


def _parse_body(body: str, line: str, times: _Times) -> Element | Control:
    if match := _INSERT.fullmatch(body):
        return Insert(_parse_payload(match[1]), times.tick(match[2]), times.tick(match[3]))
    if match := _ADJUST.fullmatch(body):
        start, old_end, same_start, end = (times.tick(match[i]) for i in (2, 3, 4, 5))
        if start != same_start:
            raise NotationError(f"an adjust keeps the start, {line!r} moves it from {start} to {same_start}")
        return Adjust(_parse_payload(match[1]), start, old_end, end)
    if match := _STABLE.fullmatch(body):
        return Stable(times.tick(match[1]))
    if match := _ATTACH.fullmatch(body):
        return Attach(BEGINNING if match[1] is None else times.tick(match[1]))
    if body == "detach":
        return Detach()
    error = NotationError(f"{line!r} is no element")
    error.add_note("Write '+ a [3, 9)', '~ a [3, 9) -> [3, 7)' or '| 5'.")
    raise error


def _parse_name(text: str) -> str:
    if not text.startswith('"'):
        return text
    try:
        return str(json.loads(text))
    except ValueError as reason:
        raise NotationError(f"a name in quotes is JSON text, {text} is not: {reason}") from None


def _parse_time(text: str) -> int:
    unsigned = text.removeprefix("-")
    if unsigned in ("∞", "inf"):
        return FOREVER if text == unsigned else BEGINNING
    time = int(text)
    if not BEGINNING <= time <= FOREVER:
        raise NotationError(f"a time is an int64 of ticks, {text} does not fit")
    return time


def _parse_payload(text: str) -> Payload:
    if _NAME.fullmatch(text) and text not in _JSON_WORDS:
        return {"value": text}
    try:
        value = json.loads(text, object_pairs_hook=with_unique_keys)
        check_depth(value, text)
        _check_characters(value, text)
    except RecursionError:
        raise NotationError(f"a payload is nested at most {LEVELS} levels deep, this is deeper") from None
    except MalformedError as reason:
        raise NotationError(f"in a payload {reason}") from None
    except ValueError:
        raise NotationError(f"a payload is a name, a JSON value or a JSON object, {text!r} is none") from None
    return value if isinstance(value, dict) else {"value": value}


def _check_characters(value: Any, text: str) -> None:
    """Raise where an escape is half of a character, which JSON can spell and UTF-8 cannot."""
    if "\\u" in text:
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError as reason:
            half = ascii(reason.object[reason.start : reason.end])
            raise MalformedError(f"text is UTF-8, and {half} is half of a character") from None


def text(elements: Iterable[Element | Tagged]) -> str:
    """Elements as lines.

    >>> print(text([Insert({"value": "a"}, 3, 9), Adjust({"value": "a"}, 3, 9, 3), Stable(FOREVER)]))
    + a [3, 9)
    ~ a [3, 9) -> [3, 3)
    | ∞
    """
    return "\n".join(line_of(element) for element in elements)


def line_of(element: Element | Control | Tagged, *, as_text: bool = False, clock: Clock = Clock.TICKS) -> str:
    """One element as a line; what JSON has no type for is refused, or written as text where asked for."""

    def time(tick: int) -> str:
        return tick_text(tick) if tick in (BEGINNING, FOREVER) else str(iso_text(tick, clock))

    match element:
        case Insert(payload, start, end):
            return f"+ {payload_text(payload, as_text=as_text)} [{time(start)}, {time(end)})"
        case Adjust(payload, start, old_end, end):
            lifetimes = f"[{time(start)}, {time(old_end)}) -> [{time(start)}, {time(end)})"
            return f"~ {payload_text(payload, as_text=as_text)} {lifetimes}"
        case Stable(stable):
            return f"| {time(stable)}"
        case Attach(guarantee):
            return "attach" if guarantee == BEGINNING else f"attach from {time(guarantee)}"
        case Detach():
            return "detach"
        case Tagged(name, inner):
            tag = name if re.fullmatch(r"[\w.-]+", name) else json.dumps(name, ensure_ascii=False)
            return f"{tag}: {line_of(inner, as_text=as_text, clock=clock)}"
        case _:
            assert_never(element)


def payload_text(payload: Payload, *, as_text: bool = False) -> str:
    """A payload as it is written."""
    if as_text:
        payload = json_payload(payload, as_text=True)
    value = payload["value"] if set(payload) == {"value"} else payload
    if isinstance(value, Mapping) and value is not payload:
        value = payload
    if isinstance(value, str) and _NAME.fullmatch(value) and value not in _JSON_WORDS:
        return value
    return _json(dict(value) if isinstance(value, Mapping) else value)


def _as_iso(value: Any) -> str:
    """Times as text, as in JSON lines."""
    if isinstance(value, datetime | date | time | timedelta):
        return str(msgspec.to_builtins(value))
    raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")


def _json(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, default=_as_iso)
    except TypeError as reason:
        error = NotationError(f"the notation writes JSON values: {reason}")
        way_out = "Write Parquet or Arrow files, or cast the column to text (convert and merge: --text)."
        error.add_note(way_out)
        raise error from None
