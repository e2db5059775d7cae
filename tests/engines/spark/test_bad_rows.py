"""Bad rows through the generic door: of Spark's types, as they are or parsed from text by a user.

Nothing is lost: every row is in the output or set aside with its reason.
"""

import json
import os
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.parquet as pq
from bad_records import BAD_ELEMENTS, BAD_TEXTS, DDL, GOOD, ODD_TEXTS, STABLE, moment
from pyspark.sql import functions as f

from anabranch import spark as ab
from anabranch.engines.spark.query.watch import status_in

ROLES = {"start": "at", "end": "until", "old_end": "was", "kind": "kind", "replica": "replica"}


def run(merged, tmp_path):
    """The refused rows of a query that reads what is there, and what it says of itself."""
    query = ab.write_folder(merged, tmp_path / "out", checkpoint=tmp_path / "checkpoint", available_now=True)
    ab.wait(query)
    files = sorted((tmp_path / "out" / "_quarantine").glob("*.jsonl"))
    refused = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    return refused, [told for progress in query.recentProgress if (told := status_in(progress))]


def line(**fields) -> bytes:
    return json.dumps({**{k: v for k, v in GOOD.items() if k != "at"}, **fields}).encode()


def test_text_that_a_user_parses_is_used_or_set_aside_whole(spark, tmp_path):
    (tmp_path / "in").mkdir()
    good = [line(at=moment(n), until=moment(n + 15)) for n in (1, 20, 31)]
    files = [
        [good[0], *BAD_TEXTS.values(), *ODD_TEXTS.values(), good[1], line(kind="stable", at=moment(STABLE))],
        [*(line(**fields) for fields, _ in BAD_ELEMENTS.values()), good[2]],
    ]
    for n, lines in enumerate(files):
        (tmp_path / "in" / f"{n}.txt").write_bytes(b"\n".join(lines))
        os.utime(tmp_path / "in" / f"{n}.txt", (1000 + n, 1000 + n))
    columns = f"{DDL}, kind string, until timestamp, was timestamp, misfit string"

    def rows(texts):
        read = f.from_json("value", columns, {"columnNameOfCorruptRecord": "misfit"})
        return texts.select(read.alias("r"), f.col("value").alias("raw")).selectExpr(
            "'east' as replica", "raw", "r.kind", "r.until", "r.was", "if(r.misfit is null, r.at, null) as at"
        )

    feed = spark.readStream.option("maxFilesPerTrigger", 1).text(str(tmp_path / "in"))
    refused, told = run(ab.merge(rows(feed), **ROLES), tmp_path)

    used = {
        row["raw"] for row in spark.read.parquet(str(tmp_path / "out")).filter("kind = 'insert'").collect()
    }
    said = [row.asDict() for row in rows(spark.read.text(str(tmp_path / "in"))).collect()]
    rules = {line(**fields).decode(): rule for fields, rule in BAD_ELEMENTS.values()}
    meant = {row["raw"]: rules.get(row["raw"], "malformed") for row in said if row["at"] is None}
    meant |= rules
    payloads = [json.loads(one["raw"]) for one in refused]
    found = {
        row.get("raw") or row["payload"]["raw"]: one["rule"]
        for row, one in zip(payloads, refused, strict=True)
    }
    assert found == meant
    assert all(one["reason"] and one["replica"] == "east" for one in refused)
    assert used == {row["raw"] for row in said} - set(meant) - {
        line(kind="stable", at=moment(STABLE)).decode()
    }
    assert {text.decode() for text in good} <= used
    assert len(found) >= 40 + len(BAD_ELEMENTS)
    assert sum(one.quarantined for one in told) == len(refused) == len(found)


def at(minute):
    return datetime(2026, 3, 1, 10, tzinfo=UTC) + timedelta(minutes=minute)


TYPED = {
    "good": ({}, None),
    "a stable": ({"kind": "stable", "at": at(STABLE), "until": None}, None),
    "no replica": ({"replica": None}, "malformed"),
    "no place in its channel": ({"n": None}, "malformed"),
    "no start": ({"at": None}, "malformed"),
    "a kind that is none": ({"kind": "delete"}, "malformed"),
    "an adjust without a start": ({"kind": "adjust", "at": None}, "malformed"),
    "an end before the start": ({"until": at(39)}, "empty-lifetime"),
    "an end at the start": ({"until": at(40)}, "empty-lifetime"),
    "a start behind the stable": ({"at": at(20)}, "insert-behind-stable"),
    "a start before Spark's calendar": ({"at": datetime(1, 1, 1, tzinfo=UTC)}, "insert-behind-stable"),
    "an adjust to an end before the start": (
        {"kind": "adjust", "until": at(35), "was": at(45)},
        "negative-lifetime",
    ),
    "an adjust of an end that is final": (
        {"kind": "adjust", "at": at(10), "was": at(20)},
        "adjust-of-frozen",
    ),
    "an adjust to an end behind the stable": (
        {"kind": "adjust", "at": at(10), "until": at(20), "was": at(50)},
        "adjust-behind-stable",
    ),
    "NaN in the payload": ({"level": float("nan")}, None),
    "infinity in the payload": ({"level": float("inf")}, None),
    "nothing in the payload": ({"level": None}, None),
    "no end": ({"until": None}, None),
    "the last day of the calendar": ({"until": datetime(9999, 12, 31, tzinfo=UTC)}, None),
    "a kind in capitals": ({"kind": "INSERT"}, None),
    "no kind": ({"kind": None}, None),
    "a row of another replica that has left": ({"replica": "gone"}, "detached-input"),
}


def test_typed_rows_that_break_a_rule_are_set_aside_and_odd_ones_are_used(spark, tmp_path):
    usual = {"replica": "east", "kind": "insert", "at": at(40), "until": at(50), "was": None, "level": 1.0}
    rows = [usual | {"n": n, "what": what} | fields for n, (what, (fields, _)) in enumerate(TYPED.items())]
    gone = usual | {"replica": "gone", "at": None}
    rows.append(gone | {"n": 0, "what": "it comes", "kind": "attach"})
    rows.append(gone | {"n": 1, "what": "it leaves", "kind": "detach"})
    time = pa.timestamp("us", "UTC")
    columns = [("replica", pa.string()), ("n", pa.int64()), ("kind", pa.string()), ("what", pa.string())]
    columns += [("at", time), ("until", time), ("was", time), ("level", pa.float64())]
    table = pa.Table.from_pylist(rows, pa.schema(columns))
    # Times that Python has no datetime for: they are refused for another reason, and shown as ticks.
    far = table.slice(0, 2).set_column(4, "at", pa.array([1 << 61, -(1 << 61)], pa.int64()).cast(time))
    far = far.set_column(2, "kind", pa.array(["far ahead", "far back"]))
    half = pa.Array.from_buffers(
        pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\1\0\0\0"), pa.py_buffer(b"\xc3")]
    )
    broken = table.slice(0, 1).set_column(3, "what", half)
    (tmp_path / "in").mkdir()
    pq.write_table(pa.concat_tables([table, far, broken]), tmp_path / "in" / "1.parquet")
    schema = "replica string, n long, kind string, what string, at timestamp, until timestamp, was timestamp"
    feed = spark.readStream.schema(f"{schema}, level double").parquet(str(tmp_path / "in"))
    refused, [told] = run(ab.merge(feed, sequence="n", **ROLES), tmp_path)

    meant = {what: rule for what, (_, rule) in TYPED.items() if rule is not None} | {"\ufffd": "malformed"}
    shown = [json.loads(one["raw"]) for one in refused]
    odd = [row["at"] for row in shown if str(row.get("kind")).startswith("far")]
    assert sorted(odd) == [-(1 << 61), 1 << 61]
    found = {
        row.get("what") or row["payload"]["what"]: one["rule"]
        for row, one in zip(shown, refused, strict=True)
        if not str(row.get("kind")).startswith("far")
    }
    assert found == meant
    assert told.quarantined == len(refused) == len(meant) + 2
    out = spark.read.parquet(str(tmp_path / "out")).filter("kind = 'insert'")
    used = {what for what, (fields, rule) in TYPED.items() if rule is None and fields.get("kind") != "stable"}
    assert {row["what"] for row in out.select("what").collect()} == used
