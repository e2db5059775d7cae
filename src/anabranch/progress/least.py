"""The least of many times that only rise, one to a place: a tree in which each node is the least of two.

Cost: one comparison for each doubling of the places, to change one time; none to know the least.
"""

import numpy as np

from anabranch.model.compiled import compiled
from anabranch.model.time import FOREVER


class Least:
    """State: a tree over places; those that are not used are at FOREVER.

    >>> least = Least()
    >>> places = [least.add(time) for time in (3, 5, 4)]
    >>> least.set(places[0], 9)
    >>> least.time
    4
    """

    __slots__ = ("free", "tree", "used")

    def __init__(self) -> None:
        self.tree = np.full(2, FOREVER, np.int64)
        self.free: list[int] = []
        self.used = 0
        """Places that have been given out; those in ``free`` may be again."""

    def __len__(self) -> int:
        return self.used - len(self.free)

    @property
    def time(self) -> int:
        """The least; FOREVER where there is no place."""
        return int(self.tree[1])

    def add(self, time: int) -> int:
        """A place of its own for a time."""
        if self.free:
            place = self.free.pop()
        else:
            place, self.used = self.used, self.used + 1
            if place >= len(self.tree) // 2:
                self._double()
        self.set(place, time)
        return place

    def set(self, place: int, time: int) -> None:
        """A place has another time."""
        if len(self.tree) == 2:
            self.tree[1] = time
        else:
            set_time(self.tree, place, time)

    def get(self, place: int) -> int:
        """The time of a place."""
        return int(self.tree[len(self.tree) // 2 + place])

    def remove(self, place: int) -> None:
        """A place is given back."""
        self.set(place, FOREVER)
        self.free.append(place)

    def _double(self) -> None:
        times = self.tree[len(self.tree) // 2 :]
        self.tree = np.full(4 * len(times), FOREVER, np.int64)
        self.tree[2 * len(times) : 3 * len(times)] = times
        fill(self.tree)


@compiled
def set_time(tree: np.ndarray, place: int, time: int) -> None:
    """Write a time and the nodes above it; ``place`` is below half of the length of the tree."""
    node = len(tree) // 2 + place
    tree[node] = time
    while node > 1:
        node //= 2
        tree[node] = min(tree[2 * node], tree[2 * node + 1])


@compiled
def fill(tree: np.ndarray) -> None:
    """Write all nodes above the places."""
    for node in range(len(tree) // 2 - 1, 0, -1):
        tree[node] = min(tree[2 * node], tree[2 * node + 1])
