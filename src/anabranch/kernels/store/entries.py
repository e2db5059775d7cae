"""Entries that name slots by a key: taken once a key has passed, the least of them at hand.

An entry names its slot together with the serial number that the slot had then, so that it is stale once the
slot is free or is given to another. Stale entries go when they are in front, or all together.

Memory: 24 bytes for each entry; once the least has been asked for, there are at most twice as many as slots
are used, and 1,024. Cost: each is put into a sorted run, and merged as often as the logarithm of how many
there are.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from anabranch.kernels.runs import KEY, Rows, Runs, by_key

_SLOT, _SERIAL = 1, 2
_STALE = 1024
_FIRST_LOOK = 64


@dataclass(slots=True)
class Entries:
    """State: entries in runs by their keys.

    >>> serial, entries = np.array([7, 8, -1]), Entries()
    >>> entries.add(np.array([0, 1], np.int32), np.array([30, 20]), serial)
    >>> entries.least(serial, 2), entries.take_before(25, serial).tolist(), entries.least(serial, 2)
    (20, [1], 30)
    """

    runs: Runs = field(default_factory=lambda: by_key(3))

    def __len__(self) -> int:
        """How many there are, the stale ones included."""
        return len(self.runs)

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self.runs.nbytes

    def add(self, slots: NDArray[np.int32], key: NDArray[np.int64], serial: NDArray[np.int64]) -> None:
        """Name slots by keys; serial numbers are by slot, here as elsewhere."""
        self.runs.add(np.stack([key, slots.astype(np.int64), serial[slots]]))

    def take_before(self, key: int, serial: NDArray[np.int64]) -> NDArray[np.int32]:
        """The slots that are named by lesser keys, but for stale entries; the entries are gone then."""
        due = self.runs.take_before(key)
        return due[_SLOT][_fresh(due, serial)].astype(np.int32)

    def least(self, serial: NDArray[np.int64], used: int) -> int | None:
        """The least key of an entry that is not stale, where this many slots are used; None without any."""
        if len(self.runs) > 2 * used + _STALE:
            entries = self.runs.take_all()
            self.runs.add(np.compress(_fresh(entries, serial), entries, axis=1))
        left = [_without_stale_front(run, serial) for run in self.runs.runs]
        self.runs.runs = [run for run in left if run.shape[1]]
        return min((int(run[KEY, 0]) for run in self.runs.runs), default=None)

    def clear(self) -> None:
        """Forget all."""
        self.runs.runs = []


def by_serial(serial: NDArray[np.int64]) -> NDArray[np.int32]:
    """The slots that are used, those with a serial number, in its order."""
    used = np.flatnonzero(serial >= 0).astype(np.int32)
    return used[np.argsort(serial[used])]


def _fresh(entries: Rows, serial: NDArray[np.int64]) -> NDArray[np.bool_]:
    return serial[entries[_SLOT]] == entries[_SERIAL]


def _without_stale_front(run: Rows, serial: NDArray[np.int64]) -> Rows:
    look = _FIRST_LOOK
    while run.shape[1]:
        fresh = _fresh(run[:, :look], serial)
        if fresh.any():
            first = int(fresh.argmax())
            return run[:, first:] if first else run
        run, look = run[:, look:], 2 * look
    return run
