"""A text is one time: the doors read it as Spark's own reader does."""

import json
from datetime import datetime, timedelta
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from anabranch import spark as ab
from anabranch.connectors.files.json_rows import json_rows

ZONES = ("Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "UTC", "+05:30")
CLOCKS_CHANGE = [
    "2026-03-29T01:59:59", "2026-03-29T02:00:00", "2026-03-29T02:30:00", "2026-03-29T03:00:00",
    "2026-10-25T02:00:00", "2026-10-25T02:59:59.999999", "2026-10-25T03:00:00", "2026-03-08T02:30:00",
    "2026-11-01T01:30:00", "2026-10-04T02:15:00", "2026-04-05T01:45:00",
]  # fmt: skip


def texts():
    random = Random(8)
    found = [*CLOCKS_CHANGE, "2026-03-01", "2026-03-01T10", "2026-03-01 10:00", "2026-3-1 1:2:3"]
    found += ["2026-03-01T10:00:00.123456789Z", "2026-03-01T10:00:00.9999999", "1969-12-31T23:59:59.9999999Z"]
    found += [
        "2026-02-30T10:00:00",
        "2026-03-01T24:00:00",
        "noon",
        "",
        "1893-01-01T00:00:00",
        "0001-01-03T00:00:00",
    ]
    found += ["2026-03-01T10:00:00 Europe/Moscow", "2026-03-01T10:00:00UTC", "2026-03-01T10:00:00+02:00:30"]
    for _ in range(400):
        moment = datetime(1850, 1, 1) + timedelta(seconds=random.randrange(300 * 365 * 86_400))
        digits = random.choice(["", ".5", ".123", ".123456", ".123456789"])
        zone = random.choice(["", "", "Z", "+01:00", "-0330", "+14:00", " UTC"])
        found.append(f"{moment.isoformat(random.choice('T '))}{digits}{zone}")
    return found


def test_texts_are_read_as_the_json_reader_of_spark_reads_them(spark, tmp_path):
    words = texts()
    lines = [json.dumps({"n": n, "at": text}) for n, text in enumerate(words)]
    (tmp_path / "all.jsonl").write_text("\n".join(lines))
    before = spark.conf.get("spark.sql.session.timeZone")
    try:
        for zone in ZONES:
            spark.conf.set("spark.sql.session.timeZone", zone)
            rows = spark.read.schema("n long, at timestamp").json(str(tmp_path / "all.jsonl"))
            found = rows.where("at is not null").selectExpr("n", "unix_micros(at) as micros").collect()
            schema = pa.schema([("n", pa.int64()), ("at", pa.timestamp("us", zone))])
            ours = json_rows([line.encode() for line in lines], schema).rows
            numbers, micros = ours.column("n").to_pylist(), ours.column("at").cast(pa.int64()).to_pylist()
            told = {words[n]: at for n, at in zip(numbers, micros, strict=True)}
            assert told == {words[row.n]: row.micros for row in found}
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)


@pytest.mark.parametrize(
    ("named", "epoch"), [(None, 1772355600), ("UTC", 1772359200), ("America/New_York", 1772377200)]
)
def test_a_folder_reads_texts_in_its_zone_or_that_of_the_session(spark, tmp_path, named, epoch):
    (tmp_path / "in" / "east").mkdir(parents=True)
    (tmp_path / "in" / "east" / "1.jsonl").write_text('{"at": "2026-03-01T10:00:00", "v": 1}\n')
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    try:
        rows = ab.folder(spark, tmp_path / "in", schema="at timestamp, v long", zone=named)
        merged = ab.merge(rows, start="at", replica="replica", disorder="1 minute", lossy=False)
        ab.wait(ab.write_folder(merged, tmp_path / "out", checkpoint=tmp_path / "c", available_now=True))
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
    files = sorted((tmp_path / "out").glob("*.parquet"))
    rows = [row for file in files for row in pq.read_table(file).to_pylist() if row["kind"] == "insert"]
    assert [row["start"].timestamp() for row in rows] == [epoch]


def test_a_zone_that_is_not_known_is_refused_before_anything_is_read(spark, tmp_path):
    with pytest.raises(ValueError, match="'Berlin' is no name of one"):
        ab.folder(spark, tmp_path, schema="at timestamp", by_replica=True, zone="Berlin")
