"""Pairs of events of two streams with equal keys and starts that are near: all of them are tried.

A payload is a collection of pairs of name and value; a column that is null is not among them.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from anabranch.model.time import BEGINNING, FOREVER
from anabranch.oracle.relation import Row


def _always(_pair: Mapping[str, Any]) -> bool:
    return True


@dataclass(frozen=True)
class Terms:
    """Which pairs there are, and what comes of each."""

    on: Sequence[tuple[str, str]]
    before: int
    after: int
    how: str = "inner"
    at: str = "later"
    where: Callable[[Mapping[str, Any]], bool] = _always
    names: Mapping[str, str] = field(default_factory=dict)
    """What columns of the right are called in a pair, where that is not their name; "": left out."""
    starts: tuple[str | None, str | None] = (None, None)

    def time(self, left: int, right: int) -> int:
        """Where a pair of starts stands."""
        return {"left": left, "right": right, "later": max(left, right), "earlier": min(left, right)}[self.at]

    def near(self, left: int, right: int) -> bool:
        """Two starts are within the band."""
        return left - self.before <= right <= left + self.after


def joined(left: Iterable[Row], right: Iterable[Row], terms: Terms, stable: int) -> list[Row]:
    """What comes of two bags; ``stable`` is how far the right is, after which absence is known."""
    found, others = [], list(right)
    for row in left:
        pairs = [pair for other in others if (pair := _pair(row, other, terms)) is not None]
        start = row[1]
        alone = not pairs and (stable == FOREVER or stable > start + terms.after or _keyless(row, terms))
        match terms.how:
            case "inner":
                found += pairs
            case "left":
                found += pairs or ([_point(_alone(row, terms), start)] if alone else [])
            case "semi" if pairs:
                found.append(_point(_named(row), start))
            case "anti" if alone:
                found.append(_point(_named(row), start))
    return found


def _pair(left: Row, right: Row, terms: Terms) -> Row | None:
    one, other = _named(left), _named(right)
    equal = all(one.get(a) is not None and one.get(a) == other.get(b) for a, b in terms.on)
    if not equal or not terms.near(left[1], right[1]):
        return None
    names = {name: terms.names.get(name, name) for name in other}
    pair = one | {names[name]: value for name, value in other.items() if names[name]}
    pair |= {name: at for name, at in zip(terms.starts, (left[1], right[1]), strict=True) if name}
    return _point(pair, terms.time(left[1], right[1])) if terms.where(pair) else None


def _keyless(row: Row, terms: Terms) -> bool:
    """A key that is null is equal to nothing, whatever may come."""
    return any(_named(row).get(name) is None for name, _ in terms.on)


def _alone(row: Row, terms: Terms) -> dict[str, Any]:
    return _named(row) | ({terms.starts[0]: row[1]} if terms.starts[0] else {})


def _named(row: Row) -> dict[str, Any]:
    return dict(row[0])  # type: ignore[call-overload]


def _point(payload: Mapping[str, Any], time: int) -> Row:
    return tuple(sorted(payload.items())), time, time + 1


def frontier(left: int, right: int, terms: Terms) -> int:
    """The least time of anything that may still be said, whatever was said before.

    A new event of the left starts at ``left`` or later, and so on: the least is found with one that starts
    there, and every start of the other side that is near it.
    """
    times = []
    if terms.how in ("left", "anti"):
        times += [left, _less(right, terms.after)]
    if terms.how in ("semi", "anti"):
        terms = Terms(terms.on, terms.before, terms.after, at="left")
    width = range(terms.before + terms.after + 1)
    times += [_least(left, [terms.time(0, step - terms.before) for step in width])]
    times += [_least(right, [terms.time(step - terms.after, 0) for step in width])]
    return min(times)


def _least(stable: int, steps: Iterable[int]) -> int:
    return _less(stable, -min(steps))


def _less(stable: int, ticks: int) -> int:
    return stable if stable in (BEGINNING, FOREVER) else min(max(stable - ticks, BEGINNING), FOREVER)
