"""The keys of the first rows of a folder, before a job runs: which are no columns, which columns none has.

Only a sample: a run in this process counts the keys of every row (`rows/row_keys.py`), one on Spark does not.
"""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from anabranch.connectors.folder.listing import listing
from anabranch.connectors.folder.reading import format_of
from anabranch.jobs.ends import SourceSection
from anabranch.rows.row_keys import RowKeys

if TYPE_CHECKING:
    from collections.abc import Collection

    from anabranch.jobs.job import Job
    from anabranch.jobs.plan_job import PlanJob

ROWS = 1_000
"""Rows of each replica that are looked at."""


def of_merge(job: Job) -> list[str]:
    """What a person should look at in the folder of a merge."""
    from anabranch.jobs.beforehand import known_columns

    source = job.source
    if not isinstance(source, SourceSection) or source.path is None or source.format or source.values:
        return []
    columns = known_columns(job)
    if columns is None:
        return []
    return _remarks(job.place(source.path), columns.schema.names, (columns.replica,))


def of_plan(job: PlanJob) -> list[str]:
    """What a person should look at in the folders of a plan."""
    from anabranch.jobs.plan_job import Ends

    found = []
    for name, source in job.sources.items():
        given = job.ends[name]
        path = given.path if isinstance(given, Ends) and given.values is None else given
        if isinstance(path, str | Path) and source.layout is not None and source.columns is not None:
            remarks = _remarks(job.place(str(path)), source.columns.names, (source.layout.replica,))
            found += [f"{name}: {words}" for words in remarks]
    return found


def _remarks(place: Path, columns: Collection[str], given: Collection[str | None]) -> list[str]:
    if not place.is_dir():
        return []
    keys = RowKeys()
    for files in listing(place).files.values():
        left = ROWS
        for name, file in files.items():
            if format_of(name) != "jsonl" or left <= 0:
                continue
            with file.open("rb") as lines:
                some = list(islice(lines, left))
            keys.add_texts(some)
            left -= len(some)
    return [f"of the first rows of {place}: {words}" for words in keys.remarks(columns, given)]
