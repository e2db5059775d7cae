"""Sums of floats that are the sums of the exact numbers, whatever came when, and what was taken back.

A slot has two floats: what is lost where a value is added to the first is added to the second, exactly
(Knuth's two-sum). What is lost there as well, which takes numbers some 30 orders of magnitude apart, and what
is beyond all range goes to a fraction of the slot; infinities and NaN are counted. So the two floats and the
fraction are the exact sum, and it is rounded once, when it is said.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import inf, isnan, nan
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anabranch.kernels.aggregate.column import Slots, Values, read_only
from anabranch.model.compiled import compiled, inlined
from anabranch.model.pool import grown

_LOST = 1024
_LARGEST = 2.0**1020
_SQUARES = 2.0**-400, 2.0**400
"""Between these the square of a number is two floats, exactly."""
_SPLIT = 2.0**27 + 1


@dataclass(slots=True)
class Odd:
    """What two floats do not hold of a sum."""

    rest: Fraction = Fraction(0)
    above: int = 0
    """How many values are infinite."""
    below: int = 0
    nans: int = 0

    def add(self, value: float, sign: int) -> None:
        """Add a value, or take it away."""
        if isnan(value):
            self.nans += sign
        elif value == inf:
            self.above += sign
        elif value == -inf:
            self.below += sign
        else:
            self.rest += sign * Fraction(value)

    def merge(self, other: "Odd", sign: int) -> None:
        """Add what another has, or take it away."""
        self.rest += sign * other.rest
        self.above += sign * other.above
        self.below += sign * other.below
        self.nans += sign * other.nans

    @property
    def special(self) -> float | None:
        """What infinities and NaN make of the sum."""
        if self.nans or (self.above and self.below):
            return nan
        return inf if self.above else -inf if self.below else None


class FloatSums:
    """Exact sums of floats, or of their squares."""

    invertible: ClassVar[bool] = True

    def __init__(self, *, squares: bool = False) -> None:
        self.squares = squares
        self.first, self.second = np.zeros(0), np.zeros(0)
        self.odd: dict[int, Odd] = {}

    @property
    def nbytes(self) -> int:
        """Bytes of state; of a fraction about."""
        return self.first.nbytes + self.second.nbytes + 500 * len(self.odd)

    def with_room(self, capacity: int) -> None:
        """Have this many slots."""
        self.first, self.second = grown(self.first, capacity), grown(self.second, capacity)

    def add(self, values: Values, sign: int) -> None:
        """Add values, or their squares."""
        if not self.squares:
            self._add(values.slots, values.floats, sign)
            return
        size = np.abs(values.floats)
        plain = ((size >= _SQUARES[0]) & (size <= _SQUARES[1])) | (size == 0)
        for slot, value in zip(values.slots[~plain].tolist(), values.floats[~plain].tolist(), strict=True):
            odd = self.odd.setdefault(slot, Odd())
            if np.isfinite(value):
                odd.rest += sign * Fraction(value) ** 2
            else:
                odd.add(abs(value), sign)
        product, lost = _squares(values.floats[plain])
        for part in (product, lost):
            self._add(values.slots[plain], read_only(part), sign)

    def _add(self, slots: Slots, values: NDArray[np.float64], sign: int) -> None:
        slot, term, signs = np.empty(_LOST, np.int64), np.empty(_LOST), np.empty(_LOST, np.int64)
        row = 0
        while row < len(slots):
            row, lost = add_floats(
                self.first, self.second, slots, values, np.float64(sign), row, slot, term, signs
            )
            self._keep(slot[:lost], term[:lost], signs[:lost])

    def _keep(self, slots: NDArray[np.int64], terms: NDArray[np.float64], signs: NDArray[np.int64]) -> None:
        for slot, term, sign in zip(slots.tolist(), terms.tolist(), signs.tolist(), strict=True):
            self.odd.setdefault(slot, Odd()).add(term, sign)

    def merge(self, into: Slots, other: Slots, sign: int = 1) -> None:
        """Add sums of other slots."""
        one = np.float64(sign)
        for part in (self.first, self.second):
            slot, term, signs = np.empty(_LOST, np.int64), np.empty(_LOST), np.empty(_LOST, np.int64)
            row = 0
            while row < len(into):
                row, lost = add_floats(
                    self.first, self.second, into, read_only(part[other]), one, row, slot, term, signs
                )
                self._keep(slot[:lost], term[:lost], signs[:lost])
        if self.odd:
            for target, source in zip(into.tolist(), other.tolist(), strict=True):
                if source in self.odd:
                    self.odd.setdefault(target, Odd()).merge(self.odd[source], sign)
            if sign < 0:
                for target in self.odd.keys() & set(into.tolist()):
                    self._settle(target)

    def _settle(self, slot: int) -> None:
        """Keep in two floats what they hold of a sum, so that what has left it costs nothing any more."""
        odd = self.odd[slot]
        exact = self.exact(slot)[1]
        if abs(exact) < _LARGEST:
            self.first[slot] = float(exact)
            self.second[slot] = float(exact - Fraction(self.first[slot]))
            odd.rest = exact - Fraction(self.first[slot]) - Fraction(self.second[slot])
        if odd == Odd():
            del self.odd[slot]

    def clear(self, slots: Slots) -> None:
        """Nothing was added."""
        self.first[slots], self.second[slots] = 0.0, 0.0
        if self.odd:
            for slot in slots.tolist():
                self.odd.pop(slot, None)

    def rounded(self, slots: Slots) -> NDArray[np.float64]:
        """The sums of slots, each rounded once."""
        found = self.first[slots] + self.second[slots]
        for place in self._odd_places(slots):
            special, exact = self.exact(int(slots[place]))
            found[place] = nearest(exact) if special is None else special
        return found

    def pairs(self, slots: Slots) -> tuple[NDArray[np.float64], NDArray[np.float64], list[int]]:
        """The sums of slots as two floats each, and the places where they are more."""
        return self.first[slots], self.second[slots], self._odd_places(slots)

    def exact(self, slot: int) -> tuple[float | None, Fraction]:
        """What infinities and NaN make of the sum of a slot, and the sum of all else."""
        odd = self.odd.get(slot)
        whole = Fraction(float(self.first[slot])) + Fraction(float(self.second[slot]))
        return (None, whole) if odd is None else (odd.special, whole + odd.rest)

    def _odd_places(self, slots: Slots) -> list[int]:
        if not self.odd:
            return []
        return [place for place, slot in enumerate(slots.tolist()) if slot in self.odd]

    def saved(self, slots: Slots) -> pa.RecordBatch:
        """The floats of some slots; of a fraction its two whole numbers as texts."""
        odd = [self.odd.get(slot) for slot in slots.tolist()]
        said = [None if o is None else f"{o.rest} {o.above} {o.below} {o.nans}" for o in odd]
        columns = {
            "first": self.first[slots],
            "second": self.second[slots],
            "odd": pa.array(said, pa.string()),
        }
        return pa.RecordBatch.from_pydict(columns)

    def load(self, slots: Slots, rows: pa.RecordBatch) -> None:
        """The sums as they were saved."""
        self.first[slots] = rows.column("first").to_numpy()
        self.second[slots] = rows.column("second").to_numpy()
        for slot, said in zip(slots.tolist(), rows.column("odd").to_pylist(), strict=True):
            if said is not None:
                rest, *counts = said.split(" ")
                self.odd[slot] = Odd(Fraction(rest), *map(int, counts))


def nearest(value: Fraction) -> float:
    """The float that is nearest to an exact number."""
    try:
        return float(value)
    except OverflowError:
        return inf if value > 0 else -inf


def _squares(values: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The squares of values as two floats each, exactly (Dekker)."""
    product = values * values
    large = values * _SPLIT
    upper = large - (large - values)
    lower = values - upper
    return product, ((upper * upper - product) + 2 * upper * lower) + lower * lower


@inlined
def _two_sum(one: Any, other: Any) -> Any:
    """The sum of two floats and what it loses, exactly."""
    total = one + other
    part = total - one
    return total, (one - (total - part)) + (other - part)


@compiled
def add_floats(
    first: Any, second: Any, slots: Any, values: Any, sign: float, row: int, slot: Any, term: Any, signs: Any
) -> tuple[int, int]:
    """Add values from a row on, and write down what is lost; the first row that was not added, and how much.

    It ends early where there is no more room to write to.
    """
    lost = 0
    for i in range(row, len(slots)):
        if lost == len(slot):
            return i, lost
        place, value = slots[i], sign * values[i]
        total, rest = _two_sum(first[place], value)
        if not abs(total) < _LARGEST:
            slot[lost], term[lost], signs[lost] = place, values[i], np.int64(sign)
            lost += 1
            continue
        below, rest = _two_sum(second[place], rest)
        first[place], second[place] = total, below
        if rest != 0.0:
            slot[lost], term[lost], signs[lost] = place, rest, 1
            lost += 1
    return len(slots), lost
