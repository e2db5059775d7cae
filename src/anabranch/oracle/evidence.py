"""What inputs have said about one payload and start, and what follows where none of them is complete.

A lossy input vouches for what it shows: its inserts, adjusts and removals are evidence, its silence is none.
With lossy inputs alone there are, for one payload and start,

    the most events that any input has shown, less the most that any has removed,

and an end is still standing as often as

    the most times that any input moved an event to it, less the most times that any moved one away from it.

Both are maxima over inputs, so neither order nor repetition nor the number of copies matters. Inputs that
have passed the stable in question agree on the ends before it, so there the count of what stands is exact;
beyond it, one input may have left an end that another is still at, and then what inputs show now has to do.
Inputs that are no longer attached, complete ones too, are evidence still, and show nothing now.
Inputs that have passed come first, then all; ends before the stable come first, then those that more inputs
show, then the later ones.
"""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field


@dataclass
class Ledger:
    """All that one input has said about one payload and start."""

    came: int = 0
    gone: int = 0
    towards: Counter[int] = field(default_factory=Counter)
    away: Counter[int] = field(default_factory=Counter)

    def showing(self) -> Counter[int]:
        """The ends of the events that it shows now."""
        return self.towards - self.away

    def insert(self, end: int) -> None:
        """One more event."""
        self.came += 1
        self.towards[end] += 1

    def adjust(self, start: int, old_end: int, end: int, *, complete: bool) -> None:
        """Another end; that the event was there is told by this if by nothing else.

        An end that a complete input never showed was no end of its event: it does not count as left.
        """
        if self.came == self.gone:
            self.came += 1
        if not complete or self.showing()[old_end]:
            self.away[old_end] += 1
        if end > start:
            self.towards[end] += 1
        else:
            self.gone += 1


def events(ledgers: Collection[Ledger]) -> int:
    """How many events there are."""
    came = max((ledger.came for ledger in ledgers), default=0)
    gone = max((ledger.gone for ledger in ledgers), default=0)
    return max(came - gone, 0)


def standing(ledgers: Collection[Ledger]) -> Counter[int]:
    """The ends that nobody has moved away from."""
    ends = {end for ledger in ledgers for end in ledger.towards}
    found: Counter[int] = Counter()
    for end in ends:
        left = max(ledger.away[end] for ledger in ledgers)
        found[end] = max(0, max(ledger.towards[end] for ledger in ledgers) - left)
    return +found


def showing(ledgers: Collection[Ledger]) -> Counter[int]:
    """The ends that inputs show now, each as often as the one that shows it most."""
    found: Counter[int] = Counter()
    for ledger in ledgers:
        found |= ledger.showing()
    return found


def chosen(
    count: int,
    everyone: Collection[Ledger],
    present: Collection[Ledger],
    done: Collection[Ledger],
    given: Counter[int],
    open_from: int,
    stable: int,
) -> Counter[int]:
    """The ends of this many events after a stable, of the ends at or after ``open_from``.

    ``present`` are the inputs that have not left, ``done`` those of them that have passed the stable.

    Where fewer ends stand than there are events, ends of the output fill up, then the last end shown.
    """
    ends: Counter[int] = Counter()
    for source, voters in (
        (standing(done), done),
        (showing(done), done),
        (standing(everyone), present),
        (showing(present), present),
        (given, ()),
    ):
        votes = {end: sum(1 for ledger in voters if ledger.showing()[end]) for end in source}
        for end in sorted(source, key=lambda end: (end >= stable, -votes[end], -end)):
            if end >= open_from:
                ends[end] += max(0, min(source[end] - ends[end], count - ends.total()))
    if ends.total() < count:
        ends[max(end for ledger in everyone for end in ledger.towards)] += count - ends.total()
    return +ends
