"""Rows become parcels: every shard is told all it needs, each event once and each payload once."""

from collections import Counter
from dataclasses import replace
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from engines.spark.spark_rows import random_rows
from quick import cases

from anabranch import BEGINNING, Insert
from anabranch.engines.spark.transport.packing import Packing, distinct, split
from anabranch.engines.spark.transport.parcel import NO_PAYLOAD, Parcel
from anabranch.engines.spark.transport.shards import shard_of
from anabranch.model.batch import Batch, Kind
from anabranch.model.identity import identities
from anabranch.progress.channel_rows import Stretch
from anabranch.rows.layout import Layout
from anabranch.rows.reading import Place, read_rows

KINDS = np.array([0, 0, 0, 1, 2, 3, 4], np.int8)


def random_parcel(random: Random) -> Parcel:
    """What a task makes of its rows before they are split: a payload for each row."""
    count = random.randint(0, 30)
    payload = random_rows(random, count)
    stretches = tuple(Stretch(name, "", 100, True, 200) for name in "abc")
    return Parcel(
        stretches,
        np.sort(np.array([random.randrange(3) for _ in range(count)], np.int32)),
        np.arange(count) * 3,
        np.array([random.choice(KINDS) for _ in range(count)], np.int8),
        *(np.array([random.randint(0, 9) for _ in range(count)], np.int64) for _ in range(3)),
        np.arange(count, dtype=np.int32),
        payload,
    )


def told(parcel: Parcel) -> list[tuple[object, ...]]:
    """Each row of a parcel with who says it, as values."""
    batch = parcel.batch(slice(None))
    stretches = [parcel.stretches[code].replica for code in parcel.stretch]
    columns = (stretches, parcel.row.tolist(), batch.kind.tolist(), batch.start.tolist(), batch.end.tolist())
    payloads = map(str, batch.payload.to_pylist()) if batch.payload.num_columns else [""] * len(batch)
    payloads = [row if kind <= Kind.ADJUST else "" for row, kind in zip(payloads, batch.kind, strict=True)]
    return list(zip(*columns, batch.old_end.tolist(), payloads, strict=True))


def is_event(row) -> bool:
    return row[2] <= Kind.ADJUST


@pytest.mark.parametrize("shards", range(1, 6))
def test_every_event_goes_to_one_shard_and_all_else_to_every_one(shards):
    for seed in range(cases(60)):
        parcel = random_parcel(Random(seed))
        parts = dict(split(parcel, None, shards))
        assert set(parts) == set(range(shards))
        rows = told(parcel)
        events = [row for part in parts.values() for row in told(part) if is_event(row)]
        assert Counter(events) == Counter(filter(is_event, rows))
        for part in parts.values():
            mine = told(part)
            assert [row for row in mine if not is_event(row)] == [row for row in rows if not is_event(row)]
            assert [row for row in rows if row in mine] == mine or len(set(rows)) < len(rows)
            assert part.stretches == parcel.stretches


@pytest.mark.parametrize("shards", [1, 3])
def test_each_distinct_payload_is_told_once_with_its_identity(shards):
    for seed in range(cases(60)):
        for number, part in split(random_parcel(Random(seed)), None, shards):
            assert part.identities.tolist() == identities(part.payload).tolist()
            assert len(set(map(tuple, part.identities.tolist()))) == part.payload.num_rows
            assert (shard_of(part.identities, shards) == number).all()
            used = set(part.place.tolist()) - {NO_PAYLOAD}
            assert used == set(range(part.payload.num_rows))


def rows_of(payloads: pa.RecordBatch) -> Parcel:
    count = payloads.num_rows
    nothing = np.zeros(count, np.int64)
    batch = Batch(nothing.astype(np.int8), nothing, nothing + 5, nothing, payloads)
    return Parcel.of(Stretch("a"), batch)


def test_one_event_goes_to_one_shard_whatever_its_columns_are_like():
    """Replicas write the same payload in other types and orders, and must meet."""
    narrow = pa.RecordBatch.from_pydict({"id": pa.array(range(50), pa.int16()), "name": ["x"] * 50})
    wide = pa.RecordBatch.from_pydict({"name": ["x"] * 50, "id": pa.array(range(50), pa.float64())})
    chosen = [{row["id"] for row in part.payload.to_pylist()} for _, part in split(rows_of(narrow), None, 4)]
    assert chosen == [{row["id"] for row in p.payload.to_pylist()} for _, p in split(rows_of(wide), None, 4)]
    assert all(chosen)


def test_payloads_that_the_identity_takes_for_one_keep_their_other_columns():
    """Two visits of one person in one parcel: who came is the identity, the note is carried along."""
    rows = pa.RecordBatch.from_pylist([{"who": "ann", "note": "first"}, {"who": "ann", "note": "second"}])
    ((_, part),) = split(rows_of(rows), ("who",), 1)
    assert part.batch(slice(None)).payload.to_pylist() == rows.to_pylist()
    assert part.identities.tolist() == identities(rows.select(["who"])).tolist()


def test_events_are_dealt_out_by_what_tells_them_apart():
    rows = pa.RecordBatch.from_pydict({"who": [n % 5 for n in range(100)], "note": list(range(100))})
    homes: dict[int, set[int]] = {}
    for number, part in split(rows_of(rows), ("who",), 3):
        for row in part.payload.to_pylist():
            homes.setdefault(row["who"], set()).add(number)
    assert len(homes) == 5
    assert all(len(home) == 1 for home in homes.values())


def test_shards_get_about_as_much_each():
    parts = split(rows_of(pa.RecordBatch.from_pydict({"id": range(10_000)})), None, 4)
    assert all(2_200 < len(part) < 2_800 for _, part in parts)


def test_numbers_are_given_in_the_order_of_first_rows():
    words = np.array([[5, 0], [7, 0], [5, 0], [5, 1], [7, 0], [9, 9]], np.uint64)
    place, first = distinct(words, np.array([True, True, True, True, True, False]))
    assert place.tolist() == [0, 1, 0, 2, 1, NO_PAYLOAD]
    assert first.tolist() == [0, 1, 3]


def test_identities_that_meet_in_a_slot_are_told_apart():
    """The low words agree in the bits that choose a slot."""
    words = np.array([[n << 40, 0] for n in range(100)] * 2, np.uint64)
    place, first = distinct(words, np.ones(200, np.bool_))
    assert place.tolist() == [*range(100), *range(100)]
    assert first.tolist() == list(range(100))


SCHEMA = pa.schema(
    [
        ("at", pa.int64()),
        ("kind", pa.string()),
        ("who", pa.string()),
        ("part", pa.string()),
        ("n", pa.int64()),
        ("v", pa.int64()),
    ]
)
LAYOUT = Layout("at", kind="kind", replica="who", channel="part", sequence="n")


def packed(said, *, layout=LAYOUT, together=1, **options):
    """What parcels say, read by read: rows of (at, kind, who, part, n, v), in one or several reads."""
    reads = said if isinstance(said[0], list) else [said]
    packing = Packing(layout, **{"shards": 1, "ordered": layout.sequence is not None} | options)
    read, rows = [], 0
    for values in reads:
        batch = pa.RecordBatch.from_pylist([dict(zip(SCHEMA.names, v, strict=True)) for v in values], SCHEMA)
        read.append(read_rows(layout, batch, Place("here", rows, rows)))
        rows += len(values)
    return list(packing.parcels(read[n : n + together] for n in range(0, len(read), together)))


def spoken(parcel: Parcel) -> list[tuple[str, str, int, object]]:
    """Who says what in which place."""
    batch = parcel.batch(slice(None))
    stretches = [parcel.stretches[code] for code in parcel.stretch]
    return [
        (v.replica, v.channel, v.sequence + row, batch.element(n))
        for n, (v, row) in enumerate(zip(stretches, parcel.row.tolist(), strict=True))
    ]


def point(at: int, v: int) -> Insert:
    return Insert({"v": v}, at, at + 1)


def test_a_channel_of_one_name_in_two_replicas_is_two_voices():
    rows = [(1, None, "a", "x", 0, 1), (2, None, "b", "x", 0, 2), (3, None, "a", "y", 0, 3)]
    ((_, parcel),) = packed(rows)
    assert {(v.replica, v.channel) for v in parcel.stretches} == {("a", "x"), ("b", "x"), ("a", "y")}
    assert spoken(parcel) == [
        ("a", "x", 0, point(1, 1)),
        ("a", "y", 0, point(3, 3)),
        ("b", "x", 0, point(2, 2)),
    ]


def test_rows_come_in_the_order_of_their_channel_whatever_they_came_in():
    rows = [(n, None, "a", "x", 1000 + n, n) for n in range(20)]
    ((_, parcel),) = packed(Random(1).sample(rows, 20))
    assert [place for _, _, place, _ in spoken(parcel)] == list(range(1000, 1020))
    assert [element for *_, element in spoken(parcel)] == [point(n, n) for n in range(20)]
    assert parcel.stretches == (Stretch("a", "x", 1000, True, 1019, latest=19),)


def test_rows_of_an_unknown_order_keep_the_one_they_came_in():
    rows = [(9 - n, None, "ab"[n % 2], "x", 0, n) for n in range(6)]
    layout = Layout("at", kind="kind", replica="who", channel="part", payload=("v",))
    ((_, parcel),) = packed(rows, layout=layout)
    assert [e.payload["v"] for *_, e in spoken(parcel)] == [0, 2, 4, 1, 3, 5]
    assert [place for _, _, place, _ in spoken(parcel)] == [0, 2, 4, 1, 3, 5]
    assert [(v.sequence, v.last, v.ordered) for v in parcel.stretches] == [(0, 4, False), (1, 5, False)]


def test_parcels_are_cut_after_so_many_rows_for_each_shard():
    reads = [[(n, None, "a", "x", n, n)] for n in range(10)]
    assert [len(parcel) for _, parcel in packed(reads, rows=3)] == [3, 3, 3, 1]
    parts = packed(reads, rows=2, shards=2)
    assert [number for number, _ in parts] == [0, 1] * 3
    stretches = [parcel.stretches[0] for _, parcel in parts]
    assert [(v.sequence, v.last) for v in stretches] == [(0, 3)] * 2 + [(4, 7)] * 2 + [(8, 9)] * 2


def test_reads_that_stand_together_are_not_cut_so_that_the_payload_of_copies_is_told_once():
    reads = [[(n, None, who, "x", n, n)] for n in range(6) for who in "abc"]
    parts = [parcel for _, parcel in packed(reads, rows=2, together=3)]
    assert [len(parcel) for parcel in parts] == [3] * 6
    assert [parcel.payload.num_rows for parcel in parts] == [1] * 6


def test_rows_of_several_reads_share_their_voices():
    reads = [[(1, None, "b", "x", 1, 1), (2, None, "a", "x", 1, 2)], [(3, None, "a", "x", 2, 3)]]
    ((_, parcel),) = packed(reads)
    assert [(v.replica, v.sequence, v.last) for v in parcel.stretches] == [("b", 1, 1), ("a", 1, 2)]
    assert [e.payload["v"] for *_, e in spoken(parcel)] == [1, 2, 3]


def test_no_rows_are_no_parcels():
    assert packed([[]]) == []


class TestLatest:
    """Every shard is told how late the events of a channel start, wherever they are."""

    def latest(self, rows, layout=LAYOUT, shards=1):
        parts = packed(rows, layout=layout, shards=shards)
        return [[(one.replica, one.latest) for one in parcel.stretches] for _, parcel in parts]

    def test_it_is_the_greatest_start_of_each_channel(self):
        rows = [(5, None, "a", "x", 0, 1), (90, None, "b", "x", 0, 2), (7, None, "a", "x", 1, 3)]
        assert self.latest(rows) == [[("a", 7), ("b", 90)]]

    def test_an_event_that_will_be_refused_for_its_lifetime_does_not_count(self):
        layout = replace(LAYOUT, end="v")
        rows = [(5, None, "a", "x", 0, 8), (50, None, "a", "x", 1, 40), (50, None, "a", "x", 2, 50)]
        assert self.latest(rows, layout) == [[("a", 5)]]

    @pytest.mark.parametrize("kind", ["stable", "attach", "detach"])
    def test_what_is_no_event_does_not_count(self, kind):
        assert self.latest([(5, kind, "a", "x", 0, None)]) == [[("a", BEGINNING)]]

    def test_every_shard_is_told(self):
        layout = Layout("at", replica="who", payload=("v",))
        assert self.latest([(5, None, "a", "x", 0, 1)], layout, shards=3) == [[("a", 5)]] * 3


def test_a_parcel_has_as_many_channels_as_send_rows():
    """More than 16 bits count, and each of them a replica of its own."""
    count = 40_000
    layout = Layout("at", replica="who", sequence="n", payload=("at",))
    names = pa.array([f"{n:05}" for n in range(count)])
    rows = pa.RecordBatch.from_pydict({"who": names, "n": np.arange(count), "at": np.arange(count) % 7})
    [(_, parcel)] = Packing(layout, 1, ordered=True).parcels([[read_rows(layout, rows, Place("rows"))]])
    assert [stretch.replica for stretch in parcel.stretches] == names.to_pylist()
    events = np.flatnonzero(parcel.kind == Kind.INSERT)
    assert parcel.stretch[events].tolist() == list(range(count))
    assert parcel.start[events].tolist() == [n % 7 for n in range(count)]
    assert [stretch.latest for stretch in parcel.stretches] == [n % 7 for n in range(count)]
