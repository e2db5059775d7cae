"""Elements in the order of their sync times, let out as the frontier passes them.

Nothing comes of a push. When the frontier moves to t, all that has a sync time before t goes out (all there
is, where t is `FOREVER`), in the order of sync time, kind, identity, start, end and old end, so that streams
that mean the same at the same stables come out the same. The promise is that of the input.

**Revisions.** An adjust of an event that is held is folded into it: the event goes out once, with the end it
has then, or not at all. An adjust of an event that is out waits for its own sync time, and others of the same
event may come before that, with an earlier one: [0, 9) to 20 and then to 5 has the sync times 9 and 5, and in
that order the second would adjust what is not there. So what goes out is the net change from the end that is
out to the end that the input shows, at the earlier of the two. Of equal payloads with equal starts (repeats)
nobody can tell which is which: the ends that are out and not wanted are paired with those that are wanted and
not out, both in ascending order, as few as must change.

**Valid.** After frontier t nothing that starts before t is held, and no end before t is wanted that is not
out, nor is one out that is not wanted. What the input may say then has sync times of t and later, and so has
all that is held: so the next frontier lets out nothing behind this one, and what it does let out, sorted, is
after all that went out before. An event that is out starts before t, so that it can no longer be removed, and
each end that is not wanted has one that is.

Memory: a row per event that is held and two per event that is out and will change, with payloads; what folds
or cancels goes once it is more than what stays. Cost: a row that is held is sorted once, among those that go
out with it (`store/waiting.py`); one that moves as often as runs are merged, a logarithm; a frontier that
lets nothing out looks at the pages of a calendar, and at the first row of each run. Repeats of one payload
and start that wait to be changed are looked at together.
"""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anabranch.kernels.kernel import Report, Result, State
from anabranch.kernels.runs import (
    COUNT,
    END,
    HIGH,
    KEY,
    LOW,
    PLACE,
    START,
    Rows,
    Runs,
    counted,
    each_once,
    net,
    netted,
)
from anabranch.kernels.store.saved import version_of
from anabranch.kernels.store.waiting import SAVED, Waiting
from anabranch.model.batch import Batch, Kind, concat
from anabranch.model.payloads import PayloadStore
from anabranch.model.rows import take_rows
from anabranch.model.time import BEGINNING, FOREVER

VERSION = 2
_STALE = 1024
_NOTHING = Result(Batch.of([]))
_SPREAD = np.uint64(0x9E3779B97F4A7C15)
_MOVING = {"low": LOW, "high": HIGH, "start": START, "end": END, "count": COUNT}


@dataclass(slots=True)
class Sort:
    """State: the events that are held, by start, and those that are out and will change, by event and by end.

    >>> from anabranch.model.elements import Adjust, Insert
    >>> sort = Sort()
    >>> rows = [Insert({"v": 1}, 5, 9), Insert({"v": 2}, 3, 8), Adjust({"v": 1}, 5, 9, 7)]
    >>> len(sort.push("", Batch.of(rows)).events)
    0
    >>> for element in sort.advance("", 6).events:
    ...     print(element)
    Insert(payload={'v': 2}, start=3, end=8)
    Insert(payload={'v': 1}, start=5, end=7)
    """

    held: ClassVar[bool] = False

    frontier: int = BEGINNING
    waiting: Waiting = field(default_factory=Waiting, repr=False)
    moving: Runs = field(default_factory=lambda: Runs(7, netted), repr=False)
    """How often each end is wanted more (or less) than it is out."""
    due: Runs = field(default_factory=lambda: Runs(2, each_once), repr=False)
    """Which key of ``moving`` has a row with which end, or had."""
    payloads: PayloadStore = field(default_factory=PayloadStore, repr=False)
    """Those of ``moving``."""
    touched: int = 0
    """Rows of events that are out which have been looked at, and all rows before this was loaded."""

    def push(self, name: str, batch: Batch) -> Result:
        """Nothing; the elements are kept."""
        if (batch.kind > Kind.ADJUST).any():
            batch = batch.take(batch.kind <= Kind.ADJUST)
        if not len(batch):
            return _NOTHING
        adjust = batch.kind == Kind.ADJUST
        sync = np.where(adjust, np.minimum(batch.old_end, batch.end), batch.start)
        assert (sync >= self.frontier).all(), "what comes is not behind what was promised"
        payload, out = self.waiting.admit(batch.payload), batch.start < self.frontier
        words = batch.identities if batch.__dict__.get("by") is not None else None
        if not adjust.any() and (batch.end > batch.start).all():
            self.waiting.add(batch.start, payload, end=batch.end, words=words)
            return _NOTHING
        gone = np.flatnonzero(adjust & ~out)
        come = np.flatnonzero(~out & (batch.end > batch.start))
        if len(come) or len(gone):
            rows = np.concatenate([come, gone])
            end = np.concatenate([batch.end[come], batch.old_end[gone]])
            sign = np.repeat(np.array([1, -1], np.int8), [len(come), len(gone)])
            words = words if words is None else words[rows]
            start, held = batch.start[rows], take_rows(payload, rows)
            self.waiting.add(start, held, end=end, sign=sign, words=words)
        moved = np.flatnonzero(out & (batch.end != batch.old_end))
        if len(moved):
            place = self.payloads.next_place + np.arange(len(moved))
            self.payloads.add(self.payloads.admit(take_rows(payload, moved)))
            both = [
                _rows(batch, moved, batch.end, 1, place),
                _rows(batch, moved, batch.old_end, -1, place),
            ]
            self._move(np.concatenate(both, axis=1))
        self._forget_what_is_gone()
        return _NOTHING

    def advance(self, name: str, time: int) -> Result:
        """What the frontier passes, in order."""
        if time <= self.frontier:
            return _NOTHING
        events, adjusts = self.waiting.take_before(time), self._moves_before(time)
        self.frontier = time
        if adjusts is not None:
            # At one time events come first: each kind is in order, so that a stable sort merges them.
            sync = np.concatenate([events.start, np.minimum(adjusts.end, adjusts.old_end)])
            both = concat([events, adjusts]) if len(events) else adjusts
            events = both.take(np.argsort(sync, kind="stable"))
        if time == FOREVER:
            self.moving.take_all()
            self.due.take_all()
            self.payloads.keep_only(np.empty(0, np.int64))
        else:
            self._forget_what_is_gone()
        return Result(events)

    def report(self) -> Report:
        """Events that wait and, at most, events that are out and will change."""
        nbytes = self.waiting.nbytes + self.moving.nbytes + self.due.nbytes + self.payloads.nbytes
        touched = self.touched + self.waiting.moved
        return Report(self.waiting.events + len(self.moving) // 2, nbytes, {"touched": touched})

    def saved(self) -> State:
        """The rows that wait, those that move, and the payloads of these in the same order."""
        moving = net(self.moving.all())
        columns = {name: moving[column] for name, column in _MOVING.items()}
        payload = pa.RecordBatch.from_pylist([])
        if moving.shape[1]:
            payload = self.payloads.at(moving[PLACE])
        values = {"frontier": self.frontier, "touched": self.report().counts["touched"]}
        return State(VERSION, values, [*self.waiting.saved(), pa.RecordBatch.from_pydict(columns), payload])

    @classmethod
    def load(cls, state: State) -> "Sort":
        """The kernel that was saved."""
        state = version_of(state, VERSION, "a sort")
        waiting, (events, payload) = state.batches[:SAVED], state.batches[SAVED:]
        sort = cls(frontier=state.values["frontier"], touched=state.values["touched"])
        sort.waiting = Waiting.load(waiting, sort.frontier)
        moving = counted(np.zeros(len(events), np.int64))
        for name, column in _MOVING.items():
            moving[column] = events.column(name).to_numpy()
        moving[PLACE] = np.arange(len(events))
        sort.payloads.add(sort.payloads.admit(payload))
        sort._move(moving)
        return sort

    def _move(self, rows: Rows) -> None:
        """Ends of events that are out are wanted more often, or less."""
        rows[KEY] = _key(rows)
        self.moving.add(rows)
        self.due.add(rows[[END, KEY]])

    def _moves_before(self, time: int) -> Batch | None:
        """The adjusts of events that are out whose sync time is before a time, in order, if there are any."""
        if not len(self.moving):
            return None
        due = self.due.take_all() if time == FOREVER else self.due.take_before(time)
        rows = self.moving.at(np.unique(due[1]))
        self.touched += rows.shape[1]
        rows = net(rows)
        unwanted, wanted = _repeated(rows, -1), _repeated(rows, 1)
        assert (unwanted[[LOW, HIGH, START]] == wanted[[LOW, HIGH, START]]).all(), "no event that is out goes"
        ready = (np.minimum(unwanted[END], wanted[END]) < time) | (time == FOREVER)
        unwanted, wanted = (np.compress(ready, rows, axis=1) for rows in (unwanted, wanted))
        if time != FOREVER and len(wanted[KEY]):
            # What is out is now as wanted. Both are in `due` if they are after this time, which does no harm.
            self.moving.add(np.concatenate([_taken_back(unwanted), _taken_back(wanted)], axis=1))
        return self._adjusts(wanted, unwanted[END]) if wanted.shape[1] else None

    def _adjusts(self, rows: Rows, old_end: NDArray[np.int64]) -> Batch:
        """Adjusts of events to ends from others, by sync time and identity."""
        words = rows[LOW].view(np.uint64), rows[HIGH].view(np.uint64)
        sync = np.minimum(rows[END], old_end)
        order = np.lexsort((old_end, rows[END], rows[START], words[1], words[0], sync))
        rows = np.take(rows, order, axis=1)
        kind = np.full(len(order), Kind.ADJUST, np.int8)
        return Batch(kind, rows[START], rows[END], old_end[order], self.payloads.at(rows[PLACE]))

    def _forget_what_is_gone(self) -> None:
        if len(self.due) > 2 * len(self.moving) + _STALE:
            self.due.runs = []
            self.due.add(self.moving.all()[[END, KEY]])
        if self.payloads.crowded(len(self.moving)):
            runs = self.moving.runs
            places = np.unique(np.concatenate([np.empty(0, np.int64), *(run[PLACE] for run in runs)]))
            self.payloads.keep_only(places)
            for run in runs:
                run[PLACE] = np.searchsorted(places, run[PLACE])


def _rows(
    batch: Batch, places: NDArray[np.int64], end: NDArray[np.int64], count: int, payload: NDArray[np.int64]
) -> Rows:
    """Counted rows by start, of elements at some places of a batch with one of their ends."""
    rows = counted(batch.start[places])
    rows[LOW : HIGH + 1] = batch.identities[places].T.view(np.int64)
    rows[START], rows[END] = batch.start[places], end[places]
    rows[COUNT], rows[PLACE] = count, payload
    return rows


def _key(rows: Rows) -> NDArray[np.int64]:
    """A word that payload and start have in common."""
    words = rows[LOW].view(np.uint64) + rows[START].view(np.uint64) * _SPREAD
    return words.view(np.int64)


def _repeated(rows: Rows, sign: int = 1) -> Rows:
    """A row for each copy of what is there more often (or less), in the same order."""
    return np.repeat(rows, np.maximum(sign * rows[COUNT], 0), axis=1)


def _taken_back(rows: Rows) -> Rows:
    """What cancels one copy of each row."""
    rows = rows.copy()
    rows[COUNT] = -np.sign(rows[COUNT])
    return rows
