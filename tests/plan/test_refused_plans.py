"""A plan that cannot mean anything is refused when it is built, with the rule, the value and the line."""

import pytest

import anabranch as ab
from anabranch import col
from anabranch.expressions.expression import end
from anabranch.expressions.tree import ExpressionError
from anabranch.model.schema import SchemaError
from anabranch.plan.node import PlanError

ROOMS = ab.source("rooms", {"room": "string", "level": "int64"})
TABLES = ab.source(
    "table",
    {"op": "string", "at": "int64", "who": "string", "id": "int64"},
    start="at",
    op="op",
    key="id",
    replica="who",
)
QUIET = ab.source("quiet", {"room": "string", "at": "int64"}, start="at")

LOSSY = [ab.source(name, {"room": "string", "level": "int64"}, lossy=True) for name in ("north", "south")]


def refusal(build):
    with pytest.raises((PlanError, ExpressionError, SchemaError, ValueError, TypeError)) as caught:
        build()
    return str(caught.value), "\n".join(getattr(caught.value, "__notes__", []))


@pytest.mark.parametrize(
    ("build", "rule", "way_out"),
    [
        (lambda: ROOMS.filter(col("lvl") > 3), "lvl", "level"),
        (lambda: ROOMS.filter(col("room") > 3), "string", "test_refused_plans.py"),
        (lambda: ROOMS.filter(col("level") + 1), "a filter is by true or false", "Compare it"),
        (lambda: ROOMS.filter(end() > 3), "an end may still change", "final()"),
        (lambda: ROOMS.select("room", room=col("level")), "two are called 'room'", "another name"),
        (lambda: ROOMS.drop("floor"), "there is no column 'floor'", "'room', 'level'"),
        (lambda: ROOMS.rename({"floor": "x"}), "there is no column 'floor'", "'room', 'level'"),
        (
            lambda: TABLES.filter(col("id") > 3),
            "operators are run on rows of a table",
            ".merge().filter(…)",
        ),
        (lambda: TABLES.tap("x"), "'table' has changes of several replicas", "test_refused_plans.py"),
        (lambda: TABLES.merge(case="R2"), "rows of a table end by adjusts, and R2 has none", "R3 or R4"),
        (lambda: ab.union(TABLES), "replicas are merged before a union", ".merge()"),
        (QUIET.final, "gives out what the stable has passed", "disorder="),
        (QUIET.sort, "gives out what the stable has passed", "disorder="),
        (lambda: ab.merge(QUIET, QUIET), "none ever promises anything", "disorder="),
        (ab.union, "there is none", ""),
        (lambda: ab.union(ROOMS, ROOMS.drop("level")), "has 'level'", "Select, rename or add"),
        (
            lambda: ab.union(ROOMS, ROOMS.with_columns(level=col("level").cast("float64"))),
            "'level' is int64 and double",
            "cast(",
        ),
        (lambda: ab.merge(ROOMS, 7), "a merge is of streams", "anabranch.source"),
        (lambda: ab.merge(ROOMS, identity=["floor"]), "'floor' is none", "'room', 'level'"),
        (lambda: ab.merge(ROOMS, case="R9"), "a case is one of", ""),
        (lambda: ab.merge(*(one.window(9).agg(ab.count()) for one in LOSSY)), "may not", "first"),
        (lambda: ab.merge(*(one.session(9).agg(ab.count()) for one in LOSSY)), "'north' may not", "first"),
        (
            lambda: ab.merge(ROOMS.rows(3).agg(m=ab.count()), LOSSY[1].rows(3).agg(m=ab.count())),
            "'south' may",
            "first",
        ),
        (lambda: ROOMS.tumble("5 minutes"), "times are numbers", "int of ticks"),
        (lambda: ROOMS.lasting(0), "at least 1, not 0", ""),
        (lambda: ROOMS.hop(5, 2), "a multiple of its hop", ""),
        (lambda: ROOMS.tap(""), "an output has a name", ""),
        (lambda: ab.source("", {"a": "int64"}), "a source has a name", ""),
        (lambda: ab.source("s", {"a": "int32x"}), "one of Arrow's", "string, int64"),
        (lambda: ab.source("s", 7), "mapping of names to types", ""),
        (lambda: ab.source("s", {"a": "int64"}, key="b"), "column 'b'", "'a'"),
        (
            lambda: ab.source("s", {"a": "int64"}, end="a"),
            "which of them is the start is not said",
            "start='at'",
        ),
        (lambda: ab.source("s", {"a": "int64"}, start="b"), "start is column 'b'", "'a'"),
        (lambda: ab.source("s", start="b"), "have columns", "source(name"),
        (
            lambda: ab.source("s", {"a": "int64", "r": "string"}, start="a", replica="r", disorder=1),
            "lossy is not given",
            "lossy=True",
        ),
        (lambda: ROOMS.apply(lambda rows: 7), "gives a record batch", ""),
        (lambda: ROOMS.apply(lambda rows: rows, keeps=["floor"]), "'floor' is not", ""),
        (lambda: ROOMS.apply(lambda rows: rows, pure=False), "other events of their adjusts", "final()"),
        (lambda: ROOMS.apply(rows=lambda row: row), "schema is not given", "schema="),
    ],
)
def test_what_cannot_work_is_refused_with_the_way_out(build, rule, way_out):
    message, notes = refusal(build)
    assert rule in message
    assert way_out in notes + message


def test_the_error_names_the_line_of_the_users_program():
    _, notes = refusal(lambda: ROOMS.filter(col("lvl") > 3))
    assert "test_refused_plans.py:" in notes
    assert 'ROOMS.filter(col("lvl") > 3)' in notes


def test_two_outputs_of_one_name_are_refused():
    twice = ab.union(ROOMS.tap("x"), ROOMS.filter(col("level") > 1).tap("x"))
    with pytest.raises(PlanError, match="two are called 'x'"):
        twice.open()


def test_streams_on_two_clocks_do_not_meet():
    timed = ab.source("timed", {"at": "timestamp[us]", "room": "string"}, start="at", disorder="1 second")
    with pytest.raises(PlanError, match="on one clock"):
        ab.union(timed, ROOMS.drop("level"))


def test_a_function_that_gives_too_few_rows_is_named():
    job = ROOMS.apply(lambda rows: rows.slice(0, rows.num_rows // 2)).open()
    with pytest.raises(TypeError, match="a row for each row, not 0 for 1"):
        job.push("rooms", [ab.Insert({"room": "A", "level": 1}, 1, 2)])
