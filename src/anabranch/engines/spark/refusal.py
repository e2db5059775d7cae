"""What was not used, with the reason, the place and the row itself."""

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from anabranch.model.elements import Adjust, Insert
from anabranch.model.validity import Violation


@dataclass(frozen=True, slots=True)
class Refusal:
    """One row that was not used."""

    rule: str
    """The code of the rule it breaks (`model.validity.Rule`)."""
    reason: str
    replica: str
    place: str
    raw: str


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
