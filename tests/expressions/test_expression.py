"""Expressions are written as in Polars, read as they were written, and are values once written."""

import pickle
from datetime import UTC, datetime, timedelta
from math import nan

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from meaning import terms

from anabranch.expressions.choice import when
from anabranch.expressions.evaluation import evaluate
from anabranch.expressions.expression import call, col, end, lit, name_of, start
from anabranch.expressions.tree import (
    Call,
    Column,
    ExpressionError,
    Literal,
    columns_of,
    plain_column,
    uses_end,
)

FRAME = {
    "n": [7, -7, 3, None],
    "d": [2, 2, -2, 5],
    "x": [0.5, -1.5, 2.5, None],
    "s": ["  Ab1 ", "b2b3", "", None],
    "at": [datetime(2026, 3, 5, 7, 45, 12), datetime(1969, 12, 31, 23, 59), datetime(2024, 2, 29), None],
}


@pytest.mark.parametrize(
    "write",
    [
        lambda col, when, lit: col("n") // col("d"),
        lambda col, when, lit: col("n") % col("d"),
        lambda col, when, lit: col("n") / col("d"),
        lambda col, when, lit: (col("n") + 1) * 2 - col("d"),
        lambda col, when, lit: 2 - col("n").abs(),
        lambda col, when, lit: col("x").round(),
        lambda col, when, lit: col("x").floor() + col("x").ceil(),
        lambda col, when, lit: (col("n") > 0) & ~(col("x") == 0.5) | col("s").is_null(),
        lambda col, when, lit: col("n").is_in([7, 3]),
        lambda col, when, lit: col("n").fill_null(0).is_between(-7, 3, closed="left"),
        lambda col, when, lit: when(col("n") > 5).then(1).when(col("n") > 0).then(col("d")).otherwise(0),
        lambda col, when, lit: when(col("n") > 5).then(lit("big")),
        lambda col, when, lit: col("s").str.strip_chars().str.to_lowercase(),
        lambda col, when, lit: col("s").str.contains(r"b\d") | col("s").str.starts_with("  A"),
        lambda col, when, lit: col("s").str.replace(r"b(\d)", "<$1>"),
        lambda col, when, lit: col("s").str.replace_all(r"(b)(\d)", "${2}$$\\"),
        lambda col, when, lit: col("s").str.slice(-3, 2) + col("s").str.slice(1),
        lambda col, when, lit: col("s").str.len_chars(),
        lambda col, when, lit: col("s").str.split("b"),
        lambda col, when, lit: col("x").cast(pa.int64() if col is not pl.col else pl.Int64),
        lambda col, when, lit: col("at").dt.year(),
        lambda col, when, lit: col("at").dt.month(),
        lambda col, when, lit: col("at").dt.day(),
        lambda col, when, lit: col("at").dt.hour(),
        lambda col, when, lit: col("at").dt.minute(),
        lambda col, when, lit: col("at").dt.second(),
        lambda col, when, lit: col("at").dt.weekday(),
        lambda col, when, lit: col("at").dt.truncate("1h"),
        lambda col, when, lit: col("at").dt.truncate("1w"),
        lambda col, when, lit: col("at").dt.truncate("1mo"),
        lambda col, when, lit: col("at").dt.truncate(timedelta(minutes=15)),
        lambda col, when, lit: col("at") + timedelta(days=1) > datetime(2024, 3, 1),
    ],
)
def test_what_is_written_for_polars_means_the_same_here(write):
    ours = evaluate(write(col, when, lit).tree, pa.record_batch(FRAME))
    theirs = pl.DataFrame(FRAME).select(write(pl.col, pl.when, pl.lit).alias("found"))
    assert not len(ours.failed), ours.why
    assert ours.values.to_pylist() == theirs["found"].to_list()


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ((col("price") > 100) & (col("room") == "A"), "price > 100 & room == 'A'"),
        ((col("a") | col("b")) & ~(col("c") == 1), "(a | b) & ~(c == 1)"),
        (col("a") - (col("b") - 1) * -2, "a - (b - 1) * -2"),
        ((-col("a")) ** 2 + 1 / col("b"), "(-a) ** 2 + 1 / b"),
        (2 ** (col("a") ** 3), "2 ** a ** 3"),
        ((col("a") + 1).abs().cast("int8", strict=False), "(a + 1).abs().cast('int8', strict=False)"),
        (col("s").str.to_uppercase().str.contains("^A"), "s.str.to_uppercase().str.contains('^A')"),
        (col("my name").is_in([1, None]), "col('my name').is_in([1, null])"),
        (
            col("at").dt.truncate("15m") > datetime(2026, 1, 1, tzinfo=UTC),
            "at.dt.truncate('15 minutes') > 2026-01-01 00:00:00Z",
        ),
        (end() - start() > timedelta(hours=1), "end() - start() > 1 hour"),
        (when(col("a") > 1).then(1).when(col("b")).then(2), "when(a > 1).then(1).when(b).then(2)"),
        (when(col("a")).then(1).otherwise(col("null")), "when(a).then(1).otherwise(null)"),
        (call("hypot", col("a"), 1.5), "hypot(a, 1.5)"),
        ((col("a") + 1).alias("b"), "a + 1 as b"),
    ],
)
def test_an_expression_reads_as_it_was_written(expression, words):
    assert repr(expression) == words


@given(terms())
def test_an_expression_is_equal_to_itself_written_again(term):
    tree = term.expression.tree
    again = pickle.loads(pickle.dumps(tree))
    assert again == tree
    assert hash(again) == hash(tree)
    assert repr(term.expression)


def test_literals_are_equal_only_if_they_are_written_alike():
    alike = [1, 1.0, True, -0.0, 0.0, nan, "1", b"1", None]
    trees = [lit(value).tree for value in alike] + [lit(1, "int64").tree, lit(1, "int8").tree]
    assert len(set(trees)) == len(trees)
    assert lit(nan).tree == lit(nan).tree


def test_a_tree_is_columns_literals_and_calls():
    tree = (col("a") + 1).tree
    assert tree == Call("add_checked", (Column("a"), Literal(1, pa.int64(), adapts=True)))


def test_an_expression_is_called_as_its_leftmost_column_unless_it_has_a_name():
    assert name_of((col("a") + col("b")) * 2) == "a"
    assert name_of(col("a").alias("x") + 1) == "x"
    assert name_of(1 + col("a")) == "literal"
    assert name_of(when(col("a") > 1).then(col("b")).otherwise(col("c"))) == "b"
    assert name_of(when(col("a") > 1).then(col("b").alias("x")).when(col("c")).then(1)) == "x"
    assert name_of(start() + 1) == "start"
    assert name_of(call("hypot", col("a"), col("b"))) == "a"


def test_what_an_expression_reads_is_known():
    expression = when(col("b") > 1).then(col("a") + end()).otherwise(col("b"))
    assert columns_of(expression.tree) == ("b", "a")
    assert uses_end(expression.tree)
    assert not uses_end((start() + col("a")).tree)
    assert plain_column(col("a").alias("b").tree) == "a"
    assert plain_column((col("a") + 0).tree) is None


@pytest.mark.parametrize("use", [lambda e: e and e, lambda e: not e, lambda e: 1 < e < 3])
def test_an_expression_is_neither_true_nor_false(use):
    with pytest.raises(TypeError, match="known of a row") as caught:
        use(col("a"))
    assert "Use & for and, | for or, ~ for not" in caught.value.__notes__[0]


@pytest.mark.parametrize("name", ["sum", "cumulative_sum", "sort_indices", "unique"])
def test_a_function_that_sees_other_rows_is_refused_with_the_way_out(name):
    with pytest.raises(ExpressionError, match="gives each row a value of its own") as caught:
        call(name, col("a"))
    assert "apply(…)" in caught.value.__notes__[1]


@pytest.mark.parametrize(
    ("write", "told"),
    [
        (lambda: call("uper", col("a")), "Arrow has no function 'uper'"),
        (lambda: call("random"), "use apply"),
        (lambda: call("is_in", col("a")), r"use is_in\(\[…\]\)"),
        (lambda: call("when", col("a"), 1), "Arrow has no function 'when'"),
        (lambda: call("round", col("a"), digits=1), "round does not take digits=1"),
        (lambda: call("hypot", col("a"), 1, digits=1), "it takes none"),
        (lambda: call("utf8_upper", "a"), "text is a column to some"),
        (lambda: when(col("a")).then("b"), "text is a column to some"),
        (when, "takes a condition"),
        (lambda: col("a").is_in("abc"), "takes a collection of values"),
        (lambda: col("a").is_in(col("b")), "takes a collection of values"),
        (lambda: col("a").cast("number"), "a type is one of Arrow's or its name"),
        (lambda: col("a").list.get(-1), "counted from 0"),
        (lambda: col("a").dt.truncate("soon"), "truncate is a number of ticks or a length of time"),
        (lambda: col("a").dt.truncate(5), "5 is none"),
        (lambda: col("a").str.replace("b", "$name"), r"\$ stands before the number of a group"),
        (lambda: lit(2**64), "no type of Arrow holds 18446744073709551616"),
        (lambda: lit(300, "int8"), "int8 does not hold 300"),
        (lambda: col(1), "a column has a name that is text"),
    ],
)
def test_what_cannot_be_meant_is_refused_where_it_is_written(write, told):
    with pytest.raises((ExpressionError, ValueError), match=told):
        write()
