"""A text of a time that names no zone is one instant on every engine: in the zone of its column."""

import base64
import json
from datetime import UTC, datetime
from types import SimpleNamespace

import pyarrow as pa
import pytest
from pyspark.sql import types as t

import anabranch as ab
from anabranch.connectors.files.time_texts import micros_of
from anabranch.connectors.folder.source import Folder
from anabranch.connectors.kafka.source import Feeds
from anabranch.connectors.kafka.topics import Kafka
from anabranch.engines.spark.plan_sources import as_read, zone_of

TEXT = "2026-03-01T10:00:00"
STRUCT = t.StructType([t.StructField("at", t.TimestampType()), t.StructField("n", t.LongType())])
BERLIN = SimpleNamespace(conf=SimpleNamespace(get=lambda _: "Europe/Berlin"))


def source(zone, **columns):
    columns = {"at": pa.timestamp("us", zone), "n": pa.int64(), **columns}
    return ab.source("s", pa.schema(list(columns.items())), start="at", disorder="1 minute").node


def kafka(zone):
    schema = pa.schema([("at", pa.timestamp("us", "Europe/Berlin")), ("n", pa.int64())])
    columns = base64.b64encode(schema.serialize()).decode()
    feeds = Feeds({}, columns, "json", None, {}, None, None, None, "earliest", 1, 1.0)
    return Kafka(BERLIN, STRUCT, feeds, zone)


def zone_read(rows):
    """The zone in which a native source reads texts that name none."""
    if isinstance(rows, Folder):
        return rows.options.get("zone")
    schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(rows.feeds.columns)))
    return schema.field("at").type.tz


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "+05:30"])
def test_folders_and_topics_of_a_plan_read_texts_in_the_zone_of_their_column(zone, tmp_path):
    node = source(zone)
    for rows in (Folder(BERLIN, str(tmp_path), STRUCT, {}), kafka(None)):
        assert zone_read(as_read(node, rows).rows) == zone


def test_a_zone_that_a_source_was_given_stays(tmp_path):
    rows = Folder(BERLIN, str(tmp_path), STRUCT, {"zone": "Asia/Tokyo"})
    assert zone_read(as_read(source("UTC"), rows).rows) == "Asia/Tokyo"
    assert zone_read(as_read(source("UTC"), kafka("Europe/Berlin")).rows) == "Europe/Berlin"


def test_two_zones_in_one_source_are_refused_on_spark():
    with pytest.raises(ab.PlanError, match="are in one zone, not in Europe/Berlin and UTC"):
        zone_of(source("UTC", other=pa.list_(pa.timestamp("us", "Europe/Berlin"))))
    assert zone_of(source("UTC", other=pa.timestamp("ms", "UTC"))) == "UTC"


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin"])
def test_the_embedded_engine_reads_texts_in_the_zone_of_the_column_through_every_door(zone, tmp_path):
    meant = micros_of(TEXT, zone)
    (tmp_path / "in.jsonl").write_text(json.dumps({"at": TEXT, "n": 1}) + "\n")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "1.jsonl").write_text(json.dumps({"at": TEXT, "n": 1}) + "\n")
    stream = ab.source("s", {"at": pa.timestamp("us", zone), "n": "int64"}, start="at", disorder="1 minute")
    for given in (tmp_path / "in.jsonl", tmp_path / "folder", ab.folder(tmp_path / "folder")):
        starts = [
            one.start
            for batch in ab.run(stream, {"s": given})
            for one in batch.elements()
            if isinstance(one, ab.Insert)
        ]
        assert starts == [meant]
    assert micros_of(TEXT, "UTC") == int(datetime(2026, 3, 1, 10, tzinfo=UTC).timestamp()) * 10**6
