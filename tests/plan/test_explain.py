from textwrap import dedent

import pytest
from hypothesis import given
from hypothesis import strategies as st
from plan.plans import PLANS, diamond, filtered, merged, of_many, readings

from anabranch.expressions.aggregates import count
from anabranch.expressions.expression import col
from anabranch.plan.build import source
from anabranch.plan.explain import explained, known_of, one_line
from anabranch.plan.stream import outputs_of


def told(text):
    return dedent(text).strip("\n")


def test_what_two_branches_share_is_told_once_by_its_number():
    assert diamond().explain() == told("""
        union of 2                                          insert only
        ├ select room                                       perfect
        │ └ filter value > 30                               perfect
        │   └ (1) readings: rows, at most 10 seconds late   perfect
        └ lasting('5 minutes')                              perfect, lifetimes up to 5 minutes
          └ select room                                     perfect
            └ (1) readings: rows, at most 10 seconds late   as above
    """)


def test_what_is_known_of_a_long_operator_stands_below_it():
    assert merged().explain() == told("""
        merge, policy first; R3: payload and start are a key in every input; perfect is not declared for east
        │                  keyed by room
        ├ east: elements   keyed by room
        └ west: elements   keyed by room
    """)


def test_outputs_have_their_names_above_them():
    hot = filtered()
    plan = outputs_of({"hot": hot, "rooms": hot.tap("of rooms").select("room")})
    assert explained(plan) == told("""
        hot:
          (1) filter value > 30                       perfect
          └ readings: rows, at most 10 seconds late   perfect
        rooms:
          select room                                 perfect
          └ (2) tap 'of rooms'                        perfect
            └ (1) filter value > 30                   as above
        of rooms:
          (2) tap 'of rooms'                          as above
    """)


@pytest.mark.parametrize("plan", PLANS)
def test_no_line_is_longer_than_a_page_is_wide(plan):
    assert max(map(len, plan().explain().split("\n"))) <= 110


def test_a_predicate_of_any_length_is_told_whole():
    stream = of_many().filter(col("room").is_in([f"room {n}" for n in range(60)]))
    lines = [line.strip(" │└├") for line in stream.explain().split("\n")]
    assert stream.node.words() in " ".join(lines)


def test_a_plan_of_many_steps_goes_on_to_the_right():
    stream = readings()
    for n in range(80):
        stream = stream.filter(col("value") > n)
    told_once = stream.explain().split()
    assert told_once.count("filter") == 80
    assert told_once.count("perfect") == 81


@given(st.text())
def test_names_take_one_line_and_can_be_seen(name):
    assert one_line(name).isprintable()


def test_points_are_called_so_and_lengths_have_units():
    points = source("a", {"at": "timestamp[us]", "x": "int64"}, start="at", disorder="1 minute")
    assert known_of(points.node) == "insert only, points"
    assert known_of(points.lasting("90 seconds").node) == "insert only, lifetimes up to 1 minute 30 seconds"


def test_a_stream_that_promises_nothing_is_told_to_promise_nothing():
    assert known_of(source("a", {"x": "int64"}).node) == "adjusts in any order"


def test_what_is_known_of_replicas_is_of_each():
    both = source("a", {"at": "int64", "who": "string"}, start="at", replica="who", disorder=5, lossy=True)
    assert known_of(both.node) == "each replica: insert only, points, may have holes"


def test_a_window_without_groups_has_one_event_at_a_start():
    points = source("a", {"at": "int64", "room": "string"}, start="at", disorder=1)
    told = known_of(points.window(5).agg(n=count()).node)
    assert "one event at a start" in told
    assert "keyed by" not in told
    assert "keyed by room" in known_of(points.window(5).group_by("room").agg(n=count()).node)


def test_nothing_is_explained_by_no_words():
    assert explained({}) == ""


def test_the_replicas_that_are_lossy_are_named_with_their_source():
    columns = {"room": "string", "at": "int64", "who": "string"}

    def told(lossy):
        return source("g", columns, start="at", disorder=2, replica="who", lossy=lossy).merge().explain()

    assert "every replica is lossy" in told(True)
    assert "lossy" not in told(False)
    assert "g: rows of replicas, at most 2 late, north, south lossy" in told(["south", "north"])
    assert "may have holes" in source("g", columns, start="at", disorder=2, lossy=True).explain()
