"""Stables are in the data: nothing follows from events."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anabranch.progress.models.model import Promises

_NONE = Promises.none()


@dataclass(frozen=True, slots=True)
class Stated:
    """A channel is stable until what its stables say. It has no state, so it is its own model."""

    def __str__(self) -> str:
        return "stables are in the data"

    def model(self) -> "Stated":
        """It."""
        return self

    def resumed(self, saved: dict[str, Any]) -> "Stated":
        """It."""
        return self

    def enter(self, number: int, replica: str, channel: str | None) -> Promises:
        """Nothing."""
        return _NONE

    def observe(self, channels: NDArray[np.int64], latest: NDArray[np.int64]) -> Promises:
        """Nothing."""
        return _NONE

    def forget(self, numbers: Sequence[int]) -> Promises:
        """Nothing."""
        return _NONE

    def saved(self) -> dict[str, Any]:
        """Nothing."""
        return {}
