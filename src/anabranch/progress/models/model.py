"""What a model of progress is.

A model is asked after each stretch of rows, and sees no rows: only which channels sent something, and the
greatest start of their valid events so far (rows of a snapshot aside: it takes long to read, and the log
after it goes on from where it began). What it answers counts when the pass ends. It may answer for channels
that sent nothing. It has no clock: what is seen in one order always gives the same answers, so that a
micro-batch that runs again, and every shard, promise the same.
"""

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray


class Promises(NamedTuple):
    """Channels, by their numbers in the table of the gate, and until when they are stable."""

    channels: NDArray[np.int64]
    times: NDArray[np.int64]

    @classmethod
    def none(cls) -> "Promises":
        """No channel promises anything."""
        return cls(np.empty(0, np.int64), np.empty(0, np.int64))


class Model(Protocol):
    """State: what a model has seen and needs to know."""

    def observe(self, channels: NDArray[np.int64], latest: NDArray[np.int64]) -> Promises:
        """What is promised when events of some channels have started as late as this."""
        ...

    def forget(self, channel: int) -> Promises:
        """What is promised when a channel ends or its replica leaves; its number may be used for another."""
        ...

    def saved(self) -> dict[str, Any]:
        """All of the state, as JSON has it."""
        ...


class Progress(Protocol):
    """How a source makes progress, as a plan has it: a value from which gates make models."""

    def model(self) -> Model:
        """A model that has seen nothing."""
        ...

    def resumed(self, saved: dict[str, Any]) -> Model:
        """The model that was saved."""
        ...
