"""Altered lifetimes, event by event, in whole numbers without limits and two infinities (SP 2, Def. 6)."""

from collections.abc import Iterable
from math import inf

from anabranch.model.lifetime import Lifetime
from anabranch.model.time import BEGINNING, FOREVER
from anabranch.oracle.relation import Row


def altered(rows: Iterable[Row], lifetime: Lifetime) -> list[Row]:
    """The images of those events that have one."""
    images = [(payload, image(start, end, lifetime)) for payload, start, end in rows]
    return [(payload, *found) for payload, found in images if found is not None]


def image(start: int, end: int, lifetime: Lifetime) -> tuple[int, int] | None:
    """The lifetime of the image of one event, if it has one."""
    if fails(start, lifetime):
        return None
    first = _first(_line(start), _line(end), lifetime)
    last = _last(_line(start), _line(end), first, lifetime)
    return (_tick(first), _tick(last)) if _tick(first) < _tick(last) else None


def fails(start: int, lifetime: Lifetime) -> bool:
    """No event with this start has an image, because the image would start at no time, or end at none."""
    if lifetime.start.end:
        return False
    if start == BEGINNING:
        return lifetime.duration.ticks not in (None, FOREVER) or lifetime.duration.most is not None
    return not BEGINNING < _first(start, start, lifetime) < FOREVER


def _first(start: float, end: float, lifetime: Lifetime) -> float:
    if lifetime.start.end:
        return end
    if start == -inf:
        return start
    multiples = start // lifetime.start.every
    return multiples * lifetime.start.every + lifetime.start.plus


def _last(start: float, end: float, first: float, lifetime: Lifetime) -> float:
    length = lifetime.duration
    if length.ticks is not None:
        return inf if length.ticks == FOREVER else first + length.ticks
    moved = lifetime.start.plus if start == -inf else first - start
    last = end + moved + length.plus
    return last if length.most is None else min(last, first + length.most)


def _line(tick: int) -> float:
    """The ends of time as infinities; whole numbers stay exact."""
    return {FOREVER: inf, BEGINNING: -inf}.get(tick, tick)


def _tick(point: float) -> int:
    if point >= FOREVER:
        return FOREVER
    return int(point) if point > BEGINNING else BEGINNING
