"""Windows that overlap cost what enters, what leaves and what is emitted, however many panes they have."""

from fractions import Fraction
from math import isnan
from random import Random

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from quick import cases

import anabranch as ab
from anabranch import Insert, Stable, col
from anabranch.kernels.aggregate.aggregation import Aggregation
from anabranch.kernels.aggregate.column import Values
from anabranch.kernels.aggregate.counted import Counted
from anabranch.kernels.aggregate.floats import FloatSums
from anabranch.kernels.aggregate.panes import Panes

COLUMNS = {"k": "int64", "n": "int64", "x": "float64"}
GROUPS = 3
OWN = ab.aggregate(lift=lambda rows: rows.column("n"), combine=pc.add_checked, finish=lambda states: states)
FOLDED = {"low": col("n").min(), "high": col("x").max()}
TAKEN = {"count": ab.count(), "n": col("n").sum(), "x": col("x").mean(), "v": col("n").var()}
LISTED = {"values": col("n").n_unique(), "half": col("x").approx_quantile(0.5)}


def windows(size, made, every=1, facts=("insert only",)):
    """A plan of windows by group."""
    source = ab.source("s", COLUMNS, properties=list(facts))
    return source.window(size, every).group_by("k").agg(**made)


def row_at(tick):
    return Insert({"k": tick % GROUPS, "n": tick * 7 % 11, "x": tick % 5 / 10}, tick, tick + 1)


class Work:
    """How many slots are merged, and how many panes are looked into."""

    def __init__(self, monkeypatch):
        self.merged = self.panes = 0
        merge, slots_of = Aggregation.merge, Panes.slots_of

        def counted(aggregation, into, other, *rest, **named):
            self.merged += len(into)
            return merge(aggregation, into, other, *rest, **named)

        def looked(panes, pane):
            self.panes += 1
            return slots_of(panes, pane)

        monkeypatch.setattr(Aggregation, "merge", counted)
        monkeypatch.setattr(Panes, "slots_of", looked)


@pytest.mark.parametrize(
    "made", [TAKEN, FOLDED, LISTED, {**FOLDED, **TAKEN}], ids=["taken", "folded", "listed", "both"]
)
@pytest.mark.parametrize("size", [20, 200])
def test_a_window_that_closes_costs_its_groups_whatever_its_panes(monkeypatch, made, size):
    job = windows(size, made).open()
    for tick in range(2 * size):
        job.push("s", [row_at(tick), Stable(tick + 1)])
    work = Work(monkeypatch)
    closed = 0
    for tick in range(2 * size, 4 * size):
        closed += len(job.push("s", [row_at(tick), Stable(tick + 1)])) - 1
    assert closed == 2 * size * GROUPS
    assert 2 * size <= work.merged <= 2 * size * (3 + 2 * GROUPS)
    assert 2 * size <= work.panes <= 2 * size * 5


@pytest.mark.parametrize("seed", range(cases(12)))
def test_a_job_that_goes_on_elsewhere_emits_what_it_would_have(seed):
    random = Random(seed)
    every = random.choice([1, 2, 3])
    made = random.choice([TAKEN, FOLDED, LISTED, {"own": OWN}, {**FOLDED, **TAKEN, **LISTED}])
    plan = windows(random.choice([7, 20, 40]), made, every)
    one, other = plan.open(), plan.open()
    stable = 0
    for _ in range(150):
        piece = [row_at(stable + random.randrange(12)) for _ in range(random.randrange(4))]
        stable += random.choice([0, 1, 1, 2, 5, 60]) if random.random() < 0.5 else 0
        piece.append(Stable(stable))
        assert sorted(map(repr, one.push("s", piece))) == sorted(map(repr, other.push("s", piece)))
        if random.random() < 0.3:
            other = plan.open(other.dump())
            assert other.status().live == one.status().live
    rest = [sorted(map(repr, job.push("s", [Stable(ab.FOREVER)]))) for job in (one, other)]
    assert rest[0] == rest[1]
    assert one.status().live == other.status().live == 0


@pytest.mark.parametrize("size", [5, 20])
def test_states_of_ones_own_are_combined_in_the_order_of_panes(size):
    said = ab.aggregate(
        lift=lambda rows: rows.column("n").cast(pa.string()),
        combine=lambda one, other: pc.binary_join_element_wise(one, other, ""),
        finish=lambda states: states,
    )
    source = ab.source("s", COLUMNS, properties=["insert only"])
    job = source.window(size, 1).agg(said=said).open()
    digits = [n * 7 % 10 for n in range(60)]
    out = []
    for tick, digit in enumerate(digits):
        out += job.push("s", [Insert({"k": 0, "n": digit, "x": 0.0}, tick, tick + 1), Stable(tick + 1)])
    texts = {one.start: one.payload["said"] for one in out if isinstance(one, Insert) and one.start >= 0}
    assert texts == {n: "".join(map(str, digits[n : n + size])) for n in range(61 - size)}


def test_values_that_have_left_all_windows_take_no_memory():
    job = windows(20, {"values": col("n").n_unique()}, facts=[]).open()
    nbytes = []
    for tick in range(1_000):
        job.push("s", [Insert({"k": 0, "n": tick, "x": 0.0}, tick, tick + 1), Stable(tick + 1)])
        nbytes.append(job.status().nbytes)
    assert nbytes[-1] == nbytes[300]


def test_counts_that_are_taken_away_are_dropped_and_the_others_stay():
    counted = Counted(lambda values: (values.integers, values.start), words=1)
    counted.with_room(3)
    both = np.array([0, 1], np.int32)
    for first in range(0, 3_000, 3):
        array = pa.array([first, first + 1, -1])
        counted.add(Values(np.zeros(3, np.int32), array, np.zeros(3, np.int64)), 1)
        counted.merge(both[1:], both[:1])
        counted.merge(both[1:], both[:1], -1)
        counted.add(Values(np.array([2], np.int32), array[:1], np.zeros(1, np.int64)), 1)
        counted.clear(both[:1])
    assert counted.distinct(np.arange(3, dtype=np.int32)).tolist() == [0, 0, 1_000]
    assert counted.used == 1_000


def test_a_float_that_has_left_a_sum_leaves_no_fraction():
    sums = FloatSums()
    sums.with_room(2)
    slots = np.zeros(4, np.int32)
    values = pa.array([1e308, 1e308, 1e-300, 1.0])
    sums.add(Values(slots, values, np.zeros(4, np.int64)), 1)
    sums.add(Values(np.ones(2, np.int32), pa.array([0.1, float("inf")]), np.zeros(2, np.int64)), 1)
    one, other = np.array([1], np.int32), np.array([0], np.int32)
    sums.merge(one, other)
    assert sums.exact(1) == (float("inf"), Fraction(0.1) + sums.exact(0)[1])
    sums.merge(one, other, -1)
    infinite = Values(one, pa.array([float("inf")]), np.zeros(1, np.int64))
    sums.add(infinite, -1)
    assert sums.rounded(one).tolist() == [0.1]
    sums.merge(one, one, -1)
    assert sums.rounded(one).tolist() == [0.0]
    assert 1 not in sums.odd


def test_a_window_after_one_large_row_is_that_of_its_rows():
    job = ab.source("s", {"x": "float64"}).window(3, 1).agg(col("x").sum()).open()
    given = [1e308, 1e308, 0.1, float("nan"), 0.2, 0.3, 1e-320, 1e16, 1.0, -1e16, 0.5, 0.25, 0.125]
    out = []
    for tick, value in enumerate(given):
        out += job.push("s", [Insert({"x": value}, tick, tick + 1), Stable(tick + 1)])
    sums = {one.start: one.payload["x"] for one in out if isinstance(one, Insert)}
    assert [sums[n] for n in (4, 5, 8, 9, 10)] == [
        float(sum(map(Fraction, given[n : n + 3]))) for n in (4, 5, 8, 9, 10)
    ]
    assert sums[0] == float("inf")
    assert isnan(sums[1])
