"""What was not used, with the reason, the place and the row itself."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import pyarrow as pa

from anabranch.model.batch import Batch
from anabranch.model.clock_columns import dial_of
from anabranch.model.elements import Adjust, Attach, Control, Detach, Element, Insert, Stable
from anabranch.model.json_lines import MalformedError
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
        error = MalformedError(f"{first.place}: {first.reason}")
        error.add_note(f"The row is {first.raw}")
        error.add_note("on_invalid=Quarantine() sets such rows aside, Drop() leaves them out.")
        raise error
    return list(refusals)


ONLY = ""
"""The name of the source of refused rows in a query that has no other source."""
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
    roles: Mapping[str, str] | None = None,
    own: Mapping[str, Any] | None = None,
) -> Refusal:
    """A violation of a rule as a refusal, with times as the rows have them, or ticks without a clock.

    ``raw`` is the row where it is not the element that breaks the rule. With ``roles``, what was refused is
    told in the columns of the rows, ``own`` has those that say whose and which it is, and it may be read
    again.
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
    reason = replace(violation, dial=times.dial).message
    return Refusal(violation.code, reason, violation.input or "", place, row)


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


class _Times:
    """The times of one row, as rows of this clock show them; an infinite one is null."""

    def __init__(self, clock: pa.DataType | None) -> None:
        self.clock = clock
        self.dial = dial_of(clock)

    def shown(self, tick: int) -> object:
        """A tick as rows show it."""
        if self.clock is not None and tick in (FOREVER, BEGINNING):
            return None
        return self.dial.shown(tick)

    def in_record(self, text: str, names: Sequence[str]) -> str:
        """A record with its times shown, which have these names."""
        if self.clock is None or not text.startswith("{"):
            return text
        said = _record.decode(text)
        ticks = {name: msgspec.json.decode(said[name], type=int) for name in names if name in said}
        shown = {name: msgspec.Raw(_encoder.encode(self.shown(tick))) for name, tick in ticks.items()}
        return text_of(said | shown)
