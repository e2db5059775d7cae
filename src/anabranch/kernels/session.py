"""Sessions by a gap: rows that start less than a gap after the one before them in their group.

A session is [first start, last start + gap), so that no row can come into it once the stable is at its end.

Time is cut into stretches as long as the gap. Rows of a group that start in one stretch are less than a gap
apart, so they are in one session: they are added to one piece, in whatever order they come. Of two pieces in
neighbouring stretches, the first row of the later one says whether it goes on with the session of the earlier
one; pieces that are further apart never do. Once the stable has passed a stretch, its pieces are merged, in
order, into the sessions that are open, or open new ones.

**Rows wait** only where they may be removed, or where an aggregate of the user's looks at them in order: then
they are added once the stable has passed their start, in the order of start and identity. A row that is
removed while it waits was never there; later no row can be removed.

**Valid.** A session begins with its first row. So the promise is held at the first start of a session that is
open, or of a piece with rows that the stable has passed; and else is that of the input.

Memory: a slot of 32 bytes, beside the aggregates, for each piece and each session that is open; the rows that
wait. Cost: constant for each row and aggregate; each piece is put in order by its stretch and merged once.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anabranch.kernels.aggregate.aggregation import Aggregation
from anabranch.kernels.aggregate.column import Slots
from anabranch.kernels.aggregate.groups import Groups
from anabranch.kernels.fold import Settings, emitted, readable, ready, wait
from anabranch.kernels.kernel import Report, Result, State
from anabranch.kernels.runs import KEY, by_key, with_ties_by
from anabranch.kernels.store.ahead import ahead
from anabranch.kernels.store.entries import Entries, by_serial
from anabranch.kernels.store.saved import version_of
from anabranch.kernels.store.waiting import SAVED, Waiting
from anabranch.model.batch import Batch
from anabranch.model.compiled import compiled, inlined
from anabranch.model.murmur import mix
from anabranch.model.pool import Pool, grown, take_place
from anabranch.model.slots import (
    NONE,
    TAG_MASK,
    empty_slots,
    more_slots,
    node_in,
    slot_of,
    tag_in,
    vacate_slot,
)
from anabranch.model.time import BEGINNING, FOREVER

VERSION = 6
_AHEAD = 8
_SPREAD = np.uint64(0x9E3779B97F4A7C15)
NUMBER, STRETCH, FIRST, LAST = range(4)
"""The columns of spans: the number of the group, the stretch of the last row, and the starts of both ends."""


@dataclass(frozen=True, slots=True)
class Sessions:
    """How the rows of a group are cut into sessions."""

    gap: int

    def ends(self, last: NDArray[np.int64]) -> NDArray[np.int64]:
        """When sessions end, by the starts of their last rows."""
        return np.where(last > FOREVER - self.gap, FOREVER, last + np.int64(self.gap))


class Spans(NamedTuple):
    """State: pieces and open sessions by slot, and slots that are free."""

    cells: NDArray[np.int64]
    """The hash table of pieces by group and stretch; sessions are not in it."""
    nodes: NDArray[np.int64]
    """A row of four numbers for each slot; without a group where it is free."""
    serial: NDArray[np.int64]
    """The serial number of a session, in the order in which they were opened; NONE where there is none."""
    pool: Pool
    """The slots that are free."""
    opened: NDArray[np.int64]
    """How many sessions there have been, as an array of one."""

    @classmethod
    def of_capacity(cls, capacity: int) -> "Spans":
        """None, with room for this many (a power of two)."""
        nodes = np.full((capacity, 4), NONE, np.int64)
        serial = np.full(capacity, NONE, np.int64)
        return cls(empty_slots(capacity), nodes, serial, Pool.of_capacity(capacity), np.array([0]))

    @property
    def capacity(self) -> int:
        """How many there may be."""
        return len(self.nodes)

    @property
    def used(self) -> int:
        """How many there are."""
        return self.pool.used

    @property
    def nbytes(self) -> int:
        """Bytes of state."""
        return sum(column.nbytes for column in self)

    def larger(self) -> "Spans":
        """The same spans, with room for as many more."""
        capacity = 2 * self.capacity
        return Spans(
            more_slots(self.cells, capacity),
            grown(self.nodes, capacity, NONE),
            grown(self.serial, capacity, NONE),
            self.pool.of_size(capacity),
            self.opened,
        )

    def sessions(self) -> Slots:
        """The slots of all sessions, in the order in which they were opened."""
        return by_serial(self.serial)

    def pieces(self) -> Slots:
        """The slots of all pieces."""
        return np.flatnonzero((self.nodes[:, NUMBER] >= 0) & (self.serial < 0)).astype(np.int32)


class Passed(NamedTuple):
    """What comes of pieces that the stable has passed: which are merged into which, and what is closed."""

    into: NDArray[np.int32]
    merged: NDArray[np.int32]
    closed: NDArray[np.int32]
    counts: NDArray[np.int64]
    """How many are merged, and how many closed."""

    @classmethod
    def of_capacity(cls, pieces: int) -> "Passed":
        """None, with room for so many pieces."""
        into, merged, closed = (np.empty(pieces, np.int32) for _ in range(3))
        return cls(into, merged, closed, np.zeros(2, np.int64))


class Session:
    """State: pieces, sessions that are open by group, how far the input is, and rows that wait."""

    held: ClassVar[bool] = True

    def __init__(self, settings: Settings, sessions: Sessions) -> None:
        self.settings, self.sessions = settings, sessions
        self.stable = self.frontier = BEGINNING
        self.waiting = Waiting() if settings.waits else None
        self.groups = Groups(pa.schema([settings.given.field(name) for name in settings.columns]))
        self.spans = Spans.of_capacity(16)
        self.session = np.full(0, NONE, np.int32)
        """The open session of each group."""
        self.ahead = by_key(2)
        """The pieces by stretch."""
        self.by_start, self.by_end = Entries(), Entries()
        """The sessions; of those by end an end may be later than it says, and is looked at once it is due."""
        self.least = FOREVER
        """The first start of a piece in the stretch that the stable is in."""
        self.aggregation = Aggregation(
            [one for _, one in settings.aggregates], settings.given, removals=False
        )
        self.touched = self.said = 0
        self._nothing = Batch.of([], schema=settings.schema)

    @property
    def stretch(self) -> int:
        """The stretch that the stable is in."""
        return self.stable // self.sessions.gap

    def push(self, name: str, batch: Batch) -> Result:
        """Nothing: rows are added to their pieces, or wait."""
        rows, arrays, refused = readable(self.aggregation, batch, removals=self.settings.waits)
        if self.waiting is not None:
            wait(self.waiting, self.settings.columns, rows, arrays)
        else:
            self._add(rows, arrays)
        return Result(self._nothing, refused)

    def advance(self, name: str, time: int) -> Result:
        """The sessions that are over, in the order of their starts."""
        if time <= self.stable:
            return Result(self._nothing)
        before, self.stable = self.stretch, time
        if self.waiting is not None:
            waited = self.waiting.take_before(time)
            if len(waited):
                self._add(*ready(waited, self.groups.schema))
        followed, opened = self._passed()
        over = self._over(time, opened)
        result = self._closed(np.concatenate([followed, over]) if len(followed) else over)
        if self.stretch != before or time == FOREVER:
            pieces = self.ahead.at(np.array([self.stretch]))[1]
            self.touched += len(pieces)
            self.least = int(self.spans.nodes[pieces, FIRST].min()) if len(pieces) else FOREVER
        first = self.by_start.least(self.spans.serial, self.spans.used)
        self.frontier = min(time, self.least, time if first is None else first)
        return result

    def report(self) -> Report:
        """Rows that wait, pieces and open sessions."""
        nbytes = self.spans.nbytes + self.groups.nbytes + self.aggregation.nbytes + self.session.nbytes
        nbytes += self.ahead.nbytes + self.by_start.nbytes + self.by_end.nbytes
        live, touched = self.spans.used, self.touched
        if self.waiting is not None:
            live, nbytes = live + len(self.waiting), nbytes + self.waiting.nbytes
        counts = {"touched": touched, "said": self.said, "groups": self.groups.numbers.used}
        return Report(live, nbytes, counts)

    def _add(self, rows: Batch, arrays: Sequence[pa.Array]) -> None:
        """Add rows to the pieces that they are in."""
        count = len(rows)
        if not count:
            return
        numbers = self.groups.number(rows)
        if len(self.session) < self.groups.numbers.capacity:
            self.session = grown(self.session, self.groups.numbers.capacity, NONE)
        stretch = rows.start // np.int64(self.sessions.gap)
        found, new = np.empty(count, np.int32), np.empty(count, np.int32)
        row = made = 0
        while row < count:
            row, made = assign_pieces(
                self.spans, numbers, rows.start, stretch, self.groups.references, row, found, new, made
            )
            if row < count:
                self.spans = self.spans.larger()
        self.aggregation.with_room(self.spans.capacity)
        self.aggregation.add(found, arrays, rows.start, 1)
        if made:
            new = new[:made]
            self.ahead.add(np.stack([self.spans.nodes[new, STRETCH], new.astype(np.int64)]))
        least = int(rows.start.min())
        if least < self.least and least // self.sessions.gap == self.stretch:
            self.least = least
        self.touched += count

    def _passed(self) -> tuple[Slots, Slots]:
        """Merge the pieces of stretches that the stable has passed.

        Returns the sessions that others follow, which are over, and the new ones that may not be.
        """
        entries = self.ahead.take_all() if self.stable == FOREVER else self.ahead.take_before(self.stretch)
        if not entries.shape[1]:
            return _NO_SLOTS, _NO_SLOTS
        slots = entries[1][np.argsort(entries[KEY], kind="stable")].astype(np.int32)
        opened = int(self.spans.opened[0])
        passed = Passed.of_capacity(len(slots))
        pass_pieces(self.spans, self.session, slots, np.uint64(self.sessions.gap), passed)
        merged = passed.merged[: passed.counts[0]]
        if len(merged):
            self.aggregation.merge(passed.into[: passed.counts[0]], merged)
            self._release(merged)
        self.touched += len(slots)
        return passed.closed[: passed.counts[1]], slots[self.spans.serial[slots] >= opened]

    def _over(self, time: int, opened: Slots) -> Slots:
        """The sessions, new ones and old, that are over because of the time."""
        if time == FOREVER:
            self.by_start.clear()
            self.by_end.clear()
            return np.flatnonzero(self.spans.serial >= 0).astype(np.int32)
        slots = np.concatenate([opened, self.by_end.take_before(time + 1, self.spans.serial)])
        if not len(slots):
            return slots
        ends = self.sessions.ends(self.spans.nodes[slots, LAST])
        longer = ends > time
        followed = followed_sessions(
            self.spans, slots, np.uint64(self.sessions.gap), np.zeros(len(slots), np.bool_)
        )
        # What goes on in the stretch that the stable is in is looked at again behind that stretch.
        ends[followed & ~longer] = min((self.stretch + 1) * self.sessions.gap, FOREVER)
        open_still = longer | followed
        self.by_end.add(slots[open_still], ends[open_still], self.spans.serial)
        new = opened[open_still[: len(opened)]]
        if len(new):
            self.by_start.add(new, self.spans.nodes[new, FIRST], self.spans.serial)
        self.touched += len(slots)
        over = slots[~open_still]
        self.session[self.spans.nodes[over, NUMBER]] = NONE
        return over

    def _closed(self, slots: Slots) -> Result:
        """The results of sessions that are over, which are let go."""
        if not len(slots):
            return Result(self._nothing)
        nodes = np.ascontiguousarray(self.spans.nodes[slots].T)
        order = np.argsort(nodes[FIRST])
        order = with_ties_by(order, nodes[FIRST], lambda places: (nodes[NUMBER, places],))
        slots = slots[order]
        number, _, first, last = np.take(nodes, order, axis=1)
        numbers, ends = number.astype(np.int32), self.sessions.ends(last)
        result = emitted(self.settings, self.aggregation, self.groups, slots, numbers, first, ends)
        self.said += len(result.events)
        if self.stable == FOREVER:
            self.session[numbers] = NONE
        self.spans.serial[slots] = NONE
        self._release(slots)
        return result

    def _release(self, slots: Slots) -> None:
        """Give back slots, and groups that have none."""
        self.aggregation.clear(slots)
        left = np.empty(len(slots), np.int32)
        left = left[: leave_groups(self.spans, slots, self.groups.references, left)]
        self.spans.pool.give_back(slots)
        self.groups.forget(left)

    def saved(self) -> State:
        """How far the input is; rows that wait; groups; sessions, then pieces; what each has."""
        sessions = self.spans.sessions()
        slots = np.concatenate([sessions, self.spans.pieces()])
        nodes = self.spans.nodes[slots]
        numbers = np.unique(nodes[:, NUMBER]).astype(np.int32)
        columns = {
            "group": np.searchsorted(numbers, nodes[:, NUMBER]),
            "stretch": nodes[:, STRETCH],
            "first": nodes[:, FIRST],
            "last": nodes[:, LAST],
        }
        values = {name: getattr(self, name) for name in _VALUES} | {"sessions": len(sessions)}
        batches = [
            self.groups.saved(numbers),
            pa.RecordBatch.from_pydict(columns),
            *self.aggregation.saved(slots),
        ]
        return State(VERSION, values, [*([] if self.waiting is None else self.waiting.saved()), *batches])

    @classmethod
    def load(cls, settings: Settings, sessions: Sessions, state: State) -> "Session":
        """The kernel that was saved."""
        batches = version_of(state, VERSION, "sessions").batches
        kernel = cls(settings, sessions)
        for name in _VALUES:
            setattr(kernel, name, state.values[name])
        if kernel.waiting is not None:
            kernel.waiting = Waiting.load(batches[:SAVED], kernel.stable)
            batches = batches[SAVED:]
        groups, table, *columns = batches
        slots = kernel._restore(kernel.groups.load(groups), table, state.values["sessions"])
        kernel.aggregation.with_room(kernel.spans.capacity)
        kernel.aggregation.load(slots, columns)
        return kernel

    def _restore(self, groups: NDArray[np.int32], table: pa.RecordBatch, sessions: int) -> Slots:
        """The slots of the sessions and pieces that were saved, in their order."""
        count = table.num_rows
        while self.spans.capacity < count:
            self.spans = self.spans.larger()
        self.session = grown(self.session, self.groups.numbers.capacity, NONE)
        names = "group", "stretch", "first", "last"
        nodes = np.stack([table.column(name).to_numpy() for name in names], axis=1).reshape(-1, 4)
        nodes[:, NUMBER] = groups[nodes[:, NUMBER]]
        slots = self.spans.pool.take(count)
        self.spans.nodes[slots] = nodes
        of_sessions, pieces = slots[:sessions], slots[sessions:]
        self.spans.serial[of_sessions] = np.arange(sessions)
        self.spans.opened[0] = sessions
        self.session[nodes[:sessions, NUMBER]] = of_sessions
        np.add.at(self.groups.references, nodes[:, NUMBER], 1)
        link_pieces(self.spans, pieces)
        self.ahead.add(np.stack([nodes[sessions:, STRETCH], pieces.astype(np.int64)]))
        self.by_start.add(of_sessions, nodes[:sessions, FIRST], self.spans.serial)
        self.by_end.add(of_sessions, self.sessions.ends(nodes[:sessions, LAST]), self.spans.serial)
        return slots


_NO_SLOTS = np.empty(0, np.int32)
_VALUES = ("stable", "frontier", "least", "touched", "said")


@inlined
def _tag(number: Any, stretch: Any) -> Any:
    """31 bits of the hash of a group and a stretch."""
    return np.int64(mix(np.uint64(stretch) * _SPREAD + np.uint64(number)) & TAG_MASK)


@inlined
def _cell(spans: Spans, tag: Any, number: Any, stretch: Any) -> Any:
    """The cell of a piece, or the empty one where it would be."""
    mask = len(spans.cells) - 1
    cell = tag & mask
    while spans.cells[cell] >= 0:
        if tag_in(spans.cells[cell]) == tag:
            node = node_in(spans.cells[cell])
            if spans.nodes[node, NUMBER] == number and spans.nodes[node, STRETCH] == stretch:
                break
        cell = (cell + 1) & mask
    return cell


@compiled
def assign_pieces(
    spans: Spans,
    numbers: Any,
    start: Any,
    stretch: Any,
    references: Any,
    row: int,
    found: Any,
    new: Any,
    made: int,
) -> tuple[int, int]:
    """Write the piece of each row from a row on, and those that are new.

    Returns the first row for which there is no room, and how many pieces are new so far.
    """
    mask = len(spans.cells) - 1
    for i in range(row, len(numbers)):
        if i + 2 * _AHEAD < len(numbers):
            ahead(spans.cells, _tag(np.int64(numbers[i + 2 * _AHEAD]), stretch[i + 2 * _AHEAD]) & mask)
        if i + _AHEAD < len(numbers):
            likely = spans.cells[_tag(np.int64(numbers[i + _AHEAD]), stretch[i + _AHEAD]) & mask]
            ahead(spans.nodes, np.int64(max(node_in(likely), 0)))
        number = np.int64(numbers[i])
        tag = _tag(number, stretch[i])
        cell = _cell(spans, tag, number, stretch[i])
        entry = spans.cells[cell]
        if entry >= 0:
            slot = node_in(entry)
            spans.nodes[slot, FIRST] = min(spans.nodes[slot, FIRST], start[i])
            spans.nodes[slot, LAST] = max(spans.nodes[slot, LAST], start[i])
        else:
            if spans.pool.height[0] == 0:
                return i, made
            slot = take_place(spans.pool)
            spans.cells[cell] = slot_of(tag, slot)
            spans.nodes[slot, NUMBER], spans.nodes[slot, STRETCH] = number, stretch[i]
            spans.nodes[slot, FIRST] = spans.nodes[slot, LAST] = start[i]
            references[number] += 1
            new[made] = slot
            made += 1
        found[i] = slot
    return len(numbers), made


@compiled
def link_pieces(spans: Spans, slots: Any) -> None:
    """Let pieces be found by their group and stretch."""
    for slot in slots:
        number, stretch = spans.nodes[slot, NUMBER], spans.nodes[slot, STRETCH]
        tag = _tag(number, stretch)
        spans.cells[_cell(spans, tag, number, stretch)] = slot_of(tag, np.int64(slot))


@compiled
def pass_pieces(spans: Spans, session: Any, slots: Any, gap: Any, passed: Passed) -> None:
    """Put pieces, in the order of their stretches, into the sessions of their groups, or open new ones."""
    mask = len(spans.cells) - 1
    merged = closed = 0
    for i in range(len(slots)):
        if i + 2 * _AHEAD < len(slots):
            ahead(spans.nodes, np.int64(slots[i + 2 * _AHEAD]))
        if i + _AHEAD < len(slots):
            later = slots[i + _AHEAD]
            ahead(spans.cells, _tag(spans.nodes[later, NUMBER], spans.nodes[later, STRETCH]) & mask)
            ahead(session, spans.nodes[later, NUMBER])
        slot = slots[i]
        number, stretch = spans.nodes[slot, NUMBER], spans.nodes[slot, STRETCH]
        vacate_slot(spans.cells, _cell(spans, _tag(number, stretch), number, stretch))
        before = session[number]
        if before >= 0:
            if np.uint64(spans.nodes[slot, FIRST]) - np.uint64(spans.nodes[before, LAST]) < gap:
                spans.nodes[before, STRETCH], spans.nodes[before, LAST] = stretch, spans.nodes[slot, LAST]
                passed.into[merged], passed.merged[merged] = before, slot
                merged += 1
                continue
            passed.closed[closed] = before
            spans.serial[before] = -1
            closed += 1
        session[number] = slot
        spans.serial[slot] = spans.opened[0]
        spans.opened[0] += 1
    passed.counts[0], passed.counts[1] = merged, closed


@compiled
def leave_groups(spans: Spans, slots: Any, references: Any, left: Any) -> int:
    """Take slots from their groups, and write down the groups that have none left."""
    count = 0
    for slot in slots:
        number = spans.nodes[slot, NUMBER]
        spans.nodes[slot, NUMBER] = -1
        references[number] -= 1
        if references[number] == 0:
            left[count] = number
            count += 1
    return count


@compiled
def followed_sessions(spans: Spans, slots: Any, gap: Any, found: Any) -> Any:
    """Which sessions go on in a piece of the next stretch."""
    mask = len(spans.cells) - 1
    for i in range(len(slots)):
        if i + 2 * _AHEAD < len(slots):
            ahead(spans.nodes, np.int64(slots[i + 2 * _AHEAD]))
        if i + _AHEAD < len(slots):
            later = slots[i + _AHEAD]
            ahead(spans.cells, _tag(spans.nodes[later, NUMBER], spans.nodes[later, STRETCH] + 1) & mask)
        number, stretch = spans.nodes[slots[i], NUMBER], spans.nodes[slots[i], STRETCH] + 1
        entry = spans.cells[_cell(spans, _tag(number, stretch), number, stretch)]
        if entry >= 0:
            first = spans.nodes[node_in(entry), FIRST]
            found[i] = np.uint64(first) - np.uint64(spans.nodes[slots[i], LAST]) < gap
    return found
