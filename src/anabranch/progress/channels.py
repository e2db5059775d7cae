"""How far each channel of each replica has come: a table, and of each replica the least.

A replica has a number of its own, too: it and all of its channels, those that are still to come included, are
stable until what that number is, however far its channels have come.

Cost: to move a channel the logarithm of the channels of its replica; replicas that do not move cost nothing.
"""

from collections.abc import Iterator
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from anabranch.model.time import BEGINNING
from anabranch.progress.least import Least

Saved: TypeAlias = dict[str, tuple[int, dict[str, int]]]
_NONE = -1
"""The place of a number that is a replica's own."""


class Channels:
    """State: in columns by number, how far channels have come and their places among those of their replica.

    A number stays that of its channel or replica until the replica leaves, and is then that of another.
    """

    def __init__(self, needed: int = 1) -> None:
        """``needed``: how many channels of a replica must have sent something before it is stable at all."""
        self.needed = needed
        self.numbers: dict[str, dict[str, int]] = {}
        """By replica, of those that are attached, and by channel."""
        self.whole: dict[str, int] = {}
        """The number of each replica itself."""
        self.frontier = np.full(16, BEGINNING, np.int64)
        self.place = np.full(16, _NONE, np.int32)
        self.owner: list[str] = []
        """The replica of each number."""
        self.free: list[int] = []
        self.least: dict[str, Least] = {}
        self.moved: dict[str, None] = {}
        """Replicas of which a channel moved since `moves` was asked, in the order in which they did."""

    def enter(self, replica: str) -> int:
        """The number of a replica of which no channel is known yet."""
        self.numbers[replica], self.least[replica] = {}, Least()
        self.whole[replica] = self._new(replica)
        return self.whole[replica]

    def leave(self, replica: str) -> None:
        """A replica is gone, with its channels."""
        self.free += [*self.numbers.pop(replica).values(), self.whole.pop(replica)]
        del self.least[replica]
        self.moved.pop(replica, None)

    def number(self, replica: str, channel: str) -> int:
        """The number of a channel of a replica that is attached; a new one is stable until nothing."""
        known = self.numbers[replica]
        number = known.get(channel)
        if number is None:
            number = known[channel] = self._new(replica)
            self.place[number] = self.least[replica].add(BEGINNING)
            self.moved[replica] = None
        return number

    def _new(self, replica: str) -> int:
        if self.free:
            number = self.free.pop()
            self.frontier[number], self.place[number], self.owner[number] = BEGINNING, _NONE, replica
            return number
        number = len(self.owner)
        self.owner.append(replica)
        if number == len(self.frontier):
            self.frontier = np.concatenate([self.frontier, np.full(number, BEGINNING)])
            self.place = np.concatenate([self.place, np.full(number, _NONE, np.int32)])
        return number

    def forget(self, replica: str, channel: str) -> None:
        """A channel is at its end: its replica is stable until the least of the others, if there are any."""
        known = self.numbers.get(replica, {})
        if len(known) > 1 and channel in known:
            number = known.pop(channel)
            self.free.append(number)
            self.least[replica].remove(int(self.place[number]))
            self.moved[replica] = None

    def reached(self, replica: str, channel: str) -> int:
        """How far a channel has come, which may be one that is still to come."""
        if replica not in self.numbers:
            return BEGINNING
        whole, number = int(self.frontier[self.whole[replica]]), self.numbers[replica].get(channel)
        return whole if number is None else max(whole, int(self.frontier[number]))

    def reach(self, number: int, time: int) -> None:
        """A channel or replica is stable until a time, and until what it was stable until before."""
        if time > self.frontier[number]:
            replica, place = self.owner[number], int(self.place[number])
            self.frontier[number] = time
            if place != _NONE:
                self.least[replica].set(place, time)
            self.moved[replica] = None

    def reach_all(self, numbers: NDArray[np.int64], times: NDArray[np.int64]) -> None:
        """Several channels or replicas are stable until times."""
        rise = times > self.frontier[numbers]
        for number, time in zip(numbers[rise].tolist(), times[rise].tolist(), strict=True):
            self.reach(number, time)

    def stable(self, replica: str) -> int:
        """How far all channels of a replica have come, or it has itself."""
        least, whole = self.least[replica], int(self.frontier[self.whole[replica]])
        return max(least.time, whole) if len(least) >= self.needed else whole

    def moves(self) -> list[str]:
        """The replicas of which a channel moved since this was asked before."""
        moved, self.moved = list(self.moved), {}
        return moved

    def items(self) -> Iterator[tuple[str, str, int]]:
        """Every channel: its replica, its name, and how far it has come."""
        for replica, known in self.numbers.items():
            for channel, number in known.items():
                yield replica, channel, int(self.frontier[number])

    def saved(self) -> Saved:
        """By replica how far it has come itself, and each of its channels."""
        found: Saved = {name: (int(self.frontier[number]), {}) for name, number in self.whole.items()}
        for replica, channel, time in self.items():
            found[replica][1][channel] = time
        return found

    @classmethod
    def load(cls, saved: Saved, needed: int) -> "Channels":
        """The table that was saved."""
        channels = cls(needed)
        for replica, (whole, known) in saved.items():
            channels.reach(channels.enter(replica), whole)
            for channel, time in known.items():
                channels.reach(channels.number(replica, channel), time)
        channels.moved = {}
        return channels
