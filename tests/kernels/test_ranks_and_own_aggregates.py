"""Top k with carried columns, and aggregates of one's own, over windows of every kind."""

from collections import Counter
from random import Random

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from quick import cases

import anabranch as ab
from anabranch import Adjust, Insert, PlanError, Stable, col
from anabranch.expressions.tree import ExpressionError
from anabranch.kernels.aggregate import best
from anabranch.kernels.aggregate.all_values import AllValues
from anabranch.kernels.aggregate.own import States
from anabranch.model.identity import identities
from anabranch.model.time import FOREVER

SCHEMA = {"k": "int64", "x": "float64", "text": "string", "i": "int64"}
WINDOWS = {
    "window": lambda stream: stream.window(10, 5),
    "session": lambda stream: stream.session(4),
    "rows": lambda stream: stream.rows(6, 4),
}


def drawn_rows(random, count):
    return [
        Insert(
            {
                name: value
                for name, value in {
                    "k": random.choice([0, 1, None]),
                    "x": random.choice([None, 0.5, 2.0, -1.0, float("inf"), float(random.randint(0, 9))]),
                    "text": random.choice(["a", "b", "ä", "", None]),
                    "i": random.choice([1, 2, 3, None]),
                }.items()
                if value is not None
            },
            random.randint(-20, 20),
            FOREVER,
        )
        for _ in range(count)
    ]


def cut(random, rows):
    """Rows in pieces, the last of which removes some again, and those that stay."""
    gone = set(random.sample(range(len(rows)), len(rows) // 4))
    removals = [Adjust(rows[n].payload, rows[n].start, rows[n].end, rows[n].start) for n in gone]
    kept = [one for n, one in enumerate(rows) if n not in gone]
    return [rows[: len(rows) // 2], rows[len(rows) // 2 :], removals], kept


def run(stream, pieces, random):
    """What comes of pieces, with state that is dumped and loaded on the way."""
    job, out = stream.open(), []
    for piece in [*pieces, [Stable(random.randint(-20, 20))], [Stable(FOREVER)]]:
        out += [one for one in job.push("s", piece) if isinstance(one, Insert)]
        job = stream.open(job.dump())
    assert job.status().live == 0
    return out


def words(row, names):
    kept = {name: row[name] for name in names if row.get(name) is not None}
    schema = pa.schema([(name, pa.type_for_alias(SCHEMA[name])) for name in names])
    if not names:
        return 0, 0
    return tuple(identities(pa.RecordBatch.from_pylist([kept], schema))[0].tolist())


def ranks_are_what_duckdb_says(seed, carry=("text", "i"), *, removals=True):
    random = Random(seed)
    rows = drawn_rows(random, 80)
    pieces, kept = cut(random, rows) if removals else ([rows[:9], rows[9:]], rows)
    k, column = random.randint(1, 4), random.choice(["x", "text", "i"])
    carry = tuple(name for name in carry if name != column)
    top = col(column).top_k(k, carry=carry)
    source = ab.source("s", SCHEMA, properties=[] if removals else "insert only")
    every = random.choice([10, 5, 4])
    stream = source.window(10, every, start="w").group_by("k").agg(top, n=ab.count())
    said = [
        tuple(one.payload.get(name) for name in ("k", "w", column, *carry, "rank", "n"))
        for one in run(stream, pieces, random)
    ]
    given = pa.Table.from_pylist(
        [
            {name: one.payload.get(name) for name in SCHEMA}
            | {"w": window * every}
            | dict(zip(("low", "high"), words(one.payload, carry), strict=True))
            for one in kept
            for window in range((one.start - 10) // every + 1, one.start // every + 1)
        ],
        pa.schema(
            [
                *((name, pa.type_for_alias(kind)) for name, kind in SCHEMA.items()),
                ("w", pa.int64()),
                ("low", pa.uint64()),
                ("high", pa.uint64()),
            ]
        ),
    )
    carried = "".join(f"{name}, " for name in carry)
    found = duckdb.sql(f"""
        SELECT k, w, {column}, {carried} rank, n FROM (
            SELECT *,
                row_number() OVER (PARTITION BY k, w ORDER BY {column} DESC NULLS LAST, low, high) AS rank,
                count(*) OVER (PARTITION BY k, w) AS n
            FROM given
        ) WHERE rank <= {k} AND {column} IS NOT NULL
    """)
    assert given.num_rows >= len(kept)
    assert Counter(said) == Counter(found.fetchall())


def all_ranks_are_what_duckdb_says(seeds, *, removals=True):
    for seed in seeds:
        ranks_are_what_duckdb_says(seed, removals=removals)


@pytest.mark.parametrize("seed", range(cases(12)))
def test_ranks_are_what_duckdb_says(seed):
    ranks_are_what_duckdb_says(seed)


@pytest.mark.parametrize("carry", [("text", "i"), ("i",), ()])
@pytest.mark.parametrize("seed", range(cases(12)))
def test_ranks_are_what_duckdb_says_where_nothing_is_removed(seed, carry):
    ranks_are_what_duckdb_says(seed, carry, removals=False)


def test_what_the_best_values_carry_is_let_go_with_their_windows(monkeypatch):
    made, begin = [], best.Best.__init__
    monkeypatch.setattr(best.Best, "__init__", lambda self, *given: made.append(self) or begin(self, *given))
    windows = ab.source("s", {"k": "int64", "n": "int64", "t": "string"}, properties="insert only").window(10)
    job = windows.group_by("k").agg(col("n").top_k(3, carry=["t"])).open()
    job.push("s", [Insert({"k": n % 4, "n": n % 17, "t": f"{n}"}, n % 30, n % 30 + 1) for n in range(400)])
    assert [one.heaps.pool.used for one in made] == [3 * 3 * 4]
    job.push("s", [Stable(20)])
    assert [one.heaps.pool.used for one in made] == [3 * 4]
    job.push("s", [Stable(FOREVER)])
    assert [one.heaps.pool.used for one in made] == [0]


def _ties_of_others(rows):
    return ~identities(rows)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [("identities", _ties_of_others), ("keep_best", lambda *given: len(given[3]))],
)
def test_a_wrong_value_that_is_kept_is_noticed(monkeypatch, name, wrong):
    monkeypatch.setattr(best, name, wrong)
    with pytest.raises(AssertionError):
        all_ranks_are_what_duckdb_says(range(12), removals=False)


@pytest.mark.parametrize("carry", [("t",), ()])
def test_a_window_keeps_k_values_where_nothing_is_removed(carry):
    stream = ab.source("s", {"v": "int64", "t": "string"}, properties="insert only")
    job = stream.window(10).agg(col("v").top_k(5, carry=carry)).open()
    (ranking,) = job.passes.flow.stages[-1].kernel.aggregation.arguments.values()
    random = Random(1)
    for _ in range(20):
        job.push("s", [Insert({"v": random.randrange(10**6), "t": "t"}, 1, 2) for _ in range(1000)])
    assert len(ranking.values.heaps.code) <= 32
    assert job.status().nbytes < 60_000


def test_nothing_need_be_carried():
    stream = ab.source("s", SCHEMA).window(10).agg(col("i").top_k(2))
    rows = [Insert({"i": n}, 1, 2) for n in (3, 5, 5, 1)]
    assert [one.payload for one in run(stream, [rows], Random(0))] == [
        {"i": 5, "rank": 1},
        {"i": 5, "rank": 2},
    ]


def _no_ties(self, number):
    return (-number,)


def _least_first(self, code):
    return ~_in_order(self, code)


def _one_more(self, slots):
    return _lengths(self, slots) + 1


_in_order, _lengths = AllValues._in_order, AllValues.lengths


@pytest.mark.parametrize(
    ("name", "wrong"), [("_ties", _no_ties), ("_in_order", _least_first), ("lengths", _one_more)]
)
def test_a_wrong_rank_is_noticed(monkeypatch, name, wrong):
    monkeypatch.setattr(AllValues, name, wrong)
    with pytest.raises(AssertionError):
        all_ranks_are_what_duckdb_says(range(12))


def test_what_is_carried_is_forgotten_with_its_windows():
    stream = ab.source("s", {"k": "int64", "t": "string"}, properties="insert only")
    job = stream.window(10).agg(col("k").top_k(1, carry=["t"])).open()
    for step in range(60):
        rows = [Insert({"k": n, "t": f"{step} {n}"}, 10 * step, 10 * step + 1) for n in range(100)]
        (found, _) = job.push("s", [*rows, Stable(10 * step + 10)])
        assert found.payload == {"k": 99, "t": f"{step} 99", "rank": 1}
    (ranking,) = job.passes.flow.stages[-1].kernel.aggregation.arguments.values()
    assert ranking.values.heaps.pool.used < 2000


def own_mean():
    """The mean of ``i``: a state of two fields."""

    def lift(rows):
        i = rows.column("i")
        return pa.StructArray.from_arrays(
            [pc.fill_null(i, 0), pc.cast(pc.is_valid(i), pa.int64())], names=["sum", "count"]
        )

    def paired(function):
        def both(one, other):
            fields = zip(one.flatten(), other.flatten(), strict=True)
            return pa.StructArray.from_arrays([function(*pair) for pair in fields], names=["sum", "count"])

        return both

    def finish(states):
        total, count = states.flatten()
        some = pc.if_else(pc.equal(count, 0), pa.scalar(None, pa.int64()), count)
        return pc.divide(pc.cast(total, pa.float64()), pc.cast(some, pa.float64()))

    return ab.aggregate(lift=lift, combine=paired(pc.add), finish=finish, remove=paired(pc.subtract))


def own_is_ours(seed, kind):
    random = Random(seed)
    pieces, _ = cut(random, drawn_rows(random, 80))
    windows = WINDOWS[kind](ab.source("s", SCHEMA)).group_by("k")
    for one in run(windows.agg(own=own_mean(), ours=col("i").mean()), pieces, random):
        assert one.payload.get("own") == one.payload.get("ours")


def own_are_ours(seeds, kind):
    for seed in seeds:
        own_is_ours(seed, kind)


@pytest.mark.parametrize("kind", WINDOWS)
@pytest.mark.parametrize("seed", range(cases(4)))
def test_an_own_mean_is_ours(seed, kind):
    own_is_ours(seed, kind)


def _rest_lost(self, slots, states):
    distinct, first = _unique(slots)
    return distinct, states.take(pa.array(first))


def _unique(slots):
    return np.unique(slots, return_index=True)


def _added_twice(self, values, sign):
    _add(self, values, 1)


_add = States.add


@pytest.mark.parametrize(("name", "wrong"), [("_reduced", _rest_lost), ("add", _added_twice)])
def test_a_wrong_state_is_noticed(monkeypatch, name, wrong):
    monkeypatch.setattr(States, name, wrong)
    with pytest.raises(AssertionError):
        own_are_ours(range(4), "window")


def texts():
    """Texts one after the other: associative, and the order is seen."""
    return ab.aggregate(
        lift=lambda rows: pc.fill_null(rows.column("text"), "-"),
        combine=lambda one, other: pc.binary_join_element_wise(one, other, ""),
        finish=lambda texts: texts,
    )


@pytest.mark.parametrize("kind", ["session", "rows"])
def test_rows_are_combined_in_their_order(kind):
    random = Random(3)
    rows = [Insert({"text": chr(97 + n % 26)}, n, n + 1) for n in range(100)]
    shuffled = random.sample(rows, len(rows))
    windows = ab.source("s", SCHEMA).session(4) if kind == "session" else ab.source("s", SCHEMA).rows(100)
    job = windows.agg(all=texts()).open()
    out = []
    for first in range(0, 100, 20):
        job.push("s", shuffled[first : first + 20])
    for time in (13, 40, 41, FOREVER):
        out += job.push("s", [Stable(time)])
        job = windows.agg(all=texts()).open(job.dump()) if time == 40 else job
    (found,) = [one.payload["all"] for one in out if isinstance(one, Insert)]
    assert found == "".join(one.payload["text"] for one in rows)


def test_rows_and_groups_for_which_a_function_raises_are_refused_by_themselves():
    def lift(rows):
        if "b" in rows.column("text").to_pylist():
            raise ValueError("no b")
        return rows.column("i")

    def finish(sums):
        if 7 in sums.to_pylist():
            raise ArithmeticError("7")
        return sums

    own = ab.aggregate(lift=lift, combine=pc.add, finish=finish)
    stream = ab.source("s", SCHEMA, properties="insert only").window(10).group_by("k").agg(own=own)
    rows = [Insert({"k": k, "text": t, "i": i}, 1, 2) for k, t, i in [(1, "a", 3), (1, "b", 4), (2, "a", 7)]]
    aside = ab.Quarantine()
    job = stream.open(on_invalid=aside)
    said = job.push("s", [*rows, Stable(FOREVER)])
    assert said == [Insert({"k": 1, "own": 3}, 0, 10), Stable(FOREVER)]
    assert [reason in str(one) for one, reason in zip(aside.violations, ("no b", "7"), strict=True)] == [
        True
    ] * 2


def test_what_cannot_be_taken_back_is_refused_in_a_plan():
    own = ab.aggregate(lift=lambda rows: rows.column("i"), combine=pc.add, finish=lambda sums: sums)
    stream = ab.source("s", SCHEMA)
    with pytest.raises(PlanError, match="events may be removed here") as error:
        stream.window(10).agg(own=own)
    assert "remove=" in str(error.value.__notes__)
    for fine in (stream.session(3), stream.rows(3), stream.final().window(10)):
        fine.agg(own=own)


def test_functions_that_do_not_go_together_are_refused_in_a_plan():
    stream = ab.source("s", SCHEMA, properties="insert only").window(10)

    def of(**functions):
        usual = {"lift": lambda rows: rows.column("i"), "combine": pc.add, "finish": lambda sums: sums}
        return stream.agg(own=ab.aggregate(**(usual | functions)))

    with pytest.raises(ExpressionError, match="lift of an aggregate raised KeyError"):
        of(lift=lambda rows: rows.column("other"))
    with pytest.raises(ExpressionError, match="combine of an aggregate gives int64, as before, not double"):
        of(combine=lambda one, other: pc.cast(one, pa.float64()))
    with pytest.raises(ExpressionError, match="finish of an aggregate gives an Arrow array, not int"):
        of(finish=lambda sums: 3)
    with pytest.raises(ExpressionError, match="combine is a function"):
        ab.aggregate(lift=len, combine=3, finish=len)


def test_ranks_that_cannot_be_are_refused_in_a_plan():
    windows = ab.source("s", SCHEMA).window(10)
    with pytest.raises(ExpressionError, match="no column 'other' to carry"):
        windows.agg(col("i").top_k(2, carry=["other"]))
    with pytest.raises(ExpressionError, match=r"a whole number from 1 on and below 2\*\*62, not 0"):
        col("i").top_k(0)
    with pytest.raises(PlanError, match="ranks of one aggregate"):
        windows.agg(col("i").top_k(2), x=col("x").top_k(2))
    with pytest.raises(PlanError, match="two are called 'k'"):
        windows.group_by("k").agg(col("i").top_k(2, carry=["k"]))
