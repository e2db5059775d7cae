"""Altered lifetimes, event by event, in whole numbers without limits and two infinities (SP 2, Def. 6)."""

from collections.abc import Iterable
from functools import cache
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


@cache
def frontier(time: int, lifetime: Lifetime) -> int:
    """The least time at which an image may still change, where events are stable until a time.

    All events that may matter are tried: those that may still come, and those that started and may still end
    at the stable or later. What is further back has an image that is the same whenever it ends.
    """
    if time in (BEGINNING, FOREVER):
        return time
    every, most = lifetime.start.every, lifetime.duration.most or 0
    new = [(image(start, end, lifetime), None) for start in range(time, time + every) for end in _ends(start)]
    started = range(time - every - most - abs(lifetime.start.plus) - abs(lifetime.duration.plus), time)
    revised = [(image(start, time, lifetime), image(start, FOREVER, lifetime)) for start in started]
    return int(min(_changed(one, other) for one, other in new + revised))


def _ends(start: int) -> tuple[int, ...]:
    return start + 1, FOREVER


def _changed(one: tuple[int, int] | None, other: tuple[int, int] | None) -> float:
    """When two images of an event begin to differ."""
    if one == other:
        return inf
    if one is None or other is None:
        return min(image[0] for image in (one, other) if image is not None)
    return min(one[1], other[1]) if one[0] == other[0] else min(one[0], other[0])


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
