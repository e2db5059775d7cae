"""How a replica of changes begins with a snapshot: it vouches for what is there at a time, not since when.

Let T be the time of the snapshot, and U the first time after it, or where the merge is already, whichever is
later. The replica says nothing until the merge has come to U by what others vouch for, and the replica has
come to U by its own log. Just before U both tables are known, whatever the order in which all that came, and
they are the same if nobody errs. So then

- a row that the merge shows with the same values goes on as it is, with the start that it has there;
- one that the merge does not show begins at U;
- one that the merge shows and the replica does not has ended, for this replica.

From there on the replica is as any other that guarantees what ends at U or later.

Where nobody vouches for the time before T, or none of those who may has spoken, the replica begins *alone*:
its rows are out at once, those that nobody shows since T. As long as its own log has not come to U, or others
are awaited, that can be taken back: `withdrawn`.

Memory: the events that the replica shows, and those of the merge just before U, until it has come to U.
"""

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anabranch.kernels.kernel import State
from anabranch.kernels.store.saved import version_of
from anabranch.model.application import ADJUST, INSERT
from anabranch.model.batch import Batch, concat
from anabranch.model.identity import Words
from anabranch.model.relation import Relation
from anabranch.model.rows import rows_without_columns, stacked
from anabranch.model.time import BEGINNING, FOREVER

VERSION = 2
UNKNOWN = BEGINNING
"""Since when a row of a snapshot has been there."""


@dataclass(frozen=True, slots=True)
class Begun:
    """How a replica goes on once it has come to U."""

    elements: Batch
    """What it says that it has not said."""
    rows: Batch
    """The rows of the snapshot that are still there, each with the start that it has now."""


@dataclass(slots=True)
class Beginning:
    """State: a replica that begins with a snapshot, until it has come to U.

    >>> from anabranch.model.notation import text
    >>> from anabranch import Insert
    >>> begins = Beginning(time=9, until=10)
    >>> said = begins.hear(Batch.of([Insert({"id": 1}, UNKNOWN, 20), Insert({"id": 2}, UNKNOWN, 12)]))
    >>> len(said)
    0
    >>> begins.meet(Batch.of([Insert({"id": 1}, 3, 20), Insert({"id": 3}, 5, 20)]))
    >>> print(text(begins.begun(10).elements.elements()))
    + {"id": 1} [3, 20)
    + {"id": 2} [10, ∞)
    ~ {"id": 2} [10, ∞) -> [10, 12)
    + {"id": 3} [5, 20)
    ~ {"id": 3} [5, 20) -> [5, 10)
    """

    time: int
    """T."""
    until: int
    """U."""
    alone: bool = False
    """Nobody vouches for the time before T, so what it shows is out at once."""
    shown: Relation = field(default_factory=Relation, repr=False)
    """What the replica shows; rows of the snapshot begin at UNKNOWN."""
    met: Batch | None = field(default=None, repr=False)
    """What the merge shows just before U; None: the merge has not come to it yet."""

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        table = sum(column.nbytes for column in self.shown.table)
        return table + self.shown.payloads.nbytes + (0 if self.met is None else self.met.payload.nbytes)

    @property
    def since_snapshot(self) -> int:
        """How many rows are out since T because nobody vouches for the time before."""
        if not self.alone:
            return 0
        events = self._events()
        fresh = (events.start == UNKNOWN) & (events.end > self.time)
        return int((fresh & (self._starts(events) == self.time)).sum())

    def hear(self, elements: Batch) -> Batch:
        """Elements of the replica; what it says at once, with the origins of what that comes of."""
        self.shown.apply(elements)
        if not self.alone:
            return elements[:0]
        start = self._starts(elements)
        end = np.maximum(elements.end, start)
        old = np.where(elements.kind == ADJUST, np.maximum(elements.old_end, start), start)
        kind = np.where(old > start, ADJUST, INSERT).astype(np.int8)
        rows = np.flatnonzero(end != old)
        old = np.where(kind == ADJUST, old, 0)
        taken = elements.take(rows)
        said = Batch(kind[rows], start[rows], end[rows], old[rows], taken.payload)
        return said.with_origin(taken.origin)

    def meet(self, given: Batch, *, alone: bool = False) -> None:
        """Know what the merge shows at U, or, where the replica begins alone, wherever the merge is."""
        self.alone = alone
        there = given.start <= self.time if alone else (given.start < self.until) & (given.end >= self.until)
        self.met = given.take(there)

    def said(self) -> Batch:
        """All that the replica shows, as inserts: what it says at once where it begins alone."""
        events = self._events()
        start = self._starts(events)
        there = events.end > start
        return _inserts(events.take(there), start[there])

    def withdrawn(self) -> Batch:
        """What takes back all that was said; then the replica waits for others again."""
        said = self.said()
        self.alone, self.met = False, None
        return _adjusts(said, said.start)

    def begun(self, frontier: int) -> Begun:
        """How the replica goes on, where the frontier of the merge is this by now."""
        assert self.met is not None, "the merge has come to U"
        events = self._events()
        start = self._starts(events)
        fresh = events.start == UNKNOWN
        counts = events.end >= (start if self.alone else self.until)
        rows = _inserts(events.take(fresh & counts), start[fresh & counts])
        counts &= events.end > start
        own = _inserts(events.take(counts), start[counts])
        others = self.met.take(~_among(self.met, own))
        until = self.time if self.alone else max(self.until, frontier)
        others = others.take(others.start < until)
        longer = others.take(others.end > until)
        cut = _adjusts(longer, np.full(len(longer), until))
        parts = [others, cut] if self.alone else [*_as_met(own, self.met), others, cut]
        return Begun(concat([part for part in parts if len(part)] or parts[:1]), rows)

    def _events(self) -> Batch:
        events = self.shown.current()
        count = np.repeat(np.arange(len(events)), events.count)
        parts = events.payload.to_batches() if events.payload.num_columns else []
        whole = stacked(parts) if parts else rows_without_columns(len(events))
        nothing = np.zeros(len(events), np.int64)
        kind = np.full(len(events), INSERT, np.int8)
        batch = Batch(kind, events.start, events.end, nothing, whole).identified(events.identity)
        return batch.take(count) if len(count) != len(events) else batch

    def _starts(self, events: Batch) -> NDArray[np.int64]:
        """Since when events are there: where that is not known, as the merge shows the same values."""
        default = self.time if self.alone else self.until
        start = np.where(events.start == UNKNOWN, default, events.start)
        if self.met is None or not len(self.met):
            return start
        known = self.met.take(self.met.end > self.time)
        known = known.take(np.argsort(known.start, kind="stable"))
        number, count = _numbers(events.identities, known.identities)
        since = np.full(count, BEGINNING)
        since[number[len(events) :]] = known.start
        borrowed = since[number[: len(events)]]
        return np.where((events.start == UNKNOWN) & (borrowed != BEGINNING), borrowed, start)

    def saved(self) -> State:
        """All of the state."""
        batches = [self._events(), *([] if self.met is None else [self.met])]
        values = {"time": self.time, "until": self.until, "alone": self.alone}
        return State(VERSION, values, [part for batch in batches for part in (_times(batch), batch.payload)])

    @classmethod
    def load(cls, saved: State) -> "Beginning":
        """The beginning whose state was saved."""
        _, values, batches = version_of(saved, VERSION, "a replica that begins with a snapshot")
        shown, *met = [
            _events_of(times, payload) for times, payload in zip(batches[::2], batches[1::2], strict=True)
        ]
        begins = cls(**values, met=met[0] if met else None)
        begins.shown.apply(shown)
        return begins


def _inserts(events: Batch, start: NDArray[np.int64]) -> Batch:
    return events.with_starts(start)


def _times(events: Batch) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"start": events.start, "end": events.end})


def _events_of(times: pa.RecordBatch, payload: pa.RecordBatch) -> Batch:
    nothing = np.zeros(len(times), np.int64)
    start, end = (times.column(name).to_numpy() for name in ("start", "end"))
    return Batch(np.full(len(times), INSERT, np.int8), start, end, nothing, payload)


def _numbers(*words: Words) -> tuple[NDArray[np.int64], int]:
    """Equal identities have equal numbers; how many there are."""
    whole = np.concatenate(words)
    order = np.lexsort((whole[:, 1], whole[:, 0]))
    new = np.ones(len(order), np.bool_)
    new[1:] = (whole[order][1:] != whole[order][:-1]).any(axis=1)
    number = np.empty(len(order), np.int64)
    number[order] = np.cumsum(new) - 1
    return number, int(new.sum())


def _paired(events: Batch, others: Batch) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """Numbers of both that are equal where payload and start are; how many there are."""
    number, _ = _numbers(events.identities, others.identities)
    start = np.concatenate([events.start, others.start]).view(np.uint64)
    pairs, count = _numbers(np.stack([number.view(np.uint64), start], axis=1))
    return pairs[: len(events)], pairs[len(events) :], count


def _among(events: Batch, others: Batch) -> NDArray[np.bool_]:
    """Which events have the payload and start of one of the others."""
    pairs, known, _ = _paired(events, others)
    return np.isin(pairs, known)


def _as_met(events: Batch, met: Batch) -> list[Batch]:
    """Inserts of events with the ends that the merge shows, or with none, and adjusts to their own.

    A policy that follows every change hears of an end only by an adjust, and rows of a table begin with none.
    """
    pairs, known, count = _paired(events, met)
    ends = np.full(count, BEGINNING)
    ends[known] = met.end
    shown = np.where(ends[pairs] == BEGINNING, FOREVER, ends[pairs])
    inserts = Batch(events.kind, events.start, shown, events.old_end, events.payload)
    other = shown != events.end
    return [inserts.identified(events.identities), _adjusts(inserts.take(other), events.end[other])]


def _adjusts(events: Batch, end: NDArray[np.int64]) -> Batch:
    kind = np.full(len(events), ADJUST, np.int8)
    return Batch(kind, events.start, end, events.end, events.payload)
