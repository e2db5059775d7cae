"""What a model of progress is.

A model is asked after each stretch of rows, and sees no rows: only which channels sent something, and the
greatest start of the valid events in it (rows of a snapshot aside: it takes long to read, and the log after
it goes on from where it began). What it answers counts when the pass ends. It may answer for channels that
sent nothing. It has no clock: what is seen in one order always gives the same answers, so that a micro-batch
that runs again, and every shard, promise the same.

A channel or replica has a number as long as the gate knows it, and another after a restart: what is saved is
saved by the names of replicas and channels. `docs/adding-a-progress-model.md` adds one.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray


class Promises(NamedTuple):
    """Channels and replicas, by their numbers in the table of the gate, and until when they are stable."""

    channels: NDArray[np.int64]
    times: NDArray[np.int64]

    @classmethod
    def none(cls) -> "Promises":
        """None promises anything."""
        return cls(np.empty(0, np.int64), np.empty(0, np.int64))


class Model(Protocol):
    """State: what a model has seen and needs to know."""

    def enter(self, number: int, replica: str, channel: str | None) -> Promises:
        """What is promised when a channel becomes known, by a number, or a replica itself (None).

        After a restart all that were known enter again; what is promised then was promised before. A replica
        that promises needs no channel for it: all that it may send is behind what it promises.
        """
        ...

    def observe(self, channels: NDArray[np.int64], latest: NDArray[np.int64]) -> Promises:
        """What is promised when events of some channels have started as late as this."""
        ...

    def forget(self, numbers: Sequence[int]) -> Promises:
        """What others promise when a channel ends, or a replica leaves and all of its channels with it.

        The numbers may be those of others after that.
        """
        ...

    def saved(self) -> dict[str, Any]:
        """All of the state, as JSON has it."""
        ...


@runtime_checkable
class Progress(Protocol):
    """How a source makes progress, as a plan has it: a value from which gates make models."""

    def model(self) -> Model:
        """A model that has seen nothing."""
        ...

    def resumed(self, saved: dict[str, Any]) -> Model:
        """The model that was saved, in which no channel has a number yet."""
        ...

    def __str__(self) -> str:
        """How it stands in the settings that a state is compared with, and in `explain`."""
        ...
