"""A name of another library is answered with ours, and a misspelt one with what was meant."""

import re

import pytest

import anabranch as ab
from anabranch.expressions.expression import Expression
from anabranch.model import other_names
from anabranch.plan.replicas import Replicas
from anabranch.plan.windowed import Windowed

SOURCE = ab.source("s", {"v": "float64"})


@pytest.mark.parametrize(
    ("wrong", "answer"),
    [
        (lambda: SOURCE.groupBy("v"), "a stream has no 'groupBy'; write .window(size).group_by(…).agg(…)"),
        (lambda: SOURCE.where(1), "write .filter(…)"),
        (lambda: SOURCE.withColumn("x", 1), "write .with_columns(name=…)"),
        (lambda: SOURCE.fliter(1), "a stream has no 'fliter', did you mean 'filter'?"),
        (lambda: SOURCE.window(9).groupBy("v"), "write .group_by(…)"),
        (lambda: ab.col("v").avg(), "a column has no 'avg'; write .mean()"),
        (lambda: ab.col("v").median(), "write .approx_median()"),
        (lambda: ab.mrge, "did you mean 'merge'?"),
        (lambda: ab.avg("v"), "write col(name).mean()"),
        (lambda: ab.source("s", {"v": "int64"}, replica="who").where(1), "write .filter(…)"),
        (lambda: ab.source("s", {"v": "int64"}, replica="who").window(3), "write .merge() before .window"),
    ],
)
def test_a_name_of_another_library_is_answered_with_ours(wrong, answer):
    with pytest.raises(AttributeError) as error:
        wrong()
    assert answer in str(error.value)


@pytest.mark.parametrize(
    ("names", "owner"),
    [
        (other_names.OF_STREAMS, ab.Stream),
        (other_names.OF_WINDOWS, Windowed),
        (other_names.OF_COLUMNS, Expression),
        (other_names.OF_THE_PACKAGE, ab),
    ],
)
def test_an_answer_names_what_there_is_and_answers_for_nothing_that_is_there(names, owner):
    known = {
        *ab.__all__,
        *dir(ab.Stream),
        *dir(Replicas),
        *dir(Windowed),
        *dir(Expression),
        "str",
        "struct",
        "spark",
    }
    known |= {
        *dir(type(ab.col("v").str)),
        *dir(type(ab.col("v").struct)),
        "table",
        "to_pandas",
        "frame",
        "session",
    }
    for name, answer in names.items():
        assert not hasattr(owner, name), name
        assert {*re.findall(r"[.](\w+)(?=\()", answer)} <= known, answer


def test_windows_show_themselves_in_a_line():
    shown = repr(SOURCE.window(5).group_by("v"))
    assert shown == "<Windows by v over s: elements; .agg(…) makes a stream of them>"
