"""What a merge in order keeps so that it can move to a more general case: all that is not final yet.

R0, R1 and R2 forget what they have said. With a trail, what each input has shown can be told at any time:
every event of the output before its last start, and of its last start what it said itself.
"""

from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa

from anabranch.model.batch import Batch, Kind, concat


@dataclass(slots=True)
class Trail:
    """State: inserts of the output that can still change, and what each input said at its last start."""

    given: list[Batch] = field(default_factory=list)
    last: dict[int, list[Batch]] = field(default_factory=dict)

    @property
    def nbytes(self) -> int:
        """Bytes of payload held, those shared with others included."""
        return sum(part.payload.nbytes for part in self.given)

    def hear(self, i: int, said: Batch) -> None:
        """An input has said this."""
        inserts = np.flatnonzero(said.kind == Kind.INSERT)
        if not len(inserts):
            return
        start = said.start[inserts]
        tail = said.take(inserts[start == start[-1]])
        before = self.last.get(i, [])
        goes_on = before and before[0].start[0] == start[-1] and start[0] == start[-1]
        self.last[i] = [*before, tail] if goes_on else [tail]

    def say(self, output: Batch, stable: int) -> None:
        """The output has said this, and is stable until then."""
        if (output.kind == Kind.INSERT).any():
            self.given.append(output.take(output.kind == Kind.INSERT))
        self.given = [part for part in self.given if int(part.end.max()) >= stable]

    def forget(self, i: int) -> None:
        """An input has left."""
        self.last.pop(i, None)

    def events(self, stable: int) -> Batch:
        """The events of the output that are not final at a stable, as inserts."""
        parts = [part.take(part.end >= stable) for part in self.given]
        return concat(parts) if parts else Batch.of([])

    def shown(self, i: int, events: Batch) -> Batch:
        """Those of the events that an input has shown, as it showed them."""
        last = self.last.get(i)
        if last is None:
            return events[:0]
        return concat([events.take(events.start < last[0].start[0]), *last])

    def dump(self) -> tuple[dict[str, Any], list[pa.RecordBatch]]:
        """How many batches belong to what, and the batches."""
        parts = [*self.given, *(part for last in self.last.values() for part in last)]
        state = {"given": len(self.given), "last": [[i, len(last)] for i, last in self.last.items()]}
        return state, [part.to_arrow() for part in parts]

    @classmethod
    def load(cls, state: dict[str, Any], batches: list[pa.RecordBatch]) -> "Trail":
        """What was dumped."""
        parts = iter([Batch.from_arrow(batch) for batch in batches])
        given = list(islice(parts, state["given"]))
        return cls(given, {i: list(islice(parts, count)) for i, count in state["last"]})
