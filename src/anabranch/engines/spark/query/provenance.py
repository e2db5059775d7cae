"""What the rows of a query say of the folders that it reads; what it writes is apart from those."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FOLDERS, NUMBERED = "anabranch.folders", "anabranch.numbered"
"""Where the schema of rows says which folders they are from, and which of these number them."""


class Provenance(NamedTuple):
    """Where the rows of one source are from."""

    folders: tuple[str, ...] = ()
    """The folders that it reads."""
    numbered: str | None = None
    """The folder whose files and lines are the numbers of its rows, if they are."""


def of_sources(sources: Mapping[str, Provenance]) -> dict[str, Any]:
    """What the schema of the rows of a query says of its sources."""
    folders = dict.fromkeys(place for one in sources.values() for place in one.folders)
    numbered = {name: one.numbered for name, one in sources.items() if one.numbered is not None}
    return {FOLDERS: list(folders), NUMBERED: numbered}


def folders_of(rows: "DataFrame") -> tuple[Path, ...]:
    """The folders that the rows of a query are read from, where they say it."""
    return tuple(Path(place) for place in _metadata(rows).get(FOLDERS, ()))


def numbered_by(rows: "DataFrame") -> dict[str, str]:
    """The folders whose files and lines number rows, by the names of their sources."""
    return dict(_metadata(rows).get(NUMBERED, {}))


def _metadata(rows: "DataFrame") -> Mapping[str, Any]:
    return next((field.metadata for field in rows.schema.fields if field.name == "kind"), {})


def check_rows_apart(rows: "DataFrame", sink: Path | None, *others: Path) -> None:
    """Raise where a query would write into a folder that it reads, or beside what it reads in one."""
    for source in folders_of(rows):
        check_apart(source, sink, *others)


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
