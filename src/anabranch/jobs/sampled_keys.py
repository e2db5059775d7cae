"""What is told of the sources of a job before it runs: keys that are no columns, columns that no row has, and
holes that no merge fills.

Only a sample: a run in this process counts the keys of every row (`rows/row_keys.py`), one on Spark does not.
"""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from anabranch.connectors.files.formats import Format, format_of
from anabranch.connectors.folder.listing import listing
from anabranch.jobs.ends import SourceSection
from anabranch.jobs.opened_sources import known_columns, places_of
from anabranch.plan.unmerged import unmerged_lossy
from anabranch.rows.row_keys import RowKeys

if TYPE_CHECKING:
    from collections.abc import Collection

    from anabranch.jobs.job import Job

ROWS = 1_000
"""Rows of each replica that are looked at."""


def remarks(job: Job) -> list[str]:
    """What a person should look at in what a job reads."""
    unmerged = {} if job.merges else unmerged_lossy([job.stream.node])
    found = [f"{name}: {words}" for name, words in unmerged.items()]
    for name, given in job.ends.items():
        if isinstance(given, SourceSection) and (given.path is None or given.format or given.values):
            continue
        place = next(iter(places_of(job, given)), None)
        if place is None:
            continue
        if job.merges:
            columns = known_columns(job).get(name)
            found += [] if columns is None else _remarks(place, columns.schema.names, (columns.replica,))
            continue
        source = job.sources[name]
        if source.layout is not None and source.columns is not None:
            texts = _remarks(place, source.columns.names, (source.layout.replica,))
            found += [f"{name}: {words}" for words in texts]
    return found


def _remarks(place: Path, columns: Collection[str], given: Collection[str | None]) -> list[str]:
    if not place.exists():
        return []
    keys = RowKeys()
    for files in listing(place).files.values() if place.is_dir() else [{place.name: place}]:
        left = ROWS
        for name, file in files.items():
            if format_of(name) is not Format.JSON_LINES or left <= 0:
                continue
            with file.open("rb") as lines:
                some = list(islice(lines, left))
            keys.add_texts(some)
            left -= len(some)
    return [f"of the first rows of {place}: {words}" for words in keys.remarks(columns, given)]
