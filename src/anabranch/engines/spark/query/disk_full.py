"""A disk without room is told with the folder that did not fit."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from anabranch.engines.spark.query.failure import FULL, SPACE


@contextmanager
def room_in(place: Path) -> Iterator[None]:
    """What is raised inside for want of space says where that was, and what to do."""
    try:
        yield
    except OSError as reason:
        if not FULL.search(str(reason)):
            raise
        error = OSError(f"No space left on the disk that {place} is on")
        error.add_note(SPACE)
        raise error from None
