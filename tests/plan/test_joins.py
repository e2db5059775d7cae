"""Joins in plans: what is refused, what is known, and DuckDB as a second judge of what comes out."""

from collections import Counter
from decimal import Decimal
from random import Random

import duckdb
import pyarrow as pa
import pytest

import anabranch as ab
from anabranch import Fact, Insert, Properties, Stable
from anabranch.model.clock import UnitError
from anabranch.model.time import FOREVER
from anabranch.plan.node import PlanError

LEFT, RIGHT = {"k": "int64", "a": "int64"}, {"k": "int64", "b": "int64"}


def sides(**more):
    """Two sources."""
    return ab.source("l", LEFT, **more), ab.source("r", RIGHT, **more)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"on": "k"}, "within is not given"),
        ({"on": "k", "within": (2, -3)}, "which is never"),
        ({"on": "q", "within": 0}, "no column 'q' in the left"),
        ({"on": {"k": "q"}, "within": 0}, "no column 'q' in the right"),
        ({"on": "k", "within": 0, "how": "outer"}, "how is one of 'inner', 'left', 'semi', 'anti'"),
        ({"on": "k", "within": 0, "at": "never"}, "at is one of"),
        ({"on": "k", "within": 0, "starts": ("a", None)}, "two that are called 'a'"),
        ({"on": "k", "within": 0, "starts": ("x",)}, "starts are two names"),
        ({"within": 0, "suffix": ""}, "two that are called 'k'"),
        ({"on": "k", "within": 0, "how": "semi", "at": "left"}, "at and starts are of pairs"),
        ({"on": "k", "within": 0, "where": ab.col("a") + ab.col("b")}, "a condition is true or false"),
        ({"on": "k", "within": "5 seconds"}, "times are numbers"),
    ],
)
def test_what_cannot_work_is_refused_with_the_rule(given, says):
    left, right = sides()
    with pytest.raises((PlanError, UnitError), match=says):
        left.join(right, **given)


def test_keys_of_different_sorts_are_refused():
    with pytest.raises(PlanError, match="keys of one sort can be equal"):
        sides()[0].join(ab.source("r", {"k": "string"}), on="k", within=0)


NUMBERS = {
    "int8": pa.int8(),
    "int64": pa.int64(),
    "uint32": pa.uint32(),
    "uint64": pa.uint64(),
    "float32": pa.float32(),
    "float64": pa.float64(),
    "decimal": pa.decimal128(24, 2),
    "wide decimal": pa.decimal256(40, 4),
    "dictionary": pa.dictionary(pa.int8(), pa.float64()),
}
SAMPLES = [Decimal(x) for x in ("0", "1", "1.5", "0.25", "-3", "100", str(2**53), str(2**63), str(2**64 - 1))]


def _of(value, kind):
    """A number as a value of a type, or None where it has none that is equal."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    if pa.types.is_floating(kind):
        return float(value)
    if pa.types.is_decimal(kind):
        return value
    whole = value == value.to_integral_value()
    try:
        return pa.scalar(int(value), kind).as_py() if whole else None
    except (OverflowError, pa.ArrowInvalid):
        return None


@pytest.mark.parametrize("one", NUMBERS)
@pytest.mark.parametrize("other", NUMBERS)
def test_equal_numbers_match_or_the_join_is_refused(one, other):
    left = ab.source("l", {"k": NUMBERS[one], "a": "int64"})
    right = ab.source("r", {"k": NUMBERS[other], "b": "int64"})
    try:
        job = left.join(right, on="k", within=0).open()
    except PlanError as refused:
        assert {_family(one), _family(other)} == {"exact", "float"}, refused  # noqa: PT017
        return
    for value in SAMPLES:
        pair = _of(value, NUMBERS[one]), _of(value, NUMBERS[other])
        if None in pair:
            continue
        job.push("l", [Insert({"k": pair[0], "a": 1}, 0, 1)])
        assert job.push("r", [Insert({"k": pair[1], "b": 1}, 0, 1)]), value
        job = left.join(right, on="k", within=0).open()


def _family(name):
    kind = NUMBERS[name]
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    exact = pa.types.is_decimal(kind) or pa.types.is_uint64(kind)
    return "exact" if exact else "float" if pa.types.is_floating(kind) else "integer"


def test_a_decimal_and_a_float_as_keys_are_refused_with_the_cast_that_mends_it():
    prices = ab.source("l", {"price": pa.decimal128(10, 2)})
    limits = ab.source("r", {"limit": "float64"})
    with pytest.raises(PlanError, match="cast 'price' of the left to double") as refused:
        prices.join(limits, on={"price": "limit"}, within=0)
    assert "with_columns(price=col('price').cast('float64'))" in refused.value.__notes__[0]
    job = prices.with_columns(price=ab.col("price").cast("float64"))
    job = job.join(limits, on={"price": "limit"}, within=0).open()
    job.push("l", [Insert({"price": Decimal("1.50")}, 0, 1)])
    assert job.push("r", [Insert({"limit": 1.5}, 0, 1)])


def test_a_side_that_is_never_stable_is_refused():
    rows = ab.source("rows", {"k": "int64", "at": "int64"}, start="at")
    with pytest.raises(PlanError, match="the right of a join says until when"):
        sides()[0].join(rows, on="k", within=0)


def test_that_nothing_matches_is_not_known_of_a_lossy_right():
    left, _ = sides()
    right = ab.source("r", RIGHT, lossy=True)
    left.join(right, on="k", within=0)
    left.join(right, on="k", within=0, how="semi")
    for how in ("left", "anti"):
        with pytest.raises(PlanError, match="is known where nothing of the right is missing"):
            left.join(right, on="k", within=0, how=how)


def test_a_pair_has_a_key_where_its_starts_can_be_told():
    left, right = sides(properties=Properties(key=("k",)))

    def key(**given):
        return left.join(right, on="k", **given).properties.key

    assert key(within=0) == ("k",)
    assert key(within=1) is None
    assert key(within=1, starts=("x", "y")) == ("k", "x", "y")
    assert key(within=1, at="left", starts=(None, "y")) == ("k", "y")
    assert key(within=(-1, 1), how="left") is None
    assert key(within=1, how="anti") == ("k",)


def test_a_join_of_kept_streams_is_of_points_that_are_inserted_only():
    left, right = sides(properties="kept")
    known = left.join(right, on="k", within=3).properties
    assert Fact.INSERT_ONLY in known
    assert known.longest == 1
    assert Fact.INSERT_ONLY not in sides()[0].join(right, on="k", within=3).properties


def test_a_stream_may_be_joined_with_itself():
    left, _ = sides()
    job = left.join(left, on="k", within=1, starts=("x", "y")).open()
    out = job.push("l", [Insert({"k": 1, "a": n}, n, n + 1) for n in range(3)])
    assert Counter((e.payload["x"], e.payload["y"]) for e in out) == Counter(
        (x, y) for x in range(3) for y in range(3) if abs(x - y) <= 1
    )


def test_starts_are_on_the_clock_of_the_streams():
    clock = {"at": "timestamp[ms, tz=UTC]", "k": "int64"}
    left, right = (ab.source(name, clock, start="at", disorder="1 second") for name in "lr")
    pairs = left.join(right, on="k", within="5 seconds", starts=("l_at", "r_at"))
    assert pairs.schema.field("l_at").type == pa.timestamp("us", "UTC")


SELECTED = {
    "inner": "SELECT l.k, a, b, l.s, r.s FROM l JOIN r ON {on}",
    "left": "SELECT l.k, a, b, l.s, r.s FROM l LEFT JOIN r ON {on}",
    "semi": "SELECT l.k, a, NULL, l.s, NULL FROM l SEMI JOIN r ON {on}",
    "anti": "SELECT l.k, a, NULL, l.s, NULL FROM l ANTI JOIN r ON {on}",
}


def drawn(random, column, base):
    """Rows with nulls and repeats, whose starts are near a base."""
    return [
        {
            "k": random.choice([1, 2, 3, None]),
            column: random.choice([0, 1, 2, None]),
            "s": base + random.randint(0, 30),
        }
        for _ in range(60)
    ]


@pytest.mark.parametrize("how", SELECTED)
@pytest.mark.parametrize("base", [-15, 2**53 + 1])
def test_what_comes_out_is_what_duckdb_gives_of_the_same_rows(how, base):
    for seed in range(5):
        random = Random(seed)
        before, after = random.choice([(0, 0), (2, 5), (-1, 3)])
        tables = [drawn(random, column, base) for column in "ab"]
        left, right = sides()
        where = (ab.col("a") <= ab.col("b")) if seed % 2 else None
        starts = ("x", "y") if how in ("inner", "left") else None
        job = left.join(right, "k", within=(before, after), how=how, where=where, starts=starts).open()
        out = []
        for name, rows in zip("lr", tables, strict=True):
            events = [
                Insert({n: v for n, v in row.items() if n != "s" and v is not None}, row["s"], row["s"] + 1)
                for row in rows
            ]
            for begin in range(0, len(events), 7):
                out += job.push(name, events[begin : begin + 7])
            out += job.push(name, [Stable(FOREVER)])
        found = Counter(
            (
                e.payload.get("k"),
                e.payload.get("a"),
                e.payload.get("b"),
                e.payload.get("x", e.start),
                e.payload.get("y"),
            )
            for e in out
            if isinstance(e, Insert)
        )
        on = f"l.k = r.k AND r.s BETWEEN l.s - {before} AND l.s + {after}" + (
            " AND a <= b" if where is not None else ""
        )
        with duckdb.connect() as connection:
            for name, column, rows in zip("lr", "ab", tables, strict=True):
                types = pa.schema({"k": pa.int64(), column: pa.int64(), "s": pa.int64()})
                connection.register(name, pa.Table.from_pylist(rows, schema=types))
            meant = Counter(connection.sql(SELECTED[how].format(on=on)).fetchall())
        assert found == meant
