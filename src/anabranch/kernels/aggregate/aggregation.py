"""Some aggregates over slots: which columns of state they need, each kept once, and what they say.

Where the input has no removals, the least, the greatest, the first and the last are one value by slot; else
values are counted.
"""

from collections.abc import Callable, Hashable, Iterator, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anabranch.expressions.aggregates import Aggregate, aggregate_text, aggregate_type
from anabranch.expressions.evaluation import evaluate, type_of
from anabranch.expressions.tree import Tree
from anabranch.kernels.aggregate.buckets import Buckets, exact_part
from anabranch.kernels.aggregate.codes import Codes
from anabranch.kernels.aggregate.column import Column, Counts, Slots, Values
from anabranch.kernels.aggregate.counted import Counted
from anabranch.kernels.aggregate.decimals import WIDE, DecimalSums
from anabranch.kernels.aggregate.extremes import Extremes
from anabranch.kernels.aggregate.floats import FloatSums
from anabranch.kernels.aggregate.integers import IntegerSquares, IntegerSums
from anabranch.kernels.aggregate.moments import means, variances
from anabranch.kernels.aggregate.one_value import CodeByStart, OneText
from anabranch.kernels.aggregate.own import Own
from anabranch.kernels.aggregate.part import Part, Said
from anabranch.kernels.aggregate.ranking import Ranking
from anabranch.model.batch import Batch

_t = pa.types


class Argument:
    """What some aggregates are of: a tree, how many values each slot has, and columns of state."""

    def __init__(self, tree: Tree, schema: pa.Schema, events: Counts, *, removals: bool) -> None:
        self.tree, self.events, self.removals = tree, events, removals
        kind = type_of(tree, schema)
        self.kind = kind.value_type if _t.is_dictionary(kind) else kind
        self.present: Counts | None = None
        """How many values there are; None: as many as events, because there were no nulls."""
        self.codes = Codes(self.kind)
        self.columns: dict[str, Column] = {}

    @property
    def nbytes(self) -> int:
        """Bytes of state beside that of the columns."""
        return self.codes.nbytes

    def read(self, batch: Batch) -> tuple[pa.Array, dict[int, str]]:
        """The values of rows, and the rows that have none."""
        found = evaluate(self.tree, batch.payload, batch.start, batch.end)
        return found.values, dict(zip(found.failed.tolist(), found.why, strict=True))

    def count(self, slots: Slots) -> NDArray[np.int64]:
        """How many values some slots have."""
        return (self.present or self.events).count[slots]

    def add(self, slots: Slots, array: pa.Array, start: NDArray[np.int64], sign: int) -> None:
        """Add values, nulls among them, to their slots; events were not counted yet."""
        if _t.is_dictionary(array.type):
            array = array.dictionary_decode()
        if array.null_count:
            there = array.is_valid()
            keep = there.to_numpy(zero_copy_only=False)
            slots, array, start = slots[keep], array.filter(there), start[keep]
            if self.present is None:
                self.present = Counts()
                self.present.count = self.events.count.copy()
        values = Values(slots, array, start)
        for column in self.columns.values():
            column.add(values, sign)
        if self.present is not None:
            self.present.add(values, sign)

    def all(self) -> list[Column]:
        """The columns of state."""
        return [*([] if self.present is None else [self.present]), *self.columns.values()]

    def column(self, name: str, make: Callable[[], Any]) -> Any:
        """The column of state by this name, made where it is needed first."""
        return self.columns.setdefault(name, self.columns.get(name) or make())

    def sums(self, *, squares: bool = False) -> Any:
        """The sums of values, or of their squares."""
        name = "squares" if squares else "sums"
        if _t.is_floating(self.kind):
            return self.column(name, lambda: FloatSums(squares=squares))
        if _t.is_decimal(self.kind):
            return self.column(name, lambda: DecimalSums(self.kind.scale, squares=squares))
        unsigned = bool(_t.is_uint64(self.kind))
        make = IntegerSquares if squares else IntegerSums
        return self.column(name, lambda: make(unsigned=unsigned))

    def counted(self) -> Counted:
        """How often each value is there, by code."""
        return self.column("codes", lambda: Counted(lambda v: (v.codes(self.codes), v.start), words=1))

    def timed(self) -> Counted:
        """How often each value is there at each start."""
        return self.column("timed", lambda: Counted(lambda v: (v.start, v.codes(self.codes)), words=2))

    def known(self) -> Counted:
        """How often each value is there, by its code where that is the value itself, else by identity."""
        if not self.codes.numbered:
            return self.counted()
        return self.column("identities", lambda: Counted(_identity_words, words=2))

    def compact(self) -> None:
        """Forget values that were numbered and are in no slot."""
        users: list[tuple[Any, bool]] = [
            (self.columns[name], high) for name, high in _CODED if name in self.columns
        ]
        if not self.codes.numbered or not self.codes.crowded(sum(one.used for one, _ in users)):
            return
        moved = self.codes.keep(np.concatenate([one.codes_in_use(high=high) for one, high in users]))
        for one, high in users:
            one.recode(moved, high=high)

    def saved(self, slots: Slots) -> list[pa.RecordBatch]:
        """The values that are numbered, how many values there are, and the columns of state."""
        values = pa.RecordBatch.from_arrays([pa.array(self.codes.values, self.kind)], names=["value"])
        counts = pa.RecordBatch.from_pydict({"count": self.count(slots)})
        return [values, counts, *(column.saved(slots) for column in self.columns.values())]

    def load(self, slots: Slots, batches: Iterator[pa.RecordBatch]) -> None:
        """What was saved; events are there already."""
        values, counts = next(batches), next(batches)
        if len(values):
            self.codes.of(values.column("value"))
        if (counts.column("count").to_numpy() != self.events.count[slots]).any():
            self.present = Counts()
            self.present.with_room(len(self.events.count))
            self.present.load(slots, counts)
        for column in self.columns.values():
            column.load(slots, next(batches))


_CODED = (("codes", False), ("timed", True))


def _identity_words(values: Values) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    words = values.words.view(np.int64)
    return words[:, 0], words[:, 1]


class Aggregation:
    """State: the columns of all aggregates."""

    def __init__(self, aggregates: Sequence[Aggregate], schema: pa.Schema, *, removals: bool) -> None:
        self.events = Counts()
        """How many events each slot has."""
        self.arguments: dict[Hashable, Part] = {}
        """What aggregates are of, each kept once; those that share nothing are by themselves."""
        self.ranking: Ranking | None = None
        """Where each slot is said in several rows, by rank."""
        self.finishes = [self._finish(one, schema, removals=removals) for one in aggregates]

    def _finish(self, one: Aggregate, schema: pa.Schema, *, removals: bool) -> Callable[[Slots], list[Said]]:
        """What an aggregate says of slots, a column or several."""
        if one.function == "top_k":
            self.ranking = self.arguments[one] = Ranking(one, schema, removals=removals)
            return self.ranking.finish
        finish = self._column(one, schema, removals=removals)
        return lambda slots: [finish(slots)]

    def _column(self, one: Aggregate, schema: pa.Schema, *, removals: bool) -> Callable[[Slots], Said]:
        if one.function == "aggregate":
            own = self.arguments.setdefault(one, Own(one, schema))
            assert isinstance(own, Own), "an aggregate is known by itself"
            return own.finish
        if one.argument is None:
            return lambda slots: Said(pa.array(self.events.count[slots]))
        argument = self.arguments.setdefault(
            one.argument, Argument(one.argument, schema, self.events, removals=removals)
        )
        assert isinstance(argument, Argument), "a tree is that of an argument"
        return _finish(one, argument, aggregate_type(one, argument.kind))

    @property
    def nbytes(self) -> int:
        """Bytes of state."""
        beside = sum(one.nbytes for one in self.arguments.values())
        return sum(column.nbytes for column in self._columns()) + beside

    @property
    def capacity(self) -> int:
        """How many slots there are."""
        return len(self.events.count)

    def _columns(self) -> list[Column]:
        return [self.events, *(column for one in self.arguments.values() for column in one.all())]

    def with_room(self, capacity: int) -> None:
        """Have this many slots."""
        if capacity > self.capacity:
            for column in self._columns():
                column.with_room(capacity)

    def read(self, batch: Batch) -> tuple[list[pa.Array], dict[int, str]]:
        """The values of the arguments for rows, and the rows for which one has none, with the reason."""
        arrays: list[pa.Array] = []
        failed: dict[int, str] = {}
        for one in self.arguments.values():
            values, reasons = one.read(batch)
            arrays.append(values)
            failed.update(reasons)
        return arrays, failed

    def add(self, slots: Slots, arrays: Sequence[pa.Array], start: NDArray[np.int64], sign: int) -> None:
        """Add rows to their slots, or with a sign of -1 take them away."""
        for argument, array in zip(self.arguments.values(), arrays, strict=True):
            argument.add(slots, array, start, sign)
        self.events.tell(slots, sign)

    @property
    def invertible(self) -> bool:
        """All that is merged can be taken away again."""
        return all(column.invertible for column in self._columns())

    def merge(self, into: Slots, other: Slots, sign: int = 1, *, invertible: bool | None = None) -> None:
        """Add what other slots have, each to the one beside it, or take it away.

        ``invertible``: only of columns from which it can be taken away again, or only of the others.
        """
        for column in self._columns():
            if invertible is None or column.invertible == invertible:
                column.merge(into, other, sign)

    def clear(self, slots: Slots, *, invertible: bool | None = None) -> None:
        """Make slots neutral; ``invertible`` as for `merge`."""
        for column in self._columns():
            if invertible is None or column.invertible == invertible:
                column.clear(slots)
        for argument in self.arguments.values():
            argument.compact()

    def said(self, slots: Slots) -> list[Said]:
        """The values of all aggregates for some slots."""
        return [said for finish in self.finishes for said in finish(slots)]

    def saved(self, slots: Slots) -> list[pa.RecordBatch]:
        """All that some slots have."""
        parts = [batch for one in self.arguments.values() for batch in one.saved(slots)]
        return [self.events.saved(slots), *parts]

    def load(self, slots: Slots, batches: Sequence[pa.RecordBatch]) -> None:
        """Give slots, which are neutral, what was saved."""
        left = iter(batches)
        self.events.load(slots, next(left))
        for one in self.arguments.values():
            one.load(slots, left)

    def rows(self, slots: Slots, *, all_ranks: bool = False) -> NDArray[np.int64] | None:
        """Of each row that is said of slots the place of its slot; None: each slot is one row.

        A slot that is said in several rows is given as often; ``all_ranks``: whether it has as many or not.
        """
        if self.ranking is None:
            return None
        counts = self.ranking.k if all_ranks else self.ranking.ranks(slots)
        return np.repeat(np.arange(len(slots)), counts)

    def there(self, slots: Slots) -> NDArray[np.bool_]:
        """Which rows are there."""
        there = self.events.count[slots] > 0
        return there if self.ranking is None else there & self.ranking.there(slots)


def failures(said: Sequence[Said], slots: Slots) -> tuple[NDArray[np.bool_], dict[int, str]]:
    """The rows that have no value, with the reason by the first row of each slot."""
    lost, why = np.zeros(len(slots), np.bool_), {}
    first = np.diff(slots, prepend=-1) != 0
    for one in said:
        if one.failed is not None:
            lost |= one.failed
            rows = np.flatnonzero(one.failed & first).tolist()
            why.update({row: one.why if one.whys is None else one.whys[row] for row in rows})
    return lost, why


def _finish(one: Aggregate, of: Argument, kind: pa.DataType) -> Callable[[Slots], Said]:
    """What an aggregate says of slots, with the columns it needs."""
    match one.function:
        case "count":
            return lambda slots: Said(pa.array(of.count(slots)))
        case "n_unique":
            known = of.known()
            return lambda slots: Said(pa.array(known.distinct(slots)))
        case "sum":
            return _sum(of, of.sums(), kind, aggregate_text(one))
        case "mean":
            sums = of.sums()
            return lambda slots: Said(means(sums, of.count(slots), slots))
        case "var" | "std":
            sums, squares = of.sums(), of.sums(squares=True)
            ddof, root = one.option("ddof"), one.function == "std"
            return lambda slots: Said(variances(sums, squares, of.count(slots), slots, ddof, root=root))
        case "approx_quantile":
            buckets = Buckets(one.option("error"))
            column = of.column(f"buckets {one.option('error')!r}", lambda: Counted(buckets.read, words=1))
            part = exact_part(one.option("q"))
            return lambda slots: Said(buckets.quantiles(column, slots, part))
        case "min" | "max":
            return _extreme(of, 1 if one.function == "min" else -1)
        case _:
            return _by_time(of, 1 if one.function == "first" else -1)


def _sum(of: Argument, sums: Any, kind: pa.DataType, words: str) -> Callable[[Slots], Said]:
    if isinstance(sums, FloatSums):
        return lambda slots: Said(pa.array(sums.rounded(slots), mask=of.count(slots) == 0))
    why = f"{words} does not fit {kind}"
    if isinstance(sums, DecimalSums):
        limit = 10**kind.precision
        return lambda slots: _decimal_sum(of, sums.exact(slots), slots, kind, limit, why)

    def integers(slots: Slots) -> Said:
        values, beyond = sums.words(slots)
        null = of.count(slots) == 0
        array = pa.array(values, mask=null | beyond if null.any() or beyond.any() else None)
        return Said(array if array.type == kind else array.view(kind), beyond if beyond.any() else None, why)

    return integers


def _decimal_sum(
    of: Argument, exact: list[int], slots: Slots, kind: pa.DataType, limit: int, why: str
) -> Said:
    beyond = np.array([abs(value) >= limit for value in exact], np.bool_)
    none = (of.count(slots) == 0) | beyond
    scaled = [None if no else Decimal(v).scaleb(-kind.scale, WIDE) for v, no in zip(exact, none, strict=True)]
    return Said(pa.array(scaled, kind), beyond if beyond.any() else None, why)


def _extreme(of: Argument, way: int) -> Callable[[Slots], Said]:
    if not of.removals and not of.codes.numbered:
        column = of.column(f"extreme {way}", lambda: Extremes(of.codes, way))
        return lambda slots: Said(of.codes.back(column.found(slots), of.count(slots) == 0))
    if not of.removals:
        return _one_value(of, way, by_start=False)
    counted = of.counted()

    def found(slots: Slots) -> Said:
        place, code, _, _ = counted.listed(slots)
        return Said(_chosen(of, slots, place, (_rank(of, code),), code, way))

    return found


def _by_time(of: Argument, way: int) -> Callable[[Slots], Said]:
    if not of.removals:
        return _one_value(of, way, by_start=True)
    timed = of.timed()

    def found(slots: Slots) -> Said:
        place, start, code, _ = timed.listed(slots)
        return Said(_chosen(of, slots, place, (_rank(of, code), start), code, way))

    return found


def _one_value(of: Argument, way: int, *, by_start: bool) -> Callable[[Slots], Said]:
    """The one value that is kept where nothing is taken away."""
    name = f"{'start' if by_start else 'value'} {way}"
    if of.codes.numbered:
        column = of.column(name, lambda: OneText(of.kind, way, by_start=by_start))
    else:
        column = of.column(name, lambda: CodeByStart(of.codes, way))
    return lambda slots: Said(column.found(slots, of.count(slots) == 0))


def _rank(of: Argument, code: NDArray[np.int64]) -> NDArray[np.int64]:
    return of.codes.ranks()[code] if of.codes.numbered else code


def _chosen(
    of: Argument,
    slots: Slots,
    place: NDArray[np.int64],
    order: tuple[NDArray[np.int64], ...],
    code: NDArray[np.int64],
    way: int,
) -> pa.Array:
    """Of each slot the value that is first in an order, or last."""
    sorting = np.lexsort((*order, place))
    codes, null = np.zeros(len(slots), np.int64), np.ones(len(slots), np.bool_)
    sorting = sorting if way < 0 else sorting[::-1]
    codes[place[sorting]] = code[sorting]
    null[place] = False
    return of.codes.back(codes, null)
