"""Shards whose replicas begin with snapshots merge the versions of the log, as far as somebody vouches."""

from dataclasses import replace
from random import Random

import pyarrow as pa
import pytest
from engines.spark.changing import MERGING, ORDERED, UNORDERED, Query, Shard, shown
from laws.table_histories import (
    SCHEMA,
    Said,
    interleaved,
    logs,
    numbered,
    relation_of,
    rows_at,
    snapshot_of,
    table_of,
    time_heard,
    with_progress,
)
from quick import cases

from anabranch import (
    BEGINNING,
    FOREVER,
    EveryChange,
    FinalOnly,
    FirstThenFinal,
    FollowLeader,
    HalfFrozen,
    Quorum,
    difference,
)
from anabranch.cli.micro_batches import Lines
from anabranch.engines.spark.query.shard_status import shard_status
from anabranch.engines.spark.query.status import together
from anabranch.engines.spark.rows_merge import ROWS_SOURCE
from anabranch.oracle.snapshots import versions_since
from anabranch.rows.reading import Place, read_rows

POLICIES = [
    FirstThenFinal(),
    EveryChange(),
    HalfFrozen(),
    FinalOnly(),
    FollowLeader(),
    Quorum(fraction=1.0),
    FirstThenFinal(lag=3),
]


@pytest.mark.parametrize("policy", POLICIES, ids=str)
@pytest.mark.parametrize("seed", range(cases(24)))
def test_snapshots_of_replicas_give_the_versions_of_the_log_where_one_vouches_for_all(seed, policy):
    random = Random(seed)
    log = logs(random)
    copies, times = [], []
    for name in "bc"[: random.choice((1, 1, 2))]:
        position = random.randrange(1, len(log))
        time, rows = snapshot_of(random, name, log, position)
        if not rows:
            continue
        times.append(time)
        after = with_progress(random, name, log[position:])
        copies.append(numbered([*rows, *after, Said(name, "stable", None)]))
    whole = with_progress(random, "a", log)
    last = random.choice((None, None, max(times, default=0) + 1 + policy.lag))
    if last is None or not copies:
        whole.append(Said("a", "stable", None))
    else:
        whole = [said for said in whole if said.at < last] + [Said("a", "stable", last)]
        whole += [Said("a", "detach", None)] * random.randrange(2)
    copies.append(numbered(whole))
    by_time = random.random() < 0.3
    names = tuple(copy[0].replica for copy in copies)
    merging = replace(MERGING, policy=policy, replicas=names, by_time=by_time)
    query = Query(ORDERED, merging, random.choice((1, 2, 3)), rows=random.choice((1, 4, 1000)))
    for batch in interleaved(random, copies):
        query.receive(batch)
        if random.random() < 0.4:
            query.store()
    assert query.refused == []
    assert query.output.frontier == FOREVER
    assert difference(query.output, relation_of(table_of(log).versions())) is None
    assert all(not shard.changes.waiting and not shard.changes.since for shard in query.shards)
    tallies = [tally for shard in query.shards for tally in shard.merge.tallies.values()]
    assert sum(tally.disagreements for tally in tallies) == 0


@pytest.mark.parametrize("policy", POLICIES, ids=str)
@pytest.mark.parametrize("seed", range(cases(12)))
def test_where_nobody_vouches_rows_begin_at_the_first_snapshot_and_are_counted(seed, policy):
    random = Random(seed)
    log = logs(random)
    copies, positions = [], {}
    for name in "bc"[: random.choice((1, 2))]:
        position = random.randrange(1, len(log))
        _, rows = snapshot_of(random, name, log, position)
        if rows:
            positions[name] = position
            after = with_progress(random, name, log[position:])
            copies.append([*rows, *after, Said(name, "stable", None)])
    merging = replace(MERGING, policy=policy, replicas=tuple(positions), by_time=random.random() < 0.3)
    query = Query(ORDERED, merging, random.choice((1, 2, 3)), rows=random.choice((1, 4, 1000)))
    batches = interleaved(random, [numbered(copy) for copy in copies])
    times = {name: time_heard(batches, name) for name in positions}
    for batch in batches:
        query.receive(batch)
        if random.random() < 0.4:
            query.store()
    assert query.refused == []
    if not times:
        return
    assert query.output.frontier == FOREVER
    first = min(times, key=lambda name: (times[name], name))
    position, time = positions[first], times[first]
    rows = [dict(zip(("site", "id", "v"), row, strict=True)) for row in rows_at(log, position)]
    versions = versions_since(("site", "id"), time, rows, [said.change() for said in log[position:]])
    assert difference(query.output, relation_of(versions)) is None
    assert all({first} == shard.changes.since.keys() for shard in query.shards)
    assert {shard.changes.since[first][0] for shard in query.shards} == {time}
    counted = sum(shard.changes.since[first][1] for shard in query.shards)
    brought = {(said.change().row["site"], said.id, said.at) for said in log[position:]}
    assert counted == sum(
        start == time and (row["site"], row["id"], start) not in brought for row, start, _ in versions
    )


def test_a_replica_that_vouches_for_the_time_before_may_come_after_a_snapshot_that_is_out():
    query = Query(ORDERED, replace(MERGING, policy=EveryChange()), shards=2)
    query.receive([Said("b", "snapshot", 9, "x", 1, "p"), Said("b", "snapshot", 9, "x", 2, "q", number=1)])
    assert shown(query) == [("p", 9, FOREVER), ("q", 9, FOREVER)]
    query.store()
    query.receive([Said("a", "insert", 1, "x", 1, "p"), Said("a", "insert", 2, "x", 2, "q", number=1)])
    assert shown(query) == [("p", 1, FOREVER), ("q", 2, FOREVER)]
    query.receive([Said("a", "stable", 12, number=2), Said("b", "delete", 14, "x", 2, number=2)])
    query.receive([Said("b", "stable", None, number=3)])
    assert shown(query) == [("p", 1, FOREVER), ("q", 2, 14)]
    assert [shard.changes.since for shard in query.shards] == [{}, {}]


def test_rows_of_one_that_left_go_on_as_they_were_and_end_at_the_snapshot_that_does_not_have_them():
    query = Query(ORDERED, replace(MERGING, policy=EveryChange()), shards=2)
    a = [Said("a", "insert", n, "x", n, v) for n, v in enumerate("pqr", 1)]
    query.receive([replace(said, number=n) for n, said in enumerate([*a, Said("a", "stable", 5)])])
    query.receive([Said("a", "detach", None, number=4)])
    b = [Said("b", "snapshot", 9, "x", 1, "p"), Said("b", "snapshot", 9, "x", 2, "new")]
    query.receive(numbered(b))
    assert shown(query) == [("new", 9, FOREVER), ("p", 1, FOREVER), ("q", 2, FOREVER), ("r", 3, FOREVER)]
    query.store()
    query.receive([Said("b", "stable", 10, number=2)])
    assert shown(query) == [("new", 9, FOREVER), ("p", 1, FOREVER), ("q", 2, 9), ("r", 3, 9)]
    assert sum(shard.changes.since.get("b", (9, 0))[1] for shard in query.shards) == 1


def test_a_row_that_the_log_ends_while_its_replica_waits_is_ended_when_it_goes_on():
    query = Query(ORDERED, replace(MERGING, policy=EveryChange(), replicas=("a", "b")), shards=2)
    a = [Said("a", "insert", 1, "x", 1, "p"), Said("a", "insert", 2, "x", 2, "q"), Said("a", "stable", 6)]
    query.receive(numbered(a))
    b = [Said("b", "snapshot", 5, "x", 1, "p"), Said("b", "snapshot", 5, "x", 2, "q")]
    b += [Said("b", "update", 9, "x", 1, "p"), Said("b", "delete", 9, "x", 2), Said("b", "stable", 9)]
    query.receive(numbered(b))
    assert shown(query) == [("p", 1, 9), ("p", 9, FOREVER), ("q", 2, 9)]


def test_a_row_that_came_and_went_while_its_replica_waited_for_another_is_ended_when_both_go_on():
    query = Query(ORDERED, replace(MERGING, policy=EveryChange(), replicas=("a", "b")), shards=2)
    b = [Said("b", "snapshot", 5, "x", 1, "p"), Said("b", "insert", 8, "x", 2, "q")]
    query.receive(numbered([*b, Said("b", "delete", 9, "x", 2), Said("b", "stable", 9)]))
    a = [Said("a", "insert", 1, "x", 1, "p"), Said("a", "insert", 8, "x", 2, "q"), Said("a", "stable", 8)]
    query.receive(numbered(a))
    assert shown(query) == [("p", 1, FOREVER), ("q", 8, 9)]


def test_a_snapshot_that_is_read_again_before_the_log_goes_on_replaces_its_rows():
    query = Query(ORDERED)
    rows = [Said("b", "snapshot", 9, "x", 1, "p"), Said("b", "snapshot", 12, "x", 1, "q")]
    query.receive(numbered([*rows, Said("b", "update", 11, "x", 1, "r"), Said("b", "stable", None)]))
    assert query.refused == []
    assert shown(query) == [("q", 9, 11), ("r", 11, FOREVER)]


def test_a_shard_in_which_all_rows_are_gone_meets_the_merge_as_others_do():
    query = Query(ORDERED, replace(MERGING, replicas=("a", "b")), shards=3, rows=1000)
    b = [Said("b", "snapshot", 9, "x", 0, "p")]
    for n in range(1, 9):
        b += [Said("b", "insert", 12, "x", n, "q"), Said("b", "delete", 12, "x", n)]
    query.receive(numbered([*b, Said("b", "stable", None)]))
    query.store()
    query.receive(numbered([Said("a", "insert", 1, "x", 0, "p"), Said("a", "stable", None)]))
    assert shown(query) == [("p", 1, FOREVER)]


@pytest.mark.parametrize("layout", [ORDERED, UNORDERED])
def test_a_row_that_is_read_beside_the_log_says_nothing_where_its_values_are_known(layout):
    query = Query(layout)
    a = [Said("a", "insert", 1, "x", 1, "p"), Said("a", "stable", 3)]
    query.receive(numbered(a))
    read = [
        Said("a", "incremental", 5, "x", 1, "p"),
        Said("a", "incremental", 5, "x", 2, "q"),
        Said("a", "snapshot", 6, "x", 2, "q"),
        Said("a", "incremental", 7, "x", 1, "r"),
        Said("a", "update", 8, "x", 2, "s"),
    ]
    query.receive([replace(said, number=n) for n, said in enumerate(read, 2)])
    query.receive([Said("a", "stable", None, number=7)])
    assert query.refused == []
    assert shown(query) == [("p", 1, 7), ("q", 5, 8), ("r", 7, FOREVER), ("s", 8, FOREVER)]


def test_a_replica_that_is_attached_again_may_begin_with_another_snapshot():
    query = Query(ORDERED, shards=2)
    a = [Said("a", "insert", n, "x", n, v) for n, v in enumerate("pqr", 1)]
    a += [Said("a", "delete", 6, "x", 2), Said("a", "stable", 20)]
    b = [Said("b", "snapshot", 4, "x", n, v) for n, v in enumerate("pqr", 1)] + [Said("b", "stable", 5)]
    query.receive([*numbered(a), *numbered(b)])
    again = [Said("b", "detach", None), Said("b", "attach", None)]
    again += [Said("b", "snapshot", 8, "x", 1, "p"), Said("b", "snapshot", 8, "x", 3, "r")]
    again += [Said("b", "delete", 25, "x", 3), Said("b", "stable", None)]
    query.receive([replace(said, number=n) for n, said in enumerate(again, 4)])
    assert query.refused == []
    assert shown(query) == [("p", 1, FOREVER), ("q", 2, 6), ("r", 3, 25)]
    tallies = [tally for shard in query.shards for tally in shard.merge.tallies.values()]
    assert sum(tally.disagreements for tally in tallies) == 0


def test_rows_of_a_snapshot_promise_nothing_about_the_log_after_it():
    query = Query(replace(ORDERED, disorder=2), replace(MERGING, policy=EveryChange()))
    rows = [Said("b", "snapshot", 10, "x", 1, "p"), Said("b", "snapshot", 90, "x", 2, "q")]
    query.receive(numbered(rows))
    query.receive([Said("b", "update", 12, "x", 2, "r", number=2), Said("b", "delete", 15, "x", 1, number=3)])
    assert query.refused == []
    assert query.output.frontier == 13
    assert shown(query) == [("p", 10, 15), ("q", 10, 12), ("r", 12, FOREVER)]


def test_rows_of_a_snapshot_are_out_and_not_final_while_one_is_awaited_that_may_say_since_when():
    query = Query(ORDERED, replace(MERGING, policy=EveryChange(), replicas=("a", "b")), shards=2)
    query.receive(numbered([Said("b", "snapshot", 9, "x", 1, "p"), Said("b", "snapshot", 9, "x", 2, "q")]))
    query.store()
    query.receive([Said("b", "update", 12, "x", 2, "r", number=2), Said("b", "stable", 30, number=3)])
    assert shown(query) == [("p", 9, FOREVER), ("q", 9, 12), ("r", 12, FOREVER)]
    assert query.output.frontier == BEGINNING
    a = [Said("a", "insert", 1, "x", 1, "p"), Said("a", "insert", 2, "x", 2, "q"), Said("a", "stable", 20)]
    query.receive(numbered([*a[:2], Said("a", "update", 12, "x", 2, "r"), a[2]]))
    assert shown(query) == [("p", 1, FOREVER), ("q", 2, 12), ("r", 12, FOREVER)]
    assert query.output.frontier == 30
    assert [shard.changes.since for shard in query.shards] == [{}, {}]


def test_nobody_waits_with_a_snapshot_for_a_replica_that_is_idle():
    query = Query(ORDERED, replace(MERGING, replicas=("a", "b")))
    query.receive([Said("b", "snapshot", 9, "x", 1, "p"), Said("b", "stable", 10, number=1)])
    assert query.output.frontier == BEGINNING
    query.shards = [
        Shard.load(replace(shard.assignment, idle=((ROWS_SOURCE, "a"),)), 0, shard.dump())
        for shard in query.shards
    ]
    query.receive([Said("b", "update", 12, "x", 1, "q", number=2), Said("b", "stable", None, number=3)])
    assert shown(query) == [("p", 9, 12), ("q", 12, FOREVER)]
    assert query.output.frontier == FOREVER


def test_the_status_says_who_waits_with_a_snapshot_and_whose_rows_begin_at_one():
    rows = numbered([Said("b", "snapshot", 9, "x", 1, "p"), Said("b", "snapshot", 9, "x", 2, "q")])

    def told(query):
        batch = pa.RecordBatch.from_pylist([vars(one) for one in rows], SCHEMA)
        parts = dict(query.packing.parcels([[read_rows(query.packing.layout, batch, Place("task 0"))]]))
        heard = [(shard, shard.receive([parts[shard.number]])) for shard in query.shards]
        return together(1, [shard_status(shard, one, BEGINNING, 0, 0) for shard, one in heard])

    query = Query(ORDERED, replace(MERGING, replicas=("a", "b")), 2, rows=1000)
    query.receive([Said("a", "insert", 1, "x", 1, "p")])
    status = told(query)
    assert (status.replicas["b"].snapshot, status.replicas["b"].since_snapshot) == (9, 0)
    assert "waits until others are at its snapshot of 9" in str(status)
    status = told(Query(ORDERED, MERGING, 2, rows=1000))
    words = "2 rows of b begin at its snapshot of 9: no replica has vouched for the time before"
    assert words in str(status)
    assert Lines(None).conduct(status) == [words]
