"""``[source.delta]``: the changes of Delta tables as the source of a job."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anabranch.jobs.sections import Section
from anabranch.model.spelling import did_you_mean

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from anabranch.connectors.delta.embedded import DeltaFeeds
    from anabranch.connectors.delta.feeds import DeltaChanges
    from anabranch.engines.spark.columns import Columns
    from anabranch.jobs.job import Job

STARTS = ("earliest", "latest", "snapshot")


class DeltaSourceSection(Section):
    """``[source.delta]``: one table, or several that are replicas."""

    tables: str | list[str] | dict[str, str]
    op: str = "op"
    time: str | bool = "time"
    """The column for the time of a commit; false: none."""
    version: str | None = None
    start: str | int = "earliest"
    versions_per_trigger: int | None = None

    def check(self) -> None:
        """Raise where a value is none of those it may be."""
        if isinstance(self.start, str) and self.start not in STARTS:
            error = ValueError(
                f"[source.delta] start is {', '.join(STARTS)} or the number of a version, not {self.start!r}"
                f"{did_you_mean(self.start, STARTS)}"
            )
            error.add_note("A new checkpoint begins there; snapshot is the rows that are there now.")
            raise error
        if self.time is True:
            error = ValueError("[source.delta] time names a column, or is false for none, and it is true")
            error.add_note("Leave it out for a column that is called time.")
            raise error

    def rows(self, job: Job, spark: SparkSession) -> DeltaChanges:
        """What is merged."""
        from anabranch import spark as ab

        given: dict[str, Any] = {"versions_per_trigger": self.versions_per_trigger}
        return ab.delta_changes(
            spark,
            self._placed(job),
            op=self.op,
            time=self.time or None,  # type: ignore[arg-type]  # true is refused
            version=self.version,
            start=self.start,
            **{name: value for name, value in given.items() if value is not None},
        )

    def feeds(self, job: Job) -> DeltaFeeds:
        """What a plan in this process reads."""
        from anabranch.connectors.delta.embedded import delta_changes

        time = self.time if isinstance(self.time, str) else None
        return delta_changes(self._placed(job), op=self.op, time=time, version=self.version, start=self.start)

    def columns(self, job: Job, zone: str) -> Columns:
        """The columns of its rows, without Spark."""
        from anabranch.connectors.delta.changed_columns import change_columns

        time = self.time if isinstance(self.time, str) else None
        return change_columns(self._placed(job), self.op, time, self.version, zone)

    def places(self, job: Job) -> list[Path]:
        """The folders of the tables."""
        placed = self._placed(job)
        if isinstance(placed, Path):
            return [placed]
        return list(placed.values() if isinstance(placed, Mapping) else placed)

    def _placed(self, job: Job) -> Path | list[Path] | dict[str, Path]:
        if isinstance(self.tables, str):
            return job.place(self.tables)
        if isinstance(self.tables, list):
            return [job.place(path) for path in self.tables]
        return {name: job.place(path) for name, path in self.tables.items()}
