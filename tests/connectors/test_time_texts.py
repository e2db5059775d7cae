"""A text of a time is one time, alone or among others, in the zone of its column where it names none."""

import json
from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.connectors.files.json_rows import json_rows
from anabranch.connectors.files.time_texts import micros_of, times_of
from anabranch.model.zones import zone_named

BERLIN = pa.timestamp("us", "Europe/Berlin")
LOCAL = pa.timestamp("us")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

zones = st.sampled_from(["Europe/Berlin", "America/New_York", "Asia/Kathmandu", "UTC", "+05:30", "-11:00"])
locals_ = st.datetimes(datetime(1, 1, 3), datetime(9999, 12, 29))
offsets = st.none() | st.just("Z") | st.integers(-17, 17).map(lambda hours: f"{hours:+03d}:30")


@st.composite
def texts(draw):
    """A text, and the zone it names."""
    moment, offset = draw(locals_), draw(offsets)
    separator = draw(st.sampled_from("T "))
    spelled = moment.isoformat(separator, draw(st.sampled_from(["seconds", "milliseconds", "microseconds"])))
    if "." in spelled:
        spelled += draw(st.sampled_from(["", "7", "789"])) if len(spelled.split(".")[1]) == 6 else ""
    return spelled + (offset or ""), offset


def meant(text, offset, zone):
    """What a text means, by Python's calendar alone."""
    body = text.removesuffix(offset or "")
    whole, _, fraction = body.partition(".")
    local = datetime.fromisoformat(whole).replace(
        microsecond=int(fraction[:6].ljust(6, "0")) if fraction else 0
    )
    if offset and offset != "Z":
        sign = -1 if offset[0] == "-" else 1
        shift = sign * timedelta(hours=int(offset[1:3]), minutes=int(offset[4:]))
        return (local.replace(tzinfo=timezone(shift)) - EPOCH) // timedelta(microseconds=1)
    there = UTC if offset == "Z" else zone_named(zone)
    return (local - EPOCH.replace(tzinfo=None) - local.replace(tzinfo=there).utcoffset()) // timedelta(
        microseconds=1
    )


@given(st.lists(texts() | st.none(), max_size=6), zones)
def test_texts_mean_the_same_alone_and_together(some, zone):
    kind = pa.timestamp("us", zone)
    words = pa.array([None if one is None else one[0] for one in some], pa.string())
    expected = [None if one is None else meant(*one, zone) for one in some]
    assert times_of(words, kind).cast(pa.int64()).to_pylist() == expected
    assert [None if one is None else micros_of(one[0], zone) for one in some] == expected


@pytest.mark.parametrize(
    ("text", "utc"),
    [
        ("2026-03-01T10:00:00", "2026-03-01T09:00:00"),
        ("2026-07-01T10:00:00", "2026-07-01T08:00:00"),
        ("2026-03-29T02:30:00", "2026-03-29T01:30:00"),
        ("2026-10-25T02:30:00", "2026-10-25T00:30:00"),
        ("2070-07-01T10:00:00", "2070-07-01T08:00:00"),
        ("2026-03-01", "2026-02-28T23:00:00"),
        ("2026-03-01T10:00:00.123456789Z", "2026-03-01T10:00:00.123456"),
        ("1969-12-31T23:59:59.9999999Z", "1969-12-31T23:59:59.999999"),
        ("2026-03-01T10:00:00 Europe/Moscow", "2026-03-01T07:00:00"),
        (" 2026-3-1 1:2:3 ", "2026-03-01T00:02:03"),
    ],
)
def test_a_text_without_a_zone_is_read_in_that_of_its_column(text, utc):
    expected = (datetime.fromisoformat(utc).replace(tzinfo=UTC) - EPOCH) // timedelta(microseconds=1)
    assert times_of(pa.array([text]), BERLIN)[0].value == expected
    assert times_of(pa.array([text, "2026-01-01T00:00:00Z"]), BERLIN)[0].value == expected


WRONG = [
    "2026-02-30T10:00:00",
    "2026-03-01T24:00:00",
    "10:00:00",
    "noon",
    "",
    "2026-03-01T10:00:00 Mars/A",
]


@pytest.mark.parametrize("text", WRONG)
def test_what_is_no_time_is_refused_alone(text):
    with pytest.raises(ValueError, match="time"):
        times_of(pa.array([text]), BERLIN)
    lines = [json.dumps({"at": one}).encode() for one in ("2026-03-01T10:00:00Z", text)]
    found = json_rows(lines, pa.schema([("at", BERLIN)]))
    assert [n for n, _ in found.refused] == [1]
    assert found.rows.num_rows == 1


def test_a_local_time_has_no_zone():
    assert times_of(pa.array(["2026-03-01T10:00:00.5"]), LOCAL)[0].as_py() == datetime(
        2026, 3, 1, 10, 0, 0, 500000
    )
    with pytest.raises(ValueError, match="a local time has no time zone, '2026-03-01T10:00:00Z' has one"):
        times_of(pa.array(["2026-03-01T10:00:00Z"]), LOCAL)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (1772359200, "column 'at' is a timestamp, which is ISO 8601 text, and this row has 1772359200"),
        (True, "column 'at' is a timestamp, which is ISO 8601 text, and this row has true"),
        ({"s": 1}, "column 'at' is a timestamp, which is ISO 8601 text, and this row has {\"s\":1}"),
    ],
)
def test_a_value_of_another_sort_is_told_with_what_its_column_holds(value, reason):
    lines = [json.dumps({"at": one, "v": 1}).encode() for one in ("2026-03-01T10:00:00Z", value)]
    found = json_rows(lines, pa.schema([("at", BERLIN), ("v", pa.int64())]))
    assert found.refused == [(1, reason)]


def test_times_inside_lists_structs_and_maps_are_read_by_the_same_rule():
    inner = pa.struct([("at", BERLIN), ("n", pa.int64())])
    columns = pa.schema([("l", pa.list_(BERLIN)), ("s", inner), ("m", pa.map_(pa.string(), BERLIN))])
    text = "2026-03-29T02:30:00"
    lines = [
        json.dumps({"l": [text, None], "s": {"at": text, "n": 1}, "m": {"a": text}}).encode(),
        b'{"l": null, "s": null, "m": null}',
    ]
    found = json_rows(lines, columns)
    assert not found.refused
    moment = datetime(2026, 3, 29, 1, 30, tzinfo=UTC).astimezone(ZoneInfo("Europe/Berlin"))
    first, second = found.rows.to_pylist()
    assert first == {"l": [moment, None], "s": {"at": moment, "n": 1}, "m": [("a", moment)]}
    assert second == {"l": None, "s": None, "m": None}


@pytest.mark.parametrize(
    ("name", "near"), [("Berlin", "Europe/Berlin"), ("Mars", "'UTC'"), ("+99:00", "'+01:00'")]
)
def test_a_zone_that_is_not_known_is_refused_with_one_that_is(name, near):
    with pytest.raises(ValueError, match="named as in the IANA database") as caught:
        zone_named(name)
    assert near in caught.value.__notes__[0]
