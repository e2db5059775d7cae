"""The greatest values of a slot, each with columns of its row: top k, a row for each rank.

Equal values are in the order of the identity of what they carry; rows that are equal in all have a rank
each. Where nothing can be removed a slot keeps the k best (`Best`), else all values (`AllValues`), as also of
texts, bytes and decimals, whose order among those that come later is not known.
"""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anabranch.expressions.aggregates import Aggregate
from anabranch.expressions.evaluation import evaluate, type_of
from anabranch.kernels.aggregate.all_values import AllValues
from anabranch.kernels.aggregate.best import Best
from anabranch.kernels.aggregate.codes import Codes
from anabranch.kernels.aggregate.column import Column, Slots, Values
from anabranch.kernels.aggregate.part import Said
from anabranch.model.batch import Batch


class Ranking:
    """State: the values of each slot with what they carry, as far as they may have a rank."""

    def __init__(self, one: Aggregate, schema: pa.Schema, *, removals: bool) -> None:
        assert one.argument is not None, "a rank is by an expression"
        self.tree, self.k, self.carry = one.argument, int(one.option("k")), tuple(one.option("carry"))
        kind = type_of(self.tree, schema)
        self.codes = Codes(kind.value_type if pa.types.is_dictionary(kind) else kind)
        carried = pa.schema([schema.field(name) for name in self.carry])
        every = removals or self.codes.numbered
        self.values = (AllValues if every else Best)(self.k, self.codes, carried)

    @property
    def nbytes(self) -> int:
        """Bytes of state beside that of the columns."""
        return self.codes.nbytes

    def read(self, batch: Batch) -> tuple[pa.Array, dict[int, str]]:
        """The value and the carried columns of each row."""
        found = evaluate(self.tree, batch.payload, batch.start, batch.end)
        values = found.values.dictionary_decode() if _is_dictionary(found.values) else found.values
        columns = [values, *(batch.payload.column(name) for name in self.carry)]
        rows = pa.StructArray.from_arrays(columns, names=[f"{n}" for n in range(len(columns))])
        return rows, dict(zip(found.failed.tolist(), found.why, strict=True))

    def add(self, slots: Slots, array: pa.Array, start: NDArray[np.int64], sign: int) -> None:
        """Add values that are not null, with what they carry, or take them away."""
        values = array.field(0)
        if values.null_count:
            there = values.is_valid()
            keep = there.to_numpy(zero_copy_only=False)
            slots, array, start = slots[keep], array.filter(there), start[keep]
        self.values.add(Values(slots, array, start), sign)

    def all(self) -> list[Column]:
        """The values."""
        return [self.values]

    def compact(self) -> None:
        """Forget what is carried, and values that were numbered, where no slot has them."""
        if isinstance(self.values, AllValues):
            self.values.compact()

    def ranks(self, slots: Slots) -> NDArray[np.int64]:
        """How many ranks each slot has."""
        return self.values.lengths(slots)

    def there(self, slots: Slots) -> NDArray[np.bool_]:
        """Which of rows, each of which is a rank of its slot, there are."""
        first, rank, of = _ranked(slots)
        return rank < self.ranks(slots[first])[of]

    def finish(self, slots: Slots) -> list[Said]:
        """What is said of slots, each there once for each of its ranks: value, carried columns, rank."""
        first, rank, of = _ranked(slots)
        lengths, code, carried = self.values.ordered(slots[first])
        there = rank < lengths[of]
        ranks = Said(pa.array(rank + 1))
        if there.all():
            none = np.zeros(len(code), np.bool_)
            return [Said(self.codes.back(code, none)), *map(Said, carried), ranks]
        places = np.where(there, (np.cumsum(lengths) - lengths)[of] + rank, 0)
        codes = code[places] if len(code) else np.zeros(len(slots), np.int64)
        wanted = pa.array(places, mask=~there)
        return [Said(self.codes.back(codes, ~there)), *(Said(one.take(wanted)) for one in carried), ranks]

    def saved(self, slots: Slots) -> list[pa.RecordBatch]:
        """The values that are numbered, the values of slots, and what they carry."""
        values = pa.RecordBatch.from_arrays([pa.array(self.codes.values, self.codes.kind)], names=["value"])
        return [values, self.values.saved(slots)]

    def load(self, slots: Slots, batches: Iterator[pa.RecordBatch]) -> None:
        """What was saved."""
        values = next(batches)
        if self.codes.numbered:
            self.codes.of(values.column("value"))
        self.values.load(slots, next(batches))


def _ranked(slots: Slots) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Where each slot is first, and of each row its rank from 0 and which of these it is; equals adjoin."""
    new = np.diff(slots, prepend=-1) != 0
    first, of = np.flatnonzero(new), np.cumsum(new) - 1
    return first, np.arange(len(slots)) - first[of], of


def _is_dictionary(array: pa.Array) -> bool:
    return bool(pa.types.is_dictionary(array.type))
