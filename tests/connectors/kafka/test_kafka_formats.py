"""What values of records are: rows that survive exactly, and values that are none, each with its reason."""

import json
from datetime import UTC, date, datetime
from io import BytesIO

import fastavro
import pyarrow as pa
import pytest
from bad_records import BAD_TEXTS, COLUMNS, GOOD, NOTHING, ROW, changed

from anabranch.connectors.kafka.formats import Arrow, Avro, Json


def stream(rows, schema=COLUMNS):
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        writer.write_table(pa.Table.from_pylist(rows, schema))
    return sink.getvalue().to_pybytes()


AVRO_FIELDS = [
    {"name": "sensor", "type": ["null", "string"]},
    {"name": "at", "type": ["null", {"type": "long", "logicalType": "timestamp-micros"}]},
    {"name": "v", "type": ["null", "long"]},
    {"name": "share", "type": ["null", "double"]},
    {
        "name": "price",
        "type": ["null", {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}],
    },
    {"name": "day", "type": ["null", {"type": "int", "logicalType": "date"}]},
    {"name": "tags", "type": ["null", {"type": "array", "items": "string"}]},
    {
        "name": "where",
        "type": [
            "null",
            {
                "type": "record",
                "name": "place",
                "fields": [{"name": "x", "type": "int"}, {"name": "y", "type": "int"}],
            },
        ],
    },
    {"name": "good", "type": ["null", "boolean"]},
]
AVRO = {"type": "record", "name": "reading", "fields": AVRO_FIELDS}


def avro(row, schema=AVRO, prefix=b""):
    out = BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), row)
    return prefix + out.getvalue()


def numbered(number, value):
    return b"\x00" + number.to_bytes(4, "big") + value


FORMATS = {
    "json": (Json(), json.dumps(GOOD).encode(), b"{}"),
    "arrow": (Arrow(), stream([ROW]), stream([NOTHING])),
    "avro": (Avro(json.dumps(AVRO)), avro(ROW), avro(NOTHING)),
    "numbered avro": (
        Avro(schemas={7: json.dumps(AVRO)}),
        numbered(7, avro(ROW)),
        numbered(7, avro(NOTHING)),
    ),
}


@pytest.mark.parametrize("name", FORMATS)
def test_types_and_nulls_survive(name):
    form, whole, empty = FORMATS[name]
    found = form.read([whole, empty, whole], COLUMNS)
    assert found.rows.schema == COLUMNS
    assert found.rows.to_pylist() == [ROW, NOTHING, ROW]
    assert found.origin.tolist() == [0, 1, 2]
    assert not found.refused


@pytest.mark.parametrize("name", FORMATS)
def test_no_values_are_no_rows(name):
    found = FORMATS[name][0].read([], COLUMNS)
    assert found.rows.num_rows == 0
    assert found.rows.schema == COLUMNS


BAD_JSON = {
    **BAD_TEXTS,
    "a tombstone": None,
    "nothing at all": b"",
    "white space": b" \n\t",
    "two objects on two lines": b"{}\n{}",
    "Avro": avro(ROW),
    "Arrow": stream([ROW]),
}
OTHER = {"type": "record", "name": "other", "fields": [{"name": "q", "type": "double"}]}
BAD_AVRO = {
    "a tombstone": None,
    "nothing at all": b"",
    "cut short": avro(ROW)[:-3],
    "something after the record": avro(ROW) + b"tail",
    "another schema": avro({"q": 1.5}, OTHER),
    "JSON": json.dumps(GOOD).encode(),
    "Arrow": stream([ROW]),
    "a registry's number that was not announced": numbered(7, avro(ROW)),
    "a union branch that is none": b"\x7f" + avro(ROW)[1:],
    "a negative length": b"\x02\x01",
    "a length beyond the end": b"\x02\xfe\xff\xff\xff\x0f",
    "random bytes": bytes(range(255, 0, -3)),
}
BAD_NUMBERED = {
    "no number": avro(ROW),
    "a number that is not known": numbered(8, avro(ROW)),
    "half a number": b"\x00\x00",
    "nothing after the number": numbered(7, b""),
    "another mark": b"\x01" + numbered(7, avro(ROW))[1:],
}
BAD_ARROW = {
    "a tombstone": None,
    "nothing at all": b"",
    "cut short": stream([ROW])[:-40],
    "JSON": json.dumps(GOOD).encode(),
    "Avro": avro(ROW),
    "another type": stream([{"v": "one"}], COLUMNS.set(2, pa.field("v", pa.string()))),
    "no such columns": stream([{"q": 1}], pa.schema([("q", pa.int8())])),
    "random bytes": bytes(range(255, 0, -3)),
    "a schema and nothing else": stream([ROW])[:64],
}
BAD = [
    *(("json", what, value) for what, value in BAD_JSON.items()),
    *(("avro", what, value) for what, value in BAD_AVRO.items()),
    *(("numbered avro", what, value) for what, value in BAD_NUMBERED.items()),
    *(("arrow", what, value) for what, value in BAD_ARROW.items()),
]


@pytest.mark.parametrize(("name", "what", "value"), BAD, ids=[f"{name}: {what}" for name, what, _ in BAD])
def test_a_value_that_is_no_row_is_refused_and_others_are_used(name, what, value):
    form, whole, empty = FORMATS[name]
    found = form.read([whole, value, empty, whole], COLUMNS)
    assert found.rows.to_pylist() == [ROW, NOTHING, ROW]
    assert found.origin.tolist() == [0, 2, 3]
    [(number, reason)] = found.refused
    assert number == 1
    assert reason


def test_fields_that_are_no_columns_are_left_out():
    found = Json().read([changed(extra={"deep": [1]}, another=None)], COLUMNS)
    assert found.rows.to_pylist() == [ROW]


def test_strange_types_are_read_from_what_json_has():
    columns = pa.schema(
        [
            ("v", pa.int64()),
            ("raw", pa.binary()),
            ("by", pa.map_(pa.string(), pa.date32())),
            ("parts", pa.list_(pa.struct([("raw", pa.binary()), ("at", pa.timestamp("us", "UTC"))]))),
            ("o'clock", pa.time64("us")),
        ]
    )
    good = {
        "v": 1,
        "raw": "aGVsbG8=",
        "by": {"x": "2026-01-01"},
        "parts": [{"raw": "", "at": "2026-01-02T03:04:05Z"}],
        "o'clock": "01:02:03",
    }
    wrong = [
        {"raw": "a"},
        {"raw": 5},
        {"by": []},
        {"by": {"x": 1.5}},
        {"parts": {}},
        {"parts": [{"at": "?"}]},
    ]
    texts = [json.dumps({**good, **change}).encode() for change in ({}, *wrong, {"raw": None})]
    found = Json().read(texts, columns)
    assert [n for n, _ in found.refused] == [1, 2, 3, 4, 5, 6]
    assert found.origin.tolist() == [0, 7]
    first, last = found.rows.to_pylist()
    assert first["raw"] == b"hello"
    assert first["by"] == [("x", date(2026, 1, 1))]
    assert first["parts"] == [{"raw": b"", "at": datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)}]
    assert last == {**first, "raw": None}


def test_brackets_inside_text_are_no_nesting():
    found = Json().read([changed(sensor="[{" * 200 + '\\"' + "[" * 200)], COLUMNS)
    assert found.rows.num_rows == 1


def test_a_value_may_have_several_lines():
    found = Json().read([json.dumps(GOOD, indent=2).encode(), b"{}\n"], COLUMNS)
    assert found.rows.to_pylist() == [ROW, NOTHING]


def test_an_arrow_value_may_have_many_rows_or_none():
    found = Arrow().read([stream([ROW, NOTHING]), stream([]), stream([ROW])], COLUMNS)
    assert found.rows.to_pylist() == [ROW, NOTHING, ROW]
    assert found.origin.tolist() == [0, 0, 2]


def test_avro_is_given_one_schema_or_several_by_number():
    with pytest.raises(ValueError, match="one schema, or several"):
        Avro()
    with pytest.raises(ValueError, match="one schema, or several"):
        Avro("{}", {1: "{}"})


def test_local_times_and_texts_of_avro_are_read_in_the_zone_of_their_column():
    local = {"type": "long", "logicalType": "local-timestamp-micros"}
    fields = [("there", local), ("text", "string"), ("all", {"type": "array", "items": local})]
    schema = {"type": "record", "name": "Row", "fields": [{"name": n, "type": kind} for n, kind in fields]}
    noon = datetime(2026, 7, 1, 12)
    value = avro({"there": noon, "text": "2026-07-01T12:00:00", "all": [noon]}, schema)
    berlin = pa.timestamp("us", "Europe/Berlin")
    columns = pa.schema([("there", berlin), ("text", berlin), ("all", pa.list_(berlin))])
    found = Avro(json.dumps(schema)).read([value], columns)
    assert not found.refused
    instant = datetime(2026, 7, 1, 10, tzinfo=UTC)
    assert found.rows.to_pylist() == [{"there": instant, "text": instant, "all": [instant]}]
