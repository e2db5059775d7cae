"""The inputs of a merge, by number: what each has promised, and what is known of its conduct.

A number belongs to one attach. An input that is detached and attached again is another input, because what it
says after a restart repeats or leaves out what it said before.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anabranch.model.time import BEGINNING


class Sides(NamedTuple):
    """State: one row per number."""

    attached: NDArray[np.bool_]
    joined: NDArray[np.bool_]
    """It may drive the stable: its guarantee is reached (LM V-B), or it is lossy and has caught up."""
    complete: NDArray[np.bool_]
    """Its stable vouches for what is absent too."""
    idle: NDArray[np.bool_]
    """It is silent and nobody waits for it."""
    guarantee: NDArray[np.int64]
    reached: NDArray[np.int64]
    """The greatest stable it has said, less the lag of the policy."""
    attached_as: NDArray[np.int64]
    """The how-manieth attach it was."""
    late: NDArray[np.int64]
    disagreements: NDArray[np.int64]
    holes: NDArray[np.int64]
    filled: NDArray[np.int64]
    """Holes of others in which it was the first to show the event."""
    removed: NDArray[np.int64]
    """Events that it shows and the output lacks, because the complete input that led never showed them."""
    keyed: NDArray[np.bool_]
    """It promised that payload and start are a key of what it shows."""
    latest: NDArray[np.int64]
    """The greatest start of its inserts at or after the output's stable; kept where the policy needs it."""
    unfrozen: NDArray[np.int64]
    """Events that it shows and the output's stable leaves unfrozen; kept where the policy needs it."""

    @classmethod
    def of_capacity(cls, capacity: int) -> "Sides":
        """Nobody, with room for this many."""
        attached, joined, complete, idle, keyed = np.zeros((5, capacity), np.bool_)
        guarantee, reached, latest = np.full((3, capacity), BEGINNING)
        attached_as, late, disagreements, holes, filled, removed, unfrozen = np.zeros((7, capacity), np.int64)
        return cls(
            attached,
            joined,
            complete,
            idle,
            guarantee,
            reached,
            attached_as,
            late,
            disagreements,
            holes,
            filled,
            removed,
            keyed,
            latest,
            unfrozen,
        )

    @classmethod
    def restored(cls, columns: list[list[int]]) -> "Sides":
        """The inputs whose columns were written out as numbers; the last may be missing in what is old."""
        sides = cls.of_capacity(len(columns[0]))
        for column, values in zip(sides, columns, strict=False):
            column[:] = values
        return sides

    @property
    def capacity(self) -> int:
        """How many fit."""
        return len(self.attached)

    def free(self) -> int | None:
        """A number that is nobody's, if there is one."""
        empty = np.flatnonzero(~self.attached)
        return int(empty[0]) if len(empty) else None

    def copied(self) -> "Sides":
        """The same inputs, to be changed apart."""
        return Sides.restored([column.tolist() for column in self])

    def doubled(self) -> "Sides":
        """The same inputs, with room for twice as many."""
        larger = Sides.of_capacity(2 * self.capacity)
        for new, old in zip(larger, self, strict=True):
            new[: self.capacity] = old
        return larger

    def attach(
        self,
        number: int,
        guarantee: int,
        attached_as: int,
        *,
        complete: bool,
        stable: int,
        keyed: bool = False,
    ) -> None:
        """A number is somebody's from now on."""
        for column in self:
            column[number] = 0
        self.attached[number], self.complete[number], self.keyed[number] = True, complete, keyed
        self.guarantee[number], self.reached[number], self.latest[number] = guarantee, BEGINNING, BEGINNING
        self.attached_as[number] = attached_as
        self.joined[number] = stable >= guarantee if complete else stable == BEGINNING
