"""Random rows for windows, and what the oracle says of them."""

from collections.abc import Callable
from random import Random
from typing import Any

import pyarrow as pa

import anabranch as ab
from anabranch import Adjust, Insert, Stable, col
from anabranch.model.time import BEGINNING, FOREVER
from anabranch.oracle.aggregates import (
    deviation,
    first,
    greatest,
    last,
    least,
    mean,
    n_unique,
    total,
    variance,
)

SCHEMA = {"k": "int64", "text": "string", "i": "int64", "x": "float64", "u": "uint64"}
FLOATS = (1e16, 1.0, -1e16, 0.1, 0.2, 0.3, 1e-300, -0.0, 5e-324, 1e308, 2.5, -2.5, 1 / 3)
ODD = (float("inf"), float("-inf"), float("nan"))
INTEGERS = (0, 1, -1, 7, 2**53 + 1, -(2**53) - 1, 2**62, -(2**62), 2**63 - 1, -(2**63))
ENDS = (BEGINNING, BEGINNING + 3, -(2**62), -10, 0, 2**62, FOREVER - 30, FOREVER - 5)
STARTS = (0, 3, -7, 2**53 + 1, 2**60, -(2**61))

Pairs = list[tuple[int, Any]]


def _values(rows: Pairs) -> list[Any]:
    return [value for _, value in rows]


AGGREGATES: dict[str, tuple[Callable[[ab.Expression], ab.Aggregate], Callable[[Pairs], Any], str]] = {
    "count": (lambda c: c.count(), len, "ixut"),
    "sum": (lambda c: c.sum(), lambda rows: total(_values(rows)), "ixu"),
    "mean": (lambda c: c.mean(), lambda rows: mean(_values(rows)), "ixu"),
    "var": (lambda c: c.var(), lambda rows: variance(_values(rows)), "ixu"),
    "std": (lambda c: c.std(ddof=0), lambda rows: deviation(_values(rows), 0), "ixu"),
    "min": (lambda c: c.min(), lambda rows: least(_values(rows)), "ixut"),
    "max": (lambda c: c.max(), lambda rows: greatest(_values(rows)), "ixut"),
    "first": (lambda c: c.first(), first, "ixut"),
    "last": (lambda c: c.last(), last, "ixut"),
    "n_unique": (lambda c: c.n_unique(), lambda rows: n_unique(_values(rows)), "ixut"),
}
COLUMNS = {"i": "i", "x": "x", "u": "u", "t": "text"}
CALLED = {
    f"{name}_{short}": (made(col(COLUMNS[short])), means, COLUMNS[short])
    for name, (made, means, shorts) in AGGREGATES.items()
    for short in shorts
}
LIMITS = {"sum_i": (-(2**63), 2**63), "sum_u": (0, 2**64)}


def drawn_payload(random: Random) -> dict[str, Any]:
    """A row with nulls, duplicates and numbers of all sizes."""
    row = {
        "k": random.choice([0, 1, 2, None]),
        "text": random.choice(["", "a", "ab", "ä", "z", None]),
        "i": random.choice([*INTEGERS, None, random.randint(-9, 9)]),
        "x": random.choice(
            [*FLOATS, None, random.gauss(0, 1)] + (list(ODD) if random.random() < 0.1 else [])
        ),
        "u": random.choice([0, 1, 2**63, 2**64 - 1, None]),
    }
    return {name: value for name, value in row.items() if value is not None}


def drawn_elements(random: Random, count: int, *, removals: bool) -> list[Any]:
    """A valid stream of events around one place in time."""
    base, span = random.choice(STARTS), random.choice([10, 40])
    stable, alive, said = base - 100, [], []
    for _ in range(count):
        what = random.random()
        if what < 0.15:
            stable += random.randint(0, 5)
            said.append(Stable(stable))
            alive = [one for one in alive if one.start >= stable]
        elif what < 0.35 and removals and alive:
            one = alive.pop(random.randrange(len(alive)))
            said.append(Adjust(one.payload, one.start, one.end, one.start))
        else:
            start = max(stable, base - 100 + random.randint(0, span) + (stable - base + 100))
            one = Insert(drawn_payload(random), start, random.choice([start + 1, start + 500, FOREVER]))
            alive.append(one)
            said.append(one)
    return [*said, Stable(FOREVER)]


def elements_at_both_ends(random: Random, *, removals: bool) -> list[Any]:
    """A valid stream of events around a few places in time, most near its first and its last tick."""
    stable, alive, said = BEGINNING, [], []
    rows = [drawn_payload(random) for _ in range(random.choice([2, 5]))]
    for base in sorted(random.sample(ENDS, random.randint(1, 4))):
        span = random.choice([2, 5, 12, 30])
        for _ in range(random.randint(3, 20)):
            least, what = max(base, stable), random.random()
            if what < 0.25:
                stable = min(least + random.choice([0, 1, 1, 2, 5]), FOREVER - 1)
                said.append(Stable(stable))
                alive = [one for one in alive if one.start >= stable]
            elif what < 0.45 and removals and alive:
                one = alive.pop(random.randrange(len(alive)))
                said.append(Adjust(one.payload, one.start, one.end, one.start))
            else:
                start = min(least + random.randint(0, span), FOREVER - 1)
                payload = random.choice(rows) if random.random() < 0.5 else drawn_payload(random)
                alive.append(Insert(payload, start, random.choice([start + 1, FOREVER])))
                said.append(alive[-1])
    return [*said, Stable(FOREVER)]


def schema() -> pa.Schema:
    """The columns of the rows."""
    return pa.schema([(name, pa.type_for_alias(kind)) for name, kind in SCHEMA.items()])
