"""What a plan would do on Spark, as far as it is known without Spark: its columns and its settings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from anabranch.jobs.beforehand import ZONE, Foreseen
from anabranch.jobs.plan_job import Ends

if TYPE_CHECKING:
    from anabranch.engines.spark.columns import Columns
    from anabranch.jobs.plan_job import PlanJob
    from anabranch.plan.source import Source


def foreseen(job: PlanJob) -> Foreseen:
    """What a plan would do; raises where Spark would refuse it over these sources."""
    from anabranch.engines.spark.planned_query import query_of_columns

    known = {name: _columns(job, source) for name, source in job.sources.items()}
    columns = {name: one for name, one in known.items() if one is not None}
    if len(columns) < len(known):
        return Foreseen(None, None)
    query = query_of_columns(job.stream, columns)
    return Foreseen(query.settings(), query.schema())


def _columns(job: PlanJob, source: Source) -> Columns | None:
    """The columns of what is read for a source; None where only a program of the user knows them."""
    from anabranch.connectors.native import DESCRIPTIONS, native_columns

    given = job.ends[source.name]
    if isinstance(given, str | Path):
        given = job.place(str(given))
    described = given.door(job) if isinstance(given, Ends) else given
    zone = job.spark.settings().get(ZONE, "UTC")
    return native_columns(source, described, zone) if isinstance(described, DESCRIPTIONS) else None
