"""The order in which a merge corrects events of one start: by the identity of their payloads."""

from anabranch.model.elements import Payload
from anabranch.model.identity import identities
from anabranch.model.rows import rows_of

_KNOWN: dict[object, tuple[int, ...]] = {}


def order(payload: Payload) -> tuple[int, ...]:
    """The identity of a payload, remembered by its value."""
    value = payload["value"]
    if value not in _KNOWN:
        _KNOWN[value] = tuple(identities(rows_of([payload]))[0].tolist())
    return _KNOWN[value]
