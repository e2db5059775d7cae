"""A checkpoint is of rows that were read in one way: what reads them in another is refused, and named."""

from dataclasses import replace
from datetime import timedelta

import pyarrow as pa
import pytest
from engines.spark.hearing import Shard

from anabranch import Batch, Insert, Stable
from anabranch.engines.spark.merge import ROWS_EDGE
from anabranch.engines.spark.merging import Merging
from anabranch.engines.spark.transport.parcel import Parcel, Voice
from anabranch.kernels.store.saved import StateFormatError
from anabranch.model.schema import SchemaError
from anabranch.rows.layout import Layout

SCHEMA = pa.schema([("at", pa.int64()), ("until", pa.int64()), ("who", pa.string()), ("v", pa.string())])
LAYOUT = Layout("at", "until", replica="who")


def read_as(layout: Layout, schema: pa.Schema = SCHEMA) -> Merging:
    return Merging(identity=layout.identity, columns=tuple(layout.settings(schema).items()))


def said(shard: Shard, replica: str, *elements, sequence: int = 0):
    voice = Voice(replica, sequence=sequence)
    heard = shard.hear([replace(Parcel.of(voice, Batch.of(elements)), edge=ROWS_EDGE)])
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
        (replace(LAYOUT, end=None), "end until, this query has None"),
        (replace(LAYOUT, end=None, duration=5), "end until, this query has None"),
        (replace(LAYOUT, replica=None), "replica who, this query has None"),
        (replace(LAYOUT, channel="w"), "channel None, this query has w"),
        (replace(LAYOUT, payload=("v", "w")), "payload None, this query has ('v', 'w')"),
        (replace(LAYOUT, kind="v"), "payload column 'v' text, this query has no payload column 'v'"),
        (LAYOUT, "payload column 'v' text, this query has local time"),
    ],
)
def test_state_of_rows_that_were_read_otherwise_is_refused_by_name(now, message):
    data = Shard(read_as(LAYOUT)).dump()
    schema = SCHEMA.set(3, pa.field("v", pa.timestamp("us"))).append(pa.field("w", pa.string()))
    with pytest.raises(StateFormatError) as caught:
        Shard.load(read_as(now, schema), 0, data)
    assert str(caught.value) == f"the checkpoint was begun with {message}"
    assert caught.value.__notes__ == ["Go on as before, or begin a new checkpoint."]


def test_a_duration_is_told_in_words():
    schema = pa.schema([("at", pa.timestamp("us", "UTC")), ("v", pa.string())])
    minute, minutes = (Layout("at", duration=timedelta(minutes=n)) for n in (1, 5))
    data = Shard(read_as(minute, schema)).dump()
    with pytest.raises(StateFormatError, match="begun with duration 1 minute, this query has 5 minutes"):
        Shard.load(read_as(minutes, schema), 0, data)


def test_state_that_does_not_say_how_rows_were_read_goes_on_and_says_it_from_then_on():
    before = Shard(Merging())
    said(before, "a", Insert({"v": "x"}, 1, 5))
    shard = Shard.load(read_as(LAYOUT), 0, before.dump())
    assert said(shard, "b", Insert({"v": "x"}, 1, 5)) == []
    with pytest.raises(StateFormatError, match="begun with replica who"):
        Shard.load(read_as(replace(LAYOUT, replica=None)), 0, shard.dump())
    with pytest.raises(SchemaError, match="payload column 'v' was string and is now int64"):
        said(shard, "b", Insert({"v": 7}, 1, 5), sequence=1)


def test_a_payload_may_gain_columns_because_null_is_no_value():
    shard = Shard(read_as(LAYOUT))
    said(shard, "a", Insert({"v": "x"}, 1, 5))
    more = read_as(LAYOUT, SCHEMA.append(pa.field("more", pa.int64())))
    again = Shard.load(more, 0, shard.dump())
    new = Insert({"v": "y", "more": 3}, 2, 6)
    assert said(again, "b", Insert({"v": "x", "more": None}, 1, 5), new) == [new]
