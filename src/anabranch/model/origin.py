"""Which row of which channel each element of a batch was, for people to find it again.

A channel is one ordered source: a file, a partition, what a program pushes. The number of a row is its place
in that order. Whoever takes elements out of a batch takes their origins along; elements that an operator
makes have none.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Origin:
    """Columns of equal length; ``channel`` is None where all rows are of the first of ``channels``."""

    number: NDArray[np.int64]
    channel: NDArray[np.int32] | None = None
    channels: tuple[str, ...] = ("",)
    ordered: bool = True
    """The number is the place in the channel; else it only tells rows apart."""

    def __len__(self) -> int:
        return len(self.number)

    def take(self, rows: Any) -> "Origin":
        """Of some of the rows: an array of places, a mask or a slice."""
        channel = None if self.channel is None else self.channel[rows]
        return Origin(self.number[rows], channel, self.channels, self.ordered)

    def channel_of(self, row: int) -> str:
        """The channel of one row."""
        return self.channels[0 if self.channel is None else int(self.channel[row])]

    def place_of(self, row: int) -> str:
        """Where one row is to be found, where its channel has a name."""
        channel = self.channel_of(row)
        return f"{channel}:{self.number[row]}" if channel else ""

    def of_channels(self) -> NDArray[np.int32]:
        """Of each row the number of its channel."""
        return np.zeros(len(self), np.int32) if self.channel is None else self.channel


def joined(parts: Sequence[Origin | None]) -> Origin | None:
    """One after the other; none where one of the parts has none."""
    known = [part for part in parts if part is not None]
    if len(known) < len(parts) or not known:
        return None
    number = np.concatenate([part.number for part in known])
    ordered = all(part.ordered for part in known)
    if all(part.channel is None and part.channels[:1] == known[0].channels[:1] for part in known):
        return Origin(number, None, known[0].channels[:1], ordered)
    names = {
        name: code for code, name in enumerate(dict.fromkeys(n for part in known for n in part.channels))
    }
    codes = [np.array([names[n] for n in part.channels], np.int32)[part.of_channels()] for part in known]
    return Origin(number, np.concatenate(codes), tuple(names), ordered)
