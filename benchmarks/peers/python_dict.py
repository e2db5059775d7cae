"""A set of the rows seen, or a dict of the latest end for each key, in plain Python."""

from collections.abc import Iterable
from pathlib import Path

from peers.arrivals import Job, Ready, Row, rows, tuples


def every_row_once(batches: Iterable[list[Row]]) -> tuple[int, int]:
    """Let a row out when it is seen first."""
    seen: set[Row] = set()
    ends = 0
    for batch in batches:
        out = []
        for row in batch:
            if row not in seen:
                seen.add(row)
                out.append(row)
        ends += sum(row[1] for row in out)
    return len(seen), ends


def latest_end(batches: Iterable[list[Row]]) -> tuple[int, int]:
    """What arrived last of each key."""
    latest: dict[tuple[int, int, str], int] = {}
    for batch in batches:
        for start, end, number, text in batch:
            latest[start, number, text] = end
    return len(latest), sum(latest.values())


def prepare(folder: Path, revised: bool, ready: Ready) -> Job:
    """Rows are tuples."""
    batches = ready(map(tuples, rows(folder)))
    return lambda: latest_end(batches) if revised else every_row_once(batches)
