"""The values of an expression are those of its meaning, row by row, and only rows without one fail."""

from math import isnan

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from meaning import COLUMNS, RefusedError, Term, terms, values

from anabranch.expressions.choice import when
from anabranch.expressions.evaluation import evaluate, type_of
from anabranch.expressions.expression import Expression, call, col, end, lit, start
from anabranch.expressions.tree import columns_of

TYPES = {name: pa.type_for_alias(kind) for name, kind in COLUMNS.items()}


@st.composite
def cases(draw, least=0):
    """An expression, and rows with the columns it reads, with their lifetimes.

    Something stands beneath the nulls, as it does where a filter or a reader left it.
    """
    term = draw(terms())
    size = draw(st.integers(least, 6))
    columns = {"unread": pa.nulls(size)}
    for name in columns_of(term.expression.tree):
        there = draw(st.lists(st.booleans(), min_size=size, max_size=size))
        stored = draw(st.lists(values(COLUMNS[name]), min_size=size, max_size=size))
        if COLUMNS[name] == "string":
            columns[name] = pa.array(
                [v if t else None for v, t in zip(stored, there, strict=True)], pa.string()
            )
        else:
            numbers = np.array(stored, TYPES[name].to_pandas_dtype())
            columns[name] = pa.array(numbers, TYPES[name], mask=~np.array(there, bool))
    ticks = st.sampled_from([-(2**63), -1, 0, 5, 2**63 - 1])
    starts, ends = (draw(st.lists(ticks, min_size=size, max_size=size)) for _ in range(2))
    return term, pa.record_batch(columns), np.array(starts, np.int64), np.array(ends, np.int64)


def meant(term: Term, rows: pa.RecordBatch, starts: np.ndarray, ends: np.ndarray) -> tuple[list, list[int]]:
    found, failed = [], []
    for number, row in enumerate(rows.to_pylist()):
        try:
            found.append(term.of(row | {"start": int(starts[number]), "end": int(ends[number])}))
        except RefusedError:
            found.append(None)
            failed.append(number)
    return found, failed


def exactly(found: list) -> list:
    """Values by which NaN equals NaN and 0.0 does not equal -0.0."""
    return ["nan" if isinstance(v, float) and isnan(v) else repr(v) for v in found]


def values_of(expression: Expression, rows: pa.RecordBatch) -> list:
    found = evaluate(expression.tree, rows)
    assert not len(found.failed), found.why
    return found.values.to_pylist()


@given(cases())
def test_each_row_has_the_value_that_the_expression_means_or_fails_alone(case):
    term, rows, starts, ends = case
    found = evaluate(term.expression.tree, rows, starts, ends)
    expected, failed = meant(term, rows, starts, ends)
    assert exactly(found.values.to_pylist()) == exactly(expected)
    assert found.failed.tolist() == failed
    assert len(found.why) == len(failed)
    assert found.values.type == pa.type_for_alias(term.type) == type_of(term.expression.tree, rows.schema)


@given(cases(least=1), st.integers(0, 6))
def test_where_a_batch_is_cut_does_not_matter(case, cut):
    term, rows, starts, ends = case
    whole = evaluate(term.expression.tree, rows, starts, ends)
    one = evaluate(term.expression.tree, rows[:cut], starts[:cut], ends[:cut])
    other = evaluate(term.expression.tree, rows[cut:], starts[cut:], ends[cut:])
    both = one.values.to_pylist() + other.values.to_pylist()
    assert exactly(both) == exactly(whole.values.to_pylist())
    assert [*one.failed, *(other.failed + cut)] == whole.failed.tolist()
    assert one.why + other.why == whole.why


@given(terms())
def test_the_null_payload_of_a_stable_never_fails(term):
    rows = pa.record_batch([pa.nulls(1, kind) for kind in TYPES.values()], names=list(TYPES))
    meaning, failed = meant(term, rows, np.zeros(1, np.int64), np.zeros(1, np.int64))
    found = evaluate(term.expression.tree, rows, np.zeros(1, np.int64), np.zeros(1, np.int64))
    assert exactly(found.values.to_pylist()) == exactly(meaning)
    assert found.failed.tolist() == failed


def test_a_row_that_overflows_is_refused_alone_in_a_large_batch():
    numbers = np.arange(65_536)
    numbers[[17, 40_000]] = 2**63 - 1
    found = evaluate((col("n") + 1).tree, pa.record_batch({"n": numbers}))
    assert found.failed.tolist() == [17, 40_000]
    assert found.why == ["overflow", "overflow"]
    assert found.values.null_count == 2
    assert found.values[40_001].as_py() == 40_002


def test_a_row_tells_the_first_reason_for_which_it_fails():
    rows = pa.record_batch({"n": pa.array([127, 1], pa.int8()), "zero": pa.array([0, 0], pa.int8())})
    found = evaluate((col("n") + 1 + col("n") // col("zero")).tree, rows)
    assert found.why == ["overflow", "divide by zero"]


def test_a_row_that_failed_is_null_whatever_is_made_of_it():
    rows = pa.record_batch({"n": pa.array([127, 1], pa.int8())})
    found = evaluate((col("n") + 1).fill_null(0).tree, rows)
    assert (found.values.to_pylist(), found.failed.tolist()) == ([None, 2], [0])


def test_a_row_does_not_fail_by_a_branch_that_it_does_not_take():
    rows = pa.record_batch({"sum": [6, 7, 8], "n": [2, 0, None]})
    mean = when(col("n") != 0).then(col("sum") // col("n")).otherwise(-1)
    assert values_of(mean, rows) == [3, -1, -1]


def test_a_row_fails_by_the_branch_that_it_takes():
    rows = pa.record_batch({"sum": [6, 7, 8], "n": [2, 0, 0]})
    mean = when(col("sum") < 8).then(col("sum") // col("n")).when(col("n") == 0).then(0)
    found = evaluate(mean.tree, rows)
    assert (found.values.to_pylist(), found.failed.tolist(), found.why) == (
        [3, None, 0],
        [1],
        ["divide by zero"],
    )


def test_the_first_condition_that_is_true_decides_and_null_is_not_true():
    rows = pa.record_batch({"n": [1, 5, 9, None]})
    size = when(col("n") > 8).then(lit("large")).when(col("n") > 4).then(lit("middle"))
    assert values_of(size, rows) == [None, "middle", "large", None]
    assert values_of(size.otherwise(lit("small")), rows) == ["small", "middle", "large", "small"]


def test_text_that_is_no_number_fails_or_is_null_as_asked():
    rows = pa.record_batch({"s": ["1", "x", None]})
    found = evaluate(col("s").cast("int64").tree, rows)
    assert found.failed.tolist() == [1]
    assert "'x'" in found.why[0]
    assert values_of(col("s").cast("int64", strict=False), rows) == [1, None, None]


def test_lifetimes_are_columns_of_ticks():
    rows = pa.record_batch({"n": [1, 2]})
    found = evaluate((end() - start()).tree, rows, np.array([3, 5]), np.array([9, 5]))
    assert found.values == pa.array([6, 0])


def test_a_value_of_no_column_is_the_same_in_all_rows():
    rows = pa.record_batch({"n": [1, 2]})
    assert values_of(lit(1) + 2, rows) == [3, 3]
    assert values_of(when(lit(True)).then(1).otherwise(2), rows) == [1, 1]


def test_a_column_alone_is_handed_through_as_it_is():
    column = pa.array(["a", None]).dictionary_encode()
    assert evaluate(col("s").tree, pa.record_batch({"s": column})).values == column


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())]
)
def test_text_is_text_in_whatever_form_it_comes(kind):
    rows = pa.record_batch({"s": pa.array(["ab", None], pa.string()).cast(kind)})
    assert values_of(col("s") == "ab", rows) == [True, None]
    assert values_of(col("s").is_in(["ab", "c"]), rows) == [True, None]
    assert values_of(col("s").str.to_uppercase(), rows) == ["AB", None]
    assert values_of(col("s") + "!", rows) == ["ab!", None]


def test_unsigned_and_signed_integers_compare_exactly():
    rows = pa.record_batch({"u": pa.array([2**64 - 1, 0], pa.uint64()), "i": pa.array([-1, 0], pa.int64())})
    assert values_of(col("u") > col("i"), rows) == [True, False]
    assert values_of(col("u") == 2**64 - 1, rows) == [True, False]
    assert values_of(col("u").is_in([2**64 - 1]), rows) == [True, False]
    assert values_of(col("u") > -1, rows) == [True, True]


def test_items_and_fields_are_found_within_lists_and_structs():
    rows = pa.record_batch({"l": [[1, 2], [3], None], "s": [{"x": 1}, {"x": None}, None]})
    assert values_of(col("l").list.len(), rows) == [2, 1, None]
    assert values_of(col("s").struct.field("x"), rows) == [1, None, None]
    assert evaluate(col("l").list.get(1).tree, rows).failed.tolist() == [1]


def test_any_scalar_function_of_arrow_can_be_called():
    rows = pa.record_batch({"a": [3.0, None], "b": [4.0, 1.0]})
    assert values_of(call("hypot", col("a"), col("b")), rows) == [5.0, None]
    assert values_of(call("max_element_wise", col("a"), 0), rows) == [3.0, 0.0]


def test_the_same_expression_serves_rows_of_other_types():
    tree = (col("n") + 1).tree
    assert evaluate(tree, pa.record_batch({"n": pa.array([1], pa.int8())})).values.type == pa.int8()
    assert evaluate(tree, pa.record_batch({"n": [1.5]})).values == pa.array([2.5])
