"""Where a query is, by its checkpoint: Spark notes each micro-batch as it begins and as it is complete."""

import uuid
from pathlib import Path

_ID = "anabranch-query"


def begun(checkpoint: Path) -> int:
    """The last micro-batch that was begun; -1 for none."""
    return _last(checkpoint / "offsets")


def completed(checkpoint: Path) -> int:
    """The last micro-batch that is complete; -1 for none."""
    return _last(checkpoint / "commits")


def query_id(checkpoint: Path) -> str:
    """What the query is called where it writes: made with the checkpoint, and kept in it."""
    known = known_query(checkpoint)
    if known is not None:
        return known
    checkpoint.mkdir(parents=True, exist_ok=True)
    (checkpoint / _ID).write_text(uuid.uuid4().hex[:8])
    return query_id(checkpoint)


def known_query(checkpoint: Path) -> str | None:
    """What the query of a checkpoint is called where it writes, if it has written."""
    file = checkpoint / _ID
    return file.read_text().strip() if file.exists() else None


def _last(log: Path) -> int:
    return max((int(file.name) for file in log.glob("[0-9]*") if file.name.isdecimal()), default=-1)
