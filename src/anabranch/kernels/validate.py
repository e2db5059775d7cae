"""Only adjusts of events that are there; all else passes as it comes.

It stands behind a source with revisions whose consumers hold no events themselves: a filter or a union would
hand an adjust of nothing on. Of an event its identity and lifetime are kept, not its payload.

Memory: a node per distinct event whose end the stable has not passed, and at most as many that it has.
Cost: a look at all of them for each time that they double.
"""

from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from anabranch.kernels.kernel import Refused, Report, Result, State
from anabranch.kernels.store.saved import version_of
from anabranch.model.application import MISSING, VALID, apply_elements
from anabranch.model.batch import Batch, Kind
from anabranch.model.event_table import EventTable
from anabranch.model.time import BEGINNING, FOREVER
from anabranch.model.validity import Rule

VERSION = 1
_LEAST = 1024
"""Events that are kept however old they are."""
_COLUMNS = ("low", "high", "start", "end", "copies")


class Validate:
    """State: the events that an adjust may still name."""

    held: ClassVar[bool] = False

    def __init__(self) -> None:
        self.frontier = BEGINNING
        self.table = EventTable.of_capacity(1024)
        self._due = _LEAST

    def push(self, name: str, batch: Batch) -> Result:
        """What is valid of the elements; an adjust of an event that is not there is refused."""
        self.table = self.table.with_room(len(batch))
        rules, created = np.full(len(batch), VALID, np.int8), np.empty(len(batch), np.int32)
        # Times were looked at where the source enters, so only events that are missing are found here.
        columns = batch.kind, batch.start, batch.end, batch.old_end, batch.identities
        apply_elements(self.table, columns, 0, 0, BEGINNING, False, rules, created)
        missing = rules == MISSING
        if not missing.any():
            return Result(batch)
        known = np.full(int(missing.sum()), self.frontier)
        refused = Refused(Rule.NO_SUCH_EVENT, batch.take(missing), known)
        return Result(batch.take(~missing), (refused,))

    def advance(self, name: str, time: int) -> Result:
        """Nothing; events that can never change are forgotten when there are twice as many as then."""
        self.frontier = max(self.frontier, time)
        if self.table.used >= self._due or time == FOREVER:
            live = self.table.live()
            self.table.remove(live if time == FOREVER else live[self.table.end[live] < time])
            self._due = max(_LEAST, 2 * self.table.used)
        return Result(Batch.of([]))

    def report(self) -> Report:
        """The events that may still be adjusted."""
        return Report(int(self.table.copies.sum()), sum(column.nbytes for column in self.table))

    def saved(self) -> State:
        """The frontier and the events."""
        nodes = self.table.live()
        columns = {name: getattr(self.table, name)[nodes] for name in _COLUMNS}
        return State(VERSION, {"frontier": self.frontier}, [pa.RecordBatch.from_pydict(columns)])

    @classmethod
    def load(cls, state: State) -> "Validate":
        """The kernel that was saved."""
        state, kernel = version_of(state, VERSION, "a check of adjusts"), cls()
        kernel.frontier = state.values["frontier"]
        (events,) = state.batches
        columns: dict[str, Any] = {name: events.column(name).to_numpy() for name in _COLUMNS}
        rows = np.repeat(np.arange(events.num_rows), columns["copies"])
        kernel.table = kernel.table.with_room(len(rows))
        words = np.stack([columns["low"], columns["high"]], axis=1)[rows]
        kind = np.full(len(rows), Kind.INSERT, np.int8)
        times = columns["start"][rows], columns["end"][rows], np.zeros(len(rows), np.int64)
        rules, created = np.full(len(rows), VALID, np.int8), np.empty(len(rows), np.int32)
        apply_elements(kernel.table, (kind, *times, words), 0, 0, BEGINNING, False, rules, created)
        return kernel
