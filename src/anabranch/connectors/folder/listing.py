"""Which files a folder has and whose they are; what has no place among them is an error that names it.

Passed over are names that begin with a dot or an underscore, and endings of files that are still being
written. Anything else that is not read would be lost and nobody told, so it stops a query.
"""

import os
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from anabranch.connectors.files.formats import ROW_ENDINGS
from anabranch.connectors.folder.reading import REPLICA
from anabranch.rows.layout import SINGLE

TEMPORARY = (
    ".tmp",
    ".temp",
    ".part",
    ".partial",
    ".filepart",
    ".inprogress",
    "._copying_",
    ".crdownload",
    ".crc",
    "~",
)
"""How names end that writers give to files until they are whole, and to sums beside them."""


@dataclass(frozen=True, slots=True)
class Listing:
    """The files of each replica by name, in order."""

    files: dict[str, dict[str, Path]]
    by_replica: bool
    """There is a folder for each replica; else all files are of one sequence, `SINGLE`."""

    @property
    def empty(self) -> bool:
        """There is neither a file nor the folder of a replica."""
        return not self.by_replica and not self.files[SINGLE]

    def in_form(self, place: Path, *, by_replica: bool) -> dict[str, dict[str, Path]]:
        """The files, if the folder has the form that it had when its columns were told."""
        if self.empty or self.by_replica == by_replica:
            return self.files if self.by_replica == by_replica else {}
        if by_replica:
            first = next(iter(self.files[SINGLE].values()))
            error = ValueError(f"{place} has a folder for each replica, and {first} is in none")
            error.add_note("Move it into the folder of its replica.")
        else:
            error = ValueError(
                f"{place} is one sequence of files, and {next(iter(self.files))!r} is a folder"
            )
            error.add_note("With a folder for each replica it is another source: begin a new checkpoint.")
        raise error


def listing(place: Path, endings: Collection[str] = ROW_ENDINGS) -> Listing:
    """The files that are there now, whose names have these endings."""
    folders, files = _entries(place)
    if not folders:
        return Listing({SINGLE: _readable(place, files, endings)}, by_replica=False)
    if files:
        error = ValueError(
            f"{_first(place, files)} is beside the folders of replicas, and nothing says whose it is"
        )
        error.add_note(f"Move it into the folder of its replica, such as {place / folders[0]}.")
        error.add_note(_PASSED_OVER)
        raise error
    found: dict[str, dict[str, Path]] = {}
    for folder in folders:
        name = folder.removeprefix(f"{REPLICA}=")
        if not name or name in found:
            what = "names no replica" if not name else f"is a second folder of replica {name!r}"
            error = ValueError(f"{place / folder} {what}")
            error.add_note(f"A replica has one folder, {place}/NAME or {place}/{REPLICA}=NAME.")
            raise error
        deeper, own = _entries(place / folder)
        if deeper:
            error = ValueError(
                f"{_first(place / folder, deeper)} is a folder inside the folder of a replica, "
                "whose files would not be read"
            )
            error.add_note(f"Move its files to {place / folder}, in the order of their names.")
            error.add_note(_PASSED_OVER)
            raise error
        found[name] = _readable(place / folder, own, endings)
    return Listing(found, by_replica=True)


_PASSED_OVER = (
    "Names that begin with a dot or an underscore are passed over, and those of temporary files "
    f"({' '.join(TEMPORARY)})."
)


def _entries(place: Path) -> tuple[list[str], list[str]]:
    """The names of folders and of all else, in order, without those that are passed over."""
    folders: list[str] = []
    files: list[str] = []
    with os.scandir(place) as there:
        for entry in there:
            if entry.name[0] in "._" or entry.name.lower().endswith(TEMPORARY):
                continue
            if not entry.is_dir() and not entry.is_file():
                error = ValueError(f"{entry.path} is neither a file nor a folder, so it cannot be read")
                error.add_note("Is it a link to something that is gone, or a pipe? Move it away.")
                error.add_note(_PASSED_OVER)
                raise error
            (folders if entry.is_dir() else files).append(entry.name)
    return sorted(folders), sorted(files)


def _readable(place: Path, names: Iterable[str], endings: Collection[str]) -> dict[str, Path]:
    """Files by name; all have an ending that tells their format."""
    found = {name: place / name for name in names}
    strange = [name for name, file in found.items() if file.suffix.lower() not in endings]
    if strange:
        error = ValueError(f"the ending of {_first(place, strange)} tells no format, so it cannot be read")
        error.add_note(f"Known are {' '.join(endings)}. Convert the file, or move it away.")
        error.add_note(_PASSED_OVER)
        raise error
    return found


def _first(place: Path, names: Sequence[str]) -> str:
    return f"{place / names[0]}{f' (and {len(names) - 1} more like it)' if len(names) > 1 else ''}"
