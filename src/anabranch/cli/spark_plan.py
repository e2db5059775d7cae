"""A plan on Spark, as one query."""

from __future__ import annotations

import argparse
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from anabranch.jobs.plan_job import PlanJob


def run_on_spark(job: PlanJob, options: argparse.Namespace) -> int:
    """Run a plan until it is stopped, or what is there has been read."""
    spark = import_module("anabranch.spark")
    if not hasattr(spark, "frame"):
        error = ValueError("plans run on Spark through anabranch.spark.frame, which this version has not")
        error.add_note("Add --engine embedded to run it in this process.")
        raise error
    raise NotImplementedError
