"""What the changes of a keyed table mean, read anew from all of them: as a log, or by commit time."""

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from anabranch.model.elements import Payload
from anabranch.model.time import BEGINNING, FOREVER
from anabranch.oracle.payload import payload_key

Op = Literal["insert", "update", "delete", "upsert"]


class Change(NamedTuple):
    """What happens to the row of a key at a time; of a row that is deleted, the key is enough."""

    op: Op
    time: int
    row: Payload
    place: Any = 0
    """Among those of its key at one time, in any order that Python has."""


class Version(NamedTuple):
    """A row of the table from the change that brought it to the one that ended it."""

    row: Payload
    start: int
    end: int


@dataclass
class ChangedTable:
    """Changes so far, in the order in which they came, but for those that were refused for good."""

    key: tuple[str, ...]
    by_time: bool = True
    """Changes of a key count by commit time and then as they come, not as they come alone."""
    changes: list[Change] = field(default_factory=list)
    frontier: int = BEGINNING

    def push(self, change: Change) -> bool:
        """Hear a change; whether it may count."""
        if not self.frontier <= change.time < FOREVER:
            return False
        self.changes.append(change)
        if self.by_time or not any(change is unfit for unfit in self._unfit()):
            return True
        self.changes.pop()
        return False

    def promise(self, time: int) -> list[Change]:
        """Hear that no later change commits before this; the changes that will never fit."""
        self.frontier = max(self.frontier, time)
        unfit = [change for change in self._unfit() if change.time < self.frontier]
        self.changes = [change for change in self.changes if not any(change is one for one in unfit)]
        return unfit

    def versions(self) -> list[Version]:
        """The rows that the changes bring, those that live no time left out."""
        found = []
        for changes in self._by_key():
            fitting = [change for change, fits in _folded(changes) if fits]
            ends = [*(change.time for change in fitting), FOREVER][1:]
            found += [
                Version(change.row, change.time, end)
                for change, end in zip(fitting, ends, strict=True)
                if change.op != "delete" and change.time < end
            ]
        return found

    def _unfit(self) -> list[Change]:
        return [change for changes in self._by_key() for change, fits in _folded(changes) if not fits]

    def _by_key(self) -> Iterable[list[Change]]:
        groups: dict[Hashable, list[Change]] = {}
        for change in self.changes:
            groups.setdefault(payload_key({name: change.row[name] for name in self.key}), []).append(change)
        if not self.by_time:
            return list(groups.values())
        return [
            sorted(changes, key=lambda change: (change.time, change.place)) for changes in groups.values()
        ]


def _folded(changes: list[Change]) -> Iterator[tuple[Change, bool]]:
    """Whether each change fits what those before it leave; one that does not changes nothing."""
    there: Change | None = None
    for change in changes:
        fits = change.op == "upsert" or (there is None) == (change.op == "insert")
        if there is not None and change.time < there.time:
            fits = False
        if fits:
            there = None if change.op == "delete" else change
        yield change, fits
