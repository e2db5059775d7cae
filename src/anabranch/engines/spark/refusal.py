"""What was not used, with the reason, the place and the row itself."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import pyarrow as pa

from anabranch.kernels.changes import Op
from anabranch.model.batch import Batch
from anabranch.model.elements import Adjust, Attach, Detach, Insert, Stable
from anabranch.model.time import BEGINNING, FOREVER
from anabranch.model.validity import Drop, Policy, Raise, Violation


@dataclass(frozen=True, slots=True)
class Refusal:
    """One row that was not used."""

    rule: str
    """The code of the rule it breaks (`model.validity.Rule`)."""
    reason: str
    replica: str
    place: str
    raw: str
    known: int | None = None
    """A tick that the reason names beside those of the row: the last stable, or since when a row is there."""


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


def refusal(violation: Violation, place: str) -> Refusal:
    """A violation of a rule as a refusal; its times are ticks."""
    match violation.element:
        case str() as text:
            raw = text
        case Insert() | Adjust() as element:
            said = {field: getattr(element, field) for field in element.__dataclass_fields__}
            raw = _text(said | {"payload": dict(element.payload)})
        case Stable(time):
            raw = _text({"kind": "stable", "start": time})
        case Attach(guarantee):
            raw = _text({"kind": "attach", "start": guarantee})
        case Detach():
            raw = _text({"kind": "detach"})
    return Refusal(violation.code, violation.message, violation.input or "", place, raw, violation.frontier)


def change_text(batch: Batch, row: int) -> str:
    """A change of a batch as text, in the form of the change-rows dialect."""
    op = Op(batch.old_end[row])
    image = {
        name: value for name, value in batch.payload.slice(row, 1).to_pylist()[0].items() if value is not None
    }
    record = {
        "op": op.name.lower(),
        "time": int(batch.start[row]),
        "before" if op is Op.DELETE else "after": image,
    }
    return _text(record)


def on_the_clock(refused: Refusal, clock: pa.DataType | None) -> Refusal:
    """What a shard refused with its times as the rows had them, where the clock of the rows is known.

    A time that is infinite is null. Where ticks are microseconds, the reason shows times too.
    """
    if clock is None or not refused.raw.startswith("{"):
        return refused
    said = _record.decode(refused.raw)
    ticks = {name: msgspec.json.decode(said[name], type=int) for name in _TIMES if name in said}
    shown = {name: msgspec.Raw(_encoder.encode(_shown(tick, clock))) for name, tick in ticks.items()}
    rule, mark, values = refused.reason.partition("; ")
    if pa.types.is_timestamp(clock):
        for tick in (*ticks.values(), refused.known):
            if tick not in (None, FOREVER, BEGINNING):
                values = re.sub(rf"(?<![\w.-]){tick}(?![\w.])", str(_shown(tick, clock)), values)
    return replace(refused, raw=_text(said | shown), reason=rule + mark + values)


def _shown(tick: int, clock: pa.DataType) -> object:
    """A tick as rows show it; one that no date of Python's is stays a tick."""
    if tick in (FOREVER, BEGINNING):
        return None
    if pa.types.is_integer(clock):
        return tick
    try:
        if pa.types.is_date(clock):
            return pa.scalar(tick, pa.int32()).cast(clock).as_py()
        return pa.scalar(tick, pa.int64()).cast(pa.timestamp("us")).cast(clock).as_py()
    except (ValueError, OverflowError):
        return tick


def _text(record: Mapping[str, Any]) -> str:
    return _encoder.encode(record).decode()
