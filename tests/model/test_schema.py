"""A column has one sort of values in all of a stream; within it types widen exactly or not at all."""

from datetime import UTC, date, datetime
from decimal import Decimal
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest

from anabranch import Attach, Batch, Event, Insert, Relation, Tagged
from anabranch.kernels.cleanse import Cleanse
from anabranch.model.identity import UnsupportedTypeError, identities
from anabranch.model.payloads import PayloadStore
from anabranch.model.rows import stacked
from anabranch.model.schema import SchemaError, conformed, sorts_agree, unified

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("first", "then"),
    [
        (1, "x"),
        (1, True),
        ("x", b"x"),
        (Decimal("1.1"), 0.5),
        (2**53 + 1, 0.5),
        (0.5, 2**53 + 1),
        (NOW, NOW.replace(tzinfo=None)),
        (date(2026, 1, 1), NOW),
        ([1], {"a": 1}),
        ([1], ["x"]),
        (["x"], [b"x"]),
        ([[0.5]], [[Decimal("0.5")]]),
        ({"a": "x"}, {"a": b"x", "b": 1}),
        ([2**53 + 1], [0.5]),
        ({"a": {"b": 0.5}}, {"a": {"b": 2**53 + 1}}),
    ],
    ids=str,
)
def test_what_does_not_fit_is_refused_and_changes_nothing(first, then):
    relation = Relation()
    relation.apply(Insert({"v": first}, 0, 1))
    with pytest.raises(SchemaError) as caught:
        relation.apply(Insert({"v": then}, 1, 2))
    assert caught.value.__notes__
    assert relation.events() == [Event({"v": first}, 0, 1)]
    relation.apply(Insert({"v": first}, 1, 2))
    assert len(relation) == 2


@pytest.mark.parametrize(
    ("first", "then"),
    [
        (1, 0.5),
        (0.5, 1),
        (None, "x"),
        ("x", None),
        (Decimal("1.5"), Decimal("10.25")),
        ([1], [0.5]),
        ({"a": 1}, {"b": 2}),
        ({"a": 1}, {"b": [{"c": 0.5}]}),
        ([None], ["x"]),
    ],
    ids=str,
)
def test_what_fits_is_widened_and_keeps_its_identity(first, then):
    relation = Relation()
    relation.apply(Insert({"v": first}, 0, 1))
    before = relation.current().identity.tolist()
    relation.apply(Insert({"v": then}, 1, 2))
    kept = [
        {name: value for name, value in {"v": given}.items() if value is not None} for given in (first, then)
    ]
    assert [without_nulls(event.payload) for event in relation.events()] == kept
    again = Relation()
    again.apply(Batch.of([Insert({"v": first}, 0, 1)]))
    assert again.current().identity.tolist() == before


def without_nulls(value):
    if isinstance(value, dict):
        return {name: without_nulls(inner) for name, inner in value.items() if inner is not None}
    return value


UTC_US = pa.timestamp("us", "UTC")
BERLIN = pa.timestamp("us", "Europe/Berlin")


def rows(values, kind, name="v"):
    return pa.RecordBatch.from_arrays([pa.array(values, kind)], names=[name])


@pytest.mark.parametrize(
    ("first", "then", "value"),
    [
        (UTC_US, BERLIN, NOW),
        (pa.timestamp("s", "UTC"), BERLIN, NOW),
        (UTC_US, pa.timestamp("ns", "Asia/Tokyo"), NOW),
        (pa.list_(UTC_US), pa.list_(BERLIN), [NOW]),
        (pa.list_(UTC_US), pa.large_list(BERLIN), [NOW]),
        (pa.struct([("a", UTC_US)]), pa.struct([("b", pa.int8()), ("a", BERLIN)]), {"a": NOW}),
        (pa.map_(pa.string(), UTC_US), pa.map_(pa.string(), BERLIN), [("a", NOW)]),
    ],
    ids=str,
)
def test_instants_of_several_zones_are_one_sort_and_keep_the_zone_that_came_first(first, then, value):
    both = [rows([value], first), rows([value], then)]
    merged = stacked(both)
    assert not any(zone in str(merged.schema) for zone in ("Berlin", "Tokyo"))
    assert identities(merged).tolist() == [*identities(both[0]).tolist(), *identities(both[1]).tolist()]
    assert identities(merged)[0].tolist() == identities(merged)[1].tolist()


def test_datetimes_of_two_zones_are_one_event():
    relation = Relation()
    for zone in (UTC, ZoneInfo("Europe/Berlin")):
        relation.apply(Insert({"at": NOW.astimezone(zone)}, 0, 1))
    assert relation.current().count.tolist() == [2]


@pytest.mark.parametrize("nothing", [[], [None]], ids=["no rows", "only nulls"])
@pytest.mark.parametrize(
    ("empty", "then", "value"),
    [
        (pa.string(), pa.int64(), 1),
        (pa.int64(), pa.string(), "x"),
        (pa.struct([("a", pa.int8())]), pa.list_(pa.int8()), [1]),
        (pa.timestamp("ns", "UTC"), pa.timestamp("s", "UTC"), datetime(9000, 1, 1, tzinfo=UTC)),
    ],
    ids=str,
)
def test_a_column_without_values_leaves_its_type_open(nothing, empty, then, value):
    store = PayloadStore()
    store.add(store.admit(rows(nothing, empty)))
    store.add(store.admit(rows([value], then)))
    assert store.schema.field("v").type == then
    store.add(store.admit(rows(nothing, empty)))
    assert store.schema.field("v").type == then
    kept = store.at(np.arange(store.rows)).column("v").to_pylist()
    assert kept == [*nothing, value, *nothing]
    assert stacked([rows(nothing, empty), rows([value], then)]).schema.field("v").type == then


def test_values_that_are_gone_have_decided_all_the_same():
    store = PayloadStore()
    store.add(store.admit(rows(["x"], pa.string())))
    store.keep_only(np.empty(0, np.int64))
    with pytest.raises(SchemaError, match="'v' was string and is now int64"):
        store.admit(rows([1], pa.int64()))


def test_a_type_without_a_canonical_form_leaves_no_column_behind():
    spans = rows([None], pa.month_day_nano_interval(), "w")
    batch = Batch.of([Insert({}, 0, 1)]).with_payload(spans)
    relation, cleanse = Relation(), Cleanse(ordered=False)
    for refusing in (relation.apply, cleanse.act):
        with pytest.raises(UnsupportedTypeError):
            refusing(batch)
    assert relation.payloads.schema.names == cleanse.payloads.schema.names == []


@pytest.mark.parametrize(
    "wrap",
    [lambda t: t, pa.list_, lambda t: pa.struct([("in", t)])],
    ids=["itself", "in a list", "in a struct"],
)
def test_a_struct_with_two_fields_of_one_name_is_refused(wrap):
    twice = pa.struct([pa.field("x", pa.int64()), pa.field("x", pa.string())])
    data = pa.record_batch(
        {"kind": ["stable"], "start": [3], "end": pa.nulls(1, pa.int64()), "v": pa.nulls(1, wrap(twice))}
    )
    with pytest.raises(SchemaError, match=r"one field of each name, payload column 'v'.* two called 'x'"):
        Batch.from_arrow(data)


def test_dictionaries_and_plain_columns_mix():
    plain = pa.RecordBatch.from_pydict({"v": ["x", "y"]})
    encoded = pa.RecordBatch.from_pydict({"v": pa.array(["y", None]).dictionary_encode()})
    schema = unified(plain.schema, encoded.schema)
    assert conformed(encoded, schema).column("v").to_pylist() == ["y", None]
    assert unified(encoded.schema, encoded.schema) == encoded.schema


def test_dictionaries_and_plain_items_of_lists_mix():
    plain = pa.RecordBatch.from_pydict({"v": [["x"], ["y"]]})
    encoded = pa.RecordBatch.from_pydict(
        {"v": pa.array([["y"]], pa.list_(pa.dictionary(pa.int8(), pa.string())))}
    )
    schema = unified(plain.schema, encoded.schema)
    assert conformed(encoded, schema).column("v").to_pylist() == [["y"]]


@pytest.mark.parametrize(
    ("one", "other", "agree"),
    [
        (pa.map_(pa.string(), pa.int8()), pa.map_(pa.large_string(), pa.float64()), True),
        (pa.map_(pa.string(), pa.int8()), pa.map_(pa.string(), pa.string()), False),
        (pa.map_(pa.string(), pa.int8()), pa.map_(pa.binary(), pa.int8()), False),
        (pa.list_(pa.int8(), 2), pa.large_list(pa.int64()), True),
        (pa.binary(3), pa.binary(), True),
        (pa.struct([("a", pa.date32())]), pa.map_(pa.string(), pa.date32()), False),
    ],
    ids=str,
)
def test_sorts_are_told_all_the_way_down(one, other, agree):
    assert sorts_agree(one, other) == sorts_agree(other, one) == agree


def test_a_column_that_some_batches_lack_may_be_null():
    strict = pa.schema([pa.field("v", pa.int64(), nullable=False)])
    assert unified(strict, pa.schema([("w", pa.int64())])).field("v").nullable


def test_a_relation_is_of_one_stream():
    with pytest.raises(ValueError, match="one stream"):
        Relation().apply(Batch.of([Tagged("a", Attach(3))]))


def test_elements_that_come_one_by_one_do_not_leave_a_chunk_each():
    relation = Relation()
    for i in range(1000):
        relation.apply(Insert({"v": i}, i, i + 1))
    assert len(relation.payloads.chunks) < 100
    assert [event.payload["v"] for event in relation.events()] == list(range(1000))


def test_a_small_slice_does_not_keep_what_it_was_cut_from():
    large = Batch.of([Insert({"v": "x" * 1000}, i, i + 1) for i in range(5000)])
    relation = Relation()
    relation.apply(large[:3])
    assert relation.payloads.chunks[0].get_total_buffer_size() < 10_000
