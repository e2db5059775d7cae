"""The identity of a payload: 128 bits that are the same wherever and however the payload was written.

Two payloads are the same when their columns have the same names and values, whatever the order of the
columns and whatever Arrow type carries a value:

- a column that is null is a column that is not there;
- numbers are equal by value: an int of any width, a float or a decimal that is a whole number in the range
  of int64 are one number (``1``, ``1.0`` and ``1.00`` are equal); ``-0.0`` is ``0``, every NaN is one value;
- a fraction is a float or a decimal, and those two differ (a decimal is exact);
- text is its UTF-8 bytes, binary is its bytes, and the two differ;
- instants (timestamps with a time zone) are equal at any unit and in any zone; timestamps without one, dates,
  times of day and durations are values of their own kinds, each equal at any unit;
- lists are equal element by element, structs like payloads, maps as sets of entries.

Identities are stored in checkpoints: nothing here may change without a new version of every stored format.
"""

from collections.abc import Callable
from decimal import Context, Decimal
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from anabranch.errors import AnabranchError
from anabranch.model.compiled import compiled
from anabranch.model.murmur import finish, mix, murmur

Words: TypeAlias = NDArray[np.uint64]
"""Identities of n payloads, one row each: a low and a high word."""

Hashes: TypeAlias = NDArray[np.uint64]
"""Hashes of n values: a row of n low words and a row of n high words, so that loops over them vectorise."""

# One seed for each kind of value, so that equal bytes of different kinds differ.
NUMBER, FLOAT, DECIMAL, BOOLEAN, TEXT, BINARY = 1, 2, 3, 4, 5, 6
INSTANT, LOCAL, DATE, TIME_OF_DAY, DURATION, LIST, STRUCT, MAP, NULL, NAME = (
    7,
    8,
    9,
    10,
    11,
    12,
    13,
    14,
    15,
    16,
)

_EXACT = Context(prec=100)
"""Wide enough for every Arrow decimal, so that normalising never rounds."""

_INT64 = pa.int64()
_NANOSECONDS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}


class UnsupportedTypeError(AnabranchError, TypeError):
    """A payload column has an Arrow type that has no canonical form."""


def identities(payload: pa.RecordBatch) -> Words:
    """The identity of each row.

    >>> rows = pa.RecordBatch.from_pylist([{"b": 1, "a": "x"}, {"a": "x", "b": 1.0, "c": None}])
    >>> bool((identities(rows)[0] == identities(rows)[1]).all())
    True
    """
    total = np.zeros((2, payload.num_rows), np.uint64)
    for number, name in enumerate(payload.schema.names):
        _add_column(total, _name_hash(name), *_hash(payload.column(number), name))
    found = np.empty((payload.num_rows, 2), np.uint64)
    _finish(total, found)
    return found


def _hash(values: Any, column: str) -> tuple[Hashes, NDArray[np.bool_]]:
    """The hash of each value, and which of them there are."""
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if isinstance(values, pa.ExtensionArray):
        values = values.storage
    hash_values = _hasher(values.type)
    if hash_values is not None:
        return hash_values(values, column), _present(values)
    raise _unsupported(values.type, column)


def check_types(columns: pa.Schema) -> None:
    """Raise where a column holds values that have no identity, however deep they are."""
    for field in columns:
        _check_type(field.type, field.name)


def _check_type(dtype: pa.DataType, column: str) -> None:
    if isinstance(dtype, pa.BaseExtensionType):
        dtype = dtype.storage_type
    if _hasher(dtype) is None:
        raise _unsupported(dtype, column)
    inner = [dtype.value_type] if pa.types.is_dictionary(dtype) else []
    for one in [*inner, *(dtype.field(n).type for n in range(dtype.num_fields))]:
        _check_type(one, column)


def _unsupported(dtype: pa.DataType, column: str) -> UnsupportedTypeError:
    error = UnsupportedTypeError(f"column {column!r} has type {dtype}, which has no canonical form")
    error.add_note("Cast it to a number, text, binary, time, list, struct or map before it enters a stream.")
    return error


def _present(values: Any) -> NDArray[np.bool_]:
    """Which values there are; a dictionary's null count does not count the indices of a null in it."""
    if values.null_count == 0 and not pa.types.is_dictionary(values.type):
        present = np.empty(len(values), np.bool_)
        present.fill(True)
        return present
    valid = values.is_valid()
    begin, end = valid.offset, valid.offset + len(valid)
    bits = np.unpackbits(_data(valid.buffers()[1])[begin // 8 : (end + 7) // 8], bitorder="little")
    return bits[begin % 8 :][: len(valid)].view(np.bool_)


def _numpy(values: Any) -> Any:
    return values.to_numpy(zero_copy_only=False)


def _integers(values: Any, column: str) -> Hashes:
    if pa.types.is_uint64(values.type):
        return _decimals(values.cast(pa.decimal128(20)), column)
    return _hash_words(_int64(values), NUMBER)


def _int64(values: Any) -> NDArray[np.int64]:
    """The values as numbers; where there is none, any number."""
    counts = values if values.type == _INT64 else values.cast(_INT64)
    return np.frombuffer(counts.buffers()[1] or b"", np.int64, len(counts), 8 * counts.offset)


def _floats(values: Any, _column: str) -> Hashes:
    number = _numpy(values.fill_null(0.0) if values.null_count else values).astype(np.float64)
    with np.errstate(invalid="ignore"):
        whole = (np.floor(number) == number) & (number >= -(2.0**63)) & (number < 2.0**63)
        bits = np.where(np.isnan(number), np.nan, number).view(np.int64)
        return np.where(whole, _hash_words(number.astype(np.int64), NUMBER), _hash_words(bits, FLOAT))


def _decimals(values: Any, column: str) -> Hashes:
    numbers = [Decimal(0) if value is None else value for value in values.to_pylist()]
    whole = np.array([n == n.to_integral_value() and -(2**63) <= n < 2**63 for n in numbers], np.bool_)
    as_numbers = pa.array([int(n) if w else 0 for n, w in zip(numbers, whole, strict=True)], pa.int64())
    as_text = pa.array([format(n.normalize(_EXACT), "f") for n in numbers], pa.string())
    return np.where(whole, _integers(as_numbers, column), _bytes(as_text, DECIMAL))


def _booleans(values: Any, _column: str) -> Hashes:
    return _hash_words(_int64(values), BOOLEAN)


def _instants(values: Any, _column: str) -> Hashes:
    return _spans(values, LOCAL if values.type.tz is None else INSTANT)


def _durations(values: Any, _column: str) -> Hashes:
    return _spans(values, DURATION)


def _times_of_day(values: Any, _column: str) -> Hashes:
    return _spans(values, TIME_OF_DAY)


def _spans(values: Any, kind: int) -> Hashes:
    """Counts of any unit as whole seconds and the nanoseconds beyond them."""
    unit = _NANOSECONDS[values.type.unit]
    count = _int64(values.cast(pa.int32()) if pa.types.is_time32(values.type) else values)
    seconds, rest = np.divmod(count, 10**9 // unit)
    words = _hash_words(seconds, kind)
    _mix_in(words, (rest * unit).view(np.uint64))
    return words


def _dates(values: Any, _column: str) -> Hashes:
    return _hash_words(_int64(values.cast(pa.date32()).cast(pa.int32())), DATE)


def _texts(values: Any, _column: str) -> Hashes:
    return _bytes(values, TEXT)


def _binaries(values: Any, _column: str) -> Hashes:
    return _bytes(values, BINARY)


def _bytes(values: Any, kind: int) -> Hashes:
    if not len(values):  # the format allows no values to have no offsets
        return np.empty((2, 0), np.uint64)
    large = pa.large_binary()
    narrow = pa.types.is_string(values.type) or pa.types.is_binary(values.type)
    if not narrow and values.type != large:
        values = values.cast(pa.large_string() if pa.types.is_string_view(values.type) else large)
    _, offsets, data = values.buffers()
    bounds = np.frombuffer(offsets, np.int32 if narrow else np.int64)
    hashes = np.empty((2, len(values)), np.uint64)
    _hash_ranges(_data(data), bounds[values.offset : values.offset + len(values) + 1], kind, hashes)
    return hashes


def _data(buffer: Any) -> NDArray[np.uint8]:
    return np.frombuffer(b"" if buffer is None else buffer, np.uint8)


def _dictionaries(values: Any, column: str) -> Hashes:
    hashes, present = _hash(values.dictionary, column)
    hashes[:, ~present] = 0
    if not len(present):
        return np.zeros((2, len(values)), np.uint64)
    return hashes.take(_int64(values.indices.fill_null(0)), axis=1)


def _structs(values: Any, column: str) -> Hashes:
    total = np.zeros((2, len(values)), np.uint64)
    for field, child in zip(values.type, values.flatten(), strict=True):
        _add_column(total, _name_hash(field.name), *_hash(child, f"{column}.{field.name}"))
    _mix_in(total, np.full(len(values), STRUCT, np.uint64))
    return total


def _lists(values: Any, column: str) -> Hashes:
    # Not by a cast to one type of list: Arrow 26 loses elements when it casts list views that have nulls.
    lengths = _int64(pc.list_value_length(values).fill_null(0))
    items, present = _hash(values.flatten(), f"{column}[]")
    items[:, ~present] = NULL
    hashes = np.empty((2, len(values)), np.uint64)
    _fold_lists(items, np.concatenate([[0], np.cumsum(lengths)]), hashes)
    return hashes


def _maps(values: Any, column: str) -> Hashes:
    keys, _ = _hash(values.keys, f"{column}.key")
    items, present = _hash(values.items, f"{column}.value")
    items[:, ~present] = NULL
    hashes = np.empty((2, len(values)), np.uint64)
    _fold_maps(keys, items, _numpy(values.offsets).astype(np.int64), hashes)
    return hashes


def _nothing(values: Any, _column: str) -> Hashes:
    return np.zeros((2, len(values)), np.uint64)


_t = pa.types
_HASHES: list[tuple[Callable[[Any], bool], Callable[[Any, str], Hashes]]] = [
    (_t.is_null, _nothing),
    (_t.is_integer, _integers),
    (_t.is_floating, _floats),
    (_t.is_boolean, _booleans),
    (lambda t: _t.is_string(t) or _t.is_large_string(t) or _t.is_string_view(t), _texts),
    (
        lambda t: (
            _t.is_binary(t) or _t.is_large_binary(t) or _t.is_binary_view(t) or _t.is_fixed_size_binary(t)
        ),
        _binaries,
    ),
    (_t.is_decimal, _decimals),
    (_t.is_timestamp, _instants),
    (_t.is_date, _dates),
    (_t.is_time, _times_of_day),
    (_t.is_duration, _durations),
    (_t.is_dictionary, _dictionaries),
    (_t.is_struct, _structs),
    (_t.is_map, _maps),
    (
        lambda t: (
            _t.is_list(t)
            or _t.is_large_list(t)
            or _t.is_fixed_size_list(t)
            or _t.is_list_view(t)
            or _t.is_large_list_view(t)
        ),
        _lists,
    ),
]


@lru_cache(maxsize=1024)
def _hasher(dtype: pa.DataType) -> Callable[[Any, str], Hashes] | None:
    """What hashes values of a type; None where it has no canonical form."""
    return next((hash_values for belongs, hash_values in _HASHES if belongs(dtype)), None)


@lru_cache(maxsize=1024)
def _name_hash(name: str) -> tuple[np.uint64, np.uint64]:
    (low,), (high,) = _bytes(pa.array([name]), NAME)
    return low, high


def _hash_words(values: NDArray[np.int64], kind: int) -> Hashes:
    hashes = np.empty((2, len(values)), np.uint64)
    _hash_integers(values, np.uint64(kind), hashes)
    return hashes


@compiled
def _hash_integers(values: Any, kind: Any, hashes: Any) -> None:
    for i in range(len(values)):
        low = mix(np.uint64(values[i]) + kind * np.uint64(0x9E3779B97F4A7C15))
        hashes[0, i], hashes[1, i] = finish(low, kind)


@compiled
def _hash_ranges(data: Any, bounds: Any, kind: int, hashes: Any) -> None:
    for i in range(len(bounds) - 1):
        hashes[0, i], hashes[1, i] = murmur(data, bounds[i], bounds[i + 1], kind)


@compiled
def _mix_in(hashes: Any, words: Any) -> None:
    for i in range(len(words)):
        hashes[0, i], hashes[1, i] = finish(hashes[0, i] ^ mix(words[i]), hashes[1, i] + words[i])


@compiled
def _add_column(total: Any, name: Any, hashes: Any, present: Any) -> None:
    """Columns add up, so their order does not matter and an absent one adds nothing."""
    for i in range(len(present)):
        if present[i]:
            low, high = finish(hashes[0, i] ^ name[0], hashes[1, i] ^ name[1])
            total[0, i] += low
            total[1, i] += high


@compiled
def _fold_lists(items: Any, offsets: Any, hashes: Any) -> None:
    for i in range(len(offsets) - 1):
        low, high = np.uint64(LIST), np.uint64(offsets[i + 1] - offsets[i])
        for j in range(offsets[i], offsets[i + 1]):
            low, high = finish(low ^ items[0, j], high + items[1, j])
        hashes[0, i], hashes[1, i] = finish(low, high)


@compiled
def _fold_maps(keys: Any, items: Any, offsets: Any, hashes: Any) -> None:
    for i in range(len(offsets) - 1):
        low, high = np.uint64(MAP), np.uint64(offsets[i + 1] - offsets[i])
        for j in range(offsets[i], offsets[i + 1]):
            entry_low, entry_high = finish(keys[0, j] ^ mix(items[0, j]), keys[1, j] + items[1, j])
            low += entry_low
            high += entry_high
        hashes[0, i], hashes[1, i] = finish(low, high)


@compiled
def _finish(total: Any, found: Any) -> None:
    for i in range(len(found)):
        found[i, 0], found[i, 1] = finish(total[0, i], total[1, i])
