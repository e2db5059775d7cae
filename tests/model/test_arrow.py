"""Batches are Arrow data, whoever wrote it, without a copy where none is needed."""

from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pytest
from element_strategies import items, payloads_with_reserved_names, streams
from hypothesis import given
from hypothesis import strategies as st

from anabranch import (
    BEGINNING,
    FOREVER,
    Adjust,
    Attach,
    Batch,
    Detach,
    Event,
    Insert,
    Relation,
    Stable,
    Tagged,
)
from anabranch.model.arrow import RESERVED, batches, laid_out, record_batch
from anabranch.model.clock import Clock
from anabranch.model.clock_columns import clock_of_elements, time_type
from anabranch.model.schema import SchemaError
from anabranch.model.time import timestamp

STREAM = [Insert({"n": 1}, 3, 9), Adjust({"n": 1}, 3, 9, FOREVER), Adjust({"n": 1}, 3, FOREVER, 7), Stable(5)]
RECORDING = [
    Tagged("east", Attach()),
    Tagged("west", Attach(4)),
    Tagged("east", Insert({"n": 1}, 3, FOREVER)),
    Tagged("east", Detach()),
    Tagged("west", Stable(FOREVER)),
]
TEXTS = [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())]
UNITS = {"s": 10**6, "ms": 10**3, "us": 1, "ns": 1}
"""How many ticks are whole in each unit."""


class OnlyStream:
    """Data of a library that is not pyarrow: it has the stream interface and nothing else."""

    def __init__(self, rows: pa.RecordBatch) -> None:
        self._rows = pa.Table.from_batches([rows])

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._rows.__arrow_c_stream__(requested_schema)


class OnlyArray:
    """The same with the array interface and nothing else."""

    def __init__(self, rows: pa.RecordBatch) -> None:
        self._rows = rows

    def __arrow_c_array__(self, requested_schema: object | None = None) -> object:
        return self._rows.__arrow_c_array__(requested_schema)


SOURCES = [lambda rows: rows, OnlyStream, OnlyArray]


def with_column(name: str, values: object) -> pa.RecordBatch:
    """Two rows that are a batch, with one column replaced, added or (where it is None) left out."""
    columns = {
        "kind": pa.array(["insert", "adjust"]),
        "start": pa.array([1, 2]),
        "end": pa.array([3, 4]),
        "old_end": pa.array([5, 6]),
    }
    return pa.record_batch({k: v for k, v in (columns | {name: values}).items() if v is not None})


def memory(column: pa.Array) -> np.ndarray:
    """The values of an int64 column where Arrow keeps them."""
    return np.frombuffer(column.buffers()[1], np.int64)


@given(streams(payloads_with_reserved_names))
def test_what_is_written_is_read_back(stream):
    rows = Batch.of(stream).to_arrow()
    rows.validate(full=True)
    assert items(Batch.from_arrow(rows)) == stream


@given(streams(payloads_with_reserved_names), st.integers(0, 6), st.integers(0, 6), st.sampled_from(SOURCES))
def test_a_part_of_arrow_data_is_that_part_of_the_stream(stream, begin, end, source):
    whole = Batch.of(stream)
    part = stream[begin:end]
    assert items(Batch.from_arrow(whole[begin:end].to_arrow())) == part
    if begin <= min(end, len(stream)):
        rows = whole.to_arrow().slice(begin, end - begin)
        assert items(Batch.from_arrow(source(rows))) == part


def test_infinite_and_absent_times_are_null():
    rows = Batch.of(STREAM).to_arrow().select(["kind", "start", "end", "old_end"])
    assert [tuple(row.values()) for row in rows.to_pylist()] == [
        ("insert", 3, 9, None),
        ("adjust", 3, None, 9),
        ("adjust", 3, 7, None),
        ("stable", 5, None, None),
    ]


def test_an_attach_from_the_beginning_and_a_last_stable_have_no_time():
    rows = Batch.of(RECORDING).to_arrow().select(["input", "kind", "start", "end"])
    assert [tuple(row.values()) for row in rows.to_pylist()] == [
        ("east", "attach", None, None),
        ("west", "attach", 4, None),
        ("east", "insert", 3, None),
        ("east", "detach", None, None),
        ("west", "stable", None, None),
    ]


def test_the_greatest_int64_is_read_as_infinite():
    rows = pa.record_batch({"kind": ["insert", "stable"], "start": [3, FOREVER], "end": [FOREVER, 0]})
    assert items(Batch.from_arrow(rows)) == [Insert({}, 3, FOREVER), Stable(FOREVER)]


@pytest.mark.parametrize("name", RESERVED)
def test_payload_columns_with_a_reserved_name_travel_in_a_struct(name):
    stream = [Insert({name: 7, "other": "x"}, 1, 2), Stable(1)]
    rows = Batch.of(stream).to_arrow()
    assert rows.schema.names == ["kind", "start", "end", "old_end", "payload"]
    assert rows.column("payload").type == pa.struct([(name, pa.int64()), ("other", pa.string())])
    assert items(Batch.from_arrow(rows)) == stream


def test_other_payload_columns_stand_next_to_the_times():
    rows = Batch.of([Tagged("a", Insert({"n": 7, "kinds": "x"}, 1, 2))]).to_arrow()
    assert rows.schema.names == ["kind", "start", "end", "old_end", "input", "n", "kinds"]


def test_a_struct_without_fields_is_a_payload_without_columns():
    rows = with_column("payload", pa.array([{}, {}], pa.struct([])))
    assert items(Batch.from_arrow(rows)) == [Insert({}, 1, 3), Adjust({}, 2, 6, 4)]


def test_a_column_called_payload_that_is_no_struct_is_a_column_like_others():
    rows = with_column("payload", pa.array(["x", None]))
    assert items(Batch.from_arrow(rows)) == [Insert({"payload": "x"}, 1, 3), Adjust({}, 2, 6, 4)]


@given(st.data(), st.sampled_from(sorted(UNITS)), st.sampled_from([None, "UTC", "Europe/Berlin"]))
def test_times_may_be_timestamps_of_any_unit_and_zone(data, unit, zone):
    whole = UNITS[unit]
    seconds = st.integers(-(10**9), 10**9)
    start, end, stable = (data.draw(seconds) * whole for _ in range(3))
    stream = [Insert({"n": 1}, start, end), Adjust({"n": 1}, start, end, FOREVER), Stable(stable)]
    rows = Batch.of(stream).to_arrow(unit=pa.timestamp(unit, zone))
    assert [rows.schema.field(name).type for name in ("start", "end", "old_end")] == [
        pa.timestamp(unit, zone)
    ] * 3
    moment = rows.column("start")[0].cast(pa.timestamp("us", "UTC")).as_py()
    assert moment == timestamp(start)
    assert items(Batch.from_arrow(rows)) == stream


@pytest.mark.parametrize("width", [pa.int8(), pa.uint16(), pa.int32(), pa.uint64(), pa.int64()])
def test_times_may_be_integers_of_any_width(width):
    rows = with_column("end", pa.array([9, None], width))
    assert Batch.from_arrow(rows).end.tolist() == [9, FOREVER]


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("begin", [0, 2])
def test_kinds_and_inputs_may_be_text_of_any_type(text, begin):
    rows = Batch.of(RECORDING).to_arrow()
    for name in ("kind", "input"):
        place = rows.schema.get_field_index(name)
        rows = rows.set_column(place, name, pa.array(rows.column(name).to_pylist(), text))
    assert items(Batch.from_arrow(rows[begin:])) == RECORDING[begin:]


def test_names_that_a_dictionary_holds_twice_or_never_uses_do_no_harm():
    inputs = pa.DictionaryArray.from_arrays(pa.array([0, 2]), ["a", "unused", "a"])
    kinds = pa.DictionaryArray.from_arrays(pa.array([1, 1]), ["upsert", "insert"])
    rows = with_column("input", inputs).set_column(0, "kind", kinds)
    (part,) = Batch.from_arrow(rows).split().values()
    assert items(part) == [Insert({}, 1, 3), Insert({}, 2, 4)]


@pytest.mark.parametrize("source", SOURCES)
def test_integer_columns_without_nulls_are_read_without_a_copy(source):
    rows = with_column("n", pa.array([7, 8])).slice(1)
    batch = Batch.from_arrow(source(rows))
    for name in ("start", "end", "old_end"):
        assert np.shares_memory(getattr(batch, name), memory(rows.column(name)))
    assert np.shares_memory(memory(batch.payload.column("n")), memory(rows.column("n")))


def test_microsecond_timestamps_are_read_without_a_copy():
    moments = pa.array([datetime(2026, 1, 1, tzinfo=UTC)] * 2, pa.timestamp("us", "UTC"))
    rows = pa.record_batch({"kind": pa.array(["insert"] * 2), "start": moments, "end": moments})
    assert np.shares_memory(Batch.from_arrow(rows).start, memory(moments))


def test_times_without_nulls_are_written_without_a_copy():
    batch = Batch.of([Adjust({"n": n}, n, 8, 9) for n in range(3)])
    rows = batch.to_arrow()
    for name in ("start", "end", "old_end"):
        assert np.shares_memory(getattr(batch, name), memory(rows.column(name)))


@pytest.mark.parametrize("source", SOURCES)
def test_a_batch_without_rows_keeps_its_columns(source):
    empty = Batch.of(RECORDING).to_arrow()[:0]
    batch = Batch.from_arrow(source(empty))
    assert len(batch) == 0
    assert batch.payload.schema == pa.schema([("n", pa.int64())])
    assert batch.input is not None


def test_a_stream_of_no_batches_is_one_empty_batch():
    reader = pa.RecordBatchReader.from_batches(Batch.of(STREAM).to_arrow().schema, [])
    (batch,) = batches(reader)
    assert len(batch) == 0
    assert batch.payload.schema.names == ["n"]


def test_each_chunk_of_a_stream_is_a_batch_and_empty_ones_are_left_out():
    rows = Batch.of(STREAM).to_arrow()
    table = pa.Table.from_batches([rows[:1], rows[1:1], rows[1:]])
    assert [items(batch) for batch in batches(table)] == [
        STREAM[:1],
        STREAM[1:],
    ]
    assert items(Batch.from_arrow(table)) == STREAM


def test_other_libraries_read_a_batch_as_arrow_data():
    batch = Batch.of(RECORDING)
    assert pa.record_batch(batch).equals(batch.to_arrow())
    assert items(Batch.from_arrow(batch)) == RECORDING


@pytest.mark.parametrize(
    "kind",
    [
        pa.string_view(),
        pa.list_(pa.string_view()),
        pa.large_list(pa.string_view()),
        pa.list_(pa.string_view(), 1),
        pa.struct([("x", pa.string_view())]),
        pa.map_(pa.string_view(), pa.binary_view()),
    ],
)
def test_views_are_made_plain_so_that_rows_of_them_can_be_taken(kind):
    value = {"struct": {"x": "a"}, "map": [("k", b"v")], "string_view": "a"}.get(
        str(kind).split("<")[0], ["a"]
    )
    rows = with_column("v", pa.array([value, None], kind))
    taken = Batch.from_arrow(rows).take(np.array([1, 0]))
    assert items(taken) == [Adjust({}, 2, 6, 4), Insert({"v": value}, 1, 3)]
    nested = Batch.from_arrow(with_column("payload", pa.array([{"v": value}] * 2, pa.struct([("v", kind)]))))
    assert nested.take(np.array([1])).payload.to_pylist() == [{"v": value}]
    assert Relation().apply(rows[:1]).events().objects() == [Event({"v": value}, 1, 3)]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (with_column("kind", None), "column 'kind' is missing; the columns are start, end, old_end"),
        (with_column("start", None), "column 'start' is missing; the columns are kind, end, old_end"),
        (with_column("end", None), "column 'end' is missing"),
        (with_column("old_end", None), "column 'old_end' is missing, and row 2 is an adjust"),
        (
            with_column("kind", pa.array(["insert", "upsert"])),
            "row 2: kind is one of insert, adjust, .*'upsert'",
        ),
        (
            with_column("kind", pa.array(["insert", None])),
            "row 2: every element has a value in column 'kind'",
        ),
        (
            with_column("kind", pa.array([0, 1])),
            "column 'kind' holds text or a dictionary of text, not int64",
        ),
        (with_column("kind", pa.array([[0], [1]])), "column 'kind' holds text .*, not list"),
        (with_column("start", pa.array([1, None])), "row 2: an adjust has a start, this one is null"),
        (with_column("start", pa.array([None, 1])), "row 1: an insert has a start, this one is null"),
        (
            with_column("start", pa.array([1.0, 2.0])),
            "a time is a timestamp, a date or an integer, column 'start' holds double",
        ),
        (
            with_column("end", pa.array(["1", "2"])),
            "a time is a timestamp, a date or an integer, column 'end' holds string",
        ),
        (
            with_column("old_end", pa.array([1, 2], pa.date32())),
            r"column 'start' holds int64 and column 'old_end' holds date32",
        ),
        (
            with_column("end", pa.array([1, 2**63], pa.uint64())),
            "column 'end' holds int64 ticks: .*9223372036854",
        ),
        (
            with_column("end", pa.array([1, 1001], pa.timestamp("ns"))),
            "column 'end' has timestamps in ns that",
        ),
        (
            with_column("end", pa.array([1, 2**60], pa.timestamp("s"))),
            "column 'end' has timestamps in s that",
        ),
        (with_column("input", pa.array(["a", None])), "row 2: every element has a value in column 'input'"),
        (
            with_column("input", pa.array([1, 2])),
            "column 'input' holds text or a dictionary of text, not int64",
        ),
        (pa.RecordBatch.from_arrays([], names=[]), "column 'kind' is missing; the columns are none"),
        (
            with_column("end", pa.array([1, 2], pa.timestamp("us"))),
            r"column 'start' holds int64 and column 'end' holds timestamp\[us\]",
        ),
        (
            with_column("kind", pa.array(["insert", "attach"])),
            "column 'input' is missing, and row 2 is an attach, which names its input",
        ),
        (
            with_column("kind", pa.array(["detach", "insert"])),
            "column 'input' is missing, and row 1 is a detach",
        ),
        (
            pa.RecordBatch.from_arrays(
                [*with_column("v", pa.array([1, 2])).columns] * 2, names=["a", "b"] * 5
            ),
            "two columns are called 'a', 'b'",
        ),
        (
            with_column("payload", pa.StructArray.from_arrays([pa.array([1, 2])] * 2, names=["v", "v"])),
            "two payload columns are called 'v'",
        ),
        ([1, 2], "a list is not Arrow data: it has no __arrow_c_stream__"),
    ],
)
def test_data_in_another_shape_is_refused_by_what_is_wrong(rows, message):
    with pytest.raises(SchemaError, match=message) as caught:
        Batch.from_arrow(rows)
    assert "A batch has the columns kind, start, end, old_end" in caught.value.__notes__[-1]


@pytest.mark.parametrize("dictionary", [["a", None], [None, "a"]])
def test_a_null_inside_a_dictionary_names_no_input(dictionary):
    inputs = pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array(dictionary))
    with pytest.raises(SchemaError, match=f"row {dictionary.index(None) + 1}: every element has a value"):
        Batch.from_arrow(with_column("input", inputs))


def test_a_time_column_of_nulls_says_nothing_about_the_clock():
    stamps = pa.array([1, 2], pa.timestamp("us"))
    nulls = pa.array([None, None], pa.int64())
    kinds = pa.array(["insert"] * 2)
    rows = pa.record_batch({"kind": kinds, "start": stamps, "end": stamps, "old_end": nulls})
    assert items(Batch.from_arrow(rows)) == [Insert({}, 1, 1), Insert({}, 2, 2)]


def test_nested_rows_are_laid_out_as_their_stream_is():
    flat = Batch.of([Insert({"a": 1}, 0, 1), Stable(1)])
    whole = pa.schema([("a", pa.float64()), ("kind", pa.string())])
    rows = laid_out(record_batch(flat, nested=True), whole)
    assert rows.schema.names == ["kind", "start", "end", "old_end", "payload"]
    assert items(Batch.from_arrow(rows)) == items(flat)
    assert laid_out(record_batch(flat, nested=True), flat.payload.schema) == record_batch(flat)


def test_the_beginning_of_time_is_a_time_like_any_other():
    stream = [Insert({}, BEGINNING, 3), Adjust({}, BEGINNING, 3, BEGINNING), Stable(BEGINNING)]
    assert items(Batch.from_arrow(Batch.of(stream).to_arrow())) == stream


@pytest.mark.parametrize("clock", list(Clock), ids=lambda clock: clock.name)
def test_the_clock_of_times_is_known_by_their_type(clock):
    kind = time_type(clock) or pa.int64()
    assert clock_of_elements(pa.schema([("kind", pa.string()), ("start", kind), ("end", kind)])) is clock


def test_plain_rows_are_refused_with_the_source_that_reads_them():
    with pytest.raises(SchemaError, match=r"at, level: plain rows are read by .*ab.columns\(rows\), start="):
        list(batches(pa.table({"at": [1], "level": [2]})))
