"""What was not used, with the reason, the place and the row itself."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from functools import cache
from typing import Any

import msgspec
import pyarrow as pa

from anabranch.model.batch import Batch
from anabranch.model.elements import Adjust, Attach, Control, Detach, Element, Insert, Stable
from anabranch.model.op import Op
from anabranch.model.time import BEGINNING, FOREVER
from anabranch.model.validity import Drop, Policy, Raise, Violation
from anabranch.rows.text import text_of


@dataclass(frozen=True, slots=True)
class Refusal:
    """One row that was not used."""

    rule: str
    """The code of the rule it breaks (`model.validity.Rule`)."""
    reason: str
    replica: str
    place: str
    raw: str


def answered(refusals: Sequence[Refusal], policy: Policy) -> list[Refusal]:
    """Rows that are no elements, as the policy for what is invalid has it: kept, left out, or an error."""
    if isinstance(policy, Drop):
        return []
    if refusals and isinstance(policy, Raise):
        first = refusals[0]
        error = ValueError(f"{first.place}: {first.reason}")
        error.add_note(f"The row is {first.raw}")
        error.add_note("on_invalid=Quarantine() sets such rows aside, Drop() leaves them out.")
        raise error
    return list(refusals)


FIELDS = ("rule", "reason", "replica", "place", "raw")
_TIMES = ("start", "end", "old_end", "time")

_encoder = msgspec.json.Encoder(enc_hook=str)
_decoder = msgspec.json.Decoder(list[Refusal])
_record = msgspec.json.Decoder(dict[str, msgspec.Raw])


def to_bytes(refusals: Sequence[Refusal]) -> bytes:
    """Refusals as bytes."""
    return _encoder.encode(refusals)


def from_bytes(data: bytes) -> list[Refusal]:
    """The refusals that the bytes hold."""
    return _decoder.decode(data)


def refusal(
    violation: Violation,
    place: str,
    clock: pa.DataType | None = None,
    *,
    raw: str | None = None,
    known: int | None = None,
    roles: Mapping[str, str] | None = None,
    own: Mapping[str, Any] | None = None,
) -> Refusal:
    """A violation of a rule as a refusal, with times as the rows have them, or ticks without a clock.

    ``raw`` is the row where it is not the element that breaks the rule; ``known`` a tick that the reason
    names beside those of the row, if that is not the frontier. With ``roles``, what was refused is told in
    the columns of the rows, ``own`` has those that say whose and which it is, and it may be read again.
    """
    times = _Times(clock)
    match violation.element if raw is None else raw:
        case str() as text:
            names = [roles[name] for name in _TIMES if name in roles] if roles else _TIMES
            row = times.in_record(text, names)
        case element if roles:
            row = text_of({**_as_row(element, roles, times), **(own or {})})
        case Insert(payload, start, end):
            row = text_of({"payload": dict(payload), "start": times.shown(start), "end": times.shown(end)})
        case Adjust(payload, start, old_end, end):
            ends = {"old_end": times.shown(old_end), "end": times.shown(end)}
            row = text_of({"payload": dict(payload), "start": times.shown(start), **ends})
        case Stable(time):
            row = text_of({"kind": "stable", "start": times.shown(time)})
        case Attach(guarantee):
            row = text_of({"kind": "attach", "start": times.shown(guarantee)})
        case Detach():
            row = text_of({"kind": "detach"})
    times.shown(violation.frontier if known is None else known)
    return Refusal(violation.code, times.in_words(violation.message), violation.input or "", place, row)


def _as_row(element: Element | Control, roles: Mapping[str, str], times: "_Times") -> dict[str, Any]:
    """An element in the columns of the rows that it came as; a role that no column has is left out."""
    payload: Mapping[str, Any] = {}
    said: dict[str, Any] = {}
    match element:
        case Insert(payload, start, end):
            said = {"kind": "insert", "start": times.shown(start), "end": times.shown(end)}
        case Adjust(payload, start, old_end, end):
            ends = {"old_end": times.shown(old_end), "end": times.shown(end)}
            said = {"kind": "adjust", "start": times.shown(start), **ends}
        case Stable(time):
            said = {"kind": "stable", "start": times.shown(time)}
        case Attach(guarantee):
            said = {"kind": "attach", "start": times.shown(guarantee)}
        case Detach():
            said = {"kind": "detach"}
    named = {"op": "kind", "time": "start"}
    columns = {named.get(role, role): column for role, column in roles.items()}
    return dict(payload) | {columns[role]: value for role, value in said.items() if role in columns}


def change_text(
    batch: Batch, row: int, roles: Mapping[str, str] | None = None, own: Mapping[str, Any] | None = None
) -> str:
    """A change of a batch as text: in the columns of the rows, or in the form of the change-rows dialect."""
    op = Op(batch.old_end[row])
    if roles:
        (image,) = batch.payload.slice(row, 1).to_pylist()
        said = {roles["op"]: op.name.lower(), roles["time"]: int(batch.start[row])}
        return text_of({**image, **said, **(own or {})})
    image = {
        name: value for name, value in batch.payload.slice(row, 1).to_pylist()[0].items() if value is not None
    }
    record = {
        "op": op.name.lower(),
        "time": int(batch.start[row]),
        "before" if op is Op.DELETE else "after": image,
    }
    return text_of(record)


_TICK = re.compile(r"(?<![\w.-])-?\d{1,19}(?![\w.])")
"""What may be a tick; a payload may hold longer numbers, of which Python refuses to make one."""
_EPOCH = datetime(1970, 1, 1)


class _Times:
    """The times of one row, as rows of this clock show them; an infinite one is null."""

    def __init__(self, clock: pa.DataType | None) -> None:
        self.clock = clock
        self.seen: dict[int, object] = {}

    def shown(self, tick: int) -> object:
        """A tick as rows show it."""
        if tick not in self.seen:
            self.seen[tick] = _shown(tick, self.clock)
        return self.seen[tick]

    def in_record(self, text: str, names: Sequence[str]) -> str:
        """A record with its times shown, which have these names."""
        if self.clock is None or not text.startswith("{"):
            return text
        said = _record.decode(text)
        ticks = {name: msgspec.json.decode(said[name], type=int) for name in names if name in said}
        shown = {name: msgspec.Raw(_encoder.encode(self.shown(tick))) for name, tick in ticks.items()}
        return text_of(said | shown)

    def in_words(self, reason: str) -> str:
        """A reason that shows the times that have been shown, where ticks are microseconds."""
        if self.clock is None or not pa.types.is_timestamp(self.clock):
            return reason
        rule, mark, values = reason.partition("; ")
        return rule + mark + _TICK.sub(self._in_words, values)

    def _in_words(self, number: re.Match[str]) -> str:
        shown = self.seen.get(int(number[0]))
        return number[0] if shown is None else str(shown)


def _shown(tick: int, clock: pa.DataType | None) -> object:
    """A tick as rows show it; one that no date of Python's is stays a tick."""
    if clock is None:
        return tick
    if tick in (FOREVER, BEGINNING):
        return None
    if pa.types.is_integer(clock):
        return tick
    try:
        if pa.types.is_date(clock):
            return _EPOCH.date() + timedelta(tick)
        moment = _EPOCH + timedelta(microseconds=tick)
        return moment if clock.tz is None else moment.replace(tzinfo=UTC).astimezone(_zone(clock))
    except (ValueError, OverflowError):
        return tick


@cache
def _zone(clock: pa.DataType) -> tzinfo | None:
    return pa.scalar(0, clock).as_py().tzinfo
