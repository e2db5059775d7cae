"""The type of an expression is known before there are rows, and what has no meaning is refused then."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pyarrow as pa
import pytest

from anabranch.expressions.choice import when
from anabranch.expressions.evaluation import type_of
from anabranch.expressions.expression import call, col, end, lit, start
from anabranch.expressions.tree import ExpressionError

SCHEMA = pa.schema(
    {
        "i8": pa.int8(),
        "i32": pa.int32(),
        "i64": pa.int64(),
        "u64": pa.uint64(),
        "f32": pa.float32(),
        "f64": pa.float64(),
        "text": pa.string(),
        "flag": pa.bool_(),
        "at": pa.timestamp("ms", "UTC"),
        "local": pa.timestamp("s"),
        "day": pa.date32(),
        "price": pa.decimal128(10, 2),
        "box": pa.struct({"width": pa.int32()}),
        "list": pa.list_(pa.int16()),
    }
)
MIDNIGHT = datetime(2026, 1, 1, tzinfo=UTC)


def kind_of(expression) -> str:
    return str(type_of(expression.tree, SCHEMA))


def refusal(expression) -> str:
    with pytest.raises(ExpressionError) as caught:
        type_of(expression.tree, SCHEMA)
    return "\n".join([str(caught.value), *getattr(caught.value, "__notes__", [])])


@pytest.mark.parametrize(
    ("expression", "kind"),
    [
        (col("i8") + 1, "int8"),
        (1 - col("i8"), "int8"),
        (col("i8") + 1000, "int64"),
        (col("i8") + lit(1, "int32"), "int32"),
        (col("i32") * 1.5, "double"),
        (col("f32") * 2, "float"),
        (col("f32") * 0.1, "float"),
        (col("f32") * 1e300, "double"),
        (col("f32") + col("i8"), "float"),
        (col("f32") + col("i32"), "double"),
        (col("price") + 1, "decimal128(11, 2)"),
        (col("price") * Decimal("1.5"), "decimal128(13, 3)"),
        (col("at") + timedelta(hours=1), "timestamp[ms, tz=UTC]"),
        (col("at") + timedelta(microseconds=1), "timestamp[us, tz=UTC]"),
        (col("at") - MIDNIGHT, "duration[ms]"),
        (col("i8").fill_null(0), "int8"),
        (col("i8").fill_null(None), "int8"),
        (when(col("flag")).then(1).otherwise(col("i8")), "int8"),
        (when(col("flag")).then(None).otherwise(lit("a")), "string"),
    ],
    ids=repr,
)
def test_a_literal_takes_the_type_of_what_it_meets_where_that_holds_it(expression, kind):
    assert kind_of(expression) == kind


@pytest.mark.parametrize(
    ("expression", "kind"),
    [
        (col("i8") / 2, "double"),
        (col("f32") / 2, "float"),
        (col("price") / 3, "decimal128(12, 4)"),
        (col("i8") // 2, "int8"),
        (col("i8") % col("i32"), "int32"),
        (col("i8").sqrt(), "double"),
        (col("i8").floor(), "int8"),
        (col("i8").round(), "int8"),
        (col("i8").cast("float64"), "double"),
        (col("i8").is_in([1, 1000]), "bool"),
        (col("at") > MIDNIGHT, "bool"),
        (col("local") > date(2026, 1, 1), "bool"),
        (col("at").dt.weekday(), "int64"),
        (col("day").dt.truncate("1mo"), "date32[day]"),
        (col("box").struct.field("width"), "int32"),
        (col("list").list.get(0), "int16"),
        (col("text").str.split(","), "list<item: string>"),
        (end() - start(), "int64"),
        (call("year_month_day", col("day")).struct.field("month"), "int64"),
    ],
    ids=repr,
)
def test_types_are_those_that_arrow_gives(expression, kind):
    assert kind_of(expression) == kind


def test_an_unknown_column_is_told_with_those_that_are_like_it():
    told = refusal(col("i65") + 1)
    assert "there is no column 'i65'" in told
    assert "did you mean 'i64'" in told
    assert "'text', 'flag'" in told


@pytest.mark.parametrize(
    ("expression", "told"),
    [
        (col("text") == 1, "text == 1 compares string with int64"),
        (col("flag") == 1, "flag == 1 compares bool with int64"),
        (col("text") == b"a", "compares string with binary"),
        (col("at") > "2026-01-01", "compares timestamp[ms, tz=UTC] with string"),
        (col("at") > col("local"), "compares timestamp[ms, tz=UTC] with timestamp[s]"),
        (col("i8").is_in(["a"]), "compares int8 with string"),
        (col("i8").fill_null("a"), "chooses between int8 and string"),
        (when(col("flag")).then(1).otherwise(lit("a")), "chooses between int64 and string"),
        (when(col("i8")).then(1), "is true or false, not int8"),
        (col("text") + 1, "text + 1 has no meaning on string and int64"),
        (col("i8") & col("flag"), "i8 & flag has no meaning on int8 and bool"),
        (col("price") // 3, "price // 3 has no meaning on decimal128(10, 2)"),
        (-col("u64"), "-u64 has no meaning on uint64"),
        (col("day").dt.hour(), "day.dt.hour() has no meaning on date32[day]"),
        (col("box").struct.field("depth"), "No match for FieldRef.Name(depth)"),
        (col("text").str.contains("("), "Invalid regular expression"),
        (col("box").cast("int8"), "box.cast('int8') has no meaning on struct<width: int32>"),
        (lit(1) // 0, "1 // 0 has no meaning: divide by zero"),
        (call("hypot", col("f64")), "accepts 2 arguments but 1 passed"),
    ],
    ids=repr,
)
def test_what_has_no_meaning_is_refused_before_there_are_rows(expression, told):
    assert told in refusal(expression)


def test_a_column_whose_name_is_not_its_own_is_refused():
    twice = pa.schema([pa.field("a", pa.int8()), pa.field("a", pa.int8())])
    with pytest.raises(ExpressionError, match="several called 'a'"):
        type_of(col("a").tree, twice)
