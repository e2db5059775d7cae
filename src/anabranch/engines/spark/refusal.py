"""What was not used, with the reason, the place and the row itself."""

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from anabranch.kernels.changes import Op
from anabranch.model.batch import Batch
from anabranch.model.elements import Adjust, Insert
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

_encoder = msgspec.json.Encoder(enc_hook=str)
_decoder = msgspec.json.Decoder(list[Refusal])


def to_bytes(refusals: Sequence[Refusal]) -> bytes:
    """Refusals as bytes."""
    return _encoder.encode(refusals)


def from_bytes(data: bytes) -> list[Refusal]:
    """The refusals that the bytes hold."""
    return _decoder.decode(data)


def refusal(violation: Violation, place: str) -> Refusal:
    """A violation of a rule as a refusal."""
    element = violation.element
    if isinstance(element, Insert | Adjust):
        raw = {field: getattr(element, field) for field in element.__dataclass_fields__}
        raw["payload"] = dict(element.payload)
        text = _encoder.encode(raw).decode()
    else:
        text = str(element)
    return Refusal(violation.code, violation.message, violation.input or "", place, text)


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
    return _encoder.encode(record).decode()
