"""Values as whole numbers: in their own order where they are numbers or times, else by number of value.

Floats are in the order of numbers with NaN as the greatest; ``-0.0`` is ``0.0``. Texts, bytes and decimals
are numbered as they come, and have a rank among those that are known.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

_SIGN = np.int64(-(2**63))
_REST = np.int64(2**63 - 1)
_LEAST_WORTH = 1024


@dataclass(slots=True)
class Codes:
    """State: the values that are numbered, where values of the type are."""

    kind: pa.DataType
    numbers: dict[Any, int] = field(default_factory=dict, repr=False)
    values: list[Any] = field(default_factory=list, repr=False)
    _ranks: NDArray[np.int64] | None = field(default=None, repr=False)

    @property
    def numbered(self) -> bool:
        """Values are known by their number, whose order means nothing."""
        t = pa.types
        return not (t.is_integer(self.kind) or t.is_boolean(self.kind) or _timed(self.kind) or self.floating)

    @property
    def floating(self) -> bool:
        """Values are floats."""
        return bool(pa.types.is_floating(self.kind))

    @property
    def nbytes(self) -> int:
        """About the bytes of state."""
        return 200 * len(self.values)

    def of(self, array: pa.Array) -> NDArray[np.int64]:
        """The code of each value; there are no nulls."""
        if pa.types.is_dictionary(array.type):
            array = array.dictionary_decode()
        if self.numbered:
            return self._number(array)
        if self.floating:
            floats = array.cast(pa.float64()).to_numpy(zero_copy_only=False)
            return float_codes(floats)
        if pa.types.is_uint64(self.kind):
            return array.view(pa.int64()).to_numpy() ^ _SIGN
        return _whole(array).to_numpy(zero_copy_only=False)

    def back(self, codes: NDArray[np.int64], null: NDArray[np.bool_]) -> pa.Array:
        """The values of codes; null where there is none."""
        mask = null if null.any() else None
        if self.numbered:
            said = [None if none else self.values[code] for code, none in zip(codes, null, strict=True)]
            return pa.array(said, self.kind)
        if self.floating:
            return pa.array(code_floats(codes), mask=mask).cast(self.kind)
        if pa.types.is_uint64(self.kind):
            return pa.array(codes ^ _SIGN, mask=mask).view(self.kind)
        return _typed(pa.array(codes, mask=mask), self.kind)

    def ranks(self) -> NDArray[np.int64]:
        """The rank of each number of a value, in the order of values."""
        if self._ranks is None or len(self._ranks) != len(self.values):
            order = pc.sort_indices(pa.array(self.values, self.kind)).to_numpy()
            self._ranks = np.empty(len(order), np.int64)
            self._ranks[order] = np.arange(len(order))
        return self._ranks

    def crowded(self, used: int) -> bool:
        """Many more values are known than codes are in use."""
        return len(self.values) > 4 * used + _LEAST_WORTH

    def keep(self, codes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Forget all values but these; the new code of each old one."""
        kept = np.unique(codes)
        moved = np.zeros(len(self.values), np.int64)
        moved[kept] = np.arange(len(kept))
        self.values = [self.values[code] for code in kept.tolist()]
        self.numbers = {value: code for code, value in enumerate(self.values)}
        self._ranks = None
        return moved

    def _number(self, array: pa.Array) -> NDArray[np.int64]:
        encoded = array.dictionary_encode()
        known = []
        for value in encoded.dictionary.to_pylist():
            code = self.numbers.setdefault(value, len(self.values))
            if code == len(self.values):
                self.values.append(value)
            known.append(code)
        return np.array(known, np.int64)[encoded.indices.to_numpy()]


def float_codes(floats: NDArray[np.float64]) -> NDArray[np.int64]:
    """Floats as whole numbers in the same order."""
    bits = (np.where(np.isnan(floats), np.nan, floats) + 0.0).view(np.int64)
    bits = np.where(np.isnan(floats), np.array(np.nan).view(np.int64), bits)
    return np.where(bits < 0, ~(bits & _REST), bits)


def code_floats(codes: NDArray[np.int64]) -> NDArray[np.float64]:
    """The floats of codes."""
    return np.where(codes < 0, ~codes | _SIGN, codes).astype(np.int64).view(np.float64)


def _timed(kind: pa.DataType) -> bool:
    return bool(pa.types.is_temporal(kind) and not pa.types.is_interval(kind))


def _whole(array: pa.Array) -> pa.Array:
    narrow = pa.types.is_date32(array.type) or pa.types.is_time32(array.type)
    if narrow:
        array = array.view(pa.int32())
    elif _timed(array.type):
        array = array.view(pa.int64())
    return array.cast(pa.int64())


def _typed(array: pa.Array, kind: pa.DataType) -> pa.Array:
    if pa.types.is_date32(kind) or pa.types.is_time32(kind):
        return array.cast(pa.int32()).view(kind)
    return array.view(kind) if _timed(kind) else array.cast(kind)
