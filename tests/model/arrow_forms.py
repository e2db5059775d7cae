"""Payload values, and every form in which Arrow can carry them without changing what they are."""

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from math import isfinite
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from anabranch.model.rows import rows_without_columns

INTEGERS = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]
FLOATS = [pa.float16(), pa.float32(), pa.float64()]
DECIMALS = [
    pa.decimal32(9, 2),
    pa.decimal64(18, 3),
    pa.decimal128(38, 0),
    pa.decimal128(38, 10),
    pa.decimal256(76, 0),
    pa.decimal256(76, 20),
]
TEXTS = [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())]
BINARIES = [pa.binary(), pa.large_binary(), pa.binary_view(), pa.dictionary(pa.uint16(), pa.binary())]
LISTS = [pa.list_, pa.large_list, pa.list_view, pa.large_list_view]
ZONES = ["UTC", "Europe/Berlin", "+05:30"]
ANY_NULL = [
    pa.null(),
    pa.bool_(),
    pa.string(),
    pa.uint64(),
    pa.list_(pa.int8()),
    pa.struct([("x", pa.date32())]),
]

names = st.sampled_from(["a", "b", "c", "é", ""])
_zones = st.sampled_from([UTC, timezone(timedelta(hours=-9, minutes=-30)), timezone(timedelta(hours=14))])
_datetimes = st.datetimes(datetime(2, 1, 1), datetime(9998, 1, 1))
_whole_seconds = st.sampled_from(
    [datetime(1969, 12, 31, 23, 59, 59), datetime(1970, 1, 1), datetime(2026, 1, 1)]
)
_wholes = st.integers(-3, 3) | st.sampled_from(
    [2**53 + 1, 2**63 - 1, -(2**63), 2**63, 2**64 - 1, -(2**63) - 1]
)
SCALARS = [
    st.booleans(),
    _wholes | st.integers(-(10**75), 10**75) | _wholes.map(Decimal),
    st.integers(-(2**10), 2**10).flatmap(lambda n: st.sampled_from([n, float(n), Decimal(n), -0.0])),
    st.floats() | st.sampled_from([0.1, 2.0**63, -(2.0**63), -0.0, float("nan"), float("inf")]),
    st.decimals(-(10**30), 10**30, places=3)
    | st.sampled_from([Decimal("0.50"), Decimal("0.5"), Decimal("-0")]),
    st.text(max_size=20) | st.sampled_from(["", "a", "1"]),
    st.binary(max_size=20) | st.sampled_from([b"", b"a"]),
    st.dates(),
    st.times() | st.times().map(lambda t: t.replace(microsecond=0)),
    st.timedeltas(timedelta(days=-(10**6)), timedelta(days=10**6)) | st.integers(-3, 3).map(timedelta),
    _datetimes | _whole_seconds,
    st.datetimes(datetime(2, 1, 2), datetime(9998, 1, 1), timezones=_zones)
    | _whole_seconds.map(lambda moment: moment.replace(tzinfo=UTC)),
]
"""Strategies whose values have one Arrow type in common, however many are drawn."""


def _structs(fields: Mapping[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional={name: family | st.none() for name, family in fields.items()})


families = st.recursive(
    st.sampled_from(SCALARS),
    lambda inner: (
        inner.map(lambda family: st.lists(family | st.none(), max_size=3))
        | st.dictionaries(names, inner, max_size=3).map(_structs)
    ),
    max_leaves=4,
)


similar_payloads = st.dictionaries(names, families, max_size=3).map(_structs)
"""Strategies of payloads that can be rows of one record batch."""


def lookalikes(value: Any) -> list[Any]:
    """Values of other kinds that a careless comparison might take for this one."""
    wrapped = [[value], {"a": value}, [value, None]]
    match value:
        case bool():
            return [*wrapped, int(value), str(value).lower()]
        case float() if not isfinite(value):
            return [*wrapped, -value, str(value)]
        case float():
            return [*wrapped, str(value), Decimal(round(value, 3)).quantize(Decimal("0.001"))]
        case int() | Decimal():
            return [*wrapped, str(value), float(value), value == 1, timedelta(microseconds=1)]
        case str():
            return [*wrapped, value.encode(), value + "\0"]
        case bytes():
            return [*wrapped, value.hex(), value + b"\0"]
        case datetime():
            return [*wrapped, value.replace(tzinfo=UTC if value.tzinfo is None else None), value.date()]
        case date():
            return [*wrapped, datetime(value.year, value.month, value.day), value.toordinal()]
        case time():
            return [*wrapped, timedelta(hours=value.hour), str(value)]
        case timedelta():
            return [*wrapped, value // timedelta(microseconds=1), (datetime(1970, 1, 1) + value).time()]
        case list():
            return [*wrapped, value[1:], value[::-1], {}, [*value, None]]
        case dict():
            return [*wrapped, [], list(value.values()) if len(value) == 1 else {**value, "z": 1}]
        case _:
            return [[], {}, [None], "", 0]


@st.composite
def record_batches(draw: st.DrawFn, payloads: Sequence[Mapping[str, Any]]) -> pa.RecordBatch:
    """The payloads as rows, in some order of columns, with some column more that holds nothing."""
    columns = list(dict.fromkeys(name for payload in payloads for name in payload))
    columns = draw(st.permutations(columns + draw(st.sampled_from([[], ["nothing"]]))))
    if not columns:
        return rows_without_columns(len(payloads))
    arrays = [draw(arrays_of([payload.get(name) for payload in payloads])) for name in columns]
    return pa.RecordBatch.from_arrays(arrays, names=columns)


@st.composite
def arrays_of(draw: st.DrawFn, values: Sequence[Any]) -> pa.Array:
    """The values as an array of some type that holds them all, in some layout."""
    kind = draw(_types(values))
    fitted = [_fitted(value, kind) for value in values]
    array = pa.array(fitted, kind)
    match draw(st.sampled_from(["plain", "part of a longer one", "dictionary"])):
        case "part of a longer one":
            longer = pa.concat_arrays([pa.nulls(1, kind), array, pa.nulls(1, kind), array])
            return longer.slice(len(values) + 2)
        case "dictionary" if not pa.types.is_null(kind) and not pa.types.is_dictionary(kind):
            backwards = pa.array(range(len(values))[::-1], pa.int32())
            return pa.DictionaryArray.from_arrays(backwards, pa.array(fitted[::-1], kind))
        case _:
            return array


@st.composite
def _types(draw: st.DrawFn, values: Sequence[Any]) -> pa.DataType:
    there = [value for value in values if value is not None]
    match there[0] if there else None:
        case None:
            return draw(st.sampled_from(ANY_NULL))
        case dict():
            fields = list(dict.fromkeys(name for value in there for name in value))
            fields = draw(st.permutations(fields + draw(st.sampled_from([[], ["nothing"]]))))
            return pa.struct([(name, draw(_types([value.get(name) for value in there]))) for name in fields])
        case list():
            item = draw(_types([item for value in there for item in value]))
            lengths = {len(value) for value in there}
            fixed = [lambda item: pa.list_(item, lengths.pop())] if len(lengths) == 1 else []
            return draw(st.sampled_from(LISTS + fixed))(item)
        case _:
            return draw(st.sampled_from(_scalar_types(there)))


def _scalar_types(values: Sequence[Any]) -> list[pa.DataType]:
    match values[0]:
        case bool():
            return [pa.bool_()]
        case int() | float() | Decimal():
            return [kind for kind in INTEGERS + FLOATS + DECIMALS if all(_holds(kind, v) for v in values)]
        case str():
            return TEXTS
        case bytes():
            widths = {len(value) for value in values}
            return BINARIES + ([pa.binary(widths.pop())] if len(widths) == 1 else [])
        case datetime(tzinfo=None):
            return [pa.timestamp(unit) for unit in _units([(v - datetime(1970, 1, 1)) for v in values])]
        case datetime():
            units = _units([(v - datetime(1970, 1, 1, tzinfo=UTC)) for v in values])
            return [pa.timestamp(unit, zone) for unit in units for zone in ZONES]
        case date():
            return [pa.date32(), pa.date64()]
        case time():
            units = _units([timedelta(microseconds=v.microsecond) for v in values])
            return [pa.time32(unit) if unit in ("s", "ms") else pa.time64(unit) for unit in units]
        case timedelta():
            return [pa.duration(unit) for unit in _units(values)]
    raise AssertionError(f"no Arrow type for {values[0]!r}")


def _units(spans: Sequence[timedelta]) -> list[str]:
    """The units in which all of these are whole numbers of 64 bits."""
    counts = [span // timedelta(microseconds=1) for span in spans]
    exact = [unit for unit, size in (("s", 10**6), ("ms", 10**3)) if all(n % size == 0 for n in counts)]
    return [*exact, "us"] + (["ns"] if all(abs(n) < 2**63 // 1000 for n in counts) else [])


def _holds(dtype: pa.DataType, number: float | Decimal) -> bool:
    """The number has this value in this type, and is the same number there."""
    if isinstance(number, float) and not isfinite(number):
        return dtype in FLOATS
    exact = Fraction(number)
    either = exact.denominator == 1 and -(2**63) <= exact < 2**63
    if dtype in FLOATS:
        with np.errstate(over="ignore"):
            there = float(dtype.to_pandas_dtype()(float(number)))
        return (either or isinstance(number, float)) and isfinite(there) and Fraction(there) == exact
    if isinstance(number, float) and not either:
        return False
    if dtype in DECIMALS:
        unscaled = exact * 10**dtype.scale
        return unscaled.denominator == 1 and abs(unscaled) < 10**dtype.precision
    limits = np.iinfo(dtype.to_pandas_dtype())
    return exact.denominator == 1 and limits.min <= exact <= limits.max


def _fitted(value: Any, dtype: pa.DataType) -> Any:
    """The value as the Python type that Arrow wants for its type."""
    match value:
        case None | bool():
            return value
        case int() | float() | Decimal() if dtype in INTEGERS:
            return int(value)
        case int() | float() | Decimal() if dtype in FLOATS:
            return float(value)
        case int() | float():
            return Decimal(value)
        case list():
            return [_fitted(item, dtype.value_type) for item in value]
        case dict():
            return {name: _fitted(item, dtype.field(name).type) for name, item in value.items()}
        case _:
            return value
