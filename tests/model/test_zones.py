"""A local time that comes into a column with a zone is an instant of that zone, however it comes."""

from datetime import datetime, timedelta
from random import Random

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from anabranch.connectors.files.time_texts import times_of
from anabranch.model.exact import exact_column
from anabranch.model.zones import cast, zone_named

ZONES = ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "UTC", "Utc", "-11:00"]
CLOCKS_CHANGE = [datetime(2026, 3, 29, 2, 30), datetime(2026, 10, 25, 2, 30), datetime(2040, 7, 1), None]
BERLIN, LOCAL = pa.timestamp("us", "Europe/Berlin"), pa.timestamp("us")


def moments(random, count=200):
    """Local times of three centuries, many of them where clocks change."""
    found = [random.choice(CLOCKS_CHANGE) for _ in range(count)]
    return [
        datetime(1850, 1, 1) + timedelta(seconds=random.randrange(300 * 365 * 86_400))
        if random.random() < 0.7
        else one
        for one in found
    ]


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_values_columns_and_texts_of_one_local_time_are_one_instant(zone, unit):
    local, dtype = moments(Random(5)), pa.timestamp(unit, zone)
    texts = pa.array([None if one is None else one.isoformat() for one in local], pa.string())
    told = times_of(texts, dtype)
    assert cast(pa.array(local, pa.timestamp(unit)), dtype) == told
    assert cast(pa.array(local, pa.timestamp("s")), dtype) == told
    assert exact_column(local, dtype) == told


def nested(dtype):
    return [
        pa.list_(dtype),
        pa.large_list(dtype),
        pa.list_(dtype, 2),
        pa.struct([("n", pa.int64()), ("at", dtype)]),
        pa.map_(pa.string(), dtype),
        pa.list_(pa.struct([("at", pa.list_(dtype))])),
    ]


def value(random, dtype, moment):
    """A value of a type whose times are one local time or null."""
    if random.random() < 0.2:
        return None
    if pa.types.is_timestamp(dtype):
        return moment
    if pa.types.is_struct(dtype):
        return {field.name: value(random, field.type, moment) for field in dtype}
    if pa.types.is_map(dtype):
        return [(name, value(random, dtype.item_type, moment)) for name in "ab"[: random.randrange(3)]]
    if pa.types.is_fixed_size_list(dtype):
        return [value(random, dtype.value_type, moment) for _ in range(2)]
    if pa.types.is_list(dtype) or pa.types.is_large_list(dtype):
        return [value(random, dtype.value_type, moment) for _ in range(random.randrange(3))]
    return random.randrange(9)


@pytest.mark.parametrize("shape", range(6))
def test_local_times_inside_of_values_are_instants_too_and_all_else_stays(shape):
    random = Random(shape)
    local, zoned = nested(LOCAL)[shape], nested(BERLIN)[shape]
    values = [value(random, local, datetime(2026, 7, 1, 12)) for _ in range(50)]
    moved = _replaced(values)
    for first in (0, 7):
        column = cast(pa.array(values, local)[first:], zoned)
        column.validate(full=True)
        assert column.to_pylist() == pa.array(moved, zoned)[first:].to_pylist()
    assert exact_column(values, zoned) == pa.array(moved, zoned)


def _replaced(value):
    """A value in which the one local time is the instant that Python's calendar makes of it."""
    match value:
        case datetime():
            return value.replace(tzinfo=zone_named("Europe/Berlin"))
        case dict():
            return {name: _replaced(one) for name, one in value.items()}
        case list():
            return [_replaced(one) for one in value]
        case tuple():
            return tuple(map(_replaced, value))
    return value


def test_a_datetime_that_says_which_of_two_it_is_is_that_one():
    earlier, later = exact_column([datetime(2026, 10, 25, 2, 30, fold=fold) for fold in (0, 1)], BERLIN)
    assert later.value - earlier.value == 3600 * 10**6


def test_values_of_pandas_and_numpy_that_name_no_zone_are_local_times():
    kind = pa.timestamp("ns", "Europe/Berlin")
    values = [pd.Timestamp("2026-03-29 02:30:00.123456789"), np.datetime64("2026-03-29T02:30:00.123456789")]
    one, other = exact_column(values, kind)
    assert one.value == other.value == pd.Timestamp("2026-03-29 01:30:00.123456789Z").value


def test_instants_stay_what_they_are_in_any_zone():
    noon = pa.array([datetime(2026, 7, 1, 12)], pa.timestamp("us", "UTC"))
    assert cast(noon, BERLIN).cast(pa.int64()) == noon.cast(pa.int64())
    assert cast(noon, LOCAL) == noon.cast(LOCAL)


def test_a_column_of_codes_has_its_local_times_in_the_zone():
    column = pa.array(CLOCKS_CHANGE, LOCAL)
    for dtype in (BERLIN, pa.dictionary(pa.int32(), BERLIN)):
        assert cast(column.dictionary_encode(), dtype).to_pylist() == cast(column, BERLIN).to_pylist()


def test_a_local_time_whose_instant_is_beyond_64_bits_is_refused():
    with pytest.raises(pa.ArrowInvalid, match="beyond 64 bits of us"):
        cast(pa.array([-(2**63) + 5]).cast(LOCAL), BERLIN)


def test_local_times_beyond_the_calendar_are_as_far_ahead_as_at_its_end():
    column = pa.array([2**62]).cast(LOCAL)
    assert cast(column, BERLIN)[0].value == 2**62 - 3600 * 10**6
