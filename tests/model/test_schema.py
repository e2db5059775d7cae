"""A column has one sort of values in all of a stream; within it types widen exactly or not at all."""

from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from anabranch import Attach, Batch, Event, Insert, Relation, Tagged
from anabranch.model.schema import SchemaError, conformed, unified

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


def test_dictionaries_and_plain_columns_mix():
    plain = pa.RecordBatch.from_pydict({"v": ["x", "y"]})
    encoded = pa.RecordBatch.from_pydict({"v": pa.array(["y", None]).dictionary_encode()})
    schema = unified(plain.schema, encoded.schema)
    assert conformed(encoded, schema).column("v").to_pylist() == ["y", None]
    assert unified(encoded.schema, encoded.schema) == encoded.schema


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
