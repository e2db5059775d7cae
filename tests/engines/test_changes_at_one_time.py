"""Changes of one key at one commit time stand for one table, in whatever order they come."""

from itertools import permutations
from random import Random

import pytest
from quick import cases

import anabranch as ab
from anabranch.model.relation import Relation

COLUMNS = {"op": "string", "at": "int64", "who": "string", "id": "int64", "v": "string", "n": "int64"}


def table(**more) -> ab.Stream:
    return ab.source("t", COLUMNS, start="at", op="op", key="id", payload=["id", "v"], by_time=True, **more)


def relation_of(stream: ab.Stream, pieces: list[list[dict]]) -> tuple[Relation, ab.Job]:
    relation, job = Relation(), stream.open(on_invalid=ab.Drop())
    for piece in pieces:
        relation.apply(ab.Batch.from_arrow(job.push("t", piece and _table(piece))) if piece else [])
    return relation, job


def _table(rows: list[dict]):
    import pyarrow as pa

    schema = pa.schema([(name, getattr(pa, kind)()) for name, kind in COLUMNS.items()])
    return pa.Table.from_pylist(rows, schema).to_batches()[0]


def events(stream: ab.Stream, pieces: list[list[dict]]) -> list:
    relation, _ = relation_of(stream, pieces)
    return sorted((e.payload["id"], e.payload.get("v"), e.start, e.end) for e in relation.events())


def test_a_delete_wins_over_an_upsert_of_its_time():
    rows = [
        {"op": "upsert", "at": 5, "id": 1, "v": "a"},
        {"op": "delete", "at": 10, "id": 1},
        {"op": "upsert", "at": 10, "id": 1, "v": "b"},
    ]
    for order in permutations(rows):
        assert events(table(), [list(order)]) == [(1, "a", 5, 10)]
        assert events(table(), [[row] for row in order]) == [(1, "a", 5, 10)]


def test_what_is_refused_does_not_depend_on_the_order_of_arrival():
    rows = [
        {"op": "update", "at": 5, "id": 1, "v": "a"},
        {"op": "upsert", "at": 5, "id": 1, "v": "a"},
        {"op": "upsert", "at": 99, "id": 2, "v": "z"},
    ]
    for order in permutations(rows[:2]):
        job = table(disorder=20).open(on_invalid=ab.Quarantine())
        job.push("t", _table([*order, rows[2]]))
        assert job.status().refused == {}


def test_numbers_decide_where_rows_have_them():
    rows = [
        {"op": "upsert", "at": 5, "id": 1, "v": "a", "n": 1},
        {"op": "delete", "at": 10, "id": 1, "n": 2},
        {"op": "upsert", "at": 10, "id": 1, "v": "b", "n": 3},
    ]
    for order in permutations(rows):
        found = events(table(sequence="n"), [[row] for row in order])
        assert found == [(1, "a", 5, 10), (1, "b", 10, ab.FOREVER)]


def drawn(random: Random) -> list[dict]:
    """Changes of two keys at few times, many of one key at one time."""
    ops = ["upsert", "upsert", "delete", "insert", "update"]
    return [
        {
            "op": random.choice(ops),
            "at": random.randint(0, 3),
            "id": random.randint(0, 1),
            "v": random.choice("abc"),
        }
        for _ in range(random.randint(2, 9))
    ]


def shuffled(random: Random, rows: list[dict]) -> list[list[dict]]:
    order = random.sample(rows, len(rows))
    cut = random.randint(0, len(rows))
    return [piece for piece in (order[:cut], order[cut:]) if piece]


@pytest.mark.parametrize("seed", range(cases(60)))
def test_any_order_of_arrival_gives_one_table(seed):
    random = Random(seed)
    rows = drawn(random)
    found = [events(table(), shuffled(random, rows)) for _ in range(5)]
    assert all(one == found[0] for one in found)
    refusals = []
    for _ in range(5):
        _, job = relation_of(table(), [*shuffled(random, rows), [{"op": "stable", "at": 9}]])
        refusals.append(job.status().refused)
    assert all(one == refusals[0] for one in refusals)


@pytest.mark.parametrize("seed", range(cases(30)))
def test_replicas_whose_orders_differ_agree(seed):
    random = Random(seed)
    rows = drawn(random)
    merged = table(replica="who", lossy=False).merge()
    pieces = [[row | {"who": who} for row in piece] for who in ("x", "y") for piece in shuffled(random, rows)]
    stables = [[{"op": "stable", "at": 9, "who": who}] for who in ("x", "y")]
    relation, job = relation_of(merged, [*pieces, *stables])
    alone, _ = relation_of(table(), [rows])
    assert sorted(map(str, relation.events())) == sorted(map(str, alone.events()))
    assert not any(sum(of.values()) for of in job.status().removed.values())


def test_changes_that_no_number_orders_are_counted():
    _, job = relation_of(table(), [[{"op": "upsert", "at": 5, "id": 1, "v": v} for v in "ab"]])
    assert ", 1 tied" in str(job.status())


def test_replicas_whose_numbers_differ_disagree_and_the_status_says_so():
    merged = table(replica="who", lossy=False, sequence="n").merge()
    numbered = {"x": "abc", "y": "acb"}
    rows = [
        {"op": "upsert", "at": 10, "id": 1, "v": v, "n": n, "who": who}
        for who, values in numbered.items()
        for n, v in enumerate(values)
    ]
    stables = [[{"op": "stable", "at": 12, "n": 3, "who": who}] for who in numbered]
    relation, job = relation_of(merged, [rows, *stables])
    assert [event.payload["v"] for event in relation.events()] == ["c"]
    status = job.status()
    assert status.disagreements == {"merge_changes": {"x": 0, "y": 1}}
    assert status.remarks() == [
        "merge_changes: y disagrees with the output about 1 event",
        "merge_changes: y has {'id': 1, 'v': 'b'} [10, ∞) where the output has none (noticed at 12)",
    ]


def test_replicas_whose_rows_agree_have_no_remarks():
    merged = table(replica="who", lossy=False, sequence="n").merge()
    rows = [{"op": "upsert", "at": 10, "id": 1, "v": "a", "n": 1, "who": who} for who in "xy"]
    _, job = relation_of(merged, [rows, [{"op": "stable", "at": 12, "n": 2, "who": who} for who in "xy"]])
    assert job.status().remarks() == []
