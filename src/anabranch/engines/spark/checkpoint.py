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
    file = checkpoint / _ID
    if not file.exists():
        checkpoint.mkdir(parents=True, exist_ok=True)
        file.write_text(uuid.uuid4().hex[:8])
    return file.read_text().strip()


def _last(log: Path) -> int:
    return max((int(file.name) for file in log.glob("[0-9]*") if file.name.isdecimal()), default=-1)
