"""Elements of some channels of a source, those of each in its order: what a gate is given.

A channel is one ordered part of what a replica sends: a file, a partition of a topic, what a program pushes.
A stretch is what comes of one channel at once. What is known of a stretch holds for all of its rows, wherever
they are: where the rows of a source are dealt out to shards, each shard has some of them and knows of all.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from anabranch.model.application import STABLE
from anabranch.model.batch import Batch
from anabranch.model.op import of_snapshot
from anabranch.model.time import BEGINNING, FOREVER


@dataclass(frozen=True, slots=True)
class Stretch:
    """One stretch of one channel of one replica, from a sequence number on."""

    replica: str
    channel: str = ""
    sequence: int = 0
    ordered: bool = True
    """The order of its rows is known; else its stables count at the end of the pass."""
    last: int = 0
    """The sequence number of its last row."""
    snapshot: int | None = None
    """The least time of its rows that are of a snapshot, if any are."""
    latest: int | None = None
    """The greatest start of its valid events, those of a snapshot aside; None: as its rows here show."""


class Elements(Protocol):
    """Elements in columns, from which batches are made: a `Batch`, or rows that are packed."""

    @property
    def kind(self) -> NDArray[np.int8]:
        """What each is."""
        ...

    @property
    def start(self) -> NDArray[np.int64]:
        """The start of an event, the time of a stable, the guarantee of an attach."""
        ...

    @property
    def end(self) -> NDArray[np.int64]:
        """The end of an event."""
        ...

    @property
    def old_end(self) -> NDArray[np.int64]:
        """The end that an adjust changes."""
        ...

    def __len__(self) -> int:
        """How many there are."""
        ...

    def __getitem__(self, rows: slice) -> "Elements":
        """Some that stand together."""
        ...

    def take(self, rows: NDArray[Any]) -> Batch:
        """Some as a batch, by their places or a mask."""
        ...


@dataclass(frozen=True, slots=True)
class ChannelRows:
    """Stretches of different channels, and elements of theirs in the order of the stretches."""

    stretches: tuple[Stretch, ...]
    elements: Elements
    stretch: NDArray[np.int32] | None = None
    """Of each row the number of its stretch, ascending; None: all rows are of the first."""
    shared: bool = False
    """Other shards have rows of these stretches, too."""

    def __len__(self) -> int:
        return len(self.elements)

    @classmethod
    def of(cls, batch: Batch, replica: str = "", channel: str = "") -> "ChannelRows":
        """What one channel sends."""
        return cls((Stretch(replica, channel),), batch)

    def batch(self) -> Batch:
        """All of the elements."""
        elements = self.elements
        return elements if isinstance(elements, Batch) else elements.take(np.arange(len(elements)))

    def bounds(self) -> list[int]:
        """Where the rows of each stretch begin, and where the last ones end."""
        if self.stretch is None:
            return [0] + [len(self)] * len(self.stretches)
        return np.searchsorted(self.stretch, np.arange(len(self.stretches) + 1)).tolist()

    def each(self) -> Iterator["ChannelRows"]:
        """Each stretch by itself."""
        if len(self.stretches) == 1:
            yield self
            return
        bounds = self.bounds()
        for n, one in enumerate(self.stretches):
            yield replace(
                self, stretches=(one,), elements=self.elements[bounds[n] : bounds[n + 1]], stretch=None
            )

    def between_controls(self) -> Iterator["ChannelRows"]:
        """Of each stretch in turn what comes before each attach or detach, that by itself, and what follows.

        What does not come is left out. Where other shards have rows, too, a stretch sends something wherever
        a number is missing here. What was observed of a whole stretch is observed of none of its parts.
        """
        for one in self.each():
            stretch, elements = one.stretches[0], one.elements
            latest = None if stretch.latest is None else BEGINNING
            begin, first = 0, stretch.sequence
            for cut in [*np.flatnonzero(elements.kind > STABLE).tolist(), len(elements)]:
                is_control = cut < len(elements)
                place = stretch.last + 1
                if is_control and self.shared:
                    place = _number(elements, cut)
                if cut > begin or (self.shared and place > first):
                    part = replace(stretch, sequence=first, last=place - 1, latest=latest)
                    yield replace(one, stretches=(part,), elements=elements[begin:cut])
                if is_control:
                    part = replace(stretch, sequence=place, last=place, latest=latest)
                    yield replace(one, stretches=(part,), elements=elements[cut : cut + 1])
                begin, first = cut + 1, place + 1

    def is_control(self) -> bool:
        """It is one attach or detach."""
        return len(self) == 1 and bool(self.elements.kind[0] > STABLE)

    def cut(self, before: Callable[[Elements], int]) -> tuple["ChannelRows", "ChannelRows"]:
        """What is before a place in the rows of each stretch, and the rest."""
        bounds = self.bounds()
        places = [begin + before(self.elements[begin:end]) for begin, end in pairwise(bounds)]
        if self.stretch is None:
            place = places[0] if places else 0
            return (
                replace(self, elements=self.elements[:place]),
                replace(self, elements=self.elements[place:]),
            )
        is_first = np.arange(len(self)) < np.array(places, np.int64)[self.stretch]
        return self._take(is_first), self._take(~is_first)

    def with_snapshots(self) -> "ChannelRows":
        """The same rows, with the least time of rows of a snapshot in each stretch."""
        bounds, found = self.bounds(), []
        for n, one in enumerate(self.stretches):
            part = self.elements[bounds[n] : bounds[n + 1]]
            least = int(part.start.min(where=of_snapshot(part.kind, part.old_end), initial=FOREVER))
            found.append(one if least == FOREVER else replace(one, snapshot=least))
        return replace(self, stretches=tuple(found))

    def _take(self, rows: NDArray[np.bool_]) -> "ChannelRows":
        assert self.stretch is not None, "there are several stretches"
        return replace(self, elements=self.elements.take(rows), stretch=self.stretch[rows])


def _number(elements: Elements, row: int) -> int:
    """The sequence number of a row."""
    origin = elements.take(np.array([row])).origin
    assert origin is not None, "rows of a shard have numbers"
    return int(origin.number[0])
