"""How a relation came to be: every version an event ever had, with when it arrived and when it went.

This is CEDR's history table (CE 2), with positions in the stream as arrival times; the rows that were never
replaced are its canonical history table, which is the relation.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from anabranch.model.batch import Batch
from anabranch.model.elements import Adjust, Event, Stable


@dataclass(frozen=True, slots=True)
class Version:
    """An event as it was from one element of the stream until another."""

    event: Event
    arrived: int
    replaced: int | None
    """The position of the element that changed it; None while it is like this."""

    @property
    def current(self) -> bool:
        """The event is still like this."""
        return self.replaced is None


def history(batches: Iterable[Batch]) -> list[Version]:
    """Every version of every event of a valid stream, by arrival; of equal ones the oldest is replaced first.

    >>> from anabranch.model.elements import Insert
    >>> stream = Batch.of([Insert({"p": 1}, 1, 9), Insert({"p": 2}, 4, 9), Adjust({"p": 1}, 1, 9, 5)])
    >>> [(v.event.payload["p"], v.event.end, v.arrived, v.replaced) for v in history([stream])]
    [(1, 9, 1, 3), (2, 9, 2, None), (1, 5, 3, None)]
    """
    versions: list[Version] = []
    current: dict[tuple[int, int, int, int], list[int]] = defaultdict(list)
    position = 0
    for batch in batches:
        for element, (low, high) in zip(batch.elements(), batch.identities.tolist(), strict=True):
            position += 1
            if isinstance(element, Stable):
                continue
            if isinstance(element, Adjust):
                row = current[low, high, element.start, element.old_end].pop(0)
                versions[row] = Version(versions[row].event, versions[row].arrived, position)
            if element.end > element.start:
                current[low, high, element.start, element.end].append(len(versions))
                event = Event(element.payload, element.start, element.end)
                versions.append(Version(event, position, None))
    return versions
