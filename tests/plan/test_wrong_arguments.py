"""Arguments that mean nothing are refused where they are given, with the line."""

from datetime import timedelta

import pytest

import anabranch as ab
from anabranch import Drop, Insert, col
from anabranch.model.schema import SchemaError
from anabranch.plan.node import PlanError

ROOMS = {"room": "string", "level": "int64"}
ROWS = {**ROOMS, "at": "int64"}
CHANGES = {**ROWS, "op": "string"}
STAMPED = {**ROOMS, "at": "timestamp[us, tz=UTC]"}
rooms = ab.source("rooms", ROOMS)
stamped = ab.source("stamped", STAMPED, start="at", disorder="1 minute")
replicas = ab.source("rows", ROWS, start="at", replica="room", disorder=1, lossy=True)


@pytest.mark.parametrize(
    "build",
    [
        lambda: rooms.filter(lambda row: row),
        lambda: rooms.lasting(-1),
        lambda: rooms.lasting(0),
        lambda: rooms.lasting(None),
        lambda: rooms.lasting(2**70),
        lambda: rooms.tumble("5"),
        lambda: rooms.tumble(float("nan")),
        lambda: rooms.hop(10, 20),
        lambda: rooms.shift(2**63),
        lambda: rooms.clip(-5),
        lambda: stamped.tumble(3),
        lambda: ab.source("x", ROWS, start="at", on_invalid="drop"),
        lambda: ab.source("x", ROWS, start="at", on_late=Drop),
        lambda: ab.source("x", ROWS, start="at", key=[]),
        lambda: ab.source("x", CHANGES, start="at", op="op"),
        lambda: ab.source("x", CHANGES, start="at", op="op", key=[]),
        lambda: ab.source("x", CHANGES, start="at", op="op", kind="op", key="room"),
        lambda: ab.source("x", CHANGES, start="at", op="op", end="level", key="room"),
        lambda: ab.source("x", ROWS, start="at", by_time=True),
        lambda: ab.source("x", ROWS, start="at", ops={"c": "insert"}),
        lambda: ab.source("x", ROWS, start="at", replicas=["a"]),
        lambda: ab.source("x", ROWS, start="at", idle=["a"]),
        lambda: ab.source("x", {**ROOMS, "at": "timestamp[us, tz=Europ/Berlin]"}),
        lambda: rooms.apply(lambda rows: rows, {"times": "list<timestamp[s, tz=+1]>"}),
        lambda: ab.merge(rooms, identity=[]),
        lambda: ab.merge(rooms, remember=-1),
        lambda: ab.open({"a": rooms.filter(col("level") > 1), "b": rooms.tap("a")}),
        lambda: ab.union(rooms, ab.source("rooms", ROOMS, key="room")).open(),
    ],
)
def test_an_argument_that_means_nothing_is_refused_with_the_line(build):
    with pytest.raises((ValueError, TypeError, OverflowError)) as caught:
        build()
    assert "test_wrong_arguments.py" in "\n".join(caught.value.__notes__)


def test_the_name_of_a_time_zone_is_asked_for_where_it_is_misspelt():
    for wrong, meant in {"Europ/Berlin": "Europe/Berlin", "Amerca/New_York": "America/New_York"}.items():
        with pytest.raises(SchemaError, match=f"did you mean '{meant}'"):
            ab.source("x", {"at": f"timestamp[us, tz={wrong}]"})
    for zone in ("UTC", "+01:00", "Asia/Tokyo"):
        assert ab.source("x", {"at": f"timestamp[us, tz={zone}]"}).schema.field("at").type.tz == zone


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "a plan has an output or more"),
        ({"": rooms}, "an output has a name"),
        ({3: rooms}, "an output has a name"),
        (None, "what comes out is a stream"),
        ({"a": "b"}, "what comes out is a stream"),
        (replicas, "replicas are merged before they come out"),
    ],
)
def test_what_comes_out_is_streams_by_name(given, message):
    with pytest.raises((PlanError, TypeError), match=message):
        ab.open(given)


def test_a_tap_may_be_given_as_the_output_that_it_is():
    tapped = rooms.tap("all")
    assert list(ab.open({"all": tapped}).push("rooms", [])) == ["all"]


@pytest.mark.parametrize("more", [{"on_invalid": "drop"}, {"on_late": Drop}, {"on_broken": 3}])
def test_a_job_is_opened_with_policies(more):
    with pytest.raises(TypeError, match="Drop\\(\\)"):
        rooms.open(**more)


def test_a_state_is_bytes():
    with pytest.raises(TypeError, match="the bytes that dump"):
        rooms.open("state")


@pytest.mark.parametrize("method", ["open", "explain", "tumble", "final", "tap"])
def test_replicas_say_that_they_are_merged_first(method):
    with pytest.raises(AttributeError) as caught:
        getattr(replicas, method)
    assert f"write .merge() before .{method}" in str(caught.value)
    with pytest.raises(AttributeError) as unknown:
        replicas.nonsense  # noqa: B018
    assert ".merge()" not in str(unknown.value)


def test_columns_may_be_given_in_a_list():
    assert rooms.select(["room", col("level") * 2]).schema.names == ["room", "level"]
    assert rooms.drop(["room"]).schema.names == ["level"]
    assert rooms.with_columns([(col("level") + 1).alias("more")]).schema.names == ["room", "level", "more"]


def test_several_predicates_are_all_true():
    job = rooms.filter(col("level") > 1, col("room") == "A").open()
    events = [Insert({"room": room, "level": level}, 1, 2) for room in "AB" for level in (1, 2)]
    assert job.push("rooms", events) == [Insert({"room": "A", "level": 2}, 1, 2)]


def test_a_shift_may_go_back_by_a_text():
    assert stamped.shift("-1 hour").node.lifetime == stamped.shift(timedelta(hours=-1)).node.lifetime
    assert "shift('-1 hour')" in stamped.shift(timedelta(hours=-1)).explain()


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (
            lambda: stamped.window("1 hour").agg(n=ab.count(), ealry=True),
            "ealry=True is none, did you mean",
        ),
        (lambda: rooms.apply(lambda rows: rows, keeps=["rom"]), "'rom' is not, did you mean 'room'"),
        (lambda: rooms.join(rooms, on="room", how="lft"), "not 'lft', did you mean 'left'"),
        (lambda: stamped.window("1 hour", lifetime="slid"), "not 'slid', did you mean 'slide'"),
    ],
)
def test_a_misspelt_argument_is_named_with_the_one_that_was_meant(build, words):
    with pytest.raises(PlanError, match=words):
        build()
