"""The folders that Spark and a job write to: whether they can be written to, and what is free in them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from anabranch.cli.doctor import java
from anabranch.cli.doctor.finding import Finding, Request, failed, ok, trouble
from anabranch.cli.doctor.memory import gigabytes
from anabranch.jobs.writable import check_writable, nearest

if TYPE_CHECKING:
    from anabranch.jobs.job import Job

LEAST = 1 << 30
"""Free bytes below which a job will soon stop."""


def space(asked: Request) -> Iterator[Finding]:
    """Each place can be written to and has room; one that is not there yet is judged by the folder above."""
    places: dict[Path, list[str]] = {}
    for what, place in _written(asked):
        places.setdefault(nearest(place), []).append(f"{what} ({place})")
    for folder, uses in places.items():
        yield room(folder, ", ".join(uses))


def _written(asked: Request) -> Iterator[tuple[str, Path]]:
    spill = os.environ.get("SPARK_LOCAL_DIRS") or asked.setting("spark.local.dir")
    for one in (spill or java.properties().get("java.io.tmpdir", "/tmp")).split(","):
        yield "Spark spills", Path(one.strip()).absolute()
    if asked.job is not None:
        yield "sink", asked.job.folder or table_of(asked.job) or asked.job.checkpoint
        yield "checkpoint", asked.job.checkpoint
        if asked.job.quarantine is not None:
            yield "quarantine", asked.job.quarantine


def table_of(job: Job) -> Path | None:
    """The folder of the table that a job keeps, if it keeps one."""
    return None if job.sink.table is None else job.place(job.sink.table.path)


def room(folder: Path, uses: str) -> Finding:
    """Whether a folder can be written to, and has room."""
    try:
        check_writable(folder, uses)
        free = shutil.disk_usage(folder).free
    except OSError as error:
        return failed("disk", error)
    if free < LEAST:
        return trouble(
            "disk",
            f"{gigabytes(free)} free in {folder}, and less than {gigabytes(LEAST)} is soon full: {uses}",
            "Make room, or name another folder (SPARK_LOCAL_DIRS is where Spark spills).",
        )
    return ok("disk", f"{gigabytes(free)} free in {folder}: {uses}")
