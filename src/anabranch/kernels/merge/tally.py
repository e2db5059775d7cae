"""What a merge knows of its inputs by name."""

from dataclasses import dataclass

from anabranch.kernels.merge.choice import Side
from anabranch.model.time import BEGINNING


@dataclass(slots=True)
class Tally:
    """What is counted for an input over all its attaches."""

    elements: int = 0
    led: int = 0
    refused: int = 0
    disagreements: int = 0
    holes: int = 0
    filled: int = 0
    late: int = 0
    removed: int = 0
    frontier: int = BEGINNING
    """Its greatest stable when it last left."""


@dataclass(slots=True)
class Input:
    """State of one attached input: its number, what was declared, and its greatest stable.

    One that was forced has joined whatever it guarantees.
    """

    number: int
    declared: Side
    frontier: int = BEGINNING
    forced: bool = False
