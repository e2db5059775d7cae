"""Merges and a plan of two levels through Spark Connect, in a process of its own: a process has one session.

usage: connect_query.py FOLDER; prints what came out as JSON
"""

import json
import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession

import anabranch as plans
from anabranch import spark as ab

SCHEMA = "gateway string, sensor string, at timestamp"


def main(folder: Path) -> None:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = SparkSession.builder.remote("local[2]").getOrCreate()
    ab.prepare(spark, shards=2)
    rows = [
        {"gateway": gateway, "sensor": "a", "at": f"2026-03-01T10:{minute:02}:00Z"}
        for gateway in ("east", "west")
        for minute in range(10)
    ]
    for name in ("east", "west"):
        (folder / "in" / name).mkdir(parents=True)
        mine = [json.dumps(row) for row in rows if row["gateway"] == name]
        (folder / "in" / name / "1.jsonl").write_text("\n".join(mine))
    feed = spark.readStream.schema(SCHEMA).option("recursiveFileLookup", "true").json(f"{folder}/in")
    doors = {"frame": feed, "folder": ab.folder(spark, folder / "in", schema=SCHEMA)}
    found = {}
    for name, door in doors.items():
        merged = ab.merge(
            door, replica="gateway", start="at", payload="sensor", disorder="1 minute", lossy=True
        )
        out = folder / name
        query = ab.write_folder(merged, out, checkpoint=folder / f"{name}-checkpoint", available_now=True)
        ab.wait(query)
        told = ab.status(query)
        assert told is not None
        table = ab.table(spark.read.parquet(str(out)))
        found[name] = {
            "received": told.received["insert"],
            "emitted": told.emitted["insert"],
            "rows": table.count(),
        }
    columns = {"gateway": "string", "sensor": "string", "at": "timestamp[us, tz=UTC]"}
    source = plans.source(
        "feed",
        columns,
        start="at",
        payload=["sensor", "at"],
        replica="gateway",
        lossy=True,
        disorder="1 minute",
    )
    plan = source.merge().select("sensor").final()
    rows = ab.frame(plan, {"feed": feed})
    out = folder / "plan"
    query = ab.write_folder(rows, out, checkpoint=folder / "plan-checkpoint", available_now=True)
    ab.wait(query)
    elements = spark.read.parquet(str(out))
    found["plan"] = {
        "received": ab.status(query).received["insert"],
        "rows": elements.where("kind = 'insert'").count(),
        "stables": elements.where("kind = 'stable'").count(),
    }
    print(json.dumps(found))  # noqa: T201
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
