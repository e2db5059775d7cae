"""What merged rows say of the folder they were read from; what a query writes is apart from what it reads."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FOLDER, NUMBERED = "anabranch.folder", "anabranch.numbered"
"""Where the schema of merged rows says which folder they are from, and that its files number them."""


def folder_of(rows: "DataFrame") -> Path | None:
    """The folder that merged rows are read from, where they say it."""
    found = _told(rows).get(FOLDER)
    return None if found is None else Path(found)


def is_numbered(rows: "DataFrame") -> bool:
    """The numbers of merged rows are those of files and lines of their folder."""
    return bool(_told(rows).get(NUMBERED))


def _told(rows: "DataFrame") -> Mapping[str, Any]:
    return next((field.metadata for field in rows.schema.fields if field.name == "kind"), {})


def check_apart(source: Path | None, sink: Path | None, *others: Path) -> None:
    """Raise where a sink is in its source or the other way round, or one of the others is in the source."""
    if source is None:
        return
    read = source.resolve()
    for place in others if sink is None else (sink, *others):
        written = place.resolve()
        inside = written.is_relative_to(read)
        if inside or (place is sink and read.is_relative_to(written)):
            how = "is that" if written == read else "is inside" if inside else "holds"
            error = ValueError(f"a query does not write where it reads, and {place} {how} {source}")
            error.add_note("What it wrote would be taken for rows; give a folder beside the source.")
            raise error
