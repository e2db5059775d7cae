"""What an input shows and the output lacks, because the complete input that led never showed it.

A stable of a complete input that leads decides which events there are that start before it. What another
input shows beyond all that the leader had ever shown by then is not in the output, whether it had been said
and was removed, was never let out, or comes later. An event that the leader showed and took back does not
count: others are about to take it back too.
"""

from collections.abc import Hashable
from dataclasses import dataclass, field

from anabranch.oracle.evidence import Ledger

Key = tuple[int, Hashable]
"""A start and a payload."""


@dataclass
class Removals:
    """All that inputs have said of every payload and start, and what those who decided had shown of it."""

    keyed: bool
    """Payload and start are a key, so that an adjust says all there is to know of its event."""
    said: dict[Key, dict[str, Ledger]] = field(default_factory=dict)
    own: dict[Key, int] = field(default_factory=dict)

    def hear(self, name: str, key: Key, old_end: int | None, end: int, *, complete: bool) -> None:
        """An input says an insert or an adjust."""
        ledger = self.said.setdefault(key, {}).setdefault(name, Ledger())
        if self.keyed:
            ledger.came = 1
            ledger.towards.clear()
            ledger.towards[end] += end > key[0]
        elif old_end is None:
            ledger.insert(end)
        else:
            ledger.adjust(key[0], old_end, end, complete=complete)

    def decided(self, key: Key, leader: str | None) -> None:
        """Which events there are is final, by what an input shows, or None for nobody's word."""
        if key not in self.own:
            ledgers = self.said.get(key, {})
            self.own[key] = ledgers[leader].came if leader in ledgers else 0

    def count(self, name: str) -> int:
        """The events that an input shows now, beyond what those who decided had shown."""
        return sum(
            max(self.said[key][name].showing().total() - own, 0)
            for key, own in self.own.items()
            if name in self.said.get(key, {})
        )
