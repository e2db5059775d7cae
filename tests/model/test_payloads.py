"""Payload rows are kept once, given back as they were put in, and forgotten when nothing refers to them."""

from contextlib import suppress

import numpy as np
import pyarrow as pa
from element_strategies import payloads
from hypothesis import given
from hypothesis import strategies as st

from anabranch import Adjust, Batch, Event, Insert, Relation, Stable
from anabranch.model.batch import Kind
from anabranch.model.payloads import SLACK, PayloadStore
from anabranch.model.schema import SchemaError
from anabranch.oracle.payload import payload_key

PER_STEP = 20_000


def rows_of(chunk: list) -> pa.RecordBatch:
    return Batch.of([Insert(payload, 0, 1) for payload in chunk]).payload


def gathered(store: PayloadStore, places: list[int]) -> list:
    """The keys of the payloads that the store has at these places."""
    table = store.gather(np.array(places, np.int64))
    rows = table.to_pylist() if table.num_columns else [{}] * len(places)
    return [payload_key(row) for row in rows]


@given(st.lists(st.lists(payloads, max_size=4), max_size=4), st.data())
def test_rows_are_gathered_as_they_were_put_in(chunks, data):
    store = PayloadStore()
    held: list = []
    for chunk in chunks:
        assert store.next_place == len(held)
        with suppress(SchemaError):
            store.add(store.admit(rows_of(chunk)))
            held += [payload_key(payload) for payload in chunk]
        some = data.draw(st.sets(st.integers(0, len(held) - 1)) if held else st.just(set()))
        if data.draw(st.booleans()):
            store.keep_only(np.array(sorted(some), np.int64))
            held = [held[place] for place in sorted(some)]
        else:
            assert gathered(store, sorted(some)) == [held[place] for place in sorted(some)]
        assert store.rows == len(held)
        assert gathered(store, list(range(len(held)))) == held


@given(st.integers(0, 10**6))
def test_a_store_is_crowded_beyond_twice_what_is_alive_and_some_slack(alive):
    for over in (0, 1):
        store = PayloadStore(bounds=[0, 2 * alive + SLACK + over])
        assert store.crowded(alive) == bool(over)


def numbered(kind: Kind, first: int, count: int, *, end: int, old_end: int, width: int) -> Batch:
    """Elements whose payloads are a number and a text of this width that begins with it."""
    numbers = np.arange(first, first + count)
    texts = pa.array([f"{number:0{width}}" for number in numbers.tolist()])
    return Batch(
        np.full(count, kind, np.int8),
        np.zeros(count, np.int64),
        np.full(count, end),
        np.full(count, old_end),
        pa.RecordBatch.from_arrays([pa.array(numbers), texts], names=["number", "text"]),
    )


def test_what_is_held_is_bounded_by_what_is_alive_however_long_the_stream():
    relation, width, kept = Relation(), 64, 100
    row_bytes = 8 + width + 4
    most_rows = 0
    for step in range(20):
        first = step * PER_STEP
        relation.apply(numbered(Kind.INSERT, first, PER_STEP, end=9, old_end=0, width=width))
        gone = numbered(Kind.ADJUST, first + kept, PER_STEP - kept, end=0, old_end=9, width=width)
        relation.apply(gone)
        alive = len(relation)
        assert alive == (step + 1) * kept
        assert relation.payloads.rows <= 2 * alive + SLACK
        assert relation.payloads.nbytes <= 1.1 * row_bytes * (2 * alive + SLACK)
        most_rows = max(most_rows, relation.payloads.rows)
    assert most_rows > SLACK / 2, "the stream was too short to come near the bound"
    left = [step * PER_STEP + number for step in range(20) for number in range(kept)]
    current = relation.current()
    assert current.payload.column("number").to_pylist() == left
    assert current.payload.column("text").to_pylist() == [f"{number:0{width}}" for number in left]


def test_released_events_take_their_payloads_with_them():
    relation = Relation()
    for step in range(6):
        relation.apply(numbered(Kind.INSERT, step * PER_STEP, PER_STEP, end=9, old_end=0, width=1))
    assert relation.payloads.rows == 6 * PER_STEP
    relation.apply(Stable(10))
    assert len(relation.release()) == 6 * PER_STEP
    assert relation.payloads.rows <= SLACK


def test_an_event_that_is_adjusted_over_and_over_keeps_one_payload():
    relation = Relation()
    relation.apply(Insert({"n": 1}, 0, 10))
    for end in range(10, 210):
        relation.apply(Adjust({"n": 1}, 0, end, end + 1))
    assert relation.payloads.rows == 1
    assert relation.events() == [Event({"n": 1}, 0, 210)]
