"""Topics whose records change their form, or are larger than is allowed."""

from random import Random

import pytest
from element_rows import ELEMENTS, put
from test_kafka_reader import everything, reader, row, said

from anabranch import Insert, Stable
from anabranch import spark as ab

__all__ = ["reader"]


def test_a_new_field_is_not_looked_at_a_dropped_one_is_null_and_another_type_is_refused(topic, send, reader):
    name = topic()
    send(name, row(1), row(2) | {"more": "x"}, {"at": 30}, {"v": "four", "at": 40}, row(5))
    source = reader(name)
    start, end = everything(source)
    spoken, [refused] = said(source, start, end)
    assert [value for _, _, values in spoken for value in values] == [1, 2, None, 5]
    assert refused.place == f"{name}[0]@3"
    assert "four" in refused.raw


def test_a_value_that_a_topic_does_not_take_stops_the_query_and_the_broker_is_named(
    spark, broker, topic, tmp_path
):
    """With settings for it, ten megabytes go through: see the queries beside this file."""
    name = topic()
    wide = "".join(Random(1).choices("0123456789abcdef", k=10 << 20))
    put(tmp_path / "in", "a", 0, [Insert({"value": wide}, 1, 5), Stable(9)])
    rows = ab.merge(ab.folder(spark, tmp_path / "in"), **ELEMENTS)
    query = ab.write_kafka(
        rows, name, servers=broker.servers, checkpoint=tmp_path / "checkpoint", available_now=True
    )
    with pytest.raises(
        ab.BrokerError, match=f"topic '{name}' at {broker.servers} does not take records"
    ) as said:
        ab.wait(query)
    assert "large" in str(said.value)
    assert said.value.__notes__
