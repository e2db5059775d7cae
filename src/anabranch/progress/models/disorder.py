"""A bound on disorder: no event of a channel comes more than so much after one that starts later."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anabranch.model.time import BEGINNING
from anabranch.progress.models.model import Promises

_NONE = Promises.none()


@dataclass(frozen=True, slots=True)
class Disorder:
    """A channel is stable until its latest start less the bound. It has no state, so it is its own model.

    >>> import numpy as np
    >>> Disorder(5).observe(np.array([0, 3]), np.array([20, 7])).times.tolist()
    [15, 2]
    """

    bound: int
    """In ticks."""

    def __str__(self) -> str:
        return f"at most {self.bound} ticks late"

    def model(self) -> "Disorder":
        """It."""
        return self

    def resumed(self, saved: dict[str, Any]) -> "Disorder":
        """It."""
        return self

    def enter(self, number: int, replica: str, channel: str | None) -> Promises:
        """Nothing."""
        return _NONE

    def observe(self, channels: NDArray[np.int64], latest: NDArray[np.int64]) -> Promises:
        """The latest start of each channel less the bound, where that is a time at all."""
        some = (latest > BEGINNING) & (latest >= BEGINNING + self.bound)
        if some.all():
            return Promises(channels, latest - self.bound)
        return Promises(channels[some], latest[some] - self.bound)

    def forget(self, numbers: Sequence[int]) -> Promises:
        """Nothing."""
        return _NONE

    def saved(self) -> dict[str, Any]:
        """Nothing."""
        return {}
