"""Division that rounds down, and what it leaves: ``n // d`` and ``n % d`` as Python and Polars have them.

Arrow's own division of integers rounds towards zero. For integers a divisor of zero fails, and a quotient
that does not fit; for floats the quotient is ``floor(n / d)`` and the rest ``n - floor(n / d) * d`` by IEEE.
Both arguments have one type.
"""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc


def floor_quotient(args: Sequence[Any], _: None) -> Any:
    """How often the divisor goes into a number, rounded down."""
    number, divisor = args
    if pa.types.is_floating(number.type):
        return pc.floor(pc.divide(number, divisor))
    quotient = pc.divide_checked(number, divisor)
    if pa.types.is_unsigned_integer(number.type):
        return quotient
    rest = pc.subtract(number, pc.multiply(quotient, divisor))
    return pc.subtract(quotient, _beyond(rest, divisor).cast(number.type))


def floor_rest(args: Sequence[Any], _: None) -> Any:
    """What is left of a number, with the sign of the divisor."""
    number, divisor = args
    if pa.types.is_floating(number.type):
        return pc.subtract(number, pc.multiply(pc.floor(pc.divide(number, divisor)), divisor))
    if pa.types.is_unsigned_integer(number.type):
        return pc.subtract(number, pc.multiply(pc.divide_checked(number, divisor), divisor))
    # The least number by -1 has no quotient, yet leaves nothing, as by 1.
    one, negative = (pa.scalar(value, number.type) for value in (1, -1))
    safe = pc.if_else(pc.equal(divisor, negative), one, divisor)
    rest = pc.subtract(number, pc.multiply(pc.divide_checked(number, safe), safe))
    return pc.if_else(_beyond(rest, divisor), pc.add(rest, divisor), rest)


def _beyond(rest: Any, divisor: Any) -> Any:
    """Where rounding towards zero was rounding up."""
    zero = pa.scalar(0, rest.type)
    return pc.and_(pc.not_equal(rest, zero), pc.not_equal(pc.less(rest, zero), pc.less(divisor, zero)))
