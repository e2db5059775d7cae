"""Queries of one session that are killed: each is started again when it fails, from its checkpoint.

usage: killed_queries.py FOLDER

FOLDER/plan.json says which. When all are done the same queries run once more without a stop, into sinks of
their own: what they give is what the others must have given.
"""

import json
import os
import shutil
import sys
from contextlib import suppress
from pathlib import Path

import pyspark
from survival.places import ADDRESS, call

from anabranch import spark as ab
from anabranch.engines.spark.session.jvm import SHORT_LIVED

COLUMNS = {"kind": "kind", "start": "start", "end": "end", "old_end": "old_end", "replica": "replica"}
SCHEMA = "kind string, start long, end long, old_end long, value string"


def session(plan: dict, folder: Path):
    """A session whose workers call, wherever they are forked."""
    quick = SHORT_LIVED["spark.driver.extraJavaOptions"]
    config = SHORT_LIVED | {
        "spark.local.dir": str(folder / "local"),
        "spark.default.parallelism": "2",  # tasks that read; more may wait at their places
        "spark.executor.memory": "1g",
        "spark.executor.extraJavaOptions": quick,
        "spark.executorEnv.PYTHONPATH": os.environ["PYTHONPATH"],
        f"spark.executorEnv.{ADDRESS}": os.environ[ADDRESS],
    }
    spark = ab.session(plan["master"], shards=2, config=config)
    spark.sparkContext.setLogLevel("OFF")
    return spark


def started(spark, plan: dict, folder: Path, subject: str, calm: str = ""):
    """The query of a subject, from its checkpoint."""
    checkpoint, feed = folder / f"{calm}{subject}-checkpoint", folder / "in"
    if subject == "kafka":
        rows = ab.kafka(
            spark,
            plan["topics"],
            servers=plan["servers"],
            schema=SCHEMA,
            rows_per_trigger=plan["rows_per_trigger"],
        )
    elif subject == "folder":
        rows = ab.folder(spark, feed, files_per_trigger=len(plan["topics"]))
    else:
        files = spark.readStream.schema(SCHEMA).option("recursiveFileLookup", "true")
        frame = files.option("maxFilesPerTrigger", len(plan["topics"])).parquet(str(feed))
        rows = frame.selectExpr("*", "element_at(split(_metadata.file_path, '/'), -2) as replica")
    merged = ab.merge(rows, **COLUMNS, case=plan["case"])
    common = {"checkpoint": checkpoint, "available_now": True}
    sink = plan["sinks"][f"{calm}{subject}"]
    match subject:
        case "folder":
            return ab.write_folder(merged, sink, **common)
        case "kafka":
            return ab.write_kafka(
                merged, sink, servers=plan["servers"], key="value", exactly_once=True, **common
            )
        case _:
            return ab.write_table(merged, sink, kind="history", format=plan["table"], **common)


def ended(spark, queries: dict) -> list[str]:
    """Those that have ended, at least one."""
    from pyspark.errors import StreamingQueryException

    with suppress(StreamingQueryException):
        spark.streams.awaitAnyTermination()
    spark.streams.resetTerminated()
    return [subject for subject, query in queries.items() if not query.isActive]


def main(folder: Path) -> None:
    """Run the queries of a plan side by side; who kills says which failures are his."""
    plan = json.loads((folder / "plan.json").read_text())
    spark = session(plan, folder)
    queries = {subject: started(spark, plan, folder, subject) for subject in plan["subjects"]}
    while queries:
        for subject in ended(spark, queries):
            error, sink = queries.pop(subject).exception(), plan["sinks"][subject]
            if error is None:
                call("done", sink, -1)
            elif call("failed", sink, -1, str(ab.failure(error))) == b"+":
                queries[subject] = started(spark, plan, folder, subject)
            else:
                raise ab.failure(error)
    for query in [started(spark, plan, folder, subject, "calm-") for subject in plan["subjects"]]:
        ab.wait(query)
    work = Path(pyspark.__file__).parent / "work" / spark.sparkContext.applicationId
    spark.stop()
    shutil.rmtree(work, ignore_errors=True)  # where a local cluster keeps what its executors said


if __name__ == "__main__":
    main(Path(sys.argv[1]))
