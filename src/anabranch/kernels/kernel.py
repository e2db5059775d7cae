"""What every operator is to whoever runs it: a kernel, which has state, or a step, which has none.

**Events go in, events come out.** A push is an instant: what comes of it counts after all of it, and its net
effect is enough. Rows that are stables may stand in what is pushed; an operator that does not act on them
where they stand passes over them (``kind > ADJUST``), and none gives any out.

**Promises are numbers.** ``advance`` says until when an input is stable; the kernel's own promise is
``frontier``, which never falls. What ``push`` gives is valid against the frontier before the call, and so is
what ``advance`` gives: the new frontier counts after it.

**What is not used is data**: rows as they came, with the rule that they break. Raising, dropping and setting
aside are for whoever drives the flow.

**Deterministic.** No clock, no randomness, no I/O; the same calls give the same answers. ``saved`` is all of
the state, as plain values and record batches with a version.

**Cost.** ``push`` O((rows + changed) log live), ``advance`` O((changed + 1) log live), ``saved`` O(live).
After ``advance(FOREVER)`` of all inputs nothing is held.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anabranch.model.batch import Batch
from anabranch.model.identity import Words
from anabranch.model.properties import Properties
from anabranch.model.validity import Rule


class Refused(NamedTuple):
    """Rows that were not used, as they came, and the rule that all of them break."""

    rule: Rule
    batch: Batch
    """Its `origin`, where it has one, says which rows they were."""
    known: NDArray[np.int64]
    """Of each row the time that it is held against: the stable it is behind, since when another is there."""
    detail: str = ""
    """The values that break the rule, alike for all rows but for ``{known}`` and ``{element}``, which stand
    for the time and for the row itself (`answers.in_words`)."""
    name: str | None = None
    """The input that sent them, where that need not be the one of the call: it may have had to wait."""


class Result(NamedTuple):
    """What comes of a call."""

    events: Batch
    refused: tuple[Refused, ...] = ()


class State(NamedTuple):
    """All that a kernel knows, as data that another process can read."""

    version: int
    values: dict[str, Any]
    """As JSON has them."""
    batches: list[pa.RecordBatch]


class Report(NamedTuple):
    """What a kernel holds, and what it has counted since it began."""

    live: int
    """Events, or partial results, that are held."""
    nbytes: int
    counts: Mapping[str, int] = {}


class Kernel(Protocol):
    """An operator with state. Inputs have names; an operator of one input does not look at its name."""

    @property
    def held(self) -> bool:
        """Its frontier depends on events and not only on the frontiers of its inputs, so shards differ."""
        ...

    @property
    def frontier(self) -> int:
        """The stable of the output."""
        ...

    def push(self, name: str, batch: Batch) -> Result:
        """What comes of events of one input."""
        ...

    def advance(self, name: str, time: int) -> Result:
        """What comes of one input being stable until a time."""
        ...

    def report(self) -> Report:
        """What is held and was counted."""
        ...

    def saved(self) -> State:
        """All of the state; the node that made the kernel makes it again from this."""
        ...


@runtime_checkable
class Step(Protocol):
    """An operator without state: a map of batches, and a monotone map of promises."""

    def map(self, batch: Batch) -> Result:
        """What comes of elements, in their order; rows may be dropped."""
        ...

    def reached(self, time: int) -> int:
        """Until when the output is stable where the input is stable until a time."""
        ...


@runtime_checkable
class Joinable(Protocol):
    """A kernel whose inputs come and go."""

    @property
    def inputs(self) -> Mapping[str, Any]:
        """Those that are attached, by name."""
        ...

    def attach(
        self,
        name: str,
        guarantee: int | None = None,
        properties: Properties | None = None,
        *,
        complete: bool = True,
    ) -> Result:
        """What comes of an input that joins; it shows all that ends at or after its guarantee (None: all)."""
        ...

    def detach(self, name: str) -> Result:
        """What comes of an input that leaves."""
        ...

    def idle(self, name: str) -> Result:
        """What comes of not waiting for an input until it speaks again."""
        ...


@runtime_checkable
class Shows(Protocol):
    """A kernel that knows which events an input shows now."""

    def shows(
        self, name: str, identities: Words, start: NDArray[np.int64], end: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """How often an input shows each of some events, as far as they can still change."""
        ...


@runtime_checkable
class Settles(Protocol):
    """A kernel whose inputs may begin with a snapshot, and whose promises count once a pass is over."""

    def begins(self, name: str, time: int | None = None) -> Result:
        """What comes of the first word of an input, in any shard: perhaps a snapshot of a time."""
        ...

    def promise(self, name: str, time: int) -> None:
        """An input is stable until a time, which counts when the pass is settled."""
        ...

    def settle(self) -> Result:
        """What comes of all promises of a pass."""
        ...
