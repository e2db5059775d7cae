"""Aggregates of windows that rows make: of each group its rows in order, cut by gaps or by their number.

Which window a row is in depends on the rows before it, so rows wait, sorted, until the stable has passed
their start; then they are folded in the order of start and identity, in which no order of arrival is seen. A
row that is removed while it waits was never there; later no row can be removed. So nothing is kept of what
the stable has passed but one partial result for each window that is open, and nothing is taken from one.

**Valid.** A window begins with its first row. So the promise is held at the first start of a window that is
open, and else is that of the input, which all rows that wait and come are not before.

Memory: the rows that wait, with the group columns and the arguments of the aggregates; a slot for each window
that is open; for each group with one the number of its rows. Cost: rows are sorted once; each is added to the
windows that it is in, one session or ⌈size / every⌉ windows of rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anabranch.expressions.aggregates import Aggregate
from anabranch.kernels.aggregate.aggregation import Aggregation, failures
from anabranch.kernels.aggregate.column import Slots
from anabranch.kernels.aggregate.groups import Groups
from anabranch.kernels.aggregate.open_windows import Folded, OpenWindows, entry_runs, least_key
from anabranch.kernels.failed import failed
from anabranch.kernels.kernel import Refused, Report, Result, State
from anabranch.kernels.sort import Sort
from anabranch.kernels.store.saved import version_of
from anabranch.model.batch import Batch, Kind
from anabranch.model.clock_columns import times
from anabranch.model.rows import rows_without_columns
from anabranch.model.slots import NONE
from anabranch.model.time import BEGINNING, FOREVER

VERSION = 2
_PAIRS = 1 << 18
"""How many pairs of row and window are made at once, about."""
_SORTED = 2
"""How many batches the rows that wait are saved as."""


class Cut(Protocol):
    """How the rows of a group are cut into windows."""

    @property
    def overlap(self) -> int:
        """How many windows of a group a row is in at most."""
        ...

    @property
    def by_time(self) -> bool:
        """A window is over once the stable is at its end, and not only when it is full."""
        ...

    def ends(self, last: NDArray[np.int64]) -> NDArray[np.int64]:
        """When windows end, by the starts of their last rows."""
        ...

    def like_new(self, count: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether groups without open windows, of so many rows, are as if they had never been."""
        ...

    def fold(
        self,
        windows: OpenWindows,
        table: NDArray[np.int32],
        count: NDArray[np.int64],
        numbers: NDArray[np.int32],
        start: NDArray[np.int64],
        row: int,
        folded: Folded,
    ) -> int:
        """Put rows into windows from a row on; the first for which there is no room."""
        ...


@dataclass(frozen=True, slots=True)
class Settings:
    """What a fold is told."""

    cut: Cut
    columns: tuple[str, ...]
    """The group columns."""
    aggregates: tuple[tuple[str, Aggregate], ...]
    given: pa.Schema
    """The columns of the input."""
    schema: pa.Schema
    """Those of the output: groups, aggregates, and the bounds of the window where they are wanted."""
    bounds: tuple[bool, bool] = (False, False)
    revisions: bool = True
    """Events may be adjusted, so that their ends mean nothing."""


class Fold:
    """State: rows that wait, windows that are open by group, and how far the input is."""

    held: ClassVar[bool] = True

    def __init__(self, settings: Settings) -> None:
        self.settings, self.cut = settings, settings.cut
        self.stable = self.frontier = BEGINNING
        self.waiting = Sort()
        types = [settings.given.field(name).type for name in settings.columns]
        self.groups = Groups(pa.schema([(f"group {n}", kind) for n, kind in enumerate(types)]))
        self.windows = OpenWindows.of_capacity(16)
        self.table = np.full((0, self.cut.overlap), NONE, np.int32)
        """The open windows of each group, by number of the group and of the window among its own."""
        self.count = np.zeros(0, np.int64)
        """How many rows each group has had."""
        self.by_start, self.by_end = entry_runs(), entry_runs()
        self.aggregation = Aggregation(
            [one for _, one in settings.aggregates], settings.given, removals=False
        )
        self.touched = self.said = 0
        self._nothing = Batch.of([], schema=settings.schema)

    def push(self, name: str, batch: Batch) -> Result:
        """Nothing; rows wait."""
        removed = (batch.kind == Kind.ADJUST) & (batch.end == batch.start)
        rows = batch.take((batch.kind == Kind.INSERT) | removed)
        arrays, reasons = self.aggregation.read(rows)
        refused: tuple[Refused, ...] = ()
        if reasons:
            places = sorted(reasons)
            refused = failed(rows, np.array(places, np.int64), [reasons[place] for place in places])
            keep = np.ones(len(rows), np.bool_)
            keep[places] = False
            rows, arrays = rows.take(keep), [array.filter(pa.array(keep)) for array in arrays]
        if len(rows):
            self.waiting.push("", self._shortened(rows, arrays))
        return Result(self._nothing, refused)

    def advance(self, name: str, time: int) -> Result:
        """The windows that are over, in the order of their starts."""
        if time <= self.stable:
            return Result(self._nothing)
        self.stable = time
        opened = int(self.windows.opened[0])
        numbers, slots, full = self._folded(self.waiting.advance("", time).events)
        self.windows.serial[full] = NONE
        new = slots[self.windows.serial[slots] >= opened]
        closed = np.concatenate([full, self._over(new, time)])
        result = self._closed(closed)
        self._release(closed, numbers)
        new = new[self.windows.serial[new] >= 0]
        self.by_start.add(self.windows.entries(new, self.windows.first[new]))
        least = least_key(self.by_start, self.windows)
        self.frontier = time if least is None else min(time, least)
        return result

    def report(self) -> Report:
        """Rows that wait, and windows that are open."""
        waiting = self.waiting.report()
        nbytes = waiting.nbytes + self.windows.nbytes + self.groups.nbytes + self.aggregation.nbytes
        nbytes += self.table.nbytes + self.count.nbytes + self.by_start.nbytes + self.by_end.nbytes
        counts = {"touched": self.touched, "said": self.said, "groups": self.groups.numbers.used}
        return Report(waiting.live + self.windows.used, nbytes, counts)

    def _shortened(self, rows: Batch, arrays: Sequence[pa.Array]) -> Batch:
        """What is kept of rows: group columns and arguments, known by what the whole row was.

        Where ends may change, an event lasts a tick, so that whatever removes it is known by its start.
        """
        columns = [*(rows.payload.column(name) for name in self.settings.columns), *arrays]
        names = [*self.groups.schema.names, *(f"argument {n}" for n in range(len(arrays)))]
        payload = (
            pa.RecordBatch.from_arrays(columns, names=names) if columns else rows_without_columns(len(rows))
        )
        end, old_end = rows.end, rows.old_end
        if self.settings.revisions:
            inserts = rows.kind == Kind.INSERT
            end, old_end = rows.start + inserts, np.where(inserts, 0, rows.start + 1)
        return Batch(rows.kind, rows.start, end, old_end, payload).identified(rows.identities)

    def _folded(self, rows: Batch) -> tuple[NDArray[np.int32], Slots, Slots]:
        """Add rows to their windows; the groups and slots that were touched, and what is full."""
        if not len(rows):
            return _NO_SLOTS, _NO_SLOTS, _NO_SLOTS
        numbers = self.groups.number(rows)
        self.groups.references[numbers] = 1
        self._with_room(self.groups.numbers.capacity)
        arrays = rows.payload.columns[len(self.groups.schema) :]
        slots, full = [], []
        step = max(1, _PAIRS // self.cut.overlap)
        for begin in range(0, len(rows), step):
            stop = min(begin + step, len(rows))
            folded = self._cut(numbers[begin:stop], rows.start[begin:stop])
            taken = begin + folded.rows[: folded.made[0]]
            into = folded.slots[: folded.made[0]]
            self.aggregation.with_room(self.windows.capacity)
            chosen = [array.take(pa.array(taken)) for array in arrays]
            self.aggregation.add(into, chosen, rows.start[taken], 1)
            slots.append(np.unique(into))
            full.append(folded.closed[: folded.done[0]])
        self.touched += len(rows)
        return np.unique(numbers), np.unique(np.concatenate(slots)), np.concatenate(full)

    def _cut(self, numbers: NDArray[np.int32], start: NDArray[np.int64]) -> Folded:
        folded = Folded.of_capacity(len(numbers), self.cut.overlap)
        row = 0
        while True:
            row = self.cut.fold(self.windows, self.table, self.count, numbers, start, row, folded)
            if row == len(numbers):
                return folded
            self.windows = self.windows.larger()

    def _with_room(self, groups: int) -> None:
        if groups > len(self.count):
            more = groups - len(self.count)
            self.count = np.concatenate([self.count, np.zeros(more, np.int64)])
            self.table = np.concatenate([self.table, np.full((more, self.cut.overlap), NONE, np.int32)])

    def _over(self, new: Slots, time: int) -> Slots:
        """The windows, new ones and old, that are over because of the time."""
        if time == FOREVER:
            over = self.windows.slots()
            self.by_end = entry_runs()
        elif self.cut.by_time:
            self.by_end.add(self.windows.entries(new, self.cut.ends(self.windows.last[new])))
            due = self.by_end.take_before(time + 1)
            slots = due[1][self.windows.alive(due)].astype(np.int32)
            ends = self.cut.ends(self.windows.last[slots])
            over, longer = slots[ends <= time], ends > time
            self.by_end.add(self.windows.entries(slots[longer], ends[longer]))
        else:
            over = _NO_SLOTS
        self.table[self.windows.number[over], self.windows.nth[over] % self.cut.overlap] = NONE
        self.windows.serial[over] = NONE
        return over

    def _closed(self, slots: Slots) -> Result:
        """What is said of windows."""
        if not len(slots):
            return Result(self._nothing)
        slots = slots[np.lexsort((self.windows.number[slots], self.windows.first[slots]))]
        rows = self.aggregation.rows(slots)
        slots = slots if rows is None else slots[rows]
        numbers, start = self.windows.number[slots], self.windows.first[slots]
        end = self.cut.ends(self.windows.last[slots])
        said = self.aggregation.said(slots)
        columns = [*self.groups.at(numbers), *(one.values for one in said)]
        wanted = [ticks for ticks, named in zip((start, end), self.settings.bounds, strict=True) if named]
        for ticks, kind in zip(wanted, self.settings.schema.types[len(columns) :], strict=True):
            columns.append(times(ticks, dtype=kind))
        payload = pa.RecordBatch.from_arrays(columns, schema=self.settings.schema)
        batch = Batch(np.zeros(len(slots), np.int8), start, end, np.zeros_like(end), payload)
        lost, why = failures(said, slots)
        refused: tuple[Refused, ...] = ()
        if why:
            groups = pa.schema([self.settings.given.field(name) for name in self.settings.columns])
            keys = (
                pa.RecordBatch.from_arrays(self.groups.at(numbers), schema=groups)
                if len(groups)
                else rows_without_columns(len(batch))
            )
            refused = failed(
                batch.with_new_payload(keys), np.array(sorted(why)), [why[n] for n in sorted(why)]
            )
            batch = batch.take(~lost)
        self.said += len(batch)
        return Result(batch, refused)

    def _release(self, closed: Slots, touched: NDArray[np.int32]) -> None:
        """Give back windows that are over, and groups that are like new."""
        if len(closed):
            self.aggregation.clear(closed)
            self.windows.give_back(closed)
        numbers = np.unique(np.concatenate([touched, self.windows.number[closed]]))
        if self.stable == FOREVER:
            numbers = np.flatnonzero(self.groups.references).astype(np.int32)
            self.count[:] = 0
        like_new = self.cut.like_new(self.count[numbers]) & (self.table[numbers] == NONE).all(axis=1)
        numbers = numbers[like_new]
        self.count[numbers] = 0
        self.groups.references[numbers] = 0
        self.groups.forget(numbers)

    def saved(self) -> State:
        """How far the input is; rows that wait; groups with their rows; windows; what each has."""
        waiting = self.waiting.saved()
        numbers = np.flatnonzero(self.groups.references).astype(np.int32)
        place = np.zeros(self.groups.numbers.capacity, np.int64)
        place[numbers] = np.arange(len(numbers))
        slots = self.windows.slots()
        columns = {"nth": self.windows.nth, "first": self.windows.first, "last": self.windows.last}
        windows = {name: column[slots] for name, column in columns.items()}
        windows["group"] = place[self.windows.number[slots]]
        values = {name: getattr(self, name) for name in _VALUES} | {
            "waiting": {"version": waiting.version, "values": waiting.values}
        }
        batches = [
            *waiting.batches,
            self.groups.saved(numbers),
            pa.RecordBatch.from_pydict({"count": self.count[numbers]}),
            pa.RecordBatch.from_pydict(windows),
            *self.aggregation.saved(slots),
        ]
        return State(VERSION, values, batches)

    @classmethod
    def load(cls, settings: Settings, state: State) -> "Fold":
        """The kernel that was saved."""
        batches = version_of(state, VERSION, "windows of rows in order").batches
        groups, counts, table, *columns = batches[_SORTED:]
        kernel = cls(settings)
        for name in _VALUES:
            setattr(kernel, name, state.values[name])
        waiting = state.values["waiting"]
        kernel.waiting = Sort.load(State(waiting["version"], waiting["values"], batches[:_SORTED]))
        numbers = kernel.groups.load(groups)
        kernel.groups.references[numbers] = 1
        kernel._with_room(kernel.groups.numbers.capacity)
        kernel.count[numbers] = counts.column("count").to_numpy()
        kernel._reopen(numbers[table.column("group").to_numpy()], table)
        kernel.aggregation.with_room(kernel.windows.capacity)
        kernel.aggregation.load(kernel.windows.slots(), columns)
        return kernel

    def _reopen(self, numbers: NDArray[np.int32], table: pa.RecordBatch) -> None:
        """Open the windows that were saved, in their order."""
        while self.windows.capacity < len(numbers):
            self.windows = self.windows.larger()
        nth, first, last = (table.column(name).to_numpy() for name in ("nth", "first", "last"))
        slots = self.windows.take(len(numbers))
        self.windows.number[slots], self.windows.nth[slots] = numbers, nth
        self.windows.first[slots], self.windows.last[slots] = first, last
        self.table[numbers, nth % self.cut.overlap] = slots
        self.by_start.add(self.windows.entries(slots, first))
        if self.cut.by_time:
            self.by_end.add(self.windows.entries(slots, self.cut.ends(last)))


_NO_SLOTS = np.empty(0, np.int32)
_VALUES = ("stable", "frontier", "touched", "said")
