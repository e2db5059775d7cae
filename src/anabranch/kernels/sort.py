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
or cancels goes when runs are merged, and is no more than about twice what stays. Cost: each row is sorted as
often as runs are merged, a logarithm; a frontier that lets nothing out looks at the first row of each run.
Repeats of one payload and start that wait to be changed are looked at together.
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
from anabranch.model.batch import Batch, Kind
from anabranch.model.payloads import PayloadStore
from anabranch.model.time import BEGINNING, FOREVER

VERSION = 1
_STALE = 1024
_SPREAD = np.uint64(0x9E3779B97F4A7C15)


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
    waiting: Runs = field(default_factory=lambda: Runs(7, netted), repr=False)
    moving: Runs = field(default_factory=lambda: Runs(7, netted), repr=False)
    """How often each end is wanted more (or less) than it is out."""
    due: Runs = field(default_factory=lambda: Runs(2, each_once), repr=False)
    """Which key of ``moving`` has a row with which end, or had."""
    payloads: PayloadStore = field(default_factory=PayloadStore, repr=False)
    events: int = 0
    """How many events wait."""
    touched: int = 0
    """Rows that have been looked at to let some out."""

    def push(self, name: str, batch: Batch) -> Result:
        """Nothing; the elements are kept."""
        if (batch.kind > Kind.ADJUST).any():
            batch = batch.take(batch.kind <= Kind.ADJUST)
        if not len(batch):
            return Result(Batch.of([]))
        adjust = batch.kind == Kind.ADJUST
        sync = np.where(adjust, np.minimum(batch.old_end, batch.end), batch.start)
        assert (sync >= self.frontier).all(), "what comes is not behind what was promised"
        payload = self.payloads.admit(batch.payload)
        place = self.payloads.next_place + np.arange(len(batch))
        out = batch.start < self.frontier
        gone = np.flatnonzero(adjust & ~out)
        come = np.flatnonzero(~out & (batch.end > batch.start))
        moved = np.flatnonzero(out & (batch.end != batch.old_end))
        self.payloads.add(payload)
        self.events += len(come) - len(gone)
        if len(come) or len(gone):
            self.waiting.add(
                np.concatenate(
                    [_rows(batch, come, batch.end, 1, place), _rows(batch, gone, batch.old_end, -1, place)],
                    axis=1,
                )
            )
        if len(moved):
            both = [
                _rows(batch, moved, batch.end, 1, place),
                _rows(batch, moved, batch.old_end, -1, place),
            ]
            self._move(np.concatenate(both, axis=1))
        self._forget_what_is_gone()
        return Result(Batch.of([]))

    def advance(self, name: str, time: int) -> Result:
        """What the frontier passes, in order."""
        if time <= self.frontier:
            return Result(Batch.of([]))
        inserts, adjusts = self._events_before(time), self._moves_before(time)
        self.frontier = time
        columns = np.concatenate([inserts, adjusts], axis=1)
        kind = np.repeat(np.array([Kind.INSERT, Kind.ADJUST], np.int8), [inserts.shape[1], adjusts.shape[1]])
        start, end, old_end, place = columns[2:]
        words = columns[:2].view(np.uint64)
        sync = np.where(kind == Kind.ADJUST, np.minimum(end, old_end), start)
        order = np.lexsort((old_end, end, start, words[1], words[0], kind, sync))
        payload = self.payloads.at(place[order])
        events = Batch(kind[order], start[order], end[order], old_end[order], payload)
        if time == FOREVER:
            self.moving.take_all()
            self.payloads.keep_only(np.empty(0, np.int64))
        else:
            self._forget_what_is_gone()
        return Result(events)

    def report(self) -> Report:
        """Events that wait and, at most, events that are out and will change."""
        nbytes = self.waiting.nbytes + self.moving.nbytes + self.due.nbytes + self.payloads.nbytes
        return Report(self.events + len(self.moving) // 2, nbytes, {"touched": self.touched})

    def saved(self) -> State:
        """The rows that wait and those that move, and their payloads in the same order."""
        waiting, moving = net(self.waiting.all()), net(self.moving.all())
        rows = np.concatenate([waiting, moving], axis=1)
        names = {"low": LOW, "high": HIGH, "start": START, "end": END, "count": COUNT}
        columns = {name: rows[column] for name, column in names.items()}
        values = {"frontier": self.frontier, "waiting": waiting.shape[1], "touched": self.touched}
        return State(VERSION, values, [pa.RecordBatch.from_pydict(columns), self.payloads.at(rows[PLACE])])

    @classmethod
    def load(cls, state: State) -> "Sort":
        """The kernel that was saved."""
        state = version_of(state, VERSION, "a sort")
        events, payload = state.batches
        sort = cls(frontier=state.values["frontier"], touched=state.values["touched"])
        sort.payloads.add(sort.payloads.admit(payload))
        rows = counted(np.zeros(len(events), np.int64))
        names = {"low": LOW, "high": HIGH, "start": START, "end": END, "count": COUNT}
        for name, column in names.items():
            rows[column] = events.column(name).to_numpy()
        rows[PLACE] = np.arange(len(events))
        waiting, moving = rows[:, : state.values["waiting"]], rows[:, state.values["waiting"] :]
        waiting[KEY] = waiting[START]
        sort.waiting.add(waiting)
        sort.events = int(waiting[COUNT].sum())
        sort._move(moving)
        return sort

    def _move(self, rows: Rows) -> None:
        """Ends of events that are out are wanted more often, or less."""
        rows[KEY] = _key(rows)
        self.moving.add(rows)
        self.due.add(rows[[END, KEY]])

    def _events_before(self, time: int) -> Rows:
        """The columns of the events that start before a time."""
        rows = self.waiting.take_before(time)
        self.touched += rows.shape[1]
        rows = _repeated(net(rows))
        self.events -= rows.shape[1]
        return _columns(rows, 0)

    def _moves_before(self, time: int) -> Rows:
        """The columns of the adjusts of events that are out whose sync time is before a time."""
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
        return _columns(wanted, unwanted[END])

    def _forget_what_is_gone(self) -> None:
        if len(self.due) > 2 * len(self.moving) + _STALE:
            self.due.runs = []
            self.due.add(self.moving.all()[[END, KEY]])
        if self.payloads.crowded(len(self.waiting) + len(self.moving)):
            both = [run for runs in (self.waiting, self.moving) for run in runs.runs]
            places = np.unique(np.concatenate([np.empty(0, np.int64), *(run[PLACE] for run in both)]))
            self.payloads.keep_only(places)
            for run in both:
                run[PLACE] = np.searchsorted(places, run[PLACE])


def _columns(rows: Rows, old_end: NDArray[np.int64] | int) -> Rows:
    """What goes out: low, high, start, end, old end and the place of the payload."""
    columns = rows[[LOW, HIGH, START, END, END, PLACE]]
    columns[4] = old_end
    return columns


def _rows(
    batch: Batch, places: NDArray[np.int64], end: NDArray[np.int64], count: int, payload: NDArray[np.int64]
) -> Rows:
    """Counted rows by start, of elements at some places of a batch with one of their ends."""
    rows = counted(batch.start[places])
    rows[LOW : HIGH + 1] = batch.identities[places].T.view(np.int64)
    rows[START], rows[END] = batch.start[places], end[places]
    rows[COUNT], rows[PLACE] = count, payload[places]
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
