"""A batch holds elements in columns and gives them back."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from element_strategies import cut_up, elements, items, payloads, recorded, streams
from hypothesis import given
from hypothesis import strategies as st

from anabranch import Adjust, Batch, Insert, Stable, Tagged
from anabranch.model.batch import Kind, concat
from anabranch.model.elements import Attach, Detach
from anabranch.model.schema import SchemaError
from anabranch.oracle.payload import payload_key

filled = st.lists(elements(payloads), min_size=1, max_size=6) | st.lists(
    recorded(payloads), min_size=1, max_size=6
)


@given(streams(payloads))
def test_a_batch_gives_back_the_elements_it_was_made_of(stream):
    batch = Batch.of(stream)
    assert len(batch) == len(stream)
    assert items(batch) == stream


@given(filled)
def test_one_element_can_be_asked_for(stream):
    batch = Batch.of(stream)
    plain = [item.element if isinstance(item, Tagged) else item for item in stream]
    assert [batch.element(row) for row in range(len(batch))] == plain


@given(filled)
def test_identities_are_equal_exactly_where_payloads_are_the_same(stream):
    batch = Batch.of(stream)
    rows = np.flatnonzero(batch.kind <= Kind.ADJUST)
    keys = [payload_key(batch.element(row).payload) for row in rows]
    found = [tuple(batch.identities[row].tolist()) for row in rows]
    assert len(set(zip(keys, found, strict=True))) == len(set(keys)) == len(set(found))


@given(filled, st.builds(slice, st.integers(0, 4), st.integers(3, 6)) | st.slices(6))
def test_a_slice_of_a_batch_is_a_batch_of_the_slice(stream, rows):
    part, whole = Batch.of(stream)[rows], Batch.of(stream)
    assert items(part) == stream[rows]
    assert part.identities.tolist() == whole.identities.tolist()[rows]
    assert whole[rows].identities.tolist() == whole.identities.tolist()[rows]


@given(filled, st.data())
def test_rows_are_taken_in_the_order_asked_for_with_their_identities(stream, data):
    rows = data.draw(st.lists(st.integers(0, len(stream) - 1)))
    part, whole = Batch.of(stream).take(np.array(rows, np.int64)), Batch.of(stream)
    assert items(part) == [stream[row] for row in rows]
    assert part.identities.tolist() == [whole.identities[row].tolist() for row in rows]
    assert whole.take(np.array(rows, np.int64)).identities.tolist() == part.identities.tolist()


@given(filled, st.data())
def test_a_mask_takes_the_rows_where_it_is_true(stream, data):
    mask = data.draw(st.lists(st.booleans(), min_size=len(stream), max_size=len(stream)))
    part = Batch.of(stream).take(np.array(mask))
    assert items(part) == [item for item, taken in zip(stream, mask, strict=True) if taken]


def test_a_slice_shares_the_columns():
    batch = Batch.of([Insert({"n": n}, n, n + 1) for n in range(4)])
    assert np.shares_memory(batch[1:3].start, batch.start)
    assert (
        batch[1:3].payload.column("n").buffers()[1].address == batch.payload.column("n").buffers()[1].address
    )


@given(filled, st.lists(st.integers(0, 6), max_size=3))
def test_the_pieces_of_a_stream_one_after_the_other_are_the_stream(stream, cuts):
    pieces = [piece for piece in cut_up(stream, cuts) if piece]
    whole = concat([Batch.of(piece) for piece in pieces])
    assert items(whole) == stream
    assert whole.identities.tolist() == Batch.of(stream).identities.tolist()


def test_columns_that_only_some_batches_have_are_null_in_the_others():
    parts = [Batch.of([Insert(payload, 0, 1)]) for payload in ({"a": 1}, {}, {"b": "x", "a": 2.5})]
    whole = concat(parts)
    assert whole.payload.to_pylist() == [{"a": 1, "b": None}, {"a": None, "b": None}, {"a": 2.5, "b": "x"}]


def test_payloads_without_columns_are_rows_all_the_same():
    whole = concat([Batch.of([Insert({}, 0, 1), Stable(1)]), Batch.of([Insert({}, 2, 3)])])
    assert items(whole) == [Insert({}, 0, 1), Stable(1), Insert({}, 2, 3)]


@given(st.lists(recorded(payloads), max_size=8))
def test_each_input_said_its_part_in_order(stream):
    parts = Batch.of(stream).split()
    assert list(parts) == list(dict.fromkeys(item.input for item in stream))
    for name, part in parts.items():
        said = [part.element(row) for row in range(len(part))]
        assert said == [item.element for item in stream if item.input == name]


def test_a_batch_of_one_input_has_no_parts():
    assert Batch.of([Stable(1)]).split() == {}


def test_a_given_schema_is_kept():
    schema = pa.schema([("n", pa.int16()), ("unused", pa.string())])
    batch = Batch.of([Insert({"n": 3}, 0, 1), Stable(1)], schema=schema)
    assert batch.payload.schema == schema
    assert items(batch) == [Insert({"n": 3}, 0, 1), Stable(1)]


def test_either_every_element_is_tagged_or_none_is():
    with pytest.raises(SchemaError, match="either every element of a batch is tagged with its input or none"):
        Batch.of([Stable(1), Tagged("a", Stable(2))])


MOMENT = datetime(2026, 1, 1)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, "a"),
        (True, 1),
        (True, 1.5),
        (2**53 + 1, 1.5),
        (Decimal("1.5"), 1.5),
        ("a", b"a"),
        (MOMENT, MOMENT.replace(tzinfo=UTC)),
        (MOMENT, MOMENT.date()),
        (MOMENT, 1),
        (timedelta(1), 1),
        ([1], 1),
        ([1], {"x": 1}),
        (object(), 1),
    ],
)
@pytest.mark.parametrize("wrap", [lambda v: v, lambda v: [None, v], lambda v: {"x": 1, "y": [v]}])
def test_a_column_that_no_one_type_holds_is_refused_by_name_with_the_way_out(one, other, wrap):
    for values in [(one, other), (other, one)]:
        with pytest.raises(
            SchemaError, match="no one Arrow type holds all of payload column 'level'"
        ) as caught:
            Batch.of([Insert({"ok": 1, "level": wrap(value)}, 0, 1) for value in values])
        assert "give the odd ones another column" in caught.value.__notes__[-1]


@pytest.mark.parametrize(
    "values", [(1, 2.5, None), (Decimal("1.5"), 2), (np.float64(1), 2), ([], [1], [2.5])]
)
def test_numbers_of_one_column_may_be_written_differently(values):
    batch = Batch.of([Insert({"n": value}, 0, 1) for value in values])
    assert [payload_key(element.payload) for element in batch.elements()] == [
        payload_key({"n": value}) for value in values
    ]


def test_controls_are_not_elements_of_a_single_stream():
    batch = Batch.of([Tagged("a", Attach(3)), Tagged("a", Insert({}, 3, 4)), Tagged("a", Detach())])
    assert [batch.element(row) for row in range(3)] == [Attach(3), Insert({}, 3, 4), Detach()]
    with pytest.raises(AssertionError, match="no attach or detach"):
        list(batch.elements())
    with pytest.raises(AssertionError, match="not tagged"):
        list(Batch.of([Adjust({}, 0, 1, 2)]).tagged())


def test_columns_of_one_batch_have_one_length():
    whole = Batch.of([Stable(1), Stable(2)])
    with pytest.raises(AssertionError, match=r"one length, not \[1, 2\]"):
        Batch(whole.kind, whole.start[:1], whole.end, whole.old_end, whole.payload)


def test_iterating_over_a_batch_gives_its_elements():
    elements = [Insert({"v": 1}, 2, 5), Stable(3)]
    assert list(Batch.of(elements)) == elements


def test_iterating_over_a_recording_gives_its_elements_with_their_inputs():
    said = [Tagged("east", Attach(3)), Tagged("west", Insert({"v": 1}, 2, 5))]
    assert list(Batch.of(said)) == said


def test_one_element_is_asked_for_by_name():
    with pytest.raises(TypeError, match="a slice of it, not 0") as caught:
        Batch.of([Stable(3)])[0]
    assert "Batch.element(row)" in caught.value.__notes__[0]


@pytest.mark.parametrize("payload", [{"v": "ab\ud800"}, {"v": ["x", "\udfff"]}, {"v\ud800": 1}], ids=ascii)
def test_half_a_character_is_refused_by_name(payload):
    with pytest.raises(SchemaError, match=r"text is UTF-8.*half of a character") as caught:
        Batch.of([Insert(payload, 1, 2)])
    assert "surrogatepass" in caught.value.__notes__[0]


@given(filled)
def test_the_columns_of_a_batch_cannot_be_written_to_however_it_was_made(stream):
    whole = Batch.of(stream)
    twice = concat([whole, whole])
    rows = np.arange(len(whole))
    made = [whole, whole[1:], whole.take(rows[::-1]), twice, twice[::2], Batch.from_arrow(whole.to_arrow())]
    for column in (getattr(batch, name) for batch in made for name in ("kind", "start", "end", "old_end")):
        assert column.flags.c_contiguous
        with pytest.raises(ValueError, match="read-only"):
            column[:] = 1


def test_a_slice_of_a_recording_knows_who_said_it():
    said = [Tagged("a", Stable(1)), Tagged("b", Insert({"n": 1}, 1, 2)), Tagged("a", Stable(3))]
    assert list(Batch.of(said)[1:]) == said[1:]
    assert list(Batch.of(said)[::2]) == said[::2]
