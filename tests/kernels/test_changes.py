"""Changes of a keyed table stand for the rows that the oracle reads from all of them, in whatever order."""

from dataclasses import dataclass
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernels.reading_changes import Told, push
from laws.table_histories import standing
from quick import cases

from anabranch import BEGINNING, FOREVER, Adjust, Batch, Insert, Relation, Rule, Stable, text
from anabranch.kernels.changes import Changes, changes
from anabranch.kernels.store.saved import from_bytes, to_bytes
from anabranch.model.batch import Kind
from anabranch.model.consistency import difference
from anabranch.model.dialects import change_rows
from anabranch.model.op import Op
from anabranch.model.rows import rows_of
from anabranch.oracle.changes import Change, ChangedTable
from anabranch.oracle.relation import World

randoms = st.randoms(use_true_random=False)


@dataclass(frozen=True)
class Row:
    """One change as a row of a table has it: the row after, or of a delete what is known of it."""

    op: Op
    time: int
    image: dict


@dataclass(frozen=True)
class Progress:
    time: int


Item = Row | Progress


class Meaning:
    """The oracle, and the numbers of the items that it refuses."""

    def __init__(self, *, by_time: bool = True, numbered: bool = False) -> None:
        self.table, self.numbered, self.numbers = ChangedTable(("id",), by_time), numbered, {}

    def push(self, item: Item, number: int) -> list[int]:
        """Hear an item; the numbers of those that are refused with it."""
        if isinstance(item, Progress):
            refused = self.table.promise(item.time)
            return sorted(self.numbers[id(change)] for change in refused)
        place = number if self.numbered else standing(item.op.name.lower(), item.image)
        change = Change(item.op.name.lower(), item.time, item.image, place)
        self.numbers[id(change)] = number
        return [] if self.table.push(change) else [number]

    def relation(self) -> Relation:
        relation = Relation()
        relation.apply(Batch.of([Insert(*version) for version in self.table.versions()]))
        relation.apply(Stable(self.table.frontier))
        return relation

    def rows(self) -> int:
        ended = self.table.frontier == FOREVER
        return 0 if ended else sum(version.end == FOREVER for version in self.table.versions())


def drawn(random: Random, length: int = 40) -> list[Item]:
    """Changes of few keys, most of which fit when all have come, in disorder, with ties and progress."""
    items, now, there = [], random.choice((0, -5, 10**15)), set()
    late = random.choice((0, 0, 2, 6, 20))
    for _ in range(length):
        now += random.choice((0, 0, 1, 2))
        if random.random() < 0.15:
            over = FOREVER if random.random() < 0.03 else now
            items.append((now, Progress(random.choice((now - late, now, now - 2, now + 1, over)) - late)))
            continue
        key = random.randrange(4)
        op = random.choice((Op.UPDATE, Op.UPDATE, Op.DELETE) if key in there else (Op.INSERT,))
        if random.random() < 0.25:
            op = random.choice((Op.INSERT, Op.UPDATE, Op.DELETE, Op.UPSERT))
        there = there - {key} if op is Op.DELETE else there | {key}
        time = random.choice((now,) * 8 + (now - 1, now - 3, now + 3, FOREVER))
        name = random.choice((key, key, float(key)))
        image = {"id": name, "v": random.choice(("a", "b")), "w": random.choice((1, 2.5))}
        if op is Op.DELETE:
            image = random.choice((image, {"id": name}))
        image = {name: v for name, v in image.items() if random.random() > 0.05 or name == "id"}
        items.append((now + random.choice((0, 0, late)), Row(op, time, image)))
    return [item for _, item in sorted(items, key=lambda one: one[0])]


def batch_of(items: list[Item]) -> Batch:
    """Items as the batch that the kernel takes."""
    rows = rows_of([item.image if isinstance(item, Row) else {} for item in items])
    return Batch(
        np.array([Kind.INSERT if isinstance(item, Row) else Kind.STABLE for item in items], np.int8),
        np.array([item.time for item in items], np.int64),
        np.array([FOREVER if isinstance(item, Row) else 0 for item in items], np.int64),
        np.array([item.op if isinstance(item, Row) else 0 for item in items], np.int64),
        rows,
    )


def said(told: Told) -> list:
    return list(told.elements.elements())


def stored_and_read_back(kernel: Changes) -> Changes:
    state = from_bytes(to_bytes({"": kernel.saved()}))[""]
    return Changes.load(state, by_time=kernel.by_time, numbered=kernel.numbered)


@pytest.mark.parametrize(
    ("by_time", "numbered"), [(False, True), (True, False), (True, True)], ids=["log", "by time", "numbered"]
)
@settings(max_examples=cases(100))
@given(random=randoms)
def test_after_every_batch_it_has_said_what_the_oracle_reads_from_all_changes(by_time, numbered, random):
    kernel = Changes(("id",), by_time=by_time, numbered=numbered)
    oracle = Meaning(by_time=by_time, numbered=by_time and numbered)
    relation, world = Relation(), World()
    items, begin = drawn(random, random.choice((40, 80))), 0
    numbers = random.sample(range(1_000), len(items)) if by_time else range(len(items))
    while begin < len(items):
        part = items[begin : begin + random.choice((1, 1, 2, 7, 30))]
        if random.random() < 0.2:
            kernel = stored_and_read_back(kernel)
        mine = list(numbers[begin : begin + len(part)])
        told = push(kernel, batch_of(part), np.array(mine), random.choice(("x", "y")))
        for element in said(told):
            assert world.apply(element) is None
        relation.apply(told.elements)
        expected = [number for pair in zip(part, mine, strict=True) for number in oracle.push(*pair)]
        assert difference(relation, oracle.relation()) is None
        assert sorted(told.refused.number.tolist()) == sorted(expected)
        for n, number in enumerate(told.refused.number.tolist()):
            assert said_by(told, n) == items[numbers.index(number)]
        assert kernel.live == oracle.rows()
        begin += len(part)


def said_by(told: Told, n: int) -> Row:
    batch = told.refused.changes
    names = {name: value for name, value in batch.element(n).payload.items() if value is not None}
    return Row(Op(batch.old_end[n]), int(batch.start[n]), names)


@pytest.mark.parametrize("by_time", [False, True])
@settings(max_examples=cases(40))
@given(random=randoms)
def test_changes_in_their_order_stand_for_the_elements_that_the_dialect_reads(by_time, random):
    kernel, items, there, now = Changes(["id"], by_time=by_time, numbered=True), [], set(), 0
    for _ in range(40):
        now, key = now + random.choice((0, 1, 2)), random.randrange(3)
        op = random.choice((Op.UPDATE, Op.DELETE)) if key in there else Op.INSERT
        there = there - {key} if op is Op.DELETE else there | {key}
        items.append(Row(op, now, {"id": key, "v": random.choice("ab")}))
        items += [Progress(now)] * (random.random() < 0.2)
    log = [
        change_rows.Progress(item.time)
        if isinstance(item, Progress)
        else change_rows.Change("delete", item.time, before=item.image)
        if item.op is Op.DELETE
        else change_rows.Change(item.op.name.lower(), item.time, after=item.image)
        for item in items
    ]
    told = [
        element
        for n, item in enumerate(items)
        for element in said(push(kernel, batch_of([item]), np.array([n])))
    ]
    assert told == list(change_rows.read(log, key="id", ordered=False))


@settings(max_examples=cases(60))
@given(random=randoms)
def test_in_whatever_order_changes_come_the_rows_are_the_same(random):
    log = [item for item in drawn(random) if isinstance(item, Row) and item.time < FOREVER]
    log = [Row(item.op, 3 * n, item.image) for n, item in enumerate(log)]
    expected, shuffled = Relation(), Relation()
    expected.apply(push(Changes(["id"], by_time=True), batch_of(log)).elements)
    kernel = Changes(["id"], by_time=True)
    for item in random.sample(log, len(log)):
        shuffled.apply(push(kernel, batch_of([item])).elements)
    assert difference(shuffled, expected) is None


def test_a_change_that_comes_late_is_put_between_those_around_it():
    kernel = Changes(["id"], by_time=True)
    a, b, c = ({"id": 1, "v": v} for v in "abc")
    push(kernel, batch_of([Row(Op.INSERT, 1, a), Row(Op.UPDATE, 7, c)]))
    assert said(push(kernel, batch_of([Row(Op.UPDATE, 3, b)]))) == [Adjust(a, 1, 7, 3), Insert(b, 3, 7)]
    assert said(push(kernel, batch_of([Row(Op.DELETE, 5, {"id": 1})]))) == [
        Adjust(b, 3, 7, 5),
        Adjust(c, 7, FOREVER, 7),
    ]
    assert said(push(kernel, batch_of([Row(Op.INSERT, 6, a)]))) == [Insert(a, 6, 7), Insert(c, 7, FOREVER)]


def test_changes_of_one_time_count_in_the_order_of_their_numbers_in_whatever_batch_they_come():
    kernel, row = Changes(["id"], by_time=True, numbered=True), {"id": 1}
    push(kernel, batch_of([Row(Op.INSERT, 0, row | {"v": 5})]), np.array([1]))
    push(kernel, batch_of([Row(Op.UPDATE, 60, row | {"v": 7})]), np.array([3]))
    kernel = stored_and_read_back(kernel)
    assert said(push(kernel, batch_of([Row(Op.UPDATE, 60, row | {"v": 6})]), np.array([2]))) == []
    told = push(kernel, batch_of([Row(Op.DELETE, 60, row)]), np.array([4]))
    assert said(told) == [Adjust(row | {"v": 7}, 60, FOREVER, 60)]


def test_what_waited_for_the_change_before_it_counts_when_that_has_come():
    kernel = Changes(["id"], by_time=True)
    a, b = ({"id": 1, "v": v} for v in "ab")
    assert said(push(kernel, batch_of([Row(Op.DELETE, 9, {"id": 1}), Row(Op.UPDATE, 5, b)]))) == []
    kernel = stored_and_read_back(kernel)
    assert said(push(kernel, batch_of([Row(Op.INSERT, 2, a)]))) == [Insert(a, 2, 5), Insert(b, 5, 9)]
    assert not len(push(kernel, Batch.stable(20)).refused)


def test_a_log_that_is_said_again_changes_nothing():
    kernel, relation = Changes(["id"], by_time=True), Relation()
    log = [
        Row(Op.INSERT, 1, {"id": 1, "v": "a"}),
        Row(Op.UPDATE, 3, {"id": 1, "v": "b"}),
        Row(Op.UPDATE, 5, {"id": 1, "v": "c"}),
    ]
    relation.apply(push(kernel, batch_of(log)).elements)
    once = relation.events()
    relation.apply(push(kernel, batch_of(log)).elements)
    assert sorted(map(repr, relation.events())) == sorted(map(repr, once))
    assert push(kernel, Batch.stable(9)).refused.number.tolist() == [0]


@pytest.mark.parametrize(
    ("item", "rule", "detail", "at_once"),
    [
        (Row(Op.INSERT, 4, {"id": 2}), Rule.CHANGE_BEHIND_STABLE, "the last stable is 5", True),
        (Row(Op.UPDATE, FOREVER, {"id": 1}), Rule.EMPTY_LIFETIME, "at the end of time", True),
        (Row(Op.UPDATE, 7, {"id": 3}), Rule.NO_SUCH_ROW, "no row of its key is there", False),
        (Row(Op.DELETE, 7, {"id": 3}), Rule.NO_SUCH_ROW, "no row of its key is there", False),
        (Row(Op.DELETE, 8, {"id": 1}), Rule.NO_SUCH_ROW, "no row of its key is there", False),
        (Row(Op.INSERT, 10, {"id": 1}), Rule.ROW_IS_THERE, "has been there since 9", False),
        (Row(Op.INSERT, 11, {"id": 1}), Rule.ROW_IS_THERE, "has been there since 9", False),
    ],
)
def test_a_change_that_does_not_fit_waits_for_the_stable_and_is_handed_back_with_the_reason(
    item, rule, detail, at_once
):
    kernel = Changes(["id"], by_time=True)
    push(kernel, batch_of([Row(Op.INSERT, 9, {"id": 1, "v": "a"}), Progress(5)]), np.array([3, 4]), "east")
    told = push(kernel, batch_of([item]), np.array([5]), "west")
    assert not len(told.elements)
    if not at_once:
        assert not len(told.refused)
        kernel = stored_and_read_back(kernel)
        assert not len(push(kernel, Batch.stable(item.time)).refused)
        told = push(kernel, Batch.stable(item.time + 1))
    refused = told.refused
    assert (refused.number.tolist(), refused.channel, refused.rule(0)) == ([5], ["west"], rule)
    assert detail in refused.detail(0)
    assert said_by(told, 0) == item
    after = said(push(kernel, batch_of([Row(Op.DELETE, 12, {"id": 1})])))
    assert after == [Adjust({"id": 1, "v": "a"}, 9, FOREVER, 12)]


def test_many_rows_hold_from_their_commits_until_their_next_changes():
    random = np.random.default_rng(3)
    kernel, relation, oracle, there, parts = Changes(["id"], by_time=True), Relation(), Meaning(), set(), []
    for time in range(12_000):
        key = int(random.integers(5_000))
        image = {"id": key, "v": int(random.integers(10))}
        ends = key in there and random.random() < 0.3
        parts.append(Row(Op.DELETE if ends else Op.UPDATE if key in there else Op.INSERT, time, image))
        there = there - {key} if ends else there | {key}
    late = np.argsort(np.arange(len(parts)) + random.integers(0, 3_000, len(parts)))
    parts = [parts[n] for n in late]
    for begin in range(0, len(parts), 1_500):
        part = [*parts[begin : begin + 1_500], Progress(begin + 1_500 - 3_000)]
        assert all(oracle.push(item, 0) == [] for item in part[:-1])
        told = push(kernel, batch_of(part))
        assert not len(told.refused)
        relation.apply(told.elements)
        kernel = stored_and_read_back(kernel)
    oracle.table.promise(9_000)
    assert difference(relation, oracle.relation()) is None
    assert kernel.live == len(there)


@pytest.mark.parametrize("by_time", [False, True])
def test_memory_follows_the_rows_that_are_there_and_not_the_changes_that_have_passed(by_time):
    kernel, rows, sizes = Changes(["id"], by_time=by_time), 2_000, []
    everyone = np.arange(rows)
    for time in range(100):
        image = pa.RecordBatch.from_pydict({"id": everyone, "v": [f"{time:0100}"] * rows})
        told = push(kernel, changes(np.full(rows, Op.UPSERT), np.full(rows, time), image))
        assert len(told.elements) == (rows if time == 0 else 2 * rows)
        if by_time:
            push(kernel, Batch.stable(time))
        sizes.append(kernel.nbytes)
    assert kernel.live == rows
    assert max(sizes) <= 1.1 * max(sizes[:50])


def test_what_a_stable_has_passed_is_kept_as_one_row_of_each_key():
    kernel, rows = Changes(["id"], by_time=True), 20_000
    image = pa.RecordBatch.from_pydict({"id": np.zeros(rows, np.int64), "v": np.arange(rows)})
    push(kernel, changes(np.full(rows, Op.UPSERT), np.arange(rows), image))
    push(kernel, Batch.stable(rows))
    kernel = stored_and_read_back(kernel)
    assert (kernel.chains.used, kernel.payloads.rows) == (1, 1)
    told = push(kernel, changes(np.array([Op.DELETE]), np.array([rows]), image.slice(0, 1)))
    assert said(told) == [Adjust({"id": 0, "v": rows - 1}, rows - 1, FOREVER, rows)]


def test_one_change_may_alter_more_than_a_batch_has_room_for():
    kernel, rows = Changes(["id"], by_time=True), 5_000
    image = pa.RecordBatch.from_pydict({"id": np.zeros(rows, np.int64), "v": np.arange(rows)})
    assert not len(push(kernel, changes(np.full(rows, Op.UPDATE), np.arange(rows) + 1, image)).elements)
    told = push(kernel, batch_of([Row(Op.INSERT, 0, {"id": 0, "v": -1})]))
    assert len(told.elements) == rows + 1
    assert set(told.origin.tolist()) == {0}


@pytest.mark.parametrize("key", [("site", "id"), ("id", "site")])
def test_a_key_of_several_columns_names_a_row_by_all_of_them(key):
    kernel = Changes(key)
    rows = [{"site": s, "id": n, "v": s} for s, n in (("x", 1), ("x", 2), ("y", 1))]
    push(kernel, batch_of([Row(Op.INSERT, 1, row) for row in rows]))
    told = push(kernel, batch_of([Row(Op.DELETE, 5, {"id": 1, "site": "y"})]))
    assert said(told) == [Adjust({"site": "y", "id": 1, "v": "y"}, 1, FOREVER, 5)]
    assert kernel.live == 2


def test_changes_at_one_commit_time_apply_in_order_and_what_lives_no_time_is_removed():
    kernel = Changes(["id"])
    a, b = {"id": 1, "v": "a"}, {"id": 1, "v": "b"}
    items = [Row(Op.INSERT, 5, a), Row(Op.UPDATE, 5, b), Row(Op.DELETE, 5, {"id": 1}), Row(Op.INSERT, 5, a)]
    assert said(push(kernel, batch_of(items))) == [
        Insert(a, 5, FOREVER),
        Adjust(a, 5, FOREVER, 5),
        Insert(b, 5, FOREVER),
        Adjust(b, 5, FOREVER, 5),
        Insert(a, 5, FOREVER),
    ]


def test_an_upsert_inserts_a_row_or_updates_it():
    kernel = Changes(["id"])
    items = [Row(Op.UPSERT, 1, {"id": 1, "v": "a"}), Row(Op.UPSERT, 3, {"id": 1, "v": "b"})]
    assert text(said(push(kernel, batch_of(items)))).splitlines() == [
        '+ {"id": 1, "v": "a"} [1, ∞)',
        '~ {"id": 1, "v": "a"} [1, ∞) -> [1, 3)',
        '+ {"id": 1, "v": "b"} [3, ∞)',
    ]


@pytest.mark.parametrize(
    ("item", "rule", "detail"),
    [
        (Row(Op.INSERT, 4, {"id": 2}), Rule.CHANGE_BEHIND_STABLE, "the last stable is 5"),
        (Row(Op.UPDATE, FOREVER, {"id": 1}), Rule.EMPTY_LIFETIME, "at the end of time"),
        (Row(Op.UPDATE, 7, {"id": 3}), Rule.NO_SUCH_ROW, "no row of its key is there"),
        (Row(Op.DELETE, 7, {"id": 3}), Rule.NO_SUCH_ROW, "no row of its key is there"),
        (Row(Op.DELETE, 8, {"id": 1}), Rule.NO_SUCH_ROW, "has been there since 9"),
        (Row(Op.UPSERT, 8, {"id": 1}), Rule.NO_SUCH_ROW, "has been there since 9"),
        (Row(Op.INSERT, 9, {"id": 1}), Rule.ROW_IS_THERE, "has been there since 9"),
    ],
)
def test_a_change_that_does_not_fit_in_a_log_is_handed_back_at_once(item, rule, detail):
    kernel = Changes(["id"])
    push(kernel, batch_of([Row(Op.INSERT, 9, {"id": 1, "v": "a"}), Progress(5)]))
    told = push(kernel, batch_of([item]))
    assert (len(told.elements), told.refused.number.tolist(), told.refused.rule(0)) == (0, [0], rule)
    assert detail in told.refused.detail(0)
    after = said(push(kernel, batch_of([Row(Op.DELETE, 12, {"id": 1})])))
    assert after == [Adjust({"id": 1, "v": "a"}, 9, FOREVER, 12)]


def test_one_change_may_leave_more_without_a_row_than_a_batch_has_changes():
    kernel, rows = Changes(["id"], by_time=True), 5_000
    image = pa.RecordBatch.from_pydict({"id": np.zeros(rows, np.int64), "v": np.arange(rows)})
    push(kernel, batch_of([Row(Op.INSERT, 0, {"id": 0, "v": -1})]))
    push(kernel, changes(np.full(rows, Op.UPDATE), np.arange(rows) + 2, image))
    told = push(kernel, batch_of([Row(Op.DELETE, 1, {"id": 0}), Progress(rows + 2)]))
    assert said(told)[0] == Adjust({"id": 0, "v": -1}, 0, 2, 1)
    assert len(told.elements) == rows + 2
    assert told.refused.number.tolist() == list(range(rows))
    assert kernel.live == 0


def test_what_a_stable_refuses_leaves_room_for_what_is_refused_after_it():
    kernel = Changes(["id"], by_time=True)
    push(kernel, batch_of([Row(Op.INSERT, 0, {"id": 1}), *(Row(Op.UPDATE, t, {"id": 1}) for t in (2, 3, 4))]))
    behind = Row(Op.INSERT, 5, {"id": 2})
    items = [Row(Op.DELETE, 1, {"id": 1}), Progress(9), behind]
    told = push(kernel, batch_of(items), np.array([10, 11, 12]))
    assert sorted(told.refused.number.tolist()) == [1, 2, 3, 12]
    assert [told.refused.rule(n) for n in range(4)].count(Rule.CHANGE_BEHIND_STABLE) == 1


def test_columns_may_come_later_and_become_wider():
    kernel = Changes(["id"])
    push(kernel, batch_of([Row(Op.INSERT, 1, {"id": 1})]))
    push(kernel, batch_of([Row(Op.INSERT, 2, {"id": 2, "v": 1})]))
    kernel = stored_and_read_back(kernel)
    told = push(kernel, batch_of([Row(Op.UPDATE, 3, {"id": 2, "v": 2.5}), Row(Op.DELETE, 4, {"id": 1})]))
    assert said(told) == [
        Adjust({"id": 2, "v": 1}, 2, FOREVER, 3),
        Insert({"id": 2, "v": 2.5}, 3, FOREVER),
        Adjust({"id": 1}, 1, FOREVER, 4),
    ]


def test_a_table_that_has_not_begun_is_dumped_and_read_back():
    kernel = stored_and_read_back(Changes(["id"]))
    assert (kernel.live, kernel.frontier, list(kernel.key)) == (0, BEGINNING, ["id"])
    assert said(push(kernel, Batch.stable(4))) == [Stable(4)]


def test_after_the_end_of_time_nothing_is_held_and_nothing_fits():
    kernel = Changes(["id"])
    push(kernel, batch_of([Row(Op.INSERT, 1, {"id": 1}), Progress(FOREVER)]))
    assert (kernel.live, kernel.payloads.rows) == (0, 0)
    told = push(stored_and_read_back(kernel), batch_of([Row(Op.INSERT, 9, {"id": 2})]))
    assert told.refused.rule(0) is Rule.CHANGE_BEHIND_STABLE


def test_a_row_that_changes_often_within_a_batch_is_kept_once():
    kernel, rows = Changes(["id"]), 20_000
    image = pa.RecordBatch.from_pydict({"id": np.zeros(rows, np.int64), "v": np.arange(rows)})
    push(kernel, changes(np.full(rows, Op.UPSERT), np.arange(rows), image))
    assert kernel.payloads.rows == 1
    told = push(kernel, changes(np.array([Op.DELETE]), np.array([rows]), image.slice(0, 1)))
    assert said(told) == [Adjust({"id": 0, "v": rows - 1}, rows - 1, FOREVER, rows)]


def test_what_comes_of_rows_that_are_read_is_told_with_their_places():
    kernel = Changes(["id"])
    kernel.push("", batch_of([Row(Op.INSERT, 1, {"id": 1, "v": "a"})]))
    items = [
        Row(Op.UPDATE, 3, {"id": 1, "v": "b"}),
        Row(Op.INCREMENTAL, 4, {"id": 1, "v": "b"}),
        Row(Op.INCREMENTAL, 4, {"id": 2, "v": "c"}),
        Row(Op.INSERT, 5, {"id": 3, "v": "d"}),
        Row(Op.DELETE, 6, {"id": 1}),
    ]
    told = kernel.push("", batch_of(items))
    assert list(zip(told.events.origin.number.tolist(), told.events.elements(), strict=True)) == [
        (0, Adjust({"id": 1, "v": "a"}, 1, FOREVER, 3)),
        (0, Insert({"id": 1, "v": "b"}, 3, FOREVER)),
        (2, Insert({"id": 2, "v": "c"}, 4, FOREVER)),
        (3, Insert({"id": 3, "v": "d"}, 5, FOREVER)),
        (4, Adjust({"id": 1, "v": "b"}, 3, FOREVER, 6)),
    ]


def test_a_change_that_is_handed_back_has_the_values_it_came_with():
    kernel = Changes(["id"])
    kernel.push("", batch_of([Row(Op.INSERT, 1, {"id": 7, "v": "z"})]))
    items = [Row(Op.INSERT, 3, {"id": n, "v": v}) for n, v in ((1, "a"), (2, "b"), (1, "c"), (7, "d"))]
    told = kernel.push("", batch_of(items))
    numbers = [number for group in told.refused for number in group.batch.origin.number.tolist()]
    rows = [row for group in told.refused for row in group.batch.payload.to_pylist()]
    assert numbers == [2, 3]
    assert rows == [{"id": 1, "v": "c"}, {"id": 7, "v": "d"}]
