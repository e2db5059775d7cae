"""What is read from the wire equals what was written, to the last bit."""

import json
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from math import inf, nan
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from meaning import terms

from anabranch.expressions.choice import when
from anabranch.expressions.expression import call, col, end, lit, start
from anabranch.expressions.tree import Column, ExpressionError
from anabranch.expressions.wire import from_wire, to_wire


def through(tree):
    return from_wire(json.loads(json.dumps(to_wire(tree), allow_nan=False)))


@given(terms())
def test_any_expression_comes_back_as_it_was(term):
    assert through(term.expression.tree) == term.expression.tree


@given(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats()
    | st.text()
    | st.binary()
    | st.decimals(allow_nan=False, allow_infinity=False, places=3, min_value=-(10**9), max_value=10**9)
    | st.dates()
    | st.times()
    | st.datetimes()
    | st.datetimes(timezones=st.sampled_from([UTC, ZoneInfo("Europe/Paris"), timezone(timedelta(hours=-3))]))
    | st.timedeltas(timedelta(days=-(10**6)), timedelta(days=10**6))
    | st.lists(st.floats() | st.none(), max_size=3)
)
def test_any_literal_comes_back_as_it_was(value):
    tree = lit(value).tree
    assert through(tree) == tree
    assert repr(through(tree).scalar()) == repr(pa.scalar(value, tree.type))


@pytest.mark.parametrize(
    "scalar",
    [
        pa.scalar(None, pa.timestamp("ns", "Asia/Tokyo")),
        pa.scalar(2**62 + 1, pa.timestamp("ns")),
        pa.scalar(-1, pa.duration("ns")),
        pa.scalar(5, pa.time32("ms")),
        pa.scalar(1.5, pa.float16()),
        pa.scalar(Decimal("-1.5"), pa.decimal256(60, 5)),
        pa.scalar({"a": 1, "b": [date(2026, 1, 1), None]}),
        pa.scalar([("k", 2**60)], pa.map_(pa.string(), pa.int64())),
        pa.scalar("a", pa.large_string()),
        pa.scalar(b"ab", pa.binary(2)),
        pa.scalar([nan, inf, -0.0], pa.list_(pa.float32(), 3)),
        pa.scalar("a", pa.dictionary(pa.int8(), pa.string())).cast(pa.string()),
    ],
    ids=lambda scalar: str(scalar.type),
)
def test_scalars_of_arrow_keep_their_type_and_value(scalar):
    tree = through(lit(scalar).tree)
    assert tree == lit(scalar).tree
    assert tree.type == scalar.type
    assert repr(tree.scalar()) == repr(scalar)


@pytest.mark.parametrize(
    "expression",
    [
        col("a").cast(pa.list_(pa.field("x", pa.timestamp("us", "UTC"), nullable=False))),
        col("a").cast("decimal128(10, 2)", strict=False),
        col("a").struct.field("b"),
        col("a").str.replace_all("(x)", "$1"),
        col("a").dt.truncate("1 hour"),
        col("a").is_in([datetime(2026, 1, 1, tzinfo=UTC), None]),
        col("a").is_in({time(1), time(2)}),
        when(col("a") > lit(None, "int8")).then(start()).otherwise(end()),
        call("strptime", col("a"), format="%Y", unit="s", error_is_null=True),
    ],
    ids=repr,
)
def test_options_come_back_as_they_were(expression):
    assert through(expression.tree) == expression.tree


def test_the_wire_reads_as_what_it_says():
    assert to_wire((col("a") + 1).tree) == {
        "call": "add_checked",
        "args": [{"column": "a"}, {"literal": 1, "type": "int64", "adapts": True}],
    }


@pytest.mark.parametrize(
    ("data", "told"),
    [
        ({"call": "sum", "args": [{"column": "a"}]}, "'sum' is scalar_aggregate"),
        ({"call": "frobnicate", "args": []}, "Arrow has no function 'frobnicate'"),
        ({"call": "when", "args": [{"column": "a"}]}, "when is not told 1 values"),
        ({"call": "cast", "args": [{"column": "a"}]}, "cast is not told 1 values and no more"),
        ({"window": 3}, "not 'window'"),
        ({"column": "a", "of": "b"}, "not 'column', 'of'"),
        ({"literal": {"quaternion": "1"}, "type": "int64"}, "not 'quaternion'"),
        ({"literal": 1, "type": "int65"}, "'int65' is not"),
        (["column", "a"], "an expression is a column"),
    ],
)
def test_what_is_not_known_is_refused_by_its_name(data, told):
    with pytest.raises(ExpressionError) as caught:
        from_wire(data)
    assert told in str(caught.value)


def test_a_column_may_have_any_name():
    assert from_wire(to_wire(Column("\N{SNOWMAN} '"))) == Column("\N{SNOWMAN} '")
