"""The columns that the rows of a folder have, by what is in it and what is said of it."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Generic

import pyarrow as pa

from anabranch.connectors.files.debezium import Debezium
from anabranch.connectors.files.envelope_columns import with_change
from anabranch.connectors.files.formats import Format, format_of
from anabranch.connectors.files.local_path import local_path, path_meant
from anabranch.connectors.folder.listing import Listing, listing
from anabranch.connectors.folder.reading import REPLICA, file_schema
from anabranch.engines.spark.session.row_types import Held, with_columns


@dataclass(frozen=True, slots=True)
class FolderColumns(Generic[Held]):
    """A folder that is there, and its columns."""

    place: Path
    schema: Held
    by_replica: bool | None
    """There is a folder for each replica, or there is none; None: nothing is there yet, and rows say it."""
    replicas: tuple[str, ...]
    """The folders of replicas that are there."""
    adds_replica: bool
    """The column ``replica`` is no column of the files: it holds the names of their folders."""


def folder_columns(
    path: str | Path,
    schema: Held | None,
    by_replica: bool | None,
    form: Debezium | None,
    of_file: Callable[[pa.Schema], Held],
    zone: str = "UTC",
) -> FolderColumns[Held]:
    """The columns of the files of a folder, envelopes or not.

    ``of_file`` makes them of those of the first file where no schema is given; ``zone`` is where the times
    of envelopes are shown.
    """
    place = local_path(path)
    if not place.is_dir():
        error = FileNotFoundError(f"{place} is not a folder that is there{path_meant(place)}")
        error.add_note("Give the folder that holds the files, or a sub-folder for each replica.")
        raise error
    now = listing(place)
    found = of_file(_first_schema(place, now)) if schema is None else schema
    if form is not None:
        found = with_change(found, form, zone)
    named = REPLICA in found.names
    if by_replica is None and not now.empty:
        by_replica = now.by_replica
    if by_replica is not None:
        now.in_form(place, by_replica=by_replica)
    elif not named:
        unknown = ValueError(
            f"{place} is empty, and whether it will have a folder for each replica decides about its columns"
        )
        unknown.add_note("Make the folder of a replica in it, or give by_replica=True;")
        unknown.add_note("by_replica=False, if the files will be in the folder itself.")
        raise unknown
    added = bool(by_replica) and not named
    replicas = tuple(now.files) if added and now.by_replica else ()
    if added:
        found = with_columns(found, {REPLICA: pa.string()})
    return FolderColumns(place, found, by_replica, replicas, added)


def _first_schema(place: Path, now: Listing) -> pa.Schema:
    for files in now.files.values():
        for name, file in files.items():
            if format_of(name) is not Format.JSON_LINES:
                return file_schema(str(file))
    error = ValueError(f"no Parquet, Arrow or CSV file is in {place} to take the columns from")
    error.add_note("Pass schema='room string, at timestamp, …'; JSON lines do not say their types.")
    raise error
