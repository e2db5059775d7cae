"""Whether a folder can be written to, before anything is."""

import tempfile
from pathlib import Path


def nearest(place: Path) -> Path:
    """The folder itself, or the one in which it would be made."""
    return next(folder for folder in (place, *place.parents) if folder.exists())


def check_writable(folder: Path, uses: str) -> None:
    """Raise where a folder is none, or cannot be written to."""
    if not folder.is_dir():
        error = OSError(f"{folder} is a file, and a folder is needed: {uses}")
        error.add_note("Move the file away.")
        raise error
    try:
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as reason:
        error = OSError(f"{folder} cannot be written to, {reason.strerror}: {uses}")
        error.add_note(
            "Let this user write there, or name another folder (SPARK_LOCAL_DIRS is where Spark spills)."
        )
        raise error from None
