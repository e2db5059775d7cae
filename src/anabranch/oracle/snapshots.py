"""What replicas of changes mean that begin with a snapshot: the versions of the whole log, or some of them.

A snapshot says which rows are there, not since when. Where another replica vouches for every moment before
it, the versions are those of the log. Where nobody does, they are these.
"""

from collections.abc import Iterable

from anabranch.model.elements import Payload
from anabranch.model.time import BEGINNING
from anabranch.oracle.changes import Change, ChangedTable, Version


def versions_since(
    key: tuple[str, ...], time: int, rows: Iterable[Payload], log: Iterable[Change]
) -> list[Version]:
    """The versions that a snapshot of some rows and the log after it bring, those rows since its time."""
    table = ChangedTable(key, by_time=False)
    table.changes = [Change("insert", BEGINNING, row) for row in rows]
    for change in log:
        table.push(change)
    return [
        version if version.start > BEGINNING else Version(version.row, time, version.end)
        for version in table.versions()
        if version.start > BEGINNING or version.end > time
    ]
