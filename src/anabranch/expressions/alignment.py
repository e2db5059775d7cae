"""How values of several types come to one where a function takes values that are alike.

Arrow widens numbers, units of time and texts by itself; what it would refuse for single values, or answer
with an error, is brought to one type before:

- integers that meet floats become float64 (of 8 and 16 bits: float32 where they meet only that), rounded as
  floats are;
- uint64 and signed integers compare as decimals, exactly;
- instants are brought to the time zone that comes first.
"""

from collections.abc import Sequence

import pyarrow as pa

from anabranch.model.schema import sort_of, sorts_agree

COMPARISONS = frozenset({"equal", "not_equal", "less", "less_equal", "greater", "greater_equal"})
CHOICES = frozenset({"coalesce", "if_else", "max_element_wise", "min_element_wise"})
ARITHMETIC = frozenset(
    f"{name}{checked}"
    for name in ("add", "subtract", "multiply", "divide", "power", "modulo", "remainder", "atan2", "hypot")
    for checked in ("", "_checked")
)
LOGIC = frozenset({"and", "and_kleene", "and_not", "and_not_kleene", "or", "or_kleene", "xor"})
ALIKE = COMPARISONS | CHOICES | ARITHMETIC | LOGIC
"""Functions of which all arguments are alike; of if_else, all but the first."""

_ALIKE_SORTS = ({"number", "decimal"}, {"local time", "date"})


def comparable(one: pa.DataType, other: pa.DataType) -> bool:
    """Whether values of one type may be held against those of the other."""
    return sorts_agree(one, other) or any({sort_of(one), sort_of(other)} <= alike for alike in _ALIKE_SORTS)


def aligned(function: str, kinds: Sequence[pa.DataType]) -> list[pa.DataType]:
    """The types that arguments of these types are brought to before a function sees them."""
    types = pa.types
    floats = [kind for kind in kinds if types.is_floating(kind)]
    if floats:
        wide = any(types.is_float64(kind) for kind in floats)
        return [_as_float(kind, wide=wide) if types.is_integer(kind) else kind for kind in kinds]
    if (
        function in COMPARISONS
        and any(map(types.is_uint64, kinds))
        and any(map(types.is_signed_integer, kinds))
    ):
        return [pa.decimal128(20, 0) if types.is_integer(kind) else kind for kind in kinds]
    zone = next((kind.tz for kind in kinds if types.is_timestamp(kind) and kind.tz), None)
    if zone and function in COMPARISONS | CHOICES:
        return [pa.timestamp(k.unit, zone) if types.is_timestamp(k) and k.tz else k for k in kinds]
    return list(kinds)


def _as_float(dtype: pa.DataType, *, wide: bool) -> pa.DataType:
    return pa.float64() if wide or dtype.bit_width > 16 else pa.float32()
