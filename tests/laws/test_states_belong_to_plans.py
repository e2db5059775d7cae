"""A state opens if and only if the plan is the one that it was begun with, but for what may change.

Which plans are one is judged here by the fields of their nodes, not by what the nodes say of themselves.
"""

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from decimal import Decimal
from itertools import product
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from laws.plans import drawn_plan
from quick import cases

import anabranch as ab
from anabranch import col
from anabranch.engines.spark.assignment import level_settings
from anabranch.kernels.store.saved import StateFormatError
from anabranch.plan.levels import levels
from anabranch.plan.node import Node
from anabranch.plan.stream import Stream

COLUMNS = {"value": "string", "n": "int64"}
ROWS = {"at": "int64", "value": "string", "n": "int64"}
MAY_CHANGE = ("line", "on_invalid", "on_late", "on_broken", "remember", "generalise", "awaited", "silent")
TOLD_ELSEWHERE = ("called", "inputs", "disorder")
"""How a lifetime was spelled; inputs, one by one; how late rows may be, which is a limit."""


def structure(node: Node) -> Any:
    """All of a plan that its state depends on."""
    return type(node).__name__, _value(node), tuple(map(structure, node.inputs))


def _value(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        names = [one.name for one in fields(value) if one.name not in (*MAY_CHANGE, *TOLD_ELSEWHERE)]
        return type(value).__name__, [_value(getattr(value, name)) for name in names]
    if callable(value):
        return value.__qualname__
    if isinstance(value, frozenset):
        return sorted(map(str, value))
    if isinstance(value, tuple | list):
        return [_value(one) for one in value]
    return repr(value)


def double(rows):
    return {"value": rows.column("value"), "n": pc.multiply(rows.column("n"), 2)}


def same(rows):
    return {"value": rows.column("value"), "n": rows.column("n")}


def elements(name: str = "a", **more: Any) -> Stream:
    return ab.source(name, COLUMNS, **more)


def rows(columns: dict[str, str] = ROWS, **more: Any) -> Stream:
    return ab.source("a", columns, **{"start": "at", "disorder": 5, **more})


def joined(**more: Any) -> Stream:
    return elements().join(elements("b"), **{"on": "value", "within": 3, **more})


def windowed(stream: Stream | None = None, size: int = 4, *, early: bool = False, **more: Any) -> Stream:
    windows = (stream or elements()).window(size, **more).group_by("value")
    return windows.agg(early=early, n=col("n").sum())


NEAR: tuple[Callable[[], Stream], ...] = (
    elements,
    lambda: elements("b"),
    lambda: elements(properties="insert-only"),
    rows,
    lambda: rows(disorder=7),
    lambda: rows(on_late=ab.Drop()),
    lambda: rows(duration=4),
    lambda: rows({**ROWS, "more": "int64"}),
    lambda: rows({**ROWS, "n": "string"}),
    lambda: rows({**ROWS, "n": "int32"}),
    lambda: rows({**ROWS, "n": "float64"}),
    lambda: rows({**ROWS, "n": "timestamp[ms]"}),
    lambda: rows({**ROWS, "n": "timestamp[us, tz=UTC]"}),
    lambda: rows({**ROWS, "n": "timestamp[us, tz=Europe/Berlin]"}),
    lambda: rows({**ROWS, "at": "timestamp[us, tz=UTC]"}, disorder="1 hour"),
    lambda: rows({**ROWS, "at": "timestamp[us, tz=Europe/Berlin]"}, disorder="1 hour"),
    lambda: rows({**ROWS, "None": "string"}, payload=["n"]),
    lambda: rows({**ROWS, "None": "string"}, payload=["n"], channel="None"),
    lambda: rows({**ROWS, "None": "string"}, payload=["n"], sequence="None"),
    lambda: rows({**ROWS, "end": "int64"}, end="end"),
    lambda: rows({**ROWS, "word": "string"}, kind="word", disorder=None),
    lambda: rows(replica="value", lossy=False).merge(),
    lambda: rows(replica="value", lossy=True).merge(),
    lambda: rows(replica="value", lossy=["x"]).merge(),
    lambda: rows(replica="value", lossy=False).merge(remember=7),
    lambda: rows(replica="value", lossy=False).merge(case="R4"),
    lambda: rows(replica="value", lossy=False).merge(policy=ab.HalfFrozen()),
    lambda: rows(replica="value", lossy=False).merge(policy=ab.HalfFrozen(lag=3)),
    lambda: rows(replica="value", lossy=False).filter(col("n") > 1).merge(),
    lambda: elements().filter(col("n") > 1),
    lambda: elements().filter(col("n") > 2),
    lambda: elements().filter(col("n") > 1).filter(col("n") > 2),
    lambda: elements().filter(col("n") > 2).filter(col("n") > 1),
    lambda: elements().filter(col("n") > 1).with_columns(n=col("n") + 1),
    lambda: elements().with_columns(n=col("n") + 1).filter(col("n") > 1),
    lambda: elements().select("value", "n"),
    lambda: elements().select("n", "value"),
    lambda: elements().rename({"n": "m"}),
    lambda: elements().with_columns(n=ab.lit(1, "int32")),
    lambda: elements().with_columns(n=ab.lit(1, "int64")),
    lambda: elements().apply(double, COLUMNS),
    lambda: elements().apply(double, COLUMNS, keeps=["value"]),
    lambda: elements().apply(same, COLUMNS),
    lambda: elements().tap("one"),
    lambda: elements().tap("other"),
    lambda: elements().lasting(3),
    lambda: elements().lasting(4),
    lambda: elements().shift(3),
    lambda: elements().sort(),
    lambda: elements().final(),
    lambda: elements().final(ordered=True),
    lambda: elements().lasting(1).distinct(),
    lambda: elements().lasting(1).distinct("value"),
    joined,
    lambda: elements("b").join(elements(), on="value", within=3),
    lambda: joined(within=4),
    lambda: joined(within=(2, 3)),
    lambda: joined(how="left"),
    lambda: joined(how="semi"),
    lambda: joined(at="left"),
    lambda: joined(on=["value", "n"]),
    lambda: joined(suffix="_other"),
    lambda: joined(where=col("n") > 1),
    lambda: ab.union(elements(), elements("b")),
    lambda: ab.union(elements("b"), elements()),
    lambda: ab.union(elements(), elements("b"), elements("c")),
    lambda: ab.union(elements(), elements()),
    lambda: ab.merge(elements(), elements("b")),
    lambda: ab.merge({"x": elements(), "y": elements("b")}),
    lambda: ab.merge(elements(), elements("b"), case="R4"),
    windowed,
    lambda: windowed(size=5),
    lambda: windowed(size=4, every=2),
    lambda: windowed(size=4, every=2, lifetime="slide"),
    lambda: windowed(size=4, start="ws"),
    lambda: windowed(size=4, end="ws"),
    lambda: windowed(early=True),
    lambda: windowed(early=True, start="ws"),
    lambda: windowed(elements().filter(col("n") > 0)),
    lambda: windowed().filter(col("n") > 3),
    lambda: windowed(early=True).filter(col("n") > 3),
    lambda: windowed(early=True).with_columns(n=col("n") + 1000),
    lambda: elements().window(4).agg(n=col("n").sum()),
    lambda: elements().window(4).group_by("value").agg(n=col("n").max()),
    lambda: elements().window(4).group_by("value").agg(m=col("n").sum()),
    lambda: elements().window(4).group_by("value").agg(ab.count()),
    lambda: elements().window(4).group_by("n").agg(ab.count()),
    lambda: elements().window(4).agg(col("n").top_k(2)),
    lambda: elements().window(4).agg(col("n").top_k(3)),
    lambda: elements().window(4).agg(col("n").top_k(2, carry=["value"])),
    lambda: elements().session(4).group_by("value").agg(ab.count()),
    lambda: elements().session(5).group_by("value").agg(ab.count()),
    lambda: elements().rows(4).group_by("value").agg(ab.count()),
    lambda: elements().rows(4, 2).group_by("value").agg(ab.count()),
    lambda: ab.union(windowed(), windowed(elements("b"), 5)).filter(col("n") > 1),
    lambda: ab.union(windowed(elements("b")), windowed(size=5)).filter(col("n") > 1),
)


def opens(stream: Stream, state: bytes) -> bool:
    """Whether a plan takes a state; if not, a named error says what was begun and the way out."""
    try:
        stream.open(state)
    except StateFormatError as error:
        return "was begun with" not in str(error) or "Go on as before" not in error.__notes__[0]
    return True


def judge(plans: list[Stream]) -> None:
    """Every plan with the state of every plan, embedded and by the levels that Spark runs."""
    states = [plan.open().dump() for plan in plans]
    structures = [structure(plan.node) for plan in plans]
    on_spark = [[level_settings(level) for level in levels(plan.node, 2)] for plan in plans]
    for one, other in product(range(len(plans)), repeat=2):
        alike = structures[one] == structures[other]
        assert opens(plans[one], states[other]) == alike, told(plans[one], plans[other])
        assert (on_spark[one] == on_spark[other]) == alike, told(plans[one], plans[other])


def told(one: Stream, other: Stream) -> str:
    return f"{one.explain()}\nwith the state of\n{other.explain()}"


def test_plans_that_differ_in_one_thing_do_not_share_a_state():
    judge([make() for make in NEAR])


@pytest.mark.parametrize("seed", range(cases(4)))
def test_random_plans_share_a_state_if_they_are_the_same(seed):
    random = Random(seed)
    judge([drawn_plan(Random(random.randrange(40))).stream for _ in range(40)])


EXPRESSIONS: tuple[ab.Expression, ...] = (
    col("value").str.contains("a.b"),
    col("value").str.contains("a.b", literal=True),
    ab.call("match_substring", col("value"), pattern="a.b", ignore_case=True),
    col("n") * ab.lit(2, "int8") > 1,
    col("n") * ab.lit(2, "int64") > 1,
    col("n") > 1.5,
    col("n") > Decimal("1.5"),
    ab.call("round", col("n") / 2, ndigits=0, round_mode="up") > 1,
    ab.call("round", col("n") / 2, ndigits=0, round_mode="down") > 1,
    col("True"),
    ab.lit(True),
)
"""Those that are next to each other are written alike, or nearly."""


def test_an_expression_is_compared_with_all_its_options_and_types():
    stream = ab.source("a", {**COLUMNS, "True": "bool"})
    filtered = [stream.filter(one) for one in EXPRESSIONS]
    made = [stream.with_columns(made=one) for one in EXPRESSIONS]
    counted = [stream.window(4).agg(one.max().alias("most")) for one in EXPRESSIONS]
    paired = [stream.join(elements("b"), on="n", within=3, where=one) for one in EXPRESSIONS]
    judge([*filtered, *made, *counted, *paired])


def test_what_two_streams_are_called_within_a_job_belongs_to_its_state():
    hot, cold = elements().filter(col("n") > 1), elements().filter(col("n") < 1)
    state = ab.open({"hot": hot, "cold": cold}).dump()
    ab.open({"hot": hot, "cold": cold}, state)
    for others in ({"hot": cold, "cold": hot}, {"hot": hot}, {"hot": hot, "cool": cold}):
        with pytest.raises(StateFormatError, match="was begun with"):
            ab.open(others, state)


def test_a_state_of_something_else_is_named():
    merger = ab.Merger()
    merger.attach("a")
    with pytest.raises(StateFormatError, match=r"the state of a job is what Job\.dump\(\) gave"):
        elements().open(merger.dump())


def test_the_first_difference_is_told():
    state = windowed().open().dump()
    with pytest.raises(StateFormatError, match="begun with window: window size 4, every 4, this plan has si"):
        windowed(size=5).open(state)
    with pytest.raises(StateFormatError, match="begun with window of validate, this plan has of filter"):
        windowed(elements().filter(col("n") > 0)).open(state)


def test_the_arrow_types_of_a_source_belong_to_its_state():
    state = ab.source("a", pa.schema([("v", pa.int64())])).sort().open().dump()
    with pytest.raises(
        StateFormatError, match="begun with source a: columns v: int64, this plan has v: int32"
    ):
        ab.source("a", pa.schema([("v", pa.int32())])).sort().open(state)
