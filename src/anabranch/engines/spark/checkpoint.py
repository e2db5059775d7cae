"""Where a query is, by its checkpoint: Spark notes each micro-batch as it begins and as it is complete."""

from pathlib import Path


def begun(checkpoint: Path) -> int:
    """The last micro-batch that was begun; -1 for none."""
    return _last(checkpoint / "offsets")


def completed(checkpoint: Path) -> int:
    """The last micro-batch that is complete; -1 for none."""
    return _last(checkpoint / "commits")


def _last(log: Path) -> int:
    return max((int(file.name) for file in log.glob("[0-9]*") if file.name.isdecimal()), default=-1)
