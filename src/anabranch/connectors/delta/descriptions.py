"""How the changes of Delta tables are described, whatever reads them: of which, and from when on."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from anabranch.connectors.files.local_path import local_path
from anabranch.connectors.tables.table_error import TableError
from anabranch.extras import check_installed
from anabranch.rows.layout import SINGLE

EARLIEST, LATEST, SNAPSHOT = "earliest", "latest", "snapshot"

Tables = str | Path | Iterable[str | Path] | Mapping[str, str | Path]


def tables_named(tables: Tables) -> dict[str, str]:
    """The folder of the table of each replica; of one that is alone, under the name of rows of nobody."""
    if isinstance(tables, str | Path):
        return {SINGLE: str(local_path(tables))}
    if isinstance(tables, Mapping):
        named = {str(name): str(local_path(path)) for name, path in tables.items()}
    else:
        paths = [local_path(path) for path in tables]
        named = {path.name: str(path) for path in paths}
        if len(named) < len(paths):
            error = ValueError(
                f"replicas are called as their folders are, and two are called {paths[0].name!r}"
            )
            error.add_note("Name them: {'east': path, 'west': path}.")
            raise error
    if not named:
        raise ValueError("there is at least one table, none is given")
    return named


def check_start(start: str | int) -> None:
    """Raise where reading can begin at no such place."""
    if start not in (EARLIEST, LATEST, SNAPSHOT) and (not isinstance(start, int) or start < 0):
        error = ValueError(
            f"a new checkpoint begins {EARLIEST}, {LATEST}, {SNAPSHOT} or at a version, not {start!r}"
        )
        error.add_note("A version is a number, 0 for the first.")
        raise error


def first_version(start: str | int, last: int) -> tuple[int, bool]:
    """The first version that is read, and whether its rows are read instead of its changes."""
    match start:
        case "earliest":
            return 0, False
        case "latest":
            return last + 1, False
        case "snapshot":
            return last, True
        case int(version) if version <= last + 1:
            return version, False
    error = TableError(f"a new checkpoint begins at version {start}, and the last is {last}")
    error.add_note("Give a version that is there, or start='latest' for what is to come.")
    raise error


def check_package() -> None:
    """Raise where what Delta tables are read through is not installed."""
    check_installed("deltalake", "deltalake", "delta", "changes are read through")
