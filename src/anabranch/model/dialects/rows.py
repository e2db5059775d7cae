"""The rows of a table that is changed row by row."""

from bisect import bisect_right, insort
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import TypeAlias

from anabranch.model.clock import tick_text
from anabranch.model.dialects.error import DialectError
from anabranch.model.dialects.payload_key import payload_key
from anabranch.model.elements import Payload

Since: TypeAlias = tuple[int, Payload]
"""A row and the commit time since when it has been there."""


@dataclass(slots=True)
class Rows:
    """The rows that are there, each since some commit time.

    With a key, a row is named by its key columns and there is at most one of each name. Without, a row is
    named by all its columns, and of equal rows the latest that was there by the time of a removal is removed.

    Memory: the rows that are there.
    """

    key: tuple[str, ...] | None = None
    _there: dict[Hashable, list[Since]] = field(default_factory=dict)

    def __len__(self) -> int:
        """How many rows are there."""
        return sum(len(rows) for rows in self._there.values())

    def name(self, image: Payload) -> Hashable:
        """What names the row of an image; the image has all key columns."""
        if self.key is None:
            return payload_key(image)
        if not self.named(image):
            missing = [column for column in self.key if image.get(column) is None]
            raise DialectError(
                f"the row {dict(image)} has no value in the key column {', '.join(missing)}",
                f"rows are told apart by the key {', '.join(self.key)}",
                "Name a key whose columns every row has, or read and write without a key.",
            )
        return payload_key({column: image[column] for column in self.key})

    def named(self, image: Payload) -> bool:
        """The image has what names its row."""
        return self.key is None or all(image.get(column) is not None for column in self.key)

    def add(self, row: Payload, time: int) -> None:
        """The row is there from this time on."""
        there = self._there.setdefault(self.name(row), [])
        if self.key is not None and there:
            since, other = there[0]
            raise DialectError(
                f"the row {dict(row)} begins at {tick_text(time)}, and {dict(other)} has been there since "
                f"{tick_text(since)}",
                f"both have the same key ({', '.join(self.key)}), so a change of one could mean either",
                "Delete or update the earlier row first, or name a key that tells the rows apart.",
            )
        insort(there, (time, row), key=_since)

    def remove(self, image: Payload, time: int) -> Since:
        """Take out the row that a change at this time ends."""
        name = self.name(image)
        there = self._there.get(name, [])
        place = bisect_right(there, time, key=_since)
        if not place:
            named_by = "equal to" if self.key is None else "with the key of"
            raise DialectError(
                f"a change at {tick_text(time)} ends a row {named_by} {dict(image)}, and none is there then",
                "the row was not inserted by then, or it has been deleted, or its columns differ",
                "Begin with a snapshot of the table as inserts; read with a key if images are partial.",
            )
        row = there.pop(place - 1)
        if not there:
            del self._there[name]
        return row


def _since(row: Since) -> int:
    return row[0]
