"""A session of Spark, from the start of Java to an answer of a Python worker."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from anabranch.cli.doctor.finding import Finding, Request, failed, ok, trouble

ROWS = [("east", "a", 1), ("west", "a", 1), ("west", "b", 2)]
"""Two events, one of which both replicas show."""
EVENTS = 2


def merges(asked: Request) -> Iterator[Finding]:
    """Where asked for: Spark starts, and its workers merge three rows into two events."""
    if not asked.spark:
        return
    begun = time.monotonic()
    log = Path(tempfile.mkdtemp(prefix="anabranch-doctor-")) / "spark.log"
    try:
        events = _events(asked, log)
    except Exception as error:
        yield failed("spark", error)
        return
    if events != EVENTS:
        words = f"workers merged {len(ROWS)} rows into {events} events, and there are {EVENTS}"
        yield trouble("spark", words, f"What Spark said is in {log}.")
        return
    shutil.rmtree(log.parent, ignore_errors=True)
    seconds = time.monotonic() - begun
    yield ok("spark", f"{asked.master} started, and its workers merged {len(ROWS)} rows, in {seconds:.0f} s")


def _events(asked: Request, log: Path) -> int:
    from anabranch import spark as ab
    from anabranch.cli.spark_errors import spark_errors_as_ours
    from anabranch.engines.spark.session.jvm import end_jvm

    settings = asked.job.spark.settings() if asked.job else {}
    try:
        with spark_errors_as_ours(log):
            spark = ab.session(asked.master, name="doctor", shards=1, config=settings, log=log)
            rows = spark.createDataFrame(ROWS, "replica string, name string, at long")
            merged = ab.merge(rows, replica="replica", start="at", properties="keyed", lossy=True)
            return merged.where("kind = 'insert'").count()
    finally:
        end_jvm()
