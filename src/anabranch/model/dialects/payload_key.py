"""When two payloads are the same, for the states that dialects keep.

The rules are those of `anabranch.model.identity`, on Python values: a column that is None is a column that is
not there; whole numbers in the range of int64 are equal by value whatever their type, but a boolean is no
number; every NaN is one value; a fraction is a float or a decimal and those two differ; lists are equal
element by element, mappings like payloads.
"""

from collections.abc import Hashable, Mapping
from decimal import Decimal
from math import isnan
from typing import Any, TypeAlias

from anabranch.model.elements import Payload
from anabranch.model.time import BEGINNING, FOREVER

PayloadKey: TypeAlias = frozenset[tuple[str, Hashable]]


def payload_key(payload: Payload) -> PayloadKey:
    """Equal for payloads that are the same, and only for those.

    >>> payload_key({"b": 1, "a": "x"}) == payload_key({"a": "x", "b": 1.0, "c": None})
    True
    >>> payload_key({"b": 1}) == payload_key({"b": True})
    False
    """
    return frozenset((name, _value_key(value)) for name, value in payload.items() if value is not None)


def _value_key(value: Any) -> Hashable:
    match value:
        case bool():
            return (bool, value)
        case float() | Decimal():
            return _number_key(value)
        case Mapping():
            return (dict, payload_key(value))
        case list() | tuple():
            return (list, tuple(_value_key(item) for item in value))
        case bytearray():
            return bytes(value)
        case Hashable():
            return value
        case _:
            error = TypeError(f"{value!r} of type {type(value).__name__} has no canonical form")
            error.add_note("Make it a number, text, bytes, a time, a list or a mapping.")
            raise error


def _number_key(number: float | Decimal) -> Hashable:
    kind = float if isinstance(number, float) else Decimal
    if isnan(number):
        return (float, None)
    if BEGINNING <= number <= FOREVER and number == int(number):
        return int(number)
    return (kind, number)
