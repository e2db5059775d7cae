"""What a channel says in a micro-batch: every row once, in its place, and in as many rounds as ranges."""

from random import Random

import pyarrow as pa
import pytest
from engines.spark.driving import Said
from engines.spark.hearing import Shard, event, hear, parcels, said
from engines.spark.merges import Merging
from engines.spark.plan_driving import LeveledQuery
from hypothesis import given
from hypothesis import strategies as st

import anabranch as ab
from anabranch import Case, Pace, Stable
from anabranch.engines.spark.order import turns_of

tasks_of_one_channel = st.lists(
    st.lists(st.integers(0, 12), min_size=1, max_size=4).map(sorted), min_size=1, max_size=6
)
"""The places in their channel of the rows that each task is given."""


def given_to(tasks: list[list[int]]) -> list[list[Said]]:
    """Rows in these places; what each of them says is its number, counted over all tasks."""
    numbers = iter(range(100))
    return [[Said("a", event(str(next(numbers)), 1, 2), "x", place) for place in task] for task in tasks]


def rounds(tasks: list[list[int]]) -> list[list[int]]:
    """Tasks in groups: two are in one where the ranges of their places share a place, or others link them."""
    groups: list[list[int]] = []
    for number, task in enumerate(tasks):
        places = set(range(task[0], task[-1] + 1))
        linked = [
            group
            for group in groups
            if any(places & set(range(tasks[n][0], tasks[n][-1] + 1)) for n in group)
        ]
        groups = [group for group in groups if group not in linked]
        groups.append(sorted([number, *(n for group in linked for n in group)]))
    return sorted(groups, key=lambda group: min(tasks[n][0] for n in group))


@given(tasks_of_one_channel)
def test_stretches_are_one_turn_where_their_ranges_share_a_place(tasks):
    rows = given_to(tasks)
    turns = turns_of(parcels(*rows), at_one_instant=False)["a", "x"]
    expected = rounds(tasks)
    assert [(turn.stretch.sequence, turn.last) for turn in turns] == [
        (min(tasks[n][0] for n in group), max(tasks[n][-1] for n in group)) for group in expected
    ]
    for turn, group in zip(turns, expected, strict=True):
        told = [
            (int(place), part.parcel.batch(part.rows).element(n).payload["value"])
            for part in turn.parts
            for n, place in enumerate(part.sequences())
        ]
        assert [place for place, _ in told] == sorted(place for n in group for place in tasks[n])
        assert sorted(told) == sorted(
            (s.sequence, s.element.payload["value"]) for n in group for s in rows[n]
        )


@given(tasks_of_one_channel, st.integers(0, 100))
def test_rounds_do_not_depend_on_the_order_of_parcels(tasks, seed):
    packed = parcels(*given_to(tasks))
    turns = [
        [(turn.stretch, turn.last) for turn in turns_of(some, at_one_instant=False)["a", "x"]]
        for some in (packed, Random(seed).sample(packed, len(packed)))
    ]
    assert [(v.sequence, last) for v, last in turns[0]] == [(v.sequence, last) for v, last in turns[1]]


@pytest.mark.parametrize("second", [2, 1])
def test_who_goes_on_in_the_place_where_it_was_cut_is_not_late(second):
    """Several rows of one place, as of one record, may be in the parcels of two tasks."""
    shard = Shard(Merging(Case.R4, pace=Pace.FASTEST, lossy=True, replicas=("a", "b")))
    first = said(event("u", 1, 5), event("v", 2, 5), event("w", 3, 5))
    again = said(event("x", 4, 5), Stable(9), first=second)
    assert len(hear(shard, first, again, said(Stable(9), who="b"))) == 4
    assert shard.frontier == 9


@given(tasks_of_one_channel)
def test_without_an_order_all_that_a_channel_says_is_one_turn(tasks):
    rows = given_to(tasks)
    packed = parcels([], *rows, ordered=False)
    (turn,) = turns_of(packed, at_one_instant=True)["a", "x"]
    stretches = [stretch for parcel in packed for stretch in parcel.stretches]
    assert turn.stretch.sequence == min(stretch.sequence for stretch in stretches)
    assert turn.last == max(stretch.last for stretch in stretches)
    (part,) = turn.parts
    told = [element.payload["value"] for element in part.parcel.batch(part.rows).elements()]
    assert told == [one.element.payload["value"] for task in rows for one in task]
    assert part.sequences().tolist() == [
        (number << 40) + n for number, task in enumerate(tasks, 1) for n in range(len(task))
    ]


@given(tasks_of_one_channel)
def test_what_has_an_order_does_not_happen_at_one_instant(tasks):
    packed = parcels(*given_to(tasks))
    turns = [turns_of(packed, at_one_instant=instant)["a", "x"] for instant in (False, True)]
    assert [(turn.stretch, turn.last) for turn in turns[0]] == [
        (turn.stretch, turn.last) for turn in turns[1]
    ]


@pytest.mark.parametrize("value", "abcd")
def test_a_shard_may_have_no_row_of_tasks_whose_ranges_overlap(value):
    columns = {"at": "int64", "who": "string", "n": "int64", "value": "string"}
    merged = ab.source("s", columns, start="at", disorder=0, replica="who", sequence="n", lossy=False).merge()
    query = LeveledQuery(merged, 2)
    tasks = [
        pa.RecordBatch.from_pylist([{"at": n, "who": "a", "n": n, "value": value} for n in numbers])
        for numbers in ((1, 3), (2, 4))
    ]
    given = [row for batch in query.receive({"s": tasks}) for row in batch.to_pylist()]
    assert sorted(row["start"] for row in given if row["kind"] == "insert") == [1, 2, 3, 4]
