"""JSON lines: one element per line, readable by any tool.

    {"kind":"insert","start":3,"end":9,"payload":{"sensor":"a"}}
    {"kind":"adjust","start":3,"old_end":9,"end":7,"payload":{"sensor":"a"}}
    {"kind":"stable","time":5}
    {"kind":"attach","input":"c","from":12}
    {"kind":"detach","input":"c"}

A null end, old_end or time is infinite. Times are numbers of ticks, or all of them moments
(``"2026-03-01T10:00:00Z"``, with their time zone) or dates (``"2026-03-01"``). Any element may name its
input. Payload values are null, booleans, integers, finite numbers, text, lists and objects. Instants, dates,
times of day and lengths of time are ISO 8601 text, which is read back as what it was where the columns of a
source say so. What else JSON has no type for is refused, or written as text where that is asked for. Nothing
is nested deeper than 200 levels, and of equal keys in one object the last one counts.
"""

import math
import re
from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from typing import Any, TypeAlias, assert_never, get_args

import msgspec

from anabranch.errors import AnabranchError
from anabranch.model.clock import Clock, iso_text, one_clock, tick_of_iso
from anabranch.model.elements import Adjust, Attach, Control, Detach, Element, Insert, Payload, Stable, Tagged
from anabranch.model.spelling import did_you_mean
from anabranch.model.time import BEGINNING, FOREVER

Item: TypeAlias = Element | Tagged

LEVELS = 200
"""How deep objects and lists may be nested, the record itself included."""


class MalformedError(AnabranchError, ValueError):
    """A record is not an element."""


class UnwritableError(AnabranchError, ValueError):
    """A value cannot be written as JSON without loss."""

    def __init__(self, value: object, *, role: str = "") -> None:
        super().__init__(f"JSON has no type for {role}{value!r} ({type(value).__name__})")
        self.add_note("Write Parquet or Arrow files, or cast the column to text (convert and merge: --text).")


class _Insert(msgspec.Struct, tag_field="kind", tag="insert", forbid_unknown_fields=True, omit_defaults=True):
    start: int | str
    end: int | str | None
    payload: dict[str, Any]
    input: str | None = None


class _Adjust(msgspec.Struct, tag_field="kind", tag="adjust", forbid_unknown_fields=True, omit_defaults=True):
    start: int | str
    old_end: int | str | None
    end: int | str | None
    payload: dict[str, Any]
    input: str | None = None


class _Stable(msgspec.Struct, tag_field="kind", tag="stable", forbid_unknown_fields=True, omit_defaults=True):
    time: int | str | None
    input: str | None = None


class _Attach(
    msgspec.Struct,
    tag_field="kind",
    tag="attach",
    forbid_unknown_fields=True,
    omit_defaults=True,
    rename={"since": "from"},
):
    input: str
    since: int | str | None = None


class _Detach(msgspec.Struct, tag_field="kind", tag="detach", forbid_unknown_fields=True):
    input: str


_Record: TypeAlias = _Insert | _Adjust | _Stable | _Attach | _Detach
_decoder: msgspec.json.Decoder[_Record] = msgspec.json.Decoder(_Record)
_encoder = msgspec.json.Encoder()


def decode(line: bytes | str) -> Item:
    """The element of one line.

    >>> decode('{"kind":"stable","time":null}') == Stable(FOREVER)
    True
    """
    return read(line)[0]


def read(line: bytes | str) -> tuple[Item, Clock | None]:
    """The element of one line, and the clock of its times; None where it has none."""
    try:
        record = _decoder.decode(line)
    except RecursionError:
        raise _too_deep() from None
    except (msgspec.DecodeError, UnicodeDecodeError) as reason:
        raise MalformedError(f"{reason}{_meant(str(reason))}") from None
    if len(line) > 2 * LEVELS and isinstance(record, _Insert | _Adjust):
        check_depth([record.payload], line)
    times = _Times()
    try:
        element = _element(record, times)
    except (OverflowError, ValueError) as reason:
        raise MalformedError(str(reason)) from None
    return (element if record.input is None else Tagged(record.input, element)), times.clock


def _meant(reason: str) -> str:
    """The end of a message about a key or a kind that no record has."""
    if kind := re.search(r"Invalid value '(.*)' - at `\$\.kind`", reason):
        return did_you_mean(kind[1], [one.__struct_config__.tag for one in get_args(_Record)])
    key = re.search(r"unknown field `(.*)`", reason)
    known = {"kind", *(name for one in get_args(_Record) for name in one.__struct_encode_fields__)}
    return did_you_mean(key[1], sorted(known)) if key else ""


class _Times:
    """State: the clock of the times of a record, which is one."""

    __slots__ = ("clock",)

    def __init__(self) -> None:
        self.clock: Clock | None = None

    def tick(self, time: int | str | None, nothing: int = FOREVER) -> int:
        if time is None:
            return nothing
        tick, clock = tick_of_iso(time) if isinstance(time, str) else (time, Clock.TICKS)
        self.clock = clock if self.clock is None else one_clock(self.clock, clock)
        return tick


def check_depth(value: Any, text: bytes | str, levels: int = LEVELS) -> None:
    """A value is nested no deeper than it may be; a text of few brackets tells this at once."""
    opened = (
        text.count(b"[") + text.count(b"{") if isinstance(text, bytes) else text.count("[") + text.count("{")
    )
    if opened <= levels:
        return
    layer = [value]
    for _ in range(levels + 1):
        layer = [item for item in layer if isinstance(item, dict | list)]
        if not layer:
            return
        layer = [inner for item in layer for inner in (item.values() if isinstance(item, dict) else item)]
    raise _too_deep()


def _too_deep() -> MalformedError:
    return MalformedError(f"JSON is nested at most {LEVELS} levels deep, this is deeper")


def with_unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object, which has each key once."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise MalformedError(f"an object has each key once, this one has {twice!r} twice")
    return found


def _element(record: _Record, times: _Times) -> Any:
    tick = times.tick
    match record:
        case _Insert():
            return Insert(record.payload, tick(record.start), tick(record.end))
        case _Adjust():
            return Adjust(record.payload, tick(record.start), tick(record.old_end), tick(record.end))
        case _Stable():
            return Stable(tick(record.time))
        case _Attach():
            return Attach(tick(record.since, BEGINNING))
        case _Detach():
            return Detach()
        case _:
            assert_never(record)


def encode(item: Item, *, as_text: bool = False, clock: Clock = Clock.TICKS) -> bytes:
    """One element as a line, without its line end.

    >>> encode(Insert({"sensor": "a"}, 3, 9)).decode()
    '{"kind":"insert","start":3,"end":9,"payload":{"sensor":"a"}}'
    >>> encode(Stable(20_000), clock=Clock.DAYS).decode()
    '{"kind":"stable","time":"2024-10-04"}'
    """
    if isinstance(item, Tagged):
        return _encoder.encode(_record(item.element, item.input, as_text, clock))
    return _encoder.encode(_record(item, None, as_text, clock))


def _record(element: Element | Control, name: str | None, as_text: bool, clock: Clock) -> _Record:
    def until(tick: int) -> int | str | None:
        return None if tick == FOREVER else _written(tick, clock)

    match element:
        case Insert(payload, start, end):
            return _Insert(_written(start, clock), until(end), json_payload(payload, as_text), name)
        case Adjust(payload, start, old_end, end):
            ends = until(old_end), until(end)
            return _Adjust(_written(start, clock), *ends, json_payload(payload, as_text), name)
        case Stable(tick):
            return _Stable(until(tick), name)
        case Attach(guarantee):
            assert name is not None, "attach names its input"
            return _Attach(name, None if guarantee == BEGINNING else _written(guarantee, clock))
        case Detach():
            assert name is not None, "detach names its input"
            return _Detach(name)


def _written(tick: int, clock: Clock) -> int | str:
    text = iso_text(tick, clock)
    if clock in (Clock.MOMENTS, Clock.DAYS) and (text == tick or text == str(tick)):
        error = UnwritableError(tick, role="a time that no calendar has, ")
        raise error
    return text


def json_payload(payload: Payload, as_text: bool = False) -> dict[str, Any]:
    """A payload of JSON values only."""
    return {name: _json_value(value, as_text) for name, value in payload.items()}


def _json_value(value: Any, as_text: bool) -> Any:
    match value:
        case None | bool() | int() | str():
            return value
        case float() if math.isfinite(value):
            return value
        case list() | tuple():
            return [_json_value(item, as_text) for item in value]
        case datetime() | date() | time() | timedelta():
            return msgspec.to_builtins(value)
        case Mapping():
            return {_json_key(key, as_text): _json_value(item, as_text) for key, item in value.items()}
        case _ if as_text:
            return _text(value)
        case _:
            raise UnwritableError(value)


def _json_key(key: Any, as_text: bool) -> str:
    if isinstance(key, str):
        return key
    if as_text:
        return _text(key)
    raise UnwritableError(key, role="the key ")


def _text(value: Any) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)
