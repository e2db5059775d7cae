"""Rows that wait for a time to pass their starts: in order of start, identity and end they come out.

A revision of an event that waits is two rows, one that takes it back with its old end and one that brings the
new one; what is the same event with one end is counted together when it comes out. Where no ends are given,
events with one start and identity are the same. Identities are given, or are those of the payloads: only
events that start together are told apart, and only of those are payloads hashed.

Memory: per row 27 bytes and its payload, 8 more where ends are given and 16 where identities are; where there
are more rows taken back than events, all are counted together. Cost: a row is written to its slot and read
from it, moves a few times in the calendar, and is sorted once, among those that come out with it.
"""

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anabranch.kernels.runs import COUNT, END, HIGH, LOW, PLACE, START, counted, net
from anabranch.kernels.store.calendar import Calendar
from anabranch.kernels.store.slot_columns import SlotColumns
from anabranch.model.batch import Batch
from anabranch.model.identity import Words, identities
from anabranch.model.pool import Pool, grown
from anabranch.model.schema import Columns, conformed
from anabranch.model.time import FOREVER

SAVED = 2
"""How many batches are saved."""
_MANY = 1024
"""Rows taken back that may wait, however few events do."""
_BITS = 63
"""Of a word that has no sign."""
_NO_EVENTS = Batch.of([])


@dataclass(slots=True)
class Waiting:
    """State: slots of rows by start, and in columns by slot what is known of them.

    >>> waiting = Waiting()
    >>> start, sign = np.array([5, 3, 5]), np.array([1, 1, -1], np.int8)
    >>> payload = waiting.admit(pa.record_batch({"v": [1, 2, 1]}))
    >>> waiting.add(start, payload, sign=sign)
    >>> waiting.take_before(6).payload.to_pydict(), waiting.events
    ({'v': [2]}, 0)
    """

    columns: Columns = field(default_factory=Columns.none)
    calendar: Calendar = field(default_factory=Calendar.empty, repr=False)
    pool: Pool = field(default_factory=lambda: Pool.of_capacity(0), repr=False)
    end: NDArray[np.int64] | None = field(default=None, repr=False)
    """The ends, where they are given."""
    sign: NDArray[np.int8] = field(default_factory=lambda: np.empty(0, np.int8), repr=False)
    """1: an event that comes, -1: one that is taken back."""
    words: Words | None = field(default=None, repr=False)
    """The identities of all, where any are given; else they are those of the payloads."""
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
        given = sum(column.nbytes for column in (self.end, self.words) if column is not None)
        by_slot = self.pool.nbytes + self.sign.nbytes + given
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
        payload: pa.RecordBatch,
        *,
        end: NDArray[np.int64] | None = None,
        sign: NDArray[np.int8] | None = None,
        words: Words | None = None,
    ) -> None:
        """Let rows wait that have been admitted, each with its end, its sign and its identity.

        Without ends they have none (all rows or no row has); without signs none is taken back; without
        identities they are known by their payloads.
        """
        count = len(start)
        self._make_room(count)
        slots = self.pool.take(count).astype(np.int64)
        self.sign[slots] = 1 if sign is None else sign
        if end is not None:
            self.end = np.zeros(self.pool.capacity, np.int64) if self.end is None else self.end
            self.end[slots] = end
        if words is not None and self.words is None:
            self.words = np.zeros((self.pool.capacity, 2), np.uint64)
            there = self.calendar.all()[1]
            self.words[there] = identities(self.payloads.at(there))
        if self.words is not None:
            self.words[slots] = identities(payload) if words is None else words
        self.payloads.put(slots, payload)
        self.calendar.add(start, slots)
        taken_back = 0 if sign is None else int((sign < 0).sum())
        self.removals += taken_back
        self.events += count - 2 * taken_back
        if self.removals > self.events + _MANY:
            self._count_together()

    def take_before(self, time: int) -> Batch:
        """The events that start before a time, in order, which wait no longer; all at the end of time.

        Their ends are 0 where none are given.
        """
        start, taken = _in_order(*self.calendar.take_before(time))
        if not len(taken) and time != FOREVER:
            return _NO_EVENTS
        slots = taken
        tied = _tied(start)
        if tied.any():
            slots, times = self._told_apart(start, slots, np.flatnonzero(tied))
            start = start if times is None else np.repeat(start, times)
        assert not self.removals or (self.sign[slots] > 0).all(), "only what is there is taken back"
        end, payload = self._ends(slots), self.payloads.at(slots)
        self.events -= len(start)
        self._give_back(taken)
        if time == FOREVER:
            self._let_go()
        nothing = np.zeros(len(start), np.int64)
        return Batch(np.zeros(len(start), np.int8), start, end, nothing, payload)

    def saved(self) -> list[pa.RecordBatch]:
        """The starts and signs of all rows, the ends and identities that are given, and the payloads."""
        start, slots = self.calendar.all()
        columns = {"start": start, "sign": self.sign[slots]}
        if self.end is not None:
            columns["end"] = self.end[slots]
        if self.words is not None:
            columns["low"], columns["high"] = self.words[slots].T
        return [pa.RecordBatch.from_pydict(columns), self.payloads.at(slots)]

    @classmethod
    def load(cls, batches: list[pa.RecordBatch], passed: int) -> "Waiting":
        """What was saved, of which no row starts before the time that has passed."""
        rows, payload = batches
        columns = {name: rows.column(name).to_numpy() for name in rows.schema.names}
        waiting = cls()
        waiting.calendar.base[0] = passed
        words = np.stack([columns["low"], columns["high"]], axis=1) if "low" in columns else None
        payload = waiting.admit(payload)
        waiting.add(columns["start"], payload, end=columns.get("end"), sign=columns["sign"], words=words)
        return waiting

    def _told_apart(
        self, start: NDArray[np.int64], slots: NDArray[np.int64], rows: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64] | None]:
        """The slots, those of some rows by identity and end, and how often each counts where not all once."""
        among = slots[rows]
        words, end, sign = self._identities(among), self._ends(among), self.sign[among]
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

    def _ends(self, slots: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.zeros(len(slots), np.int64) if self.end is None else self.end.take(slots)

    def _identities(self, slots: NDArray[np.int64]) -> Words:
        return identities(self.payloads.at(slots)) if self.words is None else self.words[slots]

    def _make_room(self, more: int) -> None:
        self.calendar = self.calendar.with_room(more)
        pool = self.pool.with_room(more)
        if pool is not self.pool:
            self.pool = pool
            self.sign = grown(self.sign, pool.capacity)
            self.end = None if self.end is None else grown(self.end, pool.capacity)
            self.words = None if self.words is None else grown(self.words, pool.capacity)
            self.payloads.grow(pool.capacity)

    def _give_back(self, slots: NDArray[np.int64]) -> None:
        if self.removals:
            self.removals -= int((self.sign[slots] < 0).sum())
        self.pool.give_back(slots)
        self.payloads.forget_unused(self.pool.free)

    def _count_together(self) -> None:
        """Let only the events wait that there are."""
        start, slots = self.calendar.all()
        rows = counted(start)
        rows[LOW : HIGH + 1] = self._identities(slots).T.view(np.int64)
        rows[START], rows[END], rows[COUNT], rows[PLACE] = start, self._ends(slots), self.sign[slots], slots
        kept = net(np.take(rows, np.argsort(-rows[COUNT], kind="stable"), axis=1))
        assert (kept[COUNT] > 0).all(), "only what is there is taken back"
        kept = np.repeat(kept, kept[COUNT], axis=1)
        payload = self.payloads.at(kept[PLACE])
        end = None if self.end is None else kept[END]
        words = None if self.words is None else kept[LOW : HIGH + 1].T.copy().view(np.uint64)
        calendar = Calendar.empty()
        calendar.base[0], calendar.moved[0] = self.calendar.base[0], self.moved
        self.calendar = calendar
        self._give_back(slots)
        assert not self.removals, "what takes events back has been counted"
        self.events = 0
        self.add(kept[START].copy(), payload, end=end, words=words)

    def _let_go(self) -> None:
        """Keep no room for anything, now that nothing comes any more."""
        calendar = Calendar.empty()
        calendar.base[0], calendar.moved[0] = FOREVER, self.moved
        empty = Waiting(self.columns, calendar)
        self.calendar, self.pool, self.sign = empty.calendar, empty.pool, empty.sign
        self.end = self.words = None
        self.payloads = SlotColumns(self.columns.schema)


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
