"""Windows of rows: of each group so many in a row, and another every so many.

Window k of a group has its rows from number k * every on, counted from 0, as many as its size; it is full
with the last of them, and at the end of the stream is what it is.

Which window a row is in depends on the rows before it, so rows wait until the stable has passed their start;
then they are folded in the order of start and identity, in which no order of arrival is seen. A row that is
removed while it waits was never there; later no row can be removed. So nothing is kept of what the stable has
passed but one partial result for each window that is open, and nothing is taken from one.

**Valid.** A window begins with its first row. So the promise is held at the first start of a window that is
open, and else is that of the input, which all rows that wait and come are not before.

Memory: the rows that wait, with the group columns and the arguments of the aggregates; a slot for each window
that is open; for each group with one the number of its rows. Cost: rows are sorted once; each is added to the
⌈size / every⌉ windows that it is in.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anabranch.kernels.aggregate.aggregation import Aggregation
from anabranch.kernels.aggregate.column import Slots
from anabranch.kernels.aggregate.groups import Groups
from anabranch.kernels.aggregate.open_windows import Folded, OpenWindows, open_window
from anabranch.kernels.fold import Settings, emitted, readable, ready, wait
from anabranch.kernels.kernel import Report, Result, State
from anabranch.kernels.runs import with_ties_by
from anabranch.kernels.store.entries import Entries
from anabranch.kernels.store.saved import version_of
from anabranch.kernels.store.waiting import SAVED, Waiting
from anabranch.model.batch import Batch
from anabranch.model.compiled import compiled
from anabranch.model.slots import NONE
from anabranch.model.time import BEGINNING, FOREVER

VERSION = 6
_PAIRS = 1 << 18
"""How many pairs of row and window are made at once, about."""


@dataclass(frozen=True, slots=True)
class RowWindows:
    """How the rows of a group are cut into windows."""

    size: int
    every: int

    @property
    def overlap(self) -> int:
        """How many windows of a group a row is in at most."""
        return -(-self.size // self.every)

    def ends(self, last: NDArray[np.int64]) -> NDArray[np.int64]:
        """When windows end, by the starts of their last rows: just after."""
        return last + np.int64(1)


class Rows:
    """State: rows that wait, windows that are open by group, and how far the input is."""

    held: ClassVar[bool] = True

    def __init__(self, settings: Settings, cut: RowWindows) -> None:
        self.settings, self.cut = settings, cut
        self.stable = self.frontier = BEGINNING
        self.waiting = Waiting()
        self.groups = Groups(pa.schema([settings.given.field(name) for name in settings.columns]))
        self.windows = OpenWindows.of_capacity(16)
        self.table = np.full((0, self.cut.overlap), NONE, np.int32)
        """The open windows of each group, by number of the group and of the window among its own."""
        self.count = np.zeros(0, np.int64)
        """How many rows each group has had."""
        self.by_start = Entries()
        self.aggregation = Aggregation(
            [one for _, one in settings.aggregates], settings.given, removals=False
        )
        self.touched = self.said = 0
        self._nothing = Batch.of([], schema=settings.schema)

    def push(self, name: str, batch: Batch) -> Result:
        """Nothing; rows wait."""
        rows, arrays, refused = readable(self.aggregation, batch, removals=True)
        wait(self.waiting, self.settings.columns, rows, arrays)
        return Result(self._nothing, refused)

    def advance(self, name: str, time: int) -> Result:
        """The windows that are over, in the order of their starts."""
        if time <= self.stable:
            return Result(self._nothing)
        self.stable = time
        numbers, new, full = self._folded(time)
        self.windows.serial[full] = NONE
        closed = np.concatenate([full, self._cut_short()]) if time == FOREVER else full
        result = self._closed(closed)
        self._release(closed, numbers)
        new = new[self.windows.serial[new] >= 0]
        if len(new):
            self.by_start.add(new, self.windows.first[new], self.windows.serial)
        least = self.by_start.least(self.windows.serial, self.windows.used)
        self.frontier = time if least is None else min(time, least)
        return result

    def report(self) -> Report:
        """Rows that wait, and windows that are open."""
        nbytes = self.waiting.nbytes + self.windows.nbytes + self.groups.nbytes + self.aggregation.nbytes
        nbytes += self.table.nbytes + self.count.nbytes + self.by_start.nbytes
        counts = {"touched": self.touched, "said": self.said, "groups": self.groups.numbers.used}
        return Report(len(self.waiting) + self.windows.used, nbytes, counts)

    def _folded(self, time: int) -> tuple[NDArray[np.int32], Slots, Slots]:
        """Add rows that start before a time to their windows; their groups, new windows, and full ones."""
        waited = self.waiting.take_before(time)
        if not len(waited):
            return _NO_SLOTS, _NO_SLOTS, _NO_SLOTS
        rows, arrays = ready(waited, self.groups.schema)
        numbers = self.groups.number(rows)
        self.groups.references[numbers] = 1
        self._with_room(self.groups.numbers.capacity)
        new, full = [], []
        step = max(1, _PAIRS // self.cut.overlap)
        for begin in range(0, len(rows), step):
            stop = min(begin + step, len(rows))
            folded = self._cut(numbers[begin:stop], rows.start[begin:stop])
            into = folded.slots[: folded.made[0]]
            self.aggregation.with_room(self.windows.capacity)
            taken, chosen = rows.start[begin:stop], [array.slice(begin, stop - begin) for array in arrays]
            if len(into) != stop - begin or self.cut.overlap > 1:
                places = folded.rows[: folded.made[0]]
                taken, chosen = taken[places], [array.take(pa.array(places)) for array in chosen]
            self.aggregation.add(into, chosen, taken, 1)
            new.append(folded.opened[: folded.begun[0]])
            full.append(folded.closed[: folded.done[0]])
        self.touched += len(rows)
        return numbers, np.concatenate(new), np.concatenate(full)

    def _cut(self, numbers: NDArray[np.int32], start: NDArray[np.int64]) -> Folded:
        folded = Folded.of_capacity(len(numbers), self.cut.overlap)
        row = 0
        while True:
            size, every = np.int64(self.cut.size), np.int64(self.cut.every)
            row = fold_into_row_windows(
                self.windows, self.table, self.count, numbers, start, size, every, row, folded
            )
            if row == len(numbers):
                return folded
            self.windows = self.windows.larger()

    def _with_room(self, groups: int) -> None:
        if groups > len(self.count):
            more = groups - len(self.count)
            self.count = np.concatenate([self.count, np.zeros(more, np.int64)])
            self.table = np.concatenate([self.table, np.full((more, self.cut.overlap), NONE, np.int32)])

    def _cut_short(self) -> Slots:
        """The windows that the end of the stream ends."""
        slots = self.windows.slots()
        self.table[self.windows.number[slots], self.windows.nth[slots] % self.cut.overlap] = NONE
        self.windows.serial[slots] = NONE
        return slots

    def _closed(self, slots: Slots) -> Result:
        """The results of windows that are over."""
        if not len(slots):
            return Result(self._nothing)
        first, number = self.windows.first[slots], self.windows.number[slots]
        slots = slots[with_ties_by(np.argsort(first), first, lambda places: (number[places],))]
        numbers, start = self.windows.number[slots], self.windows.first[slots]
        end = self.cut.ends(self.windows.last[slots])
        result = emitted(self.settings, self.aggregation, self.groups, slots, numbers, start, end)
        self.said += len(result.events)
        return result

    def _release(self, closed: Slots, touched: NDArray[np.int32]) -> None:
        """Give back windows that are over, and groups that are like new."""
        if len(closed):
            self.aggregation.clear(closed)
            self.windows.give_back(closed)
        if self.stable == FOREVER:
            touched = np.flatnonzero(self.groups.references).astype(np.int32)
            self.count[:] = 0
        like_new = np.empty(len(touched), np.int32)
        every = np.int64(self.cut.every)
        left = groups_like_new(touched, self.count, self.table, every, self.groups.references, like_new)
        self.groups.forget(like_new[:left])

    def saved(self) -> State:
        """How far the input is; rows that wait; groups with their rows; windows; what each has."""
        numbers = np.flatnonzero(self.groups.references).astype(np.int32)
        place = np.zeros(self.groups.numbers.capacity, np.int64)
        place[numbers] = np.arange(len(numbers))
        slots = self.windows.slots()
        columns = {"nth": self.windows.nth, "first": self.windows.first, "last": self.windows.last}
        windows = {name: column[slots] for name, column in columns.items()}
        windows["group"] = place[self.windows.number[slots]]
        values = {name: getattr(self, name) for name in _VALUES}
        batches = [
            *self.waiting.saved(),
            self.groups.saved(numbers),
            pa.RecordBatch.from_pydict({"count": self.count[numbers]}),
            pa.RecordBatch.from_pydict(windows),
            *self.aggregation.saved(slots),
        ]
        return State(VERSION, values, batches)

    @classmethod
    def load(cls, settings: Settings, cut: RowWindows, state: State) -> "Rows":
        """The kernel that was saved."""
        batches = version_of(state, VERSION, "windows of rows").batches
        groups, counts, table, *columns = batches[SAVED:]
        kernel = cls(settings, cut)
        for name in _VALUES:
            setattr(kernel, name, state.values[name])
        kernel.waiting = Waiting.load(batches[:SAVED], kernel.stable)
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
        self.by_start.add(slots, first, self.windows.serial)


_NO_SLOTS = np.empty(0, np.int32)
_VALUES = ("stable", "frontier", "touched", "said")


@compiled
def fold_into_row_windows(
    windows: OpenWindows,
    table: Any,
    count: Any,
    numbers: Any,
    start: Any,
    size: Any,
    every: Any,
    row: int,
    folded: Folded,
) -> int:
    """Put each row, in order, into the windows of its group that are not full, and into one it begins."""
    overlap = table.shape[1]
    for i in range(row, len(numbers)):
        number = numbers[i]
        before = count[number]
        nth = before // every
        if before % every == 0:
            if windows.pool.height[0] == 0:
                return i
            slot = table[number, nth % overlap] = open_window(windows, number, nth, start[i])
            folded.opened[folded.begun[0]] = slot
            folded.begun[0] += 1
        while nth >= 0 and before - nth * every < size:
            slot = table[number, nth % overlap]
            windows.last[slot] = start[i]
            folded.rows[folded.made[0]], folded.slots[folded.made[0]] = i, slot
            folded.made[0] += 1
            if before - nth * every == size - 1:
                folded.closed[folded.done[0]] = slot
                folded.done[0] += 1
                table[number, nth % overlap] = NONE
            nth -= 1
        count[number] = before + 1
    return len(numbers)


@compiled
def groups_like_new(numbers: Any, count: Any, table: Any, every: Any, references: Any, like_new: Any) -> int:
    """Write each group once that has no open window and whose next row begins one, as its first row does."""
    found = 0
    for number in numbers:
        if references[number] == 0 or count[number] % every != 0:
            continue
        idle = True
        for slot in table[number]:
            idle &= slot < 0
        if idle:
            count[number], references[number] = 0, 0
            like_new[found] = number
            found += 1
    return found
