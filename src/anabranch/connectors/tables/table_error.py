"""What goes wrong with a table that a query keeps."""

from pathlib import Path
from typing import TYPE_CHECKING

from anabranch.errors import AnabranchError

if TYPE_CHECKING:
    import pyarrow as pa


class TableError(AnabranchError, ValueError):
    """A table is not as the query left it, or cannot be what the query is to make of it."""


def not_ours(what: str) -> TableError:
    """A table that goes with another checkpoint, or none."""
    error = TableError(what)
    error.add_note(
        "A table is kept by the query that made it and goes with its checkpoint. Restore what belongs "
        "together, or begin again with a new table and a new checkpoint."
    )
    return error


def other_columns(there: "pa.Schema", ours: "pa.Schema", path: Path) -> TableError:
    """A table has not the columns that a query gives it."""
    theirs, mine = ({field.name: field.type for field in one} for one in (there, ours))
    odd = sorted(name for name in {*mine, *theirs} if mine.get(name) != theirs.get(name))
    what = f"column {odd[0]!r}" if odd else "the order of the columns"
    was, now = (one.get(odd[0], "not there") if odd else tuple(one) for one in (theirs, mine))
    error = TableError(f"{what} of the table {path} is {was}, and in this query {now}")
    error.add_note("Undo the change of the one or the other, or begin with a new table and a new checkpoint.")
    return error


def not_made(path: Path, reason: Exception) -> TableError:
    """A table whose folder cannot be made or written to."""
    words = getattr(reason, "strerror", None) or str(reason).strip().splitlines()[0]
    error = TableError(f"the table {path} cannot be made: {words}")
    error.add_note("Give a folder that this user may write to, below folders and not below a file.")
    return error


def check_empty(path: Path, what: str) -> None:
    """Raise where a folder has something else than a table in it."""
    others = sorted(f.name for f in path.iterdir() if f.name[0] not in "._") if path.is_dir() else []
    if others:
        error = TableError(f"{path} is no {what} table and not empty, it has {others[0]!r}")
        error.add_note("Give the table a folder of its own.")
        raise error
