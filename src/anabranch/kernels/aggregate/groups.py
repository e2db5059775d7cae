"""Groups by numbers: rows that are equal on the group columns have one, small and dense.

A single column of integers, dates or timestamps is its own key; as long as keys are close together, they are
found in an array, without a hash. Any other group is known by the identity of
its columns; a column that comes as a dictionary is hashed once for each value that occurs in it.

Memory: of each number that is in use what `Numbers` takes, a count of references, and its columns where they
are not the key itself. A number is given back when nothing refers to it.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anabranch.kernels.aggregate.column import read_only
from anabranch.kernels.store.numbers import Numbers, leave_slots, number_apart, number_for
from anabranch.model.batch import Batch
from anabranch.model.compiled import compiled
from anabranch.model.identity import Words, identities
from anabranch.model.payloads import PayloadStore
from anabranch.model.pool import give_place, grown
from anabranch.model.rows import take_rows
from anabranch.model.slots import NONE
from anabranch.model.time import BEGINNING, FOREVER

_CLOSE = 4
"""How many times as many keys there may be in a range as are in use, for an array of the range."""
_FEW = 1024
_NULL = np.uint64(1)
"""The high word of a key that is null, where keys are numbers."""


@dataclass(slots=True)
class Groups:
    """State: the groups that are open, by number, with their columns."""

    schema: pa.Schema
    """The group columns."""
    numbers: Numbers = field(default_factory=lambda: Numbers.of_capacity(16), repr=False)
    references: NDArray[np.int32] = field(default_factory=lambda: np.zeros(16, np.int32), repr=False)
    """How often each number is referred to."""
    columns: PayloadStore = field(default_factory=PayloadStore, repr=False)
    place: NDArray[np.int64] = field(default_factory=lambda: np.zeros(16, np.int64), repr=False)
    """Where the columns of each number are kept."""
    direct: NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32), repr=False)
    """The number of each key from the first on, where keys are numbers that are close together."""
    first: int = 0
    dictionary: pa.Array | None = field(default=None, repr=False)
    """The last dictionary of values that came."""
    known: NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32), repr=False)
    """The numbers of its values, and of null at the end, as far as they are in use."""
    tried: int = 0
    """How many groups there are before an array of keys is thought of again."""

    @property
    def plain(self) -> bool:
        """The one group column is its own key."""
        return len(self.schema) == 1 and _is_number(self.schema.field(0).type)

    @property
    def nbytes(self) -> int:
        """Bytes of state."""
        kept = 0 if self.plain else self.place.nbytes + self.columns.nbytes
        return self.numbers.nbytes + self.references.nbytes + self.direct.nbytes + kept

    def number(self, batch: Batch) -> NDArray[np.int32]:
        """The number of each row's group; those that are new are in use from here on."""
        if not len(self.schema):
            return self._ungrouped(len(batch))
        if self.plain:
            values, present = _words_of(batch.payload.column(self.schema.names[0]))
            return self._of_values(values, present)
        if batch.__dict__.get("by") == tuple(self.schema.names):
            return self._with_columns(batch.payload, batch.identities)
        keys = batch.payload.select(self.schema.names)
        if len(self.schema) == 1 and pa.types.is_dictionary(keys.column(0).type):
            return self._of_dictionary(keys)
        return self._with_columns(keys, identities(keys))

    def at(self, numbers: NDArray[np.int32]) -> list[pa.Array]:
        """The group columns of some numbers."""
        if not len(self.schema):
            return []
        if self.plain:
            kind = self.schema.field(0).type
            words = self.numbers.words[numbers]
            null = words[:, 1] == _NULL
            values = pa.array(words[:, 0].view(np.int64), mask=null if null.any() else None)
            return [_as_type(values, kind)]
        if not len(numbers):
            return [pa.array([], one.type) for one in self.schema]
        return self.columns.at(self.place[numbers]).columns

    def forget(self, numbers: NDArray[np.int32]) -> None:
        """Give back those of these numbers that nobody refers to."""
        give_back(self.numbers, self.references, numbers, self.direct, np.int64(self.first))
        if len(self.known):
            self.known[(self.references[self.known] == 0) | (self.known < 0)] = NONE
        if not self.plain and self.columns.crowded(self.numbers.used):
            self.columns.compact(self.place, np.flatnonzero(self.references))

    def _ungrouped(self, count: int) -> NDArray[np.int32]:
        if count and not self.numbers.used:
            self._numbered(_NO_COLUMNS)
        return np.zeros(count, np.int32)

    def _of_values(self, values: NDArray[np.int64], present: NDArray[np.bool_]) -> NDArray[np.int32]:
        count = len(values)
        found = np.empty(count, np.int32)
        row = hashed = 0
        while row < count:
            row, more = number_close_values(
                self.numbers, self.direct, np.int64(self.first), values, present, row, found
            )
            hashed += more
            if row < count:
                self._have(self.numbers.with_room(self.numbers.capacity))
        if 4 * hashed > count and self.numbers.used >= self.tried:
            self._spread(found)
        return found

    def _spread(self, new: NDArray[np.int32]) -> None:
        """Keep all keys in an array of their range, where that is worth its bytes; else in the table."""
        numbers = self.numbers
        self.tried = 2 * numbers.used
        taken = self.references > 0
        taken[new] = True
        used = np.flatnonzero(taken & (numbers.words[:, 1] == 0)).astype(np.int32)
        keys = numbers.words[used, 0].view(np.int64)
        least, most = (int(keys.min()), int(keys.max())) if len(used) else (0, 0)
        if most - least >= _CLOSE * max(len(used), _FEW):
            return
        room = (most - least) // 4
        self.first = max(least - room, BEGINNING)
        self.direct = np.full(min(most + room, FOREVER) - self.first + 1, NONE, np.int32)
        self.direct[keys - self.first] = used
        forget_keys(numbers, used)

    def _of_dictionary(self, keys: pa.RecordBatch) -> NDArray[np.int32]:
        column = keys.column(0)
        if isinstance(column, pa.ChunkedArray):
            column = column.combine_chunks()
        count = len(column.dictionary)
        indices = column.indices.fill_null(count) if column.indices.null_count else column.indices
        codes = indices.to_numpy()
        if not _is_same(column.dictionary, self.dictionary):
            self.dictionary, self.known = column.dictionary, np.full(count + 1, NONE, np.int32)
        found = self.known[codes]
        strange = found < 0
        if strange.any():
            wanted = np.zeros(count + 1, np.bool_)
            wanted[codes[strange]] = True
            places = np.flatnonzero(wanted)
            values = column.dictionary.take(pa.array(places, mask=places == count))
            rows = pa.RecordBatch.from_arrays([values], names=self.schema.names)
            self.known[places] = self._with_columns(rows, identities(rows))
            found = self.known[codes]
        return found

    def _with_columns(self, rows: pa.RecordBatch, words: NDArray[np.uint64]) -> NDArray[np.int32]:
        found, births = self._numbered(words)
        if len(births):
            keys = take_rows(rows.select(self.schema.names), births)
            keys = pa.RecordBatch.from_arrays(
                [column.cast(one.type) for column, one in zip(keys.columns, self.schema, strict=True)],
                schema=self.schema,
            )
            self.place = grown(self.place, self.numbers.capacity)
            self.place[found[births]] = self.columns.next_place + np.arange(len(births))
            self.columns.add(self.columns.admit(keys))
        return found

    def _numbered(self, words: Words) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """The number of each key, and the rows whose keys are new."""
        numbers, found, births = self.numbers.number(words)
        self._have(numbers)
        return found, births

    def _have(self, numbers: Numbers) -> None:
        self.numbers, self.references = numbers, grown(self.references, numbers.capacity)

    def saved(self, numbers: NDArray[np.int32]) -> pa.RecordBatch:
        """The keys of some numbers, with their columns."""
        low, high = self.numbers.words[numbers].T
        columns = (
            {} if self.plain else dict(zip(map(_kept, self.schema.names), self.at(numbers), strict=True))
        )
        return pa.RecordBatch.from_pydict({"low": low, "high": high, **columns})

    def load(self, rows: pa.RecordBatch) -> NDArray[np.int32]:
        """Numbers for keys that were saved."""
        low, high = (rows.column(name).to_numpy() for name in ("low", "high"))
        if self.plain:
            return self._of_values(read_only(low.view(np.int64)), read_only(high != _NULL))
        if not len(self.schema):
            return self._ungrouped(len(low))
        names = self.schema.names
        columns = pa.RecordBatch.from_arrays([rows.column(_kept(name)) for name in names], names=names)
        return self._with_columns(columns, np.stack([low, high], axis=1))


def _is_same(one: pa.Array, other: pa.Array | None) -> bool:
    """Whether two dictionaries are the same memory."""
    if other is None or len(one) != len(other) or one.offset != other.offset:
        return False
    pairs = zip(one.buffers(), other.buffers(), strict=False)
    return all((a and a.address) == (b and b.address) for a, b in pairs)


def _kept(name: str) -> str:
    return f"group {name}"


def _is_number(kind: pa.DataType) -> bool:
    t = pa.types
    return bool(t.is_integer(kind) or t.is_date32(kind) or t.is_timestamp(kind))


def _words_of(column: Any) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The values as words, and which there are (none: all)."""
    if pa.types.is_date32(column.type):
        column = column.view(pa.int32())
    if pa.types.is_uint64(column.type) or pa.types.is_timestamp(column.type):
        column = column.view(pa.int64())
    column = column if column.type == pa.int64() else column.cast(pa.int64())
    values = np.frombuffer(column.buffers()[1] or b"", np.int64, len(column), 8 * column.offset)
    if not column.null_count:
        return values, _ALL
    present = column.is_valid().to_numpy(zero_copy_only=False)
    present.flags.writeable = False
    return values, present


_NO_COLUMNS = np.zeros((1, 2), np.uint64)
_ALL = np.ones(0, np.bool_)
_ALL.flags.writeable = False


def _as_type(values: pa.Array, kind: pa.DataType) -> pa.Array:
    if pa.types.is_uint64(kind) or pa.types.is_timestamp(kind):
        return values.view(kind)
    if pa.types.is_date32(kind):
        return values.cast(pa.int32()).view(kind)
    return values.cast(kind)


@compiled
def number_close_values(
    numbers: Numbers, direct: Any, first: Any, values: Any, present: Any, row: int, found: Any
) -> tuple[int, int]:
    """Number keys that are numbers from a row on: by the array of their range, and beyond it by the table.

    Returns the first row that found no room, and how many keys were looked for in the table.
    """
    hashed = 0
    for i in range(row, len(values)):
        there = len(present) == 0 or present[i]
        place = values[i] - first
        if there and place >= 0 and place < len(direct):
            number = np.int64(direct[place])
            if number < 0:
                if numbers.pool.height[0] == 0:
                    return i, hashed
                number = number_apart(numbers, np.uint64(values[i]), np.uint64(0))
                direct[place] = number
        else:
            low, high = (np.uint64(values[i]), np.uint64(0)) if there else (np.uint64(0), _NULL)
            number = number_for(numbers, low, high)
            if number == NONE:
                return i, hashed
            hashed += 1
        found[i] = number
    return len(values), hashed


@compiled
def forget_keys(numbers: Numbers, some: Any) -> None:
    """Take the keys of numbers out of the table; they are kept in an array."""
    for number in some:
        leave_slots(numbers, number)


@compiled
def give_back(numbers: Numbers, references: Any, some: Any, direct: Any, first: Any) -> None:
    """Free numbers, each of which is in use, that have no references."""
    for number in some:
        if references[number]:
            continue
        place = np.int64(numbers.words[number, 0]) - first
        if numbers.words[number, 1] == 0 and place >= 0 and place < len(direct):
            direct[place] = NONE
        else:
            leave_slots(numbers, number)
        give_place(numbers.pool, number)
