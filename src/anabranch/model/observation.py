"""Which facts hold of a stream, as far as it has been seen."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anabranch.model.application import ADJUST, INSERT, STABLE
from anabranch.model.batch import Batch, Kind
from anabranch.model.compiled import compiled
from anabranch.model.event_table import EventTable, find, node_at, occupy, tag_of, vacate
from anabranch.model.properties import Fact, Properties
from anabranch.model.slots import NONE
from anabranch.model.time import BEGINNING


@dataclass(slots=True)
class Observation:
    """State: where each fact was first broken, and what is needed to find the next.

    Deterministic ties compare several streams; of one alone they are known only where there are no ties.
    Memory: the (payload, start) pairs that a stable has not passed, as long as they are a key.
    """

    broken_at: dict[Fact, int] = field(default_factory=dict)
    """The position of the first element that broke each fact."""
    position: int = 0
    stable: int = BEGINNING
    latest: int = BEGINNING
    """The greatest sync time seen."""
    furthest: int = BEGINNING
    """The greatest start or end seen."""
    keys: EventTable = field(default_factory=lambda: EventTable.of_capacity(1024), repr=False)

    def look_at(self, batch: Batch) -> None:
        """Break the facts that these valid elements break."""
        adjust = batch.kind == Kind.ADJUST
        data = np.flatnonzero(batch.kind <= Kind.ADJUST)
        sync = np.where(adjust, np.minimum(batch.old_end, batch.end), batch.start)[data]
        before = np.maximum.accumulate(np.concatenate([[self.latest], sync]))[:-1]
        adjusts = np.flatnonzero(adjust)
        self._break(Fact.INSERT_ONLY, adjusts)
        self._break(Fact.ORDERED, data[sync < before])
        self._break(Fact.STRICTLY_INCREASING, data[(sync <= before) & (before > BEGINNING)])
        self._break(Fact.SHRINKING, adjusts[batch.end[adjusts] > batch.old_end[adjusts]])
        self._break(Fact.KEPT, adjusts[batch.end[adjusts] == batch.start[adjusts]])
        self._look_for_repeats(batch)
        for times in (sync, batch.end[data], batch.start[data]):
            self.furthest = max(self.furthest, int(times.max(initial=BEGINNING)))
        self.latest = max(self.latest, int(sync.max(initial=BEGINNING)))
        self.stable = max(self.stable, int(batch.start[batch.kind == Kind.STABLE].max(initial=BEGINNING)))
        self.position += len(batch)

    def properties(self) -> Properties:
        """What has held so far; closed, if the last stable covers everything."""
        facts = {
            Fact.INSERT_ONLY,
            Fact.ORDERED,
            Fact.STRICTLY_INCREASING,
            Fact.SHRINKING,
            Fact.KEPT,
            Fact.KEYED,
        }
        closed = {Fact.CLOSED} if self.stable >= self.furthest else set()
        return Properties(frozenset(facts - self.broken_at.keys() | closed))

    def _break(self, fact: Fact, rows: NDArray[np.int64]) -> None:
        if len(rows):
            self.broken_at.setdefault(fact, self.position + int(rows[0]) + 1)

    def _look_for_repeats(self, batch: Batch) -> None:
        if Fact.KEYED in self.broken_at:
            return
        if len(batch) > self.keys.pool.height[0]:
            live = self.keys.live()
            self.keys.remove(live[self.keys.start[live] < self.stable])
            self.keys = self.keys.with_room(len(batch))
        repeat = _first_repeat(self.keys, batch.kind, batch.start, batch.end, batch.identities)
        self._break(Fact.KEYED, np.flatnonzero(np.arange(len(batch)) == repeat))


@compiled
def _first_repeat(keys: EventTable, kind: Any, start: Any, end: Any, identity: Any) -> int:
    """The first insert of a payload and start that an event has already, or -1."""
    for i in range(len(kind)):
        if kind[i] == STABLE or (kind[i] == ADJUST and end[i] > start[i]):
            continue
        low, high = identity[i, 0], identity[i, 1]
        tag = tag_of(low, high, start[i], 0)
        slot = find(keys, tag, low, high, start[i], 0)
        if kind[i] == INSERT:
            if node_at(keys, slot) != NONE:
                return i
            occupy(keys, slot, tag, low, high, start[i], 0)
        elif node_at(keys, slot) != NONE:
            vacate(keys, slot)
    return -1


def observe(batches: Iterable[Batch]) -> Observation:
    """What holds of a recorded stream.

    >>> from anabranch.model.elements import Insert, Stable
    >>> str(observe([Batch.of([Insert({"n": 1}, 3, 9), Insert({"n": 2}, 5, 9), Stable(9)])]).properties())
    'insert only, ordered, strictly increasing, deterministic ties, keyed, shrinking, kept, perfect, closed'
    """
    observation = Observation()
    for batch in batches:
        observation.look_at(batch)
    return observation
