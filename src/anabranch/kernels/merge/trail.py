"""What a merge in order keeps so that it can move to a more general case: all that is not final yet.

R0, R1 and R2 forget what they and their inputs have said. A trail holds the batches themselves, until nothing
in them can change any more.
"""

from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa

from anabranch.model.batch import Batch, Kind, concat
from anabranch.model.rows import take_rows


@dataclass(slots=True)
class Trail:
    """State: inserts of the output and of each input by number, those that can still change among them."""

    given: list[Batch] = field(default_factory=list)
    shown: dict[int, list[Batch]] = field(default_factory=dict)

    @property
    def nbytes(self) -> int:
        """Bytes of payload held, those shared with others included."""
        return sum(part.payload.nbytes for parts in (self.given, *self.shown.values()) for part in parts)

    def hear(self, i: int, said: Batch, stable: int) -> None:
        """An input has said this, and the output is stable until then."""
        self.shown[i] = _open([*self.shown.get(i, []), said], stable)

    def say(self, output: Batch, stable: int) -> None:
        """The output has said this, and is stable until then."""
        self.given = _open([*self.given, output], stable)

    def forget(self, i: int) -> None:
        """An input has left."""
        self.shown.pop(i, None)

    def events(self, i: int | None, stable: int) -> Batch:
        """The events that an input shows, or the output, and that are not final at a stable; as inserts."""
        parts = self.given if i is None else self.shown.get(i, [])
        return concat([part.take((part.kind == Kind.INSERT) & (part.end >= stable)) for part in parts])

    def given_at(self, start: int) -> Batch:
        """The inserts of the output that start then, as far as they are not final."""
        parts = [part.take((part.kind == Kind.INSERT) & (part.start == start)) for part in self.given]
        return concat([part for part in parts if len(part)] or [Batch.of([])])

    def alike(self, output: Batch, identity: tuple[str, ...]) -> Batch:
        """The same output, where events of one identity and start carry the other columns of the first.

        A more general case has one payload for all of them, and names them by it when they are adjusted.
        """
        rows = np.flatnonzero(output.kind == Kind.INSERT)
        if not len(rows):
            return output
        start = output.start[rows]
        before = self.given_at(int(start[0]))
        if not len(before) and (np.diff(start) > 0).all():
            return output
        whole = concat([before.plain(), output.plain()])
        among = np.concatenate([np.arange(len(before)), len(before) + rows])
        words = whole.take(among).told_apart_by(identity).identities
        keys = np.column_stack([whole.start[among].view(np.uint64), words])
        _, first, of = np.unique(keys, axis=0, return_index=True, return_inverse=True)
        places = np.arange(len(whole))
        places[among] = among[first[of.reshape(-1)]]
        if (places == np.arange(len(whole))).all():
            return output
        return output.with_new_payload(take_rows(whole.payload, places[len(before) :]))

    def dump(self) -> tuple[dict[str, Any], list[pa.RecordBatch]]:
        """How many batches belong to what, and the batches."""
        state = {"given": len(self.given), "shown": [[i, len(parts)] for i, parts in self.shown.items()]}
        return state, [part.to_arrow() for parts in (self.given, *self.shown.values()) for part in parts]

    @classmethod
    def load(cls, state: dict[str, Any], batches: list[pa.RecordBatch]) -> "Trail":
        """What was dumped."""
        parts = iter([Batch.from_arrow(batch) for batch in batches])
        given = list(islice(parts, state["given"]))
        return cls(given, {i: list(islice(parts, count)) for i, count in state["shown"]})


def _open(parts: list[Batch], stable: int) -> list[Batch]:
    """The batches with an insert that is not final."""
    return [part for part in parts if ((part.kind == Kind.INSERT) & (part.end >= stable)).any()]
