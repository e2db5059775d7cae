"""Lengths of time in the ticks of a stream's clock."""

from datetime import timedelta

import pyarrow as pa

from anabranch.model.span import span, span_text
from anabranch.plan.node import PlanError


def in_ticks(value: int | timedelta | str, clock: pa.DataType | None, what: str) -> int:
    """A length as ticks; a number is one where times are numbers, and has no unit where they are not.

    >>> in_ticks("1 minute", pa.timestamp("us"), "the size of a window")
    60000000
    """
    found = span(value, what)
    unit = _tick(clock)
    if isinstance(found, int):
        if unit is not None and found:
            error = PlanError(f"{what} is {found} without a unit, and times are {clock}")
            error.add_note(
                f"Write '{found} {'days' if pa.types.is_date(clock) else 'seconds'}', if that is meant."
            )
            raise error
        return found
    assert isinstance(found, timedelta), "a span that is given is one"
    if unit is None or found % unit:
        error = PlanError(
            f"{what} is {span_text(found)}, and times are {'numbers' if unit is None else clock}"
        )
        error.add_note("Give an int of ticks." if unit is None else "Give whole days.")
        raise error
    return found // unit


def length_text(ticks: int, clock: pa.DataType | None) -> str:
    """So many ticks as people read them."""
    unit = _tick(clock)
    try:
        return str(ticks) if unit is None else span_text(ticks * unit)
    except OverflowError:
        return str(ticks)


def _tick(clock: pa.DataType | None) -> timedelta | None:
    """How long a tick is; None where times are numbers."""
    if clock is None or pa.types.is_integer(clock):
        return None
    return timedelta(days=1) if pa.types.is_date(clock) else timedelta(microseconds=1)
