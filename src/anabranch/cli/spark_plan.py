"""A plan on Spark, as one query."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from anabranch.jobs.plan_job import PlanJob


def run_on_spark(job: PlanJob, options: argparse.Namespace) -> int:
    """Run a plan until it is stopped, or what is there has been read."""
    from anabranch import spark
    from anabranch.cli.run import followed, session_of
    from anabranch.cli.run_plan import say
    from anabranch.jobs.plan_beforehand import readings

    job.checkpoint.mkdir(parents=True, exist_ok=True)
    log = job.place(job.spark.log) if job.spark.log else job.checkpoint / "spark.log"
    if not options.json:
        say(f"starting Spark on {job.spark.master}")
    with session_of(job, log) as session:
        try:
            frame = spark.frame(job.stream, job.rows(session))
        except (ValueError, TypeError) as error:
            error.add_note(f"In {job.file}.")
            raise
        return followed(job, frame, "; ".join(readings(job).values()), options)
