"""Shards that hear changes of tables merge what the oracle reads from the changes of each replica."""

from dataclasses import replace
from random import Random

import msgspec
import pyarrow as pa
import pytest
from engines.spark.changing import LAYOUT, MERGING, ORDERED, UNORDERED, Query, Shard, shard_of, shown
from laws.table_histories import SCHEMA, Said, cut, history, standing
from quick import cases

from anabranch import (
    FOREVER,
    Batch,
    Insert,
    Relation,
    Stable,
    difference,
    incompatibility,
)
from anabranch.engines.spark.rows_merge import ROWS_SOURCE
from anabranch.engines.spark.transport.packing import Packing
from anabranch.kernels.store.saved import StateFormatError
from anabranch.model.schema import SchemaError
from anabranch.model.validity import InvalidElementError, Raise
from anabranch.oracle.changes import ChangedTable
from anabranch.rows.change_words import spellings
from anabranch.rows.layout import Layout
from anabranch.rows.reading import Place, read_rows

EVENTS = Layout("at", kind="op", replica="replica", payload=("site", "id", "v"))


class Table:
    """What the oracle reads from the changes of one replica, and those that it refuses."""

    def __init__(self, *, by_time: bool = True, numbered: bool = True) -> None:
        self.table, self.said, self.refused = ChangedTable(("site", "id"), by_time), {}, []
        self.numbered = numbered

    def receive(self, said: Said) -> None:
        if said.op == "stable":
            unfit = self.table.promise(FOREVER if said.at is None else said.at)
            self.refused += [self.said[id(change)] for change in unfit]
            return
        change = said.change()
        if not self.numbered:
            change = change._replace(place=standing(change.op, change.row))
        self.said[id(change)] = said
        if not self.table.push(change):
            self.refused.append(said)

    def refuses(self, said: Said) -> bool:
        """Whether a change that comes now will not fit, whatever else comes after all that has come."""
        trial = replace(self.table, changes=list(self.table.changes))
        change = said.change()
        return not trial.push(change) or any(change is unfit for unfit in trial.promise(FOREVER))

    def relation(self) -> Relation:
        relation = Relation()
        relation.apply(Batch.of([Insert(*version) for version in self.table.versions()]))
        relation.apply(Stable(self.table.frontier))
        return relation


def copy_of(log: list[Said], name: str, random: Random, *, late: int, by_time: bool) -> list[Said]:
    """What a replica says: changes that are late, progress, and at odd times what will not fit.

    Of a log the changes of each key keep their order, by time those at one time.
    """
    heard = Table(by_time=by_time)
    for one in log if by_time else ():
        heard.receive(one)
    left, said = [replace(one, replica=name) for one in log], []
    while left:
        ready = [n for n, one in enumerate(left) if one.at <= left[0].at + random.choice((0, late))]
        names = [(one.site, one.id, one.at if by_time else 0) for one in left]
        now = [one := left.pop(names.index(names[random.choice(ready)]))]
        if random.random() < 0.2:
            now.append(Said(name, "stable", min((one.at for one in left), default=one.at)))
        for item in () if by_time else now:
            heard.receive(item)
        if random.random() < 0.2:
            op, at = random.choice(("insert", "update", "delete")), random.choice((one.at, 0, -20)) + 1
            odd = Said(name, op, at, random.choice("xyz"), random.randrange(3), "odd")
            now += [odd] if heard.refuses(odd) else []
        said += now
    said.append(Said(name, "stable", None))
    return [replace(one, number=n) for n, one in enumerate(said)]


def dealt(random: Random, rows: list[Said]) -> list[list[Said]]:
    """Rows on tasks, in any order."""
    tasks = [[] for _ in range(random.choice((1, 2, 3)))]
    for row in random.sample(rows, len(rows)):
        random.choice(tasks).append(row)
    return tasks


def micro_batches(random: Random, copies: list[list[Said]]) -> list[list[Said]]:
    parts = [cut(random, copy) for copy in copies]
    batches = [[] for _ in range(max(map(len, parts)))]
    for part in parts:
        for n, rows in enumerate(part):
            batches[n if len(part) == len(batches) else min(n + random.randrange(2), len(batches) - 1)] += (
                rows
            )
    return batches


@pytest.mark.parametrize(
    ("layout", "by_time"),
    [(ORDERED, False), (ORDERED, True), (UNORDERED, True)],
    ids=["log", "by time", "unordered"],
)
@pytest.mark.parametrize("seed", range(cases(40)))
def test_replicas_in_disorder_are_merged_as_the_oracle_reads_their_changes(seed, layout, by_time):
    random = Random(seed)
    log = history(random, random.choice((5, 20, 40)), step=0 if layout is ORDERED else 2)
    late, names = random.choice((0, 4, 10)), "ab"[: random.choice((1, 2, 2))]
    copies = [copy_of(log, name, random, late=late, by_time=by_time) for name in names]
    merging, shards = replace(MERGING, by_time=by_time), random.choice((1, 2, 3))
    query = Query(layout, merging, shards, rows=random.choice((1, 4, 1000)))
    tables = {copy[0].replica: Table(by_time=by_time) for copy in copies}
    for batch in micro_batches(random, copies):
        query.receive(*dealt(random, batch))
        at_the_end = layout is UNORDERED
        for said in sorted(batch, key=lambda said: (at_the_end and said.op == "stable", said.number)):
            tables[said.replica].receive(said)
        assert incompatibility(query.output, {n: t.relation() for n, t in tables.items()}) is None
        if random.random() < 0.4:
            query.store()
    meant = Table()
    for said in [*log, Said("", "stable", None)]:
        meant.receive(said)
    assert query.output.frontier == FOREVER
    assert difference(query.output, meant.relation()) is None
    expected = [said for table in tables.values() for said in table.refused]
    assert len(query.refused) == len(expected)
    if layout is ORDERED:
        places = [f"{said.replica} row {said.number}" for said in expected]
        assert sorted(one.place for one in query.refused) == sorted(places)
    assert all(one.table.live == 0 for shard in query.shards for one in shard.changes.replicas.values())


@pytest.mark.parametrize("seed", range(cases(20)))
def test_without_a_sequence_changes_of_one_commit_time_count_by_what_they_are(seed):
    random = Random(seed)
    log = [replace(said, replica="a") for said in history(random, 30, step=0)]
    query = Query(UNORDERED, shards=random.choice((1, 2)), rows=random.choice((1, 3, 1000)))
    table = Table(numbered=False)
    for batch in cut(random, log):
        tasks = dealt(random, batch)
        query.receive(*tasks)
        for said in [said for task in tasks for said in task]:
            table.receive(said)
        if random.random() < 0.4:
            query.store()
        assert incompatibility(query.output, {"a": table.relation()}) is None
    query.receive([Said("a", "stable", None)])
    table.receive(Said("a", "stable", None))
    assert difference(query.output, table.relation()) is None
    assert len(query.refused) == len(table.refused)


def test_an_update_may_come_a_micro_batch_before_the_insert_that_it_follows():
    query = Query(UNORDERED, shards=2)
    query.receive([Said("a", "update", 6, "x", 1, "b"), Said("a", "delete", 9, "x", 1)])
    assert (shown(query), query.refused) == ([], [])
    query.store()
    query.receive([Said("a", "insert", 2, "x", 1, "a"), Said("a", "stable", 4)])
    assert (shown(query), query.refused) == ([("a", 2, 6), ("b", 6, 9)], [])
    query.receive([Said("a", "stable", None)])
    assert query.refused == []


def test_a_change_that_waits_when_its_replica_leaves_is_refused():
    query = Query(ORDERED, replace(MERGING, by_time=True))
    query.receive([Said("a", "update", 6, "x", 1, "b", number=7)])
    query.store()
    query.receive([Said("a", "detach", None, number=8)])
    assert [(one.rule, one.place) for one in query.refused] == [("no-such-row", "a row 7")]


def test_a_replica_that_is_attached_again_begins_its_table_anew():
    query = Query(ORDERED)
    a = [Said("a", "insert", 1, "x", 1, "a"), Said("a", "update", 4, "x", 1, "b"), Said("a", "stable", 5)]
    query.receive([replace(said, number=n) for n, said in enumerate(a)])
    again = [
        Said("a", "detach", None),
        Said("a", "attach", 5),
        Said("a", "insert", 4, "x", 1, "b"),
        Said("a", "delete", 8, "x", 1),
        Said("a", "stable", 9),
    ]
    query.receive([replace(said, number=n) for n, said in enumerate(again, 3)])
    assert query.refused == []
    assert shown(query) == [("a", 1, 4), ("b", 4, 8)]


def test_a_replica_that_has_left_holds_no_table_and_is_refused_until_it_is_back():
    query = Query(ORDERED)
    rows = [
        Said("a", "insert", 1, "x", 1, "a"),
        Said("a", "detach", None),
        Said("a", "delete", 3, "x", 1),
    ]
    query.receive([replace(said, number=n) for n, said in enumerate(rows)])
    assert query.shards[0].changes.replicas == {}
    assert [(one.rule, one.raw) for one in query.refused] == [
        ("detached-input", '{"op":"delete","time":3,"before":{"site":"x","id":1}}')
    ]
    query.store()
    query.receive([Said("a", "attach", None, number=3), Said("a", "insert", 1, "x", 1, "a", number=4)])
    assert len(query.refused) == 1


@pytest.mark.parametrize(
    ("op", "meaning"),
    [
        *((word, "insert") for word in ("insert", "I", "c", "CREATE", "r", "read", "+I")),
        *((word, "update") for word in ("Update", "u", "+U", "update_postimage")),
        *((word, "delete") for word in ("DELETE", "d", "-D")),
        ("Upsert", "update"),
    ],
)
def test_an_op_may_be_spelled_in_the_usual_ways(op, meaning):
    query = Query(UNORDERED)
    if meaning != "insert":
        query.receive([Said("a", "insert", 1, "x", 1, "a")])
    query.receive([Said("a", op, 5, "x", 1, "b"), Said("a", "PROGRESS", 9)])
    assert query.refused == []
    expected = {
        "insert": [("b", 5, FOREVER)],
        "update": [("a", 1, 5), ("b", 5, FOREVER)],
        "delete": [("a", 1, 5)],
    }
    assert shown(query) == expected[meaning]


@pytest.mark.parametrize("op", ["-U", "update_preimage", "ignore"])
def test_the_image_before_an_update_is_passed_over(op):
    query = Query(UNORDERED)
    query.receive(
        [Said("a", "insert", 1, "x", 1, "a"), Said("a", op, None, None, None), Said("a", "stable", 9)]
    )
    assert query.refused == []
    assert len(query.output) == 1


def test_more_words_may_be_known():
    ops = spellings({"1": "Delete", " 2 ": "insert", "U": "upsert"})
    query = Query(replace(UNORDERED, ops=ops))
    query.receive([Said("a", "2", 1, "x", 1, "a"), Said("a", "u", 3, "x", 2, "b"), Said("a", "1", 5, "x", 1)])
    assert query.refused == []
    with pytest.raises(ValueError, match="'truncate' is not known") as caught:
        spellings({"t": "truncate"})
    assert "insert, update, delete, upsert" in caught.value.__notes__[0]


@pytest.mark.parametrize(
    ("bad", "rule", "reason"),
    [
        (Said("a", "truncate", 7, "x", 1), "malformed", "'truncate' is not known to be any"),
        (Said("a", None, 7, "x", 1), "malformed", "None is not known to be any"),
        (
            Said("a", "insert", None, "x", 2, "b"),
            "malformed",
            "a change has a commit time, column 'at' is null",
        ),
        (Said("a", "insert", FOREVER, "x", 2, "b"), "malformed", "before the end of time"),
        (Said("a", "delete", 7, "x", None), "malformed", "names its row, key column 'id' is null"),
        (Said(None, "delete", 7, "x", 1), "malformed", "column 'replica' is null"),
        (Said("a", "delete", 7, "x", 2), "no-such-row", "no row of its key is there"),
        (Said("a", "update", 7, "y", 1, "b"), "no-such-row", "no row of its key is there"),
        (Said("a", "update", 5, "x", 1, "b"), "no-such-row", "a row that is there by then"),
        (Said("a", "insert", 7, "x", 1, "b"), "row-is-there", "has been there since 6"),
        (Said("a", "insert", 4, "x", 2, "b"), "change-behind-stable", "the last stable is 5"),
    ],
)
@pytest.mark.parametrize("layout", [ORDERED, UNORDERED])
def test_a_change_that_does_not_fit_is_refused_with_reason_place_and_row_and_the_others_are_used(
    layout, bad, rule, reason
):
    query = Query(layout, shards=2)
    query.receive([Said("a", "insert", 6, "x", 1, "a", number=1), Said("a", "stable", 5, number=2)])
    query.receive([replace(bad, number=3), Said("a", "delete", 9, "x", 1, number=4)])
    at_once = layout is ORDERED or rule in ("malformed", "change-behind-stable")
    assert bool(query.refused) == at_once
    query.store()
    query.receive([Said("a", "stable", 10, number=5)])
    [refused] = query.refused
    assert (refused.rule, refused.replica) == (rule, bad.replica or refused.replica)
    assert reason in refused.reason
    assert refused.place.endswith("row 0" if layout is UNORDERED or rule == "malformed" else "row 3")
    assert (bad.op or "null") in refused.raw
    assert [(event.start, event.end) for event in query.output.events()] == [(6, 9)]


def test_a_change_behind_the_frontier_of_another_channel_of_its_replica_is_refused():
    layout = replace(ORDERED, channel="site", payload=("id", "v"), key=("id",))
    query = Query(layout)
    query.receive([Said("a", "insert", 1, "x", 1, "a"), Said("a", "stable", 9, "x", number=1)])
    query.receive([Said("a", "insert", 5, "y", 2, "b"), Said("a", "insert", 12, "y", 2, "c", number=1)])
    [refused] = query.refused
    assert (refused.rule, refused.place) == ("change-behind-stable", "a/y row 0")
    assert "the last stable is 9" in refused.reason
    assert sorted(event.start for event in query.output.events()) == [1, 12]


def test_what_the_merge_leaves_out_names_the_change_it_comes_of():
    query = Query(ORDERED, replace(MERGING, lossy=True, replicas=("a", "b")))
    rows = [Said("a", "insert", 1, "x", 1, "a"), Said("a", "stable", 9, number=1), Said("b", "stable", 1)]
    query.receive([*rows, Said("b", "detach", None, number=1)])
    query.receive([Said("b", "attach", None, number=2), Said("b", "upsert", 2, "x", 7, "b", number=3)])
    [refused] = query.refused
    assert (refused.rule, refused.place) == ("late", "b row 3")
    assert refused.raw == '{"op":"upsert","time":2,"after":{"site":"x","id":7,"v":"b"}}'


def test_a_policy_that_raises_stops_at_a_change_that_does_not_fit():
    query = Query(ORDERED, replace(MERGING, on_invalid=Raise()))
    with pytest.raises(InvalidElementError, match="a:3 of input 'a' changes a row that is not there"):
        query.receive([Said("a", "delete", 7, "x", 2, number=3)])
    query = Query(ORDERED, replace(MERGING, on_invalid=Raise(), by_time=True))
    query.receive([Said("a", "delete", 7, "x", 2, number=3)])
    with pytest.raises(InvalidElementError, match="a:3 of input 'a' changes a row that is not there"):
        query.receive([Said("a", "stable", 8, number=4)])


def test_rows_of_one_key_with_different_payloads_stay_apart_and_equal_ones_travel_once():
    rows = [Said(name, "upsert", 3 * n, "x", 1, v) for name in "ab" for n, v in enumerate("pqp")]
    batch = pa.RecordBatch.from_pylist([vars(said) for said in rows], SCHEMA)
    read = read_rows(UNORDERED, batch, Place("task 0"))
    [(_, packed)] = Packing(replace(UNORDERED, payload=LAYOUT.payload), 1).parcels([[read]])
    assert packed.payload.column("v").to_pylist() == ["p", "q"]
    assert packed.place.tolist() == [0, 1, 0, 0, 1, 0]
    low = packed.identities[:, 0].tolist()
    assert low[0] == low[1]


def test_all_changes_of_a_key_go_to_one_shard():
    rows = [Said("a", "upsert", n, "x", n % 50, str(n)) for n in range(500)]
    batch = pa.RecordBatch.from_pylist([vars(said) for said in rows], SCHEMA)
    layout = replace(UNORDERED, payload=LAYOUT.payload)
    parts = dict(Packing(layout, 4).parcels([[read_rows(layout, batch, Place("task 0"))]]))
    keys = [set(part.batch(slice(None)).payload.column("id").to_pylist()) for part in parts.values()]
    assert len(parts) == 4
    assert sum(map(len, keys)) == 50


def test_how_rows_are_packed_survives_a_trip_as_text():
    packing = Packing(ORDERED, 2, ordered=True)
    assert msgspec.json.decode(msgspec.json.encode(packing), type=Packing) == packing


def test_progress_may_come_from_a_bound_on_disorder():
    query = Query(replace(UNORDERED, disorder=2), shards=2)
    query.receive([Said("a", "insert", 10, "x", 1, "a"), Said("a", "insert", 4, "x", 2, "b")])
    assert query.output.frontier == 8
    query.receive([Said("a", "update", 8, "x", 2, "c"), Said("a", "update", 7, "x", 2, "d")])
    assert [one.rule for one in query.refused] == ["change-behind-stable"]


@pytest.mark.parametrize(
    ("written", "read_as", "says"),
    [
        (LAYOUT, EVENTS, r"begun with source rows: key \('site', 'id'\), this query has None"),
        (EVENTS, LAYOUT, "begun with source rows: key None, this query has"),
        (LAYOUT, replace(LAYOUT, key=("id",)), r"this query has \('id',\)"),
    ],
)
def test_the_state_of_a_query_that_read_otherwise_is_not_taken(written, read_as, says):
    shard = shard_of(replace(MERGING, replicas=("a",)), written)
    with pytest.raises(StateFormatError, match=says):
        Shard.load(shard_of(MERGING, read_as).assignment, 0, shard.dump())


def test_the_bytes_of_a_shard_count_its_tables():
    query = Query(UNORDERED)
    before = query.shards[0].nbytes
    query.receive([Said("a", "insert", 1, "x", n, "v" * 100) for n in range(3_000)])
    grown = query.shards[0].nbytes - before
    assert grown > query.shards[0].changes.replicas["a"].table.nbytes > 3_000 * 100
    query.store()
    assert query.shards[0].changes.replicas["a"].table.live == 3_000


def test_the_key_is_part_of_the_payload():
    layout = replace(LAYOUT, payload=("id", "v"))
    with pytest.raises(SchemaError, match="the key of a row is part of it, and column 'site' is no payload"):
        layout.check(SCHEMA)
    with pytest.raises(SchemaError, match="op is column 'what', and there is none"):
        replace(LAYOUT, kind="what").check(SCHEMA)
    with pytest.raises(SchemaError, match="key is column 'k', and there is none"):
        replace(LAYOUT, key=("k",)).check(SCHEMA)


def test_changes_are_counted_by_what_they_say_happened():
    words = "c", "u", "d", "upsert", "u", "stable"
    rows = [{"op": word, "at": n, "replica": "a", "site": "x", "id": 1} for n, word in enumerate(words)]
    packing = Packing(LAYOUT, 1, edge=ROWS_SOURCE)
    read = read_rows(packing.layout, pa.RecordBatch.from_pylist(rows, SCHEMA), Place("task"))
    result = shard_of(MERGING).receive([part for _, part in packing.parcels([[read]])])
    assert result.received == {"insert": 1, "update": 2, "delete": 1, "upsert": 1, "stable": 1}
