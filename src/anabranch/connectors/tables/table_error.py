"""What goes wrong with a table that a query keeps."""

from pathlib import Path

from anabranch.engines.spark.failure import known


@known
class TableError(ValueError):
    """A table is not as the query left it, or cannot be what the query is to make of it."""


def not_ours(what: str) -> TableError:
    """A table that goes with another checkpoint, or none."""
    error = TableError(what)
    error.add_note(
        "A table is kept by the query that made it and goes with its checkpoint. Restore what belongs "
        "together, or begin again with a new table and a new checkpoint."
    )
    return error


def check_empty(path: Path, what: str) -> None:
    """Raise where a folder has something else than a table in it."""
    others = sorted(f.name for f in path.iterdir() if f.name[0] not in "._") if path.is_dir() else []
    if others:
        error = TableError(f"{path} is no {what} table and not empty, it has {others[0]!r}")
        error.add_note("Give the table a folder of its own.")
        raise error
