"""The columns that a job has by the first rows of CSV files, as its source gives no schema."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anabranch.connectors.files.formats import Format, format_of
from anabranch.connectors.files.sampled_columns import in_words
from anabranch.connectors.folder.listing import listing
from anabranch.connectors.folder.reading import file_schema
from anabranch.jobs.ends import SourceSection
from anabranch.jobs.opened_sources import places_of

if TYPE_CHECKING:
    from anabranch.jobs.job import Job


def inferred(job: Job) -> list[str]:
    """Of each source the file that decided about its types, and the types."""
    found = []
    for given in job.ends.values():
        if not job.merges or not isinstance(given, SourceSection) or given.path is None:
            continue
        if given.schema is not None or given.format or given.values:
            continue
        for place in places_of(job, given):
            if not place.is_dir():
                continue
            files = [file for some in listing(place).files.values() for file in some.values()]
            typed = next((file for file in files if format_of(file) is not Format.JSON_LINES), None)
            if typed is not None and format_of(typed) is Format.CSV:
                found.append(in_words([str(typed)], file_schema(str(typed))))
    return found
