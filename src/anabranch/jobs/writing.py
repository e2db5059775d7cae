"""The query of a job: what comes of it, written to where the job says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

    from anabranch.jobs.job import Job


def started(job: Job, merged: DataFrame, *, once: bool) -> StreamingQuery:
    """The query, running; ``once``: it stops when all that is there has been read."""
    from anabranch import spark as ab

    given: dict[str, Any] = {
        "checkpoint": job.checkpoint,
        "available_now": once or job.sink.available_now,
        "trigger": None if once else job.sink.trigger,
        "name": job.file.stem,
    }
    if job.sink.kafka is not None:
        return job.sink.kafka.write(merged, job.quarantine, **given)
    if job.sink.table is not None:
        keys = {name: getattr(job.sink.table, name) for name in job.sink.table.__struct_fields__}
        place = job.place(keys.pop("path"))
        return ab.write_table(merged, place, quarantine=job.quarantine, **keys, **given)
    assert job.folder is not None, "checked"
    return ab.write_folder(merged, job.folder, quarantine=job.quarantine, format=job.sink.format, **given)
