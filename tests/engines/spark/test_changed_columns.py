"""A checkpoint is of rows that were read in one way: what reads them in another is refused, and named."""

from dataclasses import replace
from datetime import timedelta

import pyarrow as pa
import pytest
from engines.spark.merges import Merging, assignment_of

from anabranch import Batch, Insert, Stable, count, source
from anabranch.engines.spark.assignment import level_settings
from anabranch.engines.spark.rows_merge import ROWS_SOURCE
from anabranch.engines.spark.shard import Shard
from anabranch.engines.spark.transport.parcel import Parcel
from anabranch.kernels.store.saved import StateFormatError
from anabranch.plan.levels import levels
from anabranch.progress.channel_rows import Stretch
from anabranch.rows.layout import Layout

SCHEMA = pa.schema([("at", pa.int64()), ("until", pa.int64()), ("who", pa.string()), ("v", pa.string())])
LAYOUT = Layout("at", "until", replica="who")


def read_as(layout: Layout, schema: pa.Schema = SCHEMA):
    return assignment_of(layout, Merging(identity=layout.identity, by_channel=True), schema, 2)


def said(shard: Shard, replica: str, *elements, sequence: int = 0):
    stretch = Stretch(replica, sequence=sequence)
    heard = shard.receive([replace(Parcel.of(stretch, Batch.of(elements)), edge=ROWS_SOURCE)])
    assert not heard.refused
    return [element for batch in heard.output for element in batch.elements()]


def test_state_goes_on_with_rows_that_are_read_as_before():
    shard = Shard(read_as(LAYOUT))
    said(shard, "a", Insert({"v": "x"}, 1, 5), Stable(1))
    again = Shard.load(read_as(LAYOUT), 0, shard.dump())
    assert said(again, "b", Insert({"v": "x"}, 1, 5)) == []


@pytest.mark.parametrize(
    ("now", "message"),
    [
        (replace(LAYOUT, start="v"), "start 'at' (number), this query has 'v' (local time)"),
        (replace(LAYOUT, end=None), "end 'until', this query has None"),
        (replace(LAYOUT, end=None, duration=5), "end 'until', this query has None"),
        (replace(LAYOUT, replica=None), "replica 'who', this query has None"),
        (replace(LAYOUT, channel="w"), "channel None, this query has 'w'"),
        (replace(LAYOUT, payload=("v", "w")), "payload None, this query has ('v', 'w')"),
        (replace(LAYOUT, kind="w"), "kind None, this query has 'w'"),
        (replace(LAYOUT, identity=("w",)), "identity None, this query has ('w',)"),
        (LAYOUT, "payload column 'v' text, this query has local time"),
    ],
)
def test_state_of_rows_that_were_read_otherwise_is_refused_by_name(now, message):
    data = Shard(read_as(LAYOUT)).dump()
    kind = pa.timestamp("us") if "local time" in message else pa.string()
    schema = pa.schema([*list(SCHEMA)[:3], ("v", kind), ("w", pa.string())])
    if now.start == "v":
        now = replace(now, end=None)
    with pytest.raises(StateFormatError) as caught:
        Shard.load(read_as(now, schema), 0, data)
    assert str(caught.value) == f"the checkpoint was begun with source rows: {message}"
    assert caught.value.__notes__ == ["Go on as before, or begin a new checkpoint."]


def test_a_duration_is_told_in_words():
    schema = pa.schema([("at", pa.timestamp("us", "UTC")), ("v", pa.string())])
    minute, minutes = (Layout("at", duration=timedelta(minutes=n)) for n in (1, 5))
    data = Shard(read_as(minute, schema)).dump()
    with pytest.raises(StateFormatError, match="rows: duration 1 minute, this query has 5 minutes"):
        Shard.load(read_as(minutes, schema), 0, data)


@pytest.mark.parametrize("identity", [None, ("v",)])
def test_a_payload_may_gain_columns_because_null_is_no_value(identity):
    layout = replace(LAYOUT, identity=identity)
    shard = Shard(read_as(layout))
    said(shard, "a", Insert({"v": "x"}, 1, 5))
    more = read_as(layout, SCHEMA.append(pa.field("more", pa.int64())))
    again = Shard.load(more, 0, shard.dump())
    new = Insert({"v": "y", "more": 3}, 2, 6)
    assert said(again, "b", Insert({"v": "x", "more": None}, 1, 5), new) == [new]


def test_a_payload_may_lose_columns_that_do_not_tell_events_apart():
    layout = replace(LAYOUT, identity=("v",))
    shard = Shard(read_as(layout, SCHEMA.append(pa.field("more", pa.int64()))))
    said(shard, "a", Insert({"v": "x", "more": 3}, 1, 5))
    again = Shard.load(read_as(layout), 0, shard.dump())
    assert said(again, "b", Insert({"v": "x"}, 1, 5)) == []


COLUMNS = {"at": "int64", "who": "string", "v": "int64"}


def rows(columns=COLUMNS):
    return source("rows", columns, start="at", replica="who", lossy=True, disorder=1)


@pytest.mark.parametrize(
    ("plan", "gains"),
    [
        (lambda columns: rows(columns).merge(), True),
        (lambda columns: rows(columns).merge(identity="v"), True),
        (lambda columns: rows(columns).select("v").merge(), False),
        (lambda columns: rows(columns).merge().distinct(), False),
        (lambda columns: rows(columns).merge().window(5).agg(n=count()), False),
        (lambda columns: rows(columns).merge().sort(), False),
    ],
)
def test_a_plan_may_gain_columns_where_all_it_keeps_is_a_merge_of_replicas(plan, gains):
    (level, *_) = levels(plan(COLUMNS).node, 2)
    assert ("payloads may gain columns" in level_settings(level)) == gains
    if gains:
        (more,) = levels(plan(COLUMNS | {"more": "string"}).node, 2)
        added = level_settings(more).items() - level_settings(level).items()
        assert added == {("source rows: payload column 'more'", "text")}
