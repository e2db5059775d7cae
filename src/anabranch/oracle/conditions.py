"""Conditions C1 to C3 of LM III-D for one payload and start, as corrected.

Printed, C2 asks for ``L_m <= L`` of a half-frozen input event; that rejects outputs that can follow their
inputs (input A[2,4) at stable 4, output A[2,3) at stable 3). It must be ``L <= L_m``.
"""

from collections.abc import Sequence
from typing import TypeAlias

from anabranch.model.time import FOREVER

Prefix: TypeAlias = tuple[int | None, int]
"""The end of the one event there may be, or None, and the last stable."""


def compatible(start: int, output: Prefix, inputs: Sequence[Prefix]) -> bool:
    """C1, C2 and C3 hold for this payload and start."""
    end, last = output
    return (
        last <= max(stable for _, stable in inputs)
        and (end is None or _may_hold(start, end, last, inputs))
        and _holds_what_it_must(start, end, last, inputs)
    )


def _half(start: int, end: int | None, stable: int) -> bool:
    return end is not None and start < stable <= end and stable != FOREVER


def _fully(end: int | None, stable: int) -> bool:
    return end is not None and (end < stable or stable == FOREVER)


def _may_hold(start: int, end: int, last: int, inputs: Sequence[Prefix]) -> bool:
    if _fully(end, last):
        return any(_fully(e, stable) and e == end for e, stable in inputs)
    if _half(start, end, last):
        return any(
            (_half(start, e, stable) and last <= stable)
            or (e is not None and _fully(e, stable) and last <= e)
            for e, stable in inputs
        )
    return True


def _holds_what_it_must(start: int, end: int | None, last: int, inputs: Sequence[Prefix]) -> bool:
    final = [e for e, stable in inputs if e is not None and _fully(e, stable)]
    if final:
        return all(
            last <= start or (start < last <= e and _half(start, end, last)) or (_fully(e, last) and end == e)
            for e in final
        )
    halves = [stable for e, stable in inputs if _half(start, e, stable)]
    if halves:
        return last <= start or (start < last <= max(halves) and _half(start, end, last))
    return True
