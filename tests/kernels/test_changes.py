"""Changes of a log of a keyed table stand for the elements that the change-rows dialect reads from them."""

from dataclasses import dataclass
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anabranch import BEGINNING, FOREVER, Adjust, Batch, Insert, Relation, Rule, Stable, text
from anabranch.kernels.changes import Changes, Op, Told, changes
from anabranch.kernels.merge.state_bytes import from_bytes, to_bytes
from anabranch.model.batch import Kind
from anabranch.model.consistency import difference
from anabranch.model.dialects import DialectError, change_rows
from anabranch.model.dialects.change_rows import Change, Progress
from anabranch.model.rows import rows_of
from anabranch.oracle.relation import World, denoted

randoms = st.randoms(use_true_random=False)


@dataclass(frozen=True)
class Row:
    """One change as a row of a table has it: the row after, or of a delete what is known of it."""

    op: Op
    time: int
    image: dict


def meanings(item: Row | Progress):
    """What an item may mean to the dialect, the first that fits counts."""
    match item:
        case Row(Op.INSERT, time, image):
            return [lambda: Change("insert", time, after=image)]
        case Row(Op.UPDATE, time, image):
            return [lambda: Change("update", time, after=image)]
        case Row(Op.DELETE, time, image):
            return [lambda: Change("delete", time, before=image)]
        case Row(Op.UPSERT, time, image):
            return [*meanings(Row(Op.UPDATE, time, image)), *meanings(Row(Op.INSERT, time, image))]
        case _:
            return [lambda: item]


class Meaning:
    """The dialect, read anew from the beginning for every item; one that it stops at is left out."""

    def __init__(self, key) -> None:
        self.key, self.items, self.said = key, [], 0

    def push(self, item: Row | Progress) -> list | None:
        for meaning in meanings(item):
            try:
                elements = list(
                    change_rows.read([*self.items, now := meaning()], key=self.key, ordered=False)
                )
            except DialectError:
                continue
            self.items.append(now)
            said, self.said = elements[self.said :], len(elements)
            return said
        return None

    def rows(self) -> int:
        world = denoted(change_rows.read(self.items, key=self.key, ordered=False))
        return 0 if world.stable == FOREVER else sum(end == FOREVER for _, _, end in world.rows)


def drawn(random: Random, length: int = 40) -> list[Row | Progress]:
    """Changes of few keys, most of which fit, with ties, late ones and progress of every kind."""
    items, now, there = [], random.choice((0, -5, 10**15)), set()
    for _ in range(length):
        now += random.choice((0, 0, 1, 2))
        if random.random() < 0.15:
            over = FOREVER if random.random() < 0.03 else now
            items.append(Progress(random.choice((now, now, now - 2, now + 1, over))))
            continue
        key = random.randrange(4)
        op = random.choice((Op.UPDATE, Op.UPDATE, Op.DELETE) if key in there else (Op.INSERT,))
        if random.random() < 0.25:
            op = random.choice(list(Op))
        there = there - {key} if op is Op.DELETE else there | {key}
        time = random.choice((now,) * 8 + (now - 1, now - 3, now + 3, FOREVER))
        name = random.choice((key, key, float(key)))
        image = {"id": name, "v": random.choice(("a", "b")), "w": random.choice((1, 2.5))}
        if op is Op.DELETE:
            image = random.choice((image, {"id": name}, {"id": name, "v": None}))
        items.append(
            Row(op, time, {name: v for name, v in image.items() if random.random() > 0.05 or name == "id"})
        )
    return items


def batch_of(items: list[Row | Progress]) -> Batch:
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
    return Changes.load(*from_bytes(to_bytes(*kernel.dump())))


@settings(max_examples=80)
@given(random=randoms)
def test_after_every_change_it_has_said_what_the_dialect_reads(random):
    kernel, oracle = Changes(("id",)), Meaning("id")
    for item in drawn(random):
        if random.random() < 0.2:
            kernel = stored_and_read_back(kernel)
        told, expected = kernel.push(batch_of([item])), oracle.push(item)
        assert said(told) == (expected or [])
        assert told.refused.number.tolist() == ([0] if expected is None else [])
        assert kernel.live == oracle.rows()


@settings(max_examples=80)
@given(random=randoms)
def test_however_the_changes_are_cut_into_batches_it_says_the_same(random):
    kernel, oracle = Changes(["id"]), Meaning(["id"])
    items = drawn(random, 80)
    while items:
        length = random.choice((len(items), 30, 7, 2, 1, 0))
        part, items = items[:length], items[length:]
        kernel = stored_and_read_back(kernel) if random.random() < 0.2 else kernel
        told, expected = kernel.push(batch_of(part)), [oracle.push(item) for item in part]
        assert said(told) == [element for elements in expected if elements for element in elements]
        assert told.refused.number.tolist() == [n for n, elements in enumerate(expected) if elements is None]
        assert told.origin.tolist() == [n for n, elements in enumerate(expected) for _ in elements or ()]


@settings(max_examples=40)
@given(random=randoms)
def test_what_it_says_is_a_valid_stream(random):
    kernel, world = Changes(["id"]), World()
    for item in drawn(random, 60):
        for element in said(kernel.push(batch_of([item]))):
            assert world.apply(element) is None
    assert world.stable == kernel.frontier


@pytest.mark.parametrize("key", [("site", "id"), ("id", "site")])
def test_a_key_of_several_columns_names_a_row_by_all_of_them(key):
    kernel = Changes(key)
    rows = [{"site": s, "id": n, "v": s} for s, n in (("x", 1), ("x", 2), ("y", 1))]
    kernel.push(batch_of([Row(Op.INSERT, 1, row) for row in rows]))
    told = kernel.push(batch_of([Row(Op.DELETE, 5, {"id": 1, "site": "y"})]))
    assert said(told) == [Adjust({"site": "y", "id": 1, "v": "y"}, 1, FOREVER, 5)]
    assert kernel.live == 2


def test_changes_at_one_commit_time_apply_in_order_and_what_lives_no_time_is_removed():
    kernel = Changes(["id"])
    a, b = {"id": 1, "v": "a"}, {"id": 1, "v": "b"}
    items = [Row(Op.INSERT, 5, a), Row(Op.UPDATE, 5, b), Row(Op.DELETE, 5, {"id": 1}), Row(Op.INSERT, 5, a)]
    assert said(kernel.push(batch_of(items))) == [
        Insert(a, 5, FOREVER),
        Adjust(a, 5, FOREVER, 5),
        Insert(b, 5, FOREVER),
        Adjust(b, 5, FOREVER, 5),
        Insert(a, 5, FOREVER),
    ]


def test_an_upsert_inserts_a_row_or_updates_it():
    kernel = Changes(["id"])
    items = [Row(Op.UPSERT, 1, {"id": 1, "v": "a"}), Row(Op.UPSERT, 3, {"id": 1, "v": "b"})]
    assert text(said(kernel.push(batch_of(items)))).splitlines() == [
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
def test_a_change_that_does_not_fit_is_handed_back_with_the_reason_and_changes_nothing(item, rule, detail):
    kernel = Changes(["id"])
    kernel.push(batch_of([Row(Op.INSERT, 9, {"id": 1, "v": "a"}), Progress(5)]))
    told = kernel.push(batch_of([item]))
    assert (len(told.elements), told.refused.number.tolist(), told.refused.rule(0)) == (0, [0], rule)
    assert detail in told.refused.detail(0)
    after = said(kernel.push(batch_of([Row(Op.DELETE, 12, {"id": 1})])))
    assert after == [Adjust({"id": 1, "v": "a"}, 9, FOREVER, 12)]


def test_after_the_end_of_time_nothing_is_held_and_nothing_fits():
    kernel = Changes(["id"])
    kernel.push(batch_of([Row(Op.INSERT, 1, {"id": 1}), Progress(FOREVER)]))
    assert (kernel.live, kernel.payloads.rows) == (0, 0)
    told = stored_and_read_back(kernel).push(batch_of([Row(Op.INSERT, 9, {"id": 2})]))
    assert told.refused.rule(0) is Rule.CHANGE_BEHIND_STABLE


def test_a_table_that_has_not_begun_is_dumped_and_read_back():
    kernel = stored_and_read_back(Changes(["id"]))
    assert (kernel.live, kernel.frontier, list(kernel.key)) == (0, BEGINNING, ["id"])
    assert said(kernel.push(Batch.stable(4))) == [Stable(4)]


def test_many_rows_hold_from_their_commits_until_their_next_changes():
    random = np.random.default_rng(3)
    kernel, relation, items, there = Changes(["id"]), Relation(), [], set()
    parts = []
    for time in range(12_000):
        key = int(random.integers(5_000))
        image = {"id": key, "v": int(random.integers(10))}
        ends = key in there and random.random() < 0.3
        parts.append(Row(Op.DELETE if ends else Op.UPDATE if key in there else Op.INSERT, time, image))
        there = there - {key} if ends else there | {key}
    for begin in range(0, len(parts), 1_500):
        part = parts[begin : begin + 1_500]
        items += [meaning() for item in part for meaning in meanings(item)]
        told = kernel.push(batch_of(part))
        assert not len(told.refused)
        relation.apply(told.elements)
        kernel = stored_and_read_back(kernel)
    expected = Relation()
    expected.apply(Batch.of(change_rows.read(items, key="id", ordered=False)))
    assert difference(relation, expected) is None
    assert kernel.live == len(there)


def test_memory_follows_the_rows_that_are_there_and_not_the_changes_that_have_passed():
    kernel, rows, sizes = Changes(["id"]), 2_000, []
    everyone = np.arange(rows)
    for time in range(100):
        image = pa.RecordBatch.from_pydict({"id": everyone, "v": [f"{time:0100}"] * rows})
        told = kernel.push(changes(np.full(rows, Op.UPSERT), np.full(rows, time), image))
        assert len(told.elements) == (rows if time == 0 else 2 * rows)
        sizes.append(kernel.nbytes)
    assert kernel.live == rows
    assert max(sizes) <= 1.1 * max(sizes[:50])


def test_a_row_that_changes_often_within_a_batch_is_kept_once():
    kernel, rows = Changes(["id"]), 20_000
    image = pa.RecordBatch.from_pydict({"id": np.zeros(rows, np.int64), "v": np.arange(rows)})
    kernel.push(changes(np.full(rows, Op.UPSERT), np.arange(rows), image))
    assert kernel.payloads.rows == 1
    told = kernel.push(changes(np.array([Op.DELETE]), np.array([rows]), image.slice(0, 1)))
    assert said(told) == [Adjust({"id": 0, "v": rows - 1}, rows - 1, FOREVER, rows)]


def test_columns_may_come_later_and_become_wider():
    kernel = Changes(["id"])
    kernel.push(batch_of([Row(Op.INSERT, 1, {"id": 1})]))
    kernel.push(batch_of([Row(Op.INSERT, 2, {"id": 2, "v": 1})]))
    kernel = stored_and_read_back(kernel)
    told = kernel.push(batch_of([Row(Op.UPDATE, 3, {"id": 2, "v": 2.5}), Row(Op.DELETE, 4, {"id": 1})]))
    assert said(told) == [
        Adjust({"id": 2, "v": 1}, 2, FOREVER, 3),
        Insert({"id": 2, "v": 2.5}, 3, FOREVER),
        Adjust({"id": 1}, 1, FOREVER, 4),
    ]
