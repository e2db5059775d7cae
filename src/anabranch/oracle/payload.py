"""When two payloads are the same, written out case by case."""

from collections.abc import Hashable, Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from math import isinf, isnan
from typing import Any


def payload_key(payload: Mapping[str, Any]) -> Hashable:
    """Equal for payloads that are the same, and only for those."""
    return frozenset((name, value_key(value)) for name, value in payload.items() if value is not None)


def value_key(value: Any) -> Hashable:
    """Equal for values that are the same, and only for those."""
    match value:
        case None:
            return ("null",)
        case bool():
            return ("boolean", value)
        case float() if isnan(value):
            return ("nan",)
        case float() if isinf(value):
            return ("float", value)
        case int() | float() | Decimal() if Fraction(value).denominator == 1 and -(2**63) <= value < 2**63:
            return ("whole", int(value))
        case int() | Decimal():
            return ("exact", Fraction(value))
        case float():
            return ("float", value)
        case str() | bytes():
            return (type(value).__name__, value)
        case datetime():
            return ("local", value) if value.tzinfo is None else ("instant", value.astimezone(UTC))
        case date() | time() | timedelta():
            return (type(value).__name__, value)
        case Mapping():
            return ("struct", payload_key(value))
        case list() | tuple():
            return ("list", tuple(value_key(item) for item in value))
        case _:
            raise TypeError(f"no payload holds a {type(value).__name__}")
