"""Events that wait for a time to pass their starts: in order of start, identity and end they come out.

A revision of an event that waits is two rows, one that takes it back with its old end and one that brings the
new one; what is the same event with one end is counted together when it comes out. Only events that start
together are told apart, and only of those are payloads hashed.

Memory: per row 35 bytes, its payload, and 16 more where identities are not of whole payloads; where there are
more rows taken back than events, all are counted together. Cost: a row is written to its slot and read from
it, moves a few times in the calendar, and is sorted once, among those that come out with it.
"""

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anabranch.kernels.runs import COUNT, END, HIGH, LOW, PLACE, START, Rows, counted, net
from anabranch.kernels.store.calendar import Calendar
from anabranch.kernels.store.slot_columns import SlotColumns
from anabranch.model.batch import Batch
from anabranch.model.identity import Words, identities
from anabranch.model.pool import Pool, grown
from anabranch.model.schema import Columns, conformed
from anabranch.model.time import FOREVER

_MANY = 1024
"""Rows taken back that may wait, however few events do."""
_BITS = 63
"""Of a word that has no sign."""


@dataclass(slots=True)
class Waiting:
    """State: slots of rows by start, and in columns by slot what is known of them.

    >>> waiting = Waiting()
    >>> start, sign = np.array([5, 3, 5]), np.array([1, 1, -1], np.int8)
    >>> payload = waiting.admit(pa.record_batch({"v": [1, 2, 1]}))
    >>> waiting.add(start, start + 4, sign, payload)
    >>> waiting.take_before(6).payload.to_pydict(), waiting.events
    ({'v': [2]}, 0)
    """

    columns: Columns = field(default_factory=Columns.none)
    calendar: Calendar = field(default_factory=Calendar.empty, repr=False)
    pool: Pool = field(default_factory=lambda: Pool.of_capacity(0), repr=False)
    end: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64), repr=False)
    sign: NDArray[np.int8] = field(default_factory=lambda: np.empty(0, np.int8), repr=False)
    """1: an event that comes, -1: one that is taken back."""
    words: Words | None = field(default=None, repr=False)
    """Identities that are not of the payload; zeros where they are."""
    payloads: SlotColumns = field(default_factory=lambda: SlotColumns(pa.schema([])), repr=False)
    events: int = 0
    """How many there are."""
    removals: int = 0
    """How many rows take events back."""

    def __len__(self) -> int:
        """How many rows wait."""
        return self.calendar.size

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        words = 0 if self.words is None else self.words.nbytes
        by_slot = self.pool.nbytes + self.end.nbytes + self.sign.nbytes + words
        return self.calendar.nbytes + by_slot + self.payloads.nbytes

    @property
    def moved(self) -> int:
        """How many rows have been looked at to let some out."""
        return int(self.calendar.moved[0])

    def admit(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Rows in the columns of all, which widen for them; a SchemaError where they cannot."""
        columns = self.columns.with_rows(rows)
        if not columns.schema.equals(self.columns.schema):
            held = self.calendar.all()[1]
            payloads = SlotColumns(columns.schema)
            payloads.grow(self.pool.capacity)
            payloads.put(held, conformed(self.payloads.at(held), columns.schema))
            self.payloads = payloads
        self.columns = columns
        return rows if rows.schema.equals(columns.schema) else conformed(rows, columns.schema)

    def add(
        self,
        start: NDArray[np.int64],
        end: NDArray[np.int64],
        sign: NDArray[np.int8] | Literal[1],
        payload: pa.RecordBatch,
        words: Words | None = None,
    ) -> None:
        """Let rows wait that have been admitted, with their identities where these are not of payloads."""
        count = len(start)
        self._make_room(count)
        slots = self.pool.take(count).astype(np.int64)
        self.end[slots], self.sign[slots] = end, sign
        if words is not None and self.words is None:
            self.words = np.zeros((self.pool.capacity, 2), np.uint64)
        if self.words is not None:
            self.words[slots] = 0 if words is None else words
        self.payloads.put(slots, payload)
        self.calendar.add(start, slots)
        taken_back = 0 if isinstance(sign, int) else int((sign < 0).sum())
        self.removals += taken_back
        self.events += count - 2 * taken_back
        if self.removals > self.events + _MANY:
            self._count_together()

    def take_before(self, time: int) -> Batch:
        """The events that start before a time, in order, which wait no longer; all at the end of time."""
        start, taken = _in_order(*self.calendar.take_before(time))
        slots = taken
        tied = _tied(start)
        if tied.any():
            slots, times = self._told_apart(start, slots, np.flatnonzero(tied))
            start = start if times is None else np.repeat(start, times)
        end, payload = self.end.take(slots), self.payloads.at(slots)
        self.events -= len(start)
        self._give_back(taken)
        if time == FOREVER:
            self._let_go()
        nothing = np.zeros(len(start), np.int64)
        return Batch(np.zeros(len(start), np.int8), start, end, nothing, payload)

    def rows(self) -> Rows:
        """Counted rows of the events, their places the slots; those of a payload stand together."""
        start, slots = self.calendar.all()
        rows = counted(start)
        rows[LOW : HIGH + 1] = self._identities(slots).T.view(np.int64)
        rows[START], rows[END], rows[COUNT], rows[PLACE] = start, self.end[slots], self.sign[slots], slots
        order = np.argsort(-rows[COUNT], kind="stable")
        return net(np.take(rows, order, axis=1))

    def _told_apart(
        self, start: NDArray[np.int64], slots: NDArray[np.int64], rows: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64] | None]:
        """The slots, those of some rows by identity and end, and how often each counts where not all once."""
        among = slots[rows]
        words, end, sign = self._identities(among), self.end[among], self.sign[among]
        order = _by_identity(start[rows], words, end, sign)
        slots = slots.copy()
        slots[rows] = among[order]
        if not self.removals or (sign > 0).all():
            return slots, None
        names = np.stack([start[rows], *words[order].T.view(np.int64), end[order]])
        changes = (np.diff(names, axis=1) != 0).any(axis=0)
        places = np.concatenate([[0], np.flatnonzero(changes) + 1])
        counts = np.add.reduceat(sign[order].astype(np.int64), places)
        assert (counts >= 0).all(), "only what is there is taken back"
        times = np.ones(len(slots), np.int64)
        times[rows] = 0
        times[rows[places]] = counts
        return np.repeat(slots, times), times

    def _identities(self, slots: NDArray[np.int64]) -> Words:
        words = identities(self.payloads.at(slots))
        if self.words is not None:
            given = self.words[slots]
            words = np.where(given.any(axis=1, keepdims=True), given, words)
        return words

    def _make_room(self, more: int) -> None:
        self.calendar = self.calendar.with_room(more)
        pool = self.pool.with_room(more)
        if pool is not self.pool:
            self.pool = pool
            self.end, self.sign = grown(self.end, pool.capacity), grown(self.sign, pool.capacity)
            self.words = None if self.words is None else grown(self.words, pool.capacity)
            self.payloads.grow(pool.capacity)

    def _give_back(self, slots: NDArray[np.int64]) -> None:
        if self.removals:
            self.removals -= int((self.sign[slots] < 0).sum())
        self.pool.give_back(slots)
        self.payloads.forget_unused(self.pool.free)

    def _count_together(self) -> None:
        """Let only the events wait that there are."""
        kept = self.rows()
        kept = np.repeat(kept, kept[COUNT], axis=1)
        words = kept[LOW : HIGH + 1].T.copy().view(np.uint64) if self.words is not None else None
        payload, slots = self.payloads.at(kept[PLACE]), self.calendar.all()[1]
        calendar = Calendar.empty()
        calendar.base[0], calendar.moved[0] = self.calendar.base[0], self.moved
        self.calendar = calendar
        self._give_back(slots)
        assert not self.removals, "what takes events back has been counted"
        self.events = 0
        self.add(kept[START].copy(), kept[END].copy(), 1, payload, words)

    def _let_go(self) -> None:
        """Keep no room for anything, now that nothing comes any more."""
        calendar = Calendar.empty()
        calendar.base[0], calendar.moved[0] = FOREVER, self.moved
        empty = Waiting(self.columns, calendar)
        self.calendar, self.pool, self.end, self.sign = empty.calendar, empty.pool, empty.end, empty.sign
        self.words, self.payloads = None, SlotColumns(self.columns.schema)


def _in_order(
    times: NDArray[np.int64], places: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Times in order, and the places they have.

    Where both fit in one word they are sorted as one, which NumPy does several at a time.
    """
    if len(times) <= 1:
        return times, places
    low, bits = int(times.min()), int(places.max()).bit_length()
    if int(times.max()) - low >= 1 << (_BITS - bits):
        order = np.argsort(times, kind="stable")
        return times[order], places[order]
    words = ((times - low) << bits) | places
    words.sort()
    return (words >> bits) + low, words & ((1 << bits) - 1)


def _tied(times: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which times in order are also those of a neighbour."""
    tied = np.zeros(len(times), np.bool_)
    same = times[1:] == times[:-1]
    tied[1:] = same
    tied[:-1] |= same
    return tied


def _by_identity(
    times: NDArray[np.int64], words: Words, end: NDArray[np.int64], sign: NDArray[np.int8]
) -> NDArray[np.int64]:
    """The order by identity, end and sign of those of one time, whose times are in order.

    Few have all of their first bits in common: so those are sorted as one word with the row, and then only
    the few by everything.
    """
    count = len(times)
    number = np.cumsum(np.diff(times, prepend=times[:1]) != 0)
    bits = count.bit_length()
    left = _BITS - bits - int(number[-1]).bit_length()
    first = (words[:, 0] >> np.uint64(64 - left)).view(np.int64)
    packed = (((number << left) | first) << bits) | np.arange(count)
    packed.sort()
    order = packed & ((1 << bits) - 1)
    again = np.flatnonzero(_tied(packed >> bits))
    if len(again):
        rows = order[again]
        keys = -sign[rows], end[rows], words[rows, 1], words[rows, 0], number[rows]
        order[again] = rows[np.lexsort(keys)]
    return order
