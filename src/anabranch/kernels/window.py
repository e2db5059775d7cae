"""Aggregates of the events that start in each window, by group: window-id (Li et al., VLDB 2008, "OOP").

Nothing is sorted and nothing waits for order. An event is added once, to its group in the pane that its start
is in; a window is the merge of its panes, and is said when the input is stable until its end. Where results
are wanted early, every push says what has changed of the windows that it touched.

**Valid.** What is said of a window begins where the window does (or its last slide), and the promise is the
start of the first window that is not closed. An event or removal that is valid starts at or after the stable
of the input, so it is in no closed window.

Memory: a slot for each group and pane of an open window, one more for each group where windows overlap, and
what is known of each group, until the last window of the pane is closed. Of events nothing is kept. Cost:
constant for each row and aggregate, log k where a row stays among the k best; for each window and group that
is said a merge of two (`running`), of however many panes the window is; where results are early, of all its
panes. A promise costs the windows that close and the groups of the panes that are new in them or leave, and
where none closes nothing.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anabranch.expressions.aggregates import Aggregate
from anabranch.kernels.aggregate.aggregation import Aggregation, failures
from anabranch.kernels.aggregate.column import Slots
from anabranch.kernels.aggregate.groups import Groups
from anabranch.kernels.aggregate.panes import Panes
from anabranch.kernels.aggregate.running import Running
from anabranch.kernels.aggregate.window_times import OUTSIDE, WindowTimes
from anabranch.kernels.failed import failed
from anabranch.kernels.kernel import Refused, Report, Result, State
from anabranch.kernels.store.saved import version_of
from anabranch.model.batch import Batch, Kind
from anabranch.model.clock_columns import times
from anabranch.model.identity import identities
from anabranch.model.rows import rows_without_columns, take_rows
from anabranch.model.slots import NONE
from anabranch.model.time import BEGINNING

VERSION = 7
_NO_SLOTS = np.empty(0, np.int32)


@dataclass(frozen=True, slots=True)
class Settings:
    """What a window is told."""

    times: WindowTimes
    columns: tuple[str, ...]
    """The group columns."""
    aggregates: tuple[tuple[str, Aggregate], ...]
    given: pa.Schema
    """The columns of the input."""
    schema: pa.Schema
    """Those of the output: groups, aggregates, and the bounds of the window where they are wanted."""
    bounds: tuple[bool, bool] = (False, False)
    early: bool = False
    removals: bool = True
    """Events may be removed."""


@dataclass(frozen=True, slots=True)
class _Rows:
    """Some windows and groups as they are: whether there are events, what is said, and what failed.

    Of a window and group there are several rows where they are said by rank.
    """

    windows: NDArray[np.int64]
    numbers: NDArray[np.int32]
    there: NDArray[np.bool_]
    payload: pa.RecordBatch
    failed: NDArray[np.bool_]
    why: dict[int, str]


@dataclass(frozen=True, slots=True)
class _Added:
    """Rows with where they are added."""

    rows: Batch
    panes: NDArray[np.int64]
    slots: Slots
    arrays: Sequence[pa.Array]
    sign: int


class Window:
    """State: panes with a slot for each group, and how far the input is."""

    held: ClassVar[bool] = False

    def __init__(self, settings: Settings) -> None:
        self.settings, self.times = settings, settings.times
        self.stable = BEGINNING
        """Until when the input is stable."""
        self.groups = Groups(pa.schema([settings.given.field(name) for name in settings.columns]))
        self.panes = Panes()
        self.aggregation = Aggregation(
            [one for _, one in settings.aggregates], settings.given, removals=settings.removals
        )
        self.running = Running(self.panes, self.aggregation)
        self.touched = 0
        self.said = 0
        self.outside = 0
        """How many events were in no window."""
        self._nothing = Batch.of([], schema=settings.schema)

    @property
    def frontier(self) -> int:
        """Where the first window begins that is not closed."""
        return self.times.reached(self.stable)

    def push(self, name: str, batch: Batch) -> Result:
        """What comes of events: nothing, or what has changed where that is wanted early."""
        inserts = batch.kind == Kind.INSERT
        parts: list[_Added] = []
        refused: list[Refused] = []
        for rows, sign in ((inserts, 1), (_removals(batch, inserts), -1)):
            if rows.any():
                added, bad = self._placed(_some(batch, rows), sign)
                refused += bad
                parts += [] if added is None else [added]
        if not self.settings.early or not parts:
            self._add(parts)
            return Result(self._nothing, tuple(refused))
        windows, numbers, slots = self._touched(parts)
        before = self._merged(windows, numbers, slots)
        self._add(parts)
        after = slots if self.times.tumbling else self._merged(windows, numbers, slots)
        found = self._finished(
            np.concatenate([windows, windows]),
            np.concatenate([before, after]),
            np.concatenate([numbers, numbers]),
            all_ranks=True,
        )
        changes, more = self._changed(found)
        for extra in [before] if self.times.tumbling else [before, after]:
            self.aggregation.clear(extra)
            self.panes.give_back(extra)
        return Result(changes, (*refused, *more))

    def advance(self, name: str, time: int) -> Result:
        """The windows that close, in ascending order."""
        if time <= self.stable:
            return Result(self._nothing)
        since, until = self.times.last_closed(self.stable), self.times.last_closed(time)
        self.stable = time
        if since == until:
            return Result(self._nothing)
        closing: list[tuple[int, Slots, NDArray[np.int32]]] = []
        done: list[tuple[int, Slots]] = []
        for pane in self.panes.order:
            windows = self.times.windows_of(pane)
            assert len(windows), "a pane that is in no window has no rows"
            if windows[-1] > until:
                break
            done.append((pane, self.panes.slots_of(pane)))
        extra = _NO_SLOTS
        if not self.settings.early:
            closing, extra = self._closing(since, until, done)
        result = self._closed(closing)
        if closing and not self.times.tumbling:
            self.running.leave(self.times.panes_of(until + 1).start)
        self._release([slots for _, slots in done], extra)
        return result

    def report(self) -> Report:
        """Groups in open panes."""
        nbytes = self.panes.nbytes + self.groups.nbytes + self.aggregation.nbytes + self.running.nbytes
        counts = {
            "touched": self.touched,
            "said": self.said,
            "groups": self.groups.numbers.used,
            OUTSIDE: self.outside,
        }
        return Report(self.panes.slots - len(self.running.numbers), nbytes, counts)

    def _placed(self, rows: Batch, sign: int) -> tuple[_Added | None, tuple[Refused, ...]]:
        """Rows with their slots; those of which an argument has no value are refused."""
        inside = self.times.inside(rows.start)
        if not inside.all():
            self.outside += int(np.count_nonzero(~inside)) if sign > 0 else 0
            rows = rows.take(inside)
        arrays, reasons = self.aggregation.read(rows)
        bad: tuple[Refused, ...] = ()
        if reasons:
            places = sorted(reasons)
            bad = failed(rows, np.array(places, np.int64), [reasons[place] for place in places])
            keep = np.ones(len(rows), np.bool_)
            keep[places] = False
            rows, arrays = rows.take(keep), [array.filter(pa.array(keep)) for array in arrays]
        if not len(rows):
            return None, bad
        numbers = self.groups.number(rows)
        panes = self.times.panes(rows.start)
        assert not len(self.running.numbers) or panes.min() >= self.running.end, "a pane that is held changes"
        slots = self.panes.assign(
            self.panes.places(panes, self.groups.numbers.capacity), numbers, self.groups.references
        )
        self.aggregation.with_room(self.panes.capacity)
        return _Added(rows, panes, slots, arrays, sign), bad

    def _add(self, parts: Sequence[_Added]) -> None:
        for one in parts:
            self.aggregation.add(one.slots, one.arrays, one.rows.start, one.sign)
            self.touched += len(one.rows)

    def _touched(self, parts: Sequence[_Added]) -> tuple[NDArray[np.int64], NDArray[np.int32], Slots]:
        """The windows and groups that rows are in, each once, windows ascending, and slots of theirs."""
        one = parts[0]
        slots, panes = (
            (one.slots, one.panes)
            if len(parts) == 1
            else (np.concatenate([p.slots for p in parts]), np.concatenate([p.panes for p in parts]))
        )
        if len(slots) > 1:
            slots, first = np.unique(slots, return_index=True)
            panes = panes[first]
        numbers, windows = self.panes.tables.number[slots], panes
        if not self.times.tumbling:
            distinct, which = np.unique(panes, return_inverse=True)
            spans = [self.times.windows_of(pane) for pane in distinct.tolist()]
            first = np.array([span.start for span in spans], np.int64)[which]
            counts = np.array([len(span) for span in spans], np.int64)[which]
            within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
            windows, numbers = np.repeat(first, counts) + within, np.repeat(numbers, counts)
            slots = np.repeat(slots, counts)
        if len(windows) > 1:
            order = np.lexsort((numbers, windows))
            windows, numbers, slots = windows[order], numbers[order], slots[order]
        new = np.ones(len(windows), np.bool_)
        new[1:] = (windows[1:] != windows[:-1]) | (numbers[1:] != numbers[:-1])
        start, end = self._lifetimes(windows)
        new &= start < end
        return windows[new], numbers[new], slots[new]

    def _merged(self, windows: NDArray[np.int64], numbers: NDArray[np.int32], slots: Slots) -> Slots:
        """New slots for some windows and groups, each the merge of its panes; its slot is one of theirs."""
        into = self.panes.take(len(windows))
        self.aggregation.with_room(self.panes.capacity)
        if self.times.tumbling:
            self.aggregation.merge(into, slots)
            return into
        for window in np.unique(windows).tolist():
            inside = np.flatnonzero(windows == window)
            of_window = self.times.panes_of(window)
            for pane in self.panes.between(of_window.start, of_window.stop):
                found = self.panes.find(pane, numbers[inside])
                there = found != NONE
                self.aggregation.merge(into[inside][there], found[there])
        return into

    def _changed(self, found: _Rows) -> tuple[Batch, tuple[Refused, ...]]:
        """Removals of rows that are no longer so, each before the insert of what is so now.

        Of the rows the first half is as it was, and the other one as it is.
        """
        half = len(found.windows) // 2
        start, end = self._lifetimes(found.windows[:half])
        said = found.there & ~found.failed
        was, now = said[:half], said[half:]
        words = identities(found.payload)
        other = (words[:half] != words[half:]).any(axis=1)
        gone, come = np.flatnonzero(was & (~now | other)), np.flatnonzero(now & (~was | other))
        rows = np.concatenate([gone, half + come])
        rows = rows[np.argsort(np.concatenate([2 * gone, 2 * come + 1]))]
        added, place = rows >= half, rows % half if half else rows
        start, end = start[place], end[place]
        changes = Batch(
            np.where(added, np.int8(Kind.INSERT), np.int8(Kind.ADJUST)),
            start,
            np.where(added, end, start),
            np.where(added, 0, end),
            take_rows(found.payload, rows),
        )
        self.said += len(come)
        broken = found.there & found.failed
        return changes, self._refused(found, half + np.flatnonzero(broken[half:] & ~broken[:half]))

    def _closing(
        self, since: int, until: int, done: list[tuple[int, Slots]]
    ) -> tuple[list[tuple[int, Slots, NDArray[np.int32]]], Slots]:
        """The windows after one until another with the slots of their groups, and the slots of no pane."""
        if self.times.tumbling:
            number = self.panes.tables.number
            found = [(self.times.windows_of(pane)[0], slots, number[slots]) for pane, slots in done]
            return found, _NO_SLOTS
        closing, extra = [], [_NO_SLOTS]
        windows = self._with_rows(since, until)
        for window in windows:
            panes = self.times.panes_of(window)
            self.running.move(panes.start, panes.stop)
            slots, numbers, taken = self.running.window(last=window == windows[-1])
            closing.append((window, slots, numbers))
            extra.append(taken)
        return closing, np.concatenate(extra)

    def _with_rows(self, since: int, until: int) -> list[int]:
        """The windows after one until another that have rows, in order."""
        found: list[int] = []
        first = max(since + 1, self.times.first)
        for pane in self.panes.order:
            windows = self.times.windows_of(pane)
            if windows.start > until or first > until:
                break
            found += range(max(windows.start, first), min(windows.stop, until + 1))
            first = max(first, windows.stop)
        return found

    def _closed(self, closing: Sequence[tuple[int, Slots, NDArray[np.int32]]]) -> Result:
        """What is said of windows that close."""
        closing = [one for one in closing if len(one[1]) and _lasts(self.times.lifetime(one[0]))]
        if not closing:
            return Result(self._nothing)
        windows = np.repeat(np.array([one[0] for one in closing]), [len(one[1]) for one in closing])
        slots, numbers = (np.concatenate([one[part] for one in closing]) for part in (1, 2))
        if self.settings.removals:
            there = self.aggregation.events.count[slots] > 0
            windows, slots, numbers = windows[there], slots[there], numbers[there]
        found = self._finished(windows, slots, numbers)
        start, end = self._lifetimes(found.windows)
        batch = Batch(_kinds(len(end), Kind.INSERT), start, end, np.zeros(len(end), np.int64), found.payload)
        broken = np.flatnonzero(found.failed)
        if len(broken):
            batch = batch.take(~found.failed)
        self.said += len(batch)
        return Result(batch, self._refused(found, broken))

    def _finished(
        self,
        windows: NDArray[np.int64],
        slots: Slots,
        numbers: NDArray[np.int32],
        *,
        all_ranks: bool = False,
    ) -> _Rows:
        """The payloads of windows and groups."""
        rows = self.aggregation.rows(slots, all_ranks=all_ranks)
        if rows is not None:
            windows, slots, numbers = windows[rows], slots[rows], numbers[rows]
        said = self.aggregation.said(slots)
        columns = [*self.groups.at(numbers), *(one.values for one in said)]
        if any(self.settings.bounds):
            bounds = _repeated(windows, self.times.bounds)
            wanted = [ticks for ticks, named in zip(bounds, self.settings.bounds, strict=True) if named]
            for ticks, kind in zip(wanted, self.settings.schema.types[len(columns) :], strict=True):
                columns.append(times(ticks, dtype=kind))
        payload = pa.RecordBatch.from_arrays(columns, schema=self.settings.schema)
        there = self.aggregation.there(slots)
        return _Rows(windows, numbers, there, payload, *failures(said, slots))

    def _lifetimes(self, windows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        return _repeated(windows, self.times.lifetime)

    def _refused(self, found: _Rows, rows: NDArray[np.int64]) -> tuple[Refused, ...]:
        """Groups of windows that have no value, with the columns of the group."""
        rows = rows[np.isin(rows, list(found.why))] if len(rows) else rows
        if not len(rows):
            return ()
        start, end = self._lifetimes(found.windows[rows])
        columns = self.groups.at(found.numbers[rows])
        payload = (
            pa.RecordBatch.from_arrays(columns, schema=self.groups.schema)
            if columns
            else rows_without_columns(len(rows))
        )
        batch = Batch(_kinds(len(rows), Kind.INSERT), start, end, np.zeros(len(rows), np.int64), payload)
        return failed(batch, np.arange(len(rows)), [found.why[row] for row in rows.tolist()])

    def _release(self, done: Sequence[Slots], extra: Slots) -> None:
        """Give back the first panes, of which all windows are closed, and slots of no pane."""
        slots = np.concatenate([_NO_SLOTS, *done])
        if len(extra) + len(slots):
            self.aggregation.clear(np.concatenate([extra, slots]))
            self.panes.give_back(extra)
        if done:
            self.groups.forget(self.panes.release(len(done), slots, self.groups.references))

    def saved(self) -> State:
        """How far the input is; groups; the panes with their groups; what each slot has."""
        numbers = np.flatnonzero(self.groups.references).astype(np.int32)
        place = np.zeros(self.groups.numbers.capacity, np.int64)
        place[numbers] = np.arange(len(numbers))
        of = {pane: self.panes.slots_of(pane) for pane in self.panes.order}
        slots = np.concatenate([_NO_SLOTS, *of.values()])
        panes = np.repeat(np.array(list(of), np.int64), [len(one) for one in of.values()])
        table = pa.RecordBatch.from_pydict({"pane": panes, "group": place[self.panes.tables.number[slots]]})
        values = {
            "stable": self.stable,
            "older": self.running.older,
            "touched": self.touched,
            "said": self.said,
            "outside": self.outside,
        }
        return State(VERSION, values, [self.groups.saved(numbers), table, *self.aggregation.saved(slots)])

    @classmethod
    def load(cls, settings: Settings, state: State) -> "Window":
        """The kernel that was saved."""
        groups, table, *columns = version_of(state, VERSION, "a window").batches
        kernel = cls(settings)
        kernel.stable, kernel.touched = state.values["stable"], state.values["touched"]
        kernel.said, kernel.outside = state.values["said"], state.values["outside"]
        numbers = kernel.groups.load(groups)[table.column("group").to_numpy()]
        places = kernel.panes.places(table.column("pane").to_numpy(), kernel.groups.numbers.capacity)
        slots = kernel.panes.assign(places, numbers, kernel.groups.references)
        kernel.aggregation.with_room(kernel.panes.capacity)
        kernel.aggregation.load(slots, columns)
        older = state.values["older"]
        if older is not None:
            last = settings.times.last_closed(kernel.stable)
            begin, end = settings.times.panes_of(last + 1).start, settings.times.panes_of(last).stop
            kernel.running.restore(begin, older, end)
        return kernel


def _removals(batch: Batch, inserts: NDArray[np.bool_]) -> NDArray[np.bool_]:
    if inserts.all():
        return np.zeros(len(batch), np.bool_)
    return (batch.kind == Kind.ADJUST) & (batch.end == batch.start)


def _some(batch: Batch, rows: NDArray[np.bool_]) -> Batch:
    """Some rows; the first ones, as before a stable, are not copied."""
    count = int(np.count_nonzero(rows))
    return batch[:count] if rows[:count].all() else batch.take(rows)


def _repeated(
    windows: NDArray[np.int64], known_by: Callable[[int], tuple[int, int]]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Two times of each window; equal ones stand together."""
    if len(windows) == 1:
        one, other = known_by(int(windows[0]))
        return np.array([one]), np.array([other])
    cuts = np.flatnonzero(np.diff(windows)) + 1
    begins = np.concatenate([[0], cuts]) if len(windows) else cuts
    known = np.array([known_by(window) for window in windows[begins].tolist()], np.int64).reshape(-1, 2)
    lengths = np.diff(np.concatenate([begins, [len(windows)]]))
    return np.repeat(known[:, 0], lengths), np.repeat(known[:, 1], lengths)


def _lasts(lifetime: tuple[int, int]) -> bool:
    return lifetime[0] < lifetime[1]


def _kinds(count: int, kind: Kind) -> NDArray[np.int8]:
    return np.full(count, kind, np.int8)
