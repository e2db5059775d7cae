"""Records that are no rows, by what is wrong with them: every door that reads JSON is tried with each.

`COLUMNS` is what rows should have, `GOOD` one as JSON and `ROW` what it means. Texts are on one line each.
"""

import json
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa

COLUMNS = pa.schema(
    [
        ("sensor", pa.string()),
        ("at", pa.timestamp("us", "UTC")),
        ("v", pa.int64()),
        ("share", pa.float64()),
        ("price", pa.decimal128(10, 2)),
        ("day", pa.date32()),
        ("tags", pa.list_(pa.string())),
        ("where", pa.struct([("x", pa.int32()), ("y", pa.int32())])),
        ("good", pa.bool_()),
    ]
)
ROW = {
    "sensor": "täglich",
    "at": datetime(2026, 1, 2, 3, 4, 5, 678901, UTC),
    "v": 2**53 + 1,
    "share": 0.1,
    "price": Decimal("12.30"),
    "day": date(2026, 2, 28),
    "tags": ["a", "", "c"],
    "where": {"x": 1, "y": -1},
    "good": True,
}
NOTHING = dict.fromkeys(ROW)
GOOD = {
    "sensor": "täglich",
    "at": "2026-01-02T03:04:05.678901Z",
    "v": 2**53 + 1,
    "share": 0.1,
    "price": "12.30",
    "day": "2026-02-28",
    "tags": ["a", "", "c"],
    "where": {"x": 1, "y": -1},
    "good": True,
}


def changed(**values):
    """A good row with other values, as JSON."""
    return json.dumps({**GOOD, **values}).encode()


BAD_TEXTS = {
    "cut short": json.dumps(GOOD).encode()[:-5],
    "cut within a string": json.dumps(GOOD).encode()[:16],
    "two objects": b"{}{}",
    "something after the object": json.dumps(GOOD).encode() + b" tail",
    "a list": b"[1, 2]",
    "a number": b"17",
    "a string": b'"text"',
    "null": b"null",
    "true": b"true",
    "a bare word": b"hello",
    "single quotes": b"{'v': 1}",
    "a trailing comma": b'{"v": 1,}',
    "a comment": b'{"v": 1} // one',
    "no colon": b'{"v" 1}',
    "an unquoted name": b"{v: 1}",
    "a column twice": b'{"v": 1, "v": 2}',
    "a column twice inside": b'{"where": {"x": 1, "x": 2}}',
    "NaN for a whole number": b'{"v": NaN}',
    "NaN for a time": b'{"at": NaN}',
    "infinity for a whole number": b'{"v": Infinity}',
    "a number beyond a float": b'{"share": 1e400}',
    "a leading zero": b'{"v": 007}',
    "a plus sign": b'{"v": +7}',
    "bytes that are not UTF-8": b'{"sensor": "\xff\xfe"}',
    "half of a character": b'{"sensor": "\xc3"}',
    "UTF-16": json.dumps(GOOD).encode("utf-16"),
    "a byte order mark in the middle": b"\xef\xbb\xbf" + json.dumps(GOOD).encode(),
    "a control character in a string": b'{"sensor": "a\x00b"}',
    "a bad escape": b'{"sensor": "\\q"}',
    "text for a number": changed(v="17"),
    "a fraction for a whole number": changed(v=1.5),
    "a truth for a number": changed(v=True),
    "a number beyond 64 bits": changed(v=2**64),
    "a number for text": changed(sensor=17),
    "an object for text": changed(sensor={"a": 1}),
    "text for a truth": changed(good="yes"),
    "a number for a truth": changed(good=1),
    "text that is no time": changed(at="yesterday"),
    "a number for a time": changed(at=1.5),
    "an object for a time": changed(at={"seconds": 1}),
    "a month that is none": changed(at="2026-13-01T00:00:00Z"),
    "a time beyond the clock": changed(at="300000-01-01T00:00:00Z"),
    "a day that is none": changed(day="2026-02-30"),
    "a year of five digits": changed(day="12026-02-28"),
    "an object for a list": changed(tags={"a": 1}),
    "a list for an object": changed(where=[1, 2]),
    "a value of a wrong type in a list": changed(tags=["a", 1]),
    "a value of a wrong type in an object": changed(where={"x": "one"}),
    "a price with too many digits": changed(price="123456789012.30"),
    "a price with too many decimals": changed(price="1.234"),
    "deep nesting": b'{"v":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "deep nesting where no column is": b'{"more":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "compressed": b"\x1f\x8b\x08\x00\x00\x00\x00\x00",
}
"""No row, whatever its neighbours are."""

ODD_TEXTS = {
    "fields that are no columns": changed(more={"deep": [1]}, another=None),
    "white space around": b" \t" + json.dumps(GOOD).encode() + b"\t ",
    "a line feed of another system": json.dumps(GOOD).encode() + b"\r",
    "fields in another order": json.dumps(dict(reversed(GOOD.items()))).encode(),
    "escaped letters": json.dumps(GOOD, ensure_ascii=True).encode(),
    "letters as they are": json.dumps(GOOD, ensure_ascii=False).encode(),
}
"""The good row, though it looks odd."""

DDL = (
    "sensor string, at timestamp, v long, share double, price decimal(10, 2), day date, tags array<string>, "
    "`where` struct<x: int, y: int>, good boolean"
)
"""`COLUMNS` as Spark spells them."""


def moment(minute):
    """A minute of one morning, as JSON has it."""
    return f"2026-03-01T10:{minute:02}:00Z"


STABLE = 30
"""The minute that a replica is stable to when it says those below."""
BAD_ELEMENTS = {
    "no start": ({"at": None, "until": moment(50)}, "malformed"),
    "no field for the start": ({"until": moment(50)}, "malformed"),
    "a kind that is none": ({"kind": "upsert", "at": moment(40), "until": moment(50)}, "malformed"),
    "a kind that is empty": ({"kind": "", "at": moment(40), "until": moment(50)}, "malformed"),
    "an adjust without a start": ({"kind": "adjust", "until": moment(50), "was": moment(45)}, "malformed"),
    "an end before the start": ({"at": moment(40), "until": moment(35)}, "empty-lifetime"),
    "an end at the start": ({"at": moment(40), "until": moment(40)}, "empty-lifetime"),
    "a start behind the stable": ({"at": moment(20), "until": moment(50)}, "insert-behind-stable"),
    "an adjust to an end before the start": (
        {"kind": "adjust", "at": moment(40), "until": moment(35), "was": moment(45)},
        "negative-lifetime",
    ),
    "an adjust of an end that is final": (
        {"kind": "adjust", "at": moment(10), "until": moment(50), "was": moment(20)},
        "adjust-of-frozen",
    ),
    "an adjust to an end behind the stable": (
        {"kind": "adjust", "at": moment(10), "until": moment(20), "was": moment(50)},
        "adjust-behind-stable",
    ),
}
"""Rows of the right types that are no elements, or break a rule: their fields, and the code of the rule."""
