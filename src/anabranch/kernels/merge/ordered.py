"""Logical merge of inserts in order of start: cases R0, R1 and R2 (LM IV-A to IV-C, corrected).

Whoever says an event first gives it to the output, so only elements of the latest start need a second look:
two of them are one event if they are alike (R2), or if each is the k-th of that start in its input (R1); in
R0 a start has one event. What the listings leave out is corrected as in `oracle/merge.py`, which gives the
same elements by scans: nothing comes out below the output's own stable, and an input that has not joined is
queued, because from the moment the others reach its guarantee they may all fail.

An input that declares a key and repeats it is found out, though no case here relies on it but R0, which finds
it by its starts: in order, a payload and start that comes again comes among the inserts of one start.

Memory: the identities and ends of the latest start's events, for R2 a count of each for each input, for each
input with a key the identities of its last start, and the queues. Cost: constant per element; payloads are
hashed only where starts are equal.
"""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anabranch.kernels.merge.broken import Broken
from anabranch.kernels.merge.sides import Sides
from anabranch.kernels.merge.ties import SMALL, Ties, append, find_tied, link, row_of
from anabranch.model.application import ADJUST, STABLE
from anabranch.model.batch import Batch, Kind, concat
from anabranch.model.compiled import compiled, inlined
from anabranch.model.origin import Origin
from anabranch.model.properties import Case, Fact
from anabranch.model.slots import NONE
from anabranch.model.time import BEGINNING, FOREVER

R0, R1, R2 = 0, 1, 2
_NO_WORDS = np.empty((0, 2), np.uint64)
_NUMBERS = {Case.R0: R0, Case.R1: R1, Case.R2: R2}

KEPT, COMES_OUT, ADJUSTED, WENT_BACK, STOOD_STILL, DIFFERED, REPEATED = range(7)
_FACTS = {
    ADJUSTED: Fact.INSERT_ONLY,
    WENT_BACK: Fact.ORDERED,
    STOOD_STILL: Fact.STRICTLY_INCREASING,
    DIFFERED: Fact.DETERMINISTIC_TIES,
    REPEATED: Fact.KEYED,
}


class LastInsert(NamedTuple):
    """State: the start of the last insert of each input, and how many of its inserts have it."""

    start: NDArray[np.int64]
    times: NDArray[np.int64]
    number: NDArray[np.int64]
    """How many of these came since it joined: those that are told apart by number. There are never more of
    the latest start than are out."""

    @classmethod
    def of_capacity(cls, capacity: int) -> "LastInsert":
        """Nobody has said anything."""
        return cls(np.full(capacity, BEGINNING), *np.zeros((2, capacity), np.int64))

    def forget(self, i: int) -> None:
        """An input has said nothing."""
        self.start[i], self.times[i], self.number[i] = BEGINNING, 0, 0


@dataclass(slots=True)
class Ordered:
    """R0, R1 or R2: the stable and the greatest start that are out, and the events of that start.

    The caller owns the sides: it attaches and detaches there, and then calls `settle`; an input that it makes
    join by force is replayed then too. A replayed input says its queue as if it said it then.
    """

    case: Case
    sides: Sides
    stable: int = BEGINNING
    latest: int = BEGINNING
    ties: Ties = field(init=False, repr=False)
    last: LastInsert = field(init=False, repr=False)
    queues: dict[int, list[Batch]] = field(default_factory=dict, repr=False)
    keys: dict[int, Ties] = field(default_factory=dict, repr=False)
    """What each input that declares a key has shown at its last start."""
    repeats: list[tuple[int, Batch]] = field(default_factory=list, repr=False)
    """What repeats a key and was left out, with the numbers of the inputs, until it is taken."""

    def __post_init__(self) -> None:
        assert self.case in _NUMBERS, f"{self.case.name} is not in order"
        self.ties = Ties.of_capacity(SMALL, self.sides.capacity if self.case is Case.R2 else 0)
        self.last = LastInsert.of_capacity(self.sides.capacity)

    @property
    def live(self) -> int:
        """Events remembered, queued ones included."""
        return self.ties.live + sum(
            int(np.count_nonzero(part.kind == Kind.INSERT))
            for queue in self.queues.values()
            for part in queue
        )

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        own = self.ties.nbytes + sum(column.nbytes for column in self.last)
        own += sum(keys.nbytes for keys in self.keys.values())
        return own + sum(_nbytes(part) for queue in self.queues.values() for part in queue)

    def push(self, i: int, batch: Batch, *, leave_out: bool = False) -> Batch:
        """What comes out when input number i says elements; `Broken` at one that the case does not have.

        Where one that has a key repeats it, that is left out, or `Broken`.
        """
        self.sides.idle[i] = False
        if self.sides.joined[i]:
            return self._play([(i, batch)], batch[:0], leave_out=leave_out)
        self._queue(i, batch)
        return batch[:0]

    def settle(self, *, leave_out: bool = False) -> Batch:
        """What comes out when inputs have come, left or been made to join: those that may join do."""
        return self._play([], Batch.of([]), leave_out=leave_out)

    def forget(self, i: int) -> None:
        """Number i has left; what is out stays."""
        self.queues.pop(i, None)
        self.last.forget(i)
        self.keys.pop(i, None)
        if self.case is Case.R2:
            self.ties.shown[:, i] = 0

    def widen(self, sides: Sides) -> None:
        """The same inputs, with room for more."""
        known = len(self.last.start)
        last = LastInsert.of_capacity(sides.capacity)
        for new, old in zip(last, self.last, strict=True):
            new[:known] = old
        self.sides, self.last = sides, last
        if self.case is Case.R2:
            self.ties = self.ties.widened(sides.capacity)

    def dump(self) -> tuple[dict[str, Any], list[pa.RecordBatch]]:
        """All there is to know but the sides, from which `load` continues."""
        state: dict[str, Any] = {
            "case": self.case.name,
            "stable": self.stable,
            "latest": self.latest,
            "said": [column.tolist() for column in self.last],
            "keys": list(self.keys),
            "queues": list(self.queues),
            "channels": [],
        }
        batches = [self.ties.to_arrow(), *(keys.to_arrow() for keys in self.keys.values())]
        for queue in map(concat, self.queues.values()):
            channels, origins = saved_origin(queue)
            state["channels"].append(channels)
            batches += [queue.to_arrow(), origins]
        return state, batches

    @classmethod
    def load(
        cls,
        sides: Sides,
        identity: tuple[str, ...] | None,
        state: dict[str, Any],
        batches: list[pa.RecordBatch],
    ) -> "Ordered":
        """What was dumped, with the sides it had then or larger ones; events are told apart as they were."""
        loaded = cls(Case[state["case"]], sides, state["stable"], state["latest"])
        known = len(state["keys"])
        ties, keys, queues = batches[0], batches[1 : 1 + known], batches[1 + known :]
        loaded.ties = Ties.from_arrow(ties)
        loaded.keys = {i: Ties.from_arrow(rows) for i, rows in zip(state["keys"], keys, strict=True)}
        loaded.last = LastInsert(*(np.array(column, np.int64) for column in state["said"]))
        loaded.widen(sides)
        for n, i in enumerate(state["queues"]):
            origin = origin_of(state["channels"][n], queues[2 * n + 1])
            queue = Batch.from_arrow(queues[2 * n]).with_origin(origin)
            loaded.queues[i] = [queue.told_apart_by(identity)]
        return loaded

    def _play(self, pending: list[tuple[int, Batch]], nothing: Batch, *, leave_out: bool = False) -> Batch:
        """Do what is pending, the last first; where an input may join it does, and its queue comes next."""
        parts: list[Batch] = []
        while True:
            if pending:
                i, batch = pending.pop()
                last, rest, fact = self._merge(i, batch, leave_out=leave_out)
                parts += [last] if len(last) else []
                if fact:
                    raise Broken(fact, concat(parts or [nothing]), [(i, rest), *reversed(pending)])
                pending += [(i, rest)] if len(rest) else []
            joiner = self._joiner()
            if joiner is not None:
                pending.append((joiner, self._join(joiner)))
            elif not pending:
                return concat(parts or [nothing])

    def _joiner(self) -> int | None:
        """Who is to join next: the first to attach of those that may."""
        sides = self.sides
        apart = sides.attached & ~sides.joined & (sides.guarantee <= max(self.latest, self.stable))
        able = [*np.flatnonzero(apart).tolist(), *(i for i in self.queues if sides.joined[i])]
        return min(able, key=lambda i: sides.attached_as[i], default=None)

    def _join(self, i: int) -> Batch:
        """From now on an input counts; what it has queued, which it is to say again."""
        self.sides.joined[i] = True
        queue = self.queues.pop(i, None)
        if queue is None:
            return Batch.of([])
        elements = concat(queue)
        if (elements.kind == Kind.INSERT).any():
            self.last.forget(i)
            self.keys.pop(i, None)
        return elements

    def _merge(self, i: int, batch: Batch, *, leave_out: bool) -> tuple[Batch, Batch, Fact | None]:
        """Let an input say elements until one may let another join or breaks a promise.

        Gives what comes out, what is left to say, and the promise that its first element breaks, if it does.
        """
        tied, words = self._tied(i, batch)
        rows, repeats = np.empty((2, len(batch)), np.int64)
        stop, out, self.stable, self.latest, alone, again, fate = merge(
            _NUMBERS[self.case],
            i,
            (batch.kind, batch.start, batch.end),
            (tied, words),
            self.ties,
            self.keys.get(i, self.ties),
            self.last,
            self.sides,
            (self.stable, self.latest),
            rows,
            leave_out,
            repeats,
        )
        if again:
            self.repeats.append((i, batch.take(repeats[:again])))
        if self.latest < self.stable:
            self.ties.used[0] = 0
        elif alone != NONE and self.case is not Case.R0:
            self._identify(batch.take(np.array([alone])))
        return _chosen(batch, rows[:out]), batch[stop:], _FACTS.get(fate)

    def _tied(self, i: int, batch: Batch) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
        """The rows that may meet another event of their start, and their identities; there is room for them.

        Until an element goes back, which stops the merge, inserts of one start follow one another: no more of
        them come to be rows than the longest such run has, beside those that are out.
        """
        tied, most = np.empty(0, np.int64), 1
        if self.case is not Case.R0:
            rows, keyed = np.empty(len(batch), np.int64), bool(self.sides.keyed[i])
            before = int(self.last.start[i])
            count, most = find_tied(batch.kind, batch.start, self.stable, self.latest, keyed, before, rows)
            tied = rows[:count]
            if keyed:
                self.keys[i] = self.keys.get(i, Ties.of_capacity(SMALL, 1)).fitted(most)
        self.ties = self.ties.fitted(most)
        if not len(tied):
            return tied, _NO_WORDS
        return tied, batch.identities if len(tied) == len(batch) else batch.take(tied).identities

    def _identify(self, event: Batch) -> None:
        """The one event of the latest start may meet others after all."""
        self.ties.low[0], self.ties.high[0] = event.identities[0]
        if self.case is Case.R2:
            link(self.ties, 0)

    def _queue(self, i: int, batch: Batch) -> None:
        rows = np.empty(len(batch), np.int64)
        stop, kept, fate = queue_up(
            self.case is Case.R0, i, batch.kind, batch.start, self.last, self.sides, rows
        )
        if kept:
            self.queues.setdefault(i, []).append(_chosen(batch, rows[:kept]))
        if fate != KEPT:
            raise Broken(_FACTS[fate], batch[:0], [(i, batch[stop:])])


def saved_origin(batch: Batch) -> tuple[list[str], pa.RecordBatch]:
    """The origins of rows as data: the channels (none where there are no origins), and two columns."""
    if batch.origin is None:
        return [], pa.RecordBatch.from_pydict({"number": pa.array([], pa.int64())})
    columns = {"number": batch.origin.number, "channel": batch.origin.of_channels()}
    return list(batch.origin.channels), pa.RecordBatch.from_pydict(columns)


def origin_of(channels: list[str], columns: pa.RecordBatch) -> Origin | None:
    """What `saved_origin` gave."""
    if not channels:
        return None
    number, channel = (column.to_numpy() for column in columns.columns)
    return Origin(number, channel, tuple(channels))


def _chosen(batch: Batch, rows: NDArray[np.int64]) -> Batch:
    """These rows; where they stand together without a copy."""
    if len(rows) in (0, len(batch)):
        return batch if len(rows) else batch[:0]
    first, last = int(rows[0]), int(rows[-1])
    return batch[first : last + 1] if last - first < len(rows) else batch.take(rows)


def _nbytes(batch: Batch) -> int:
    columns = (batch.kind, batch.start, batch.end, batch.old_end)
    return sum(column.nbytes for column in columns) + batch.payload.nbytes


@inlined
def fate_of(strict: bool, kind: int, start: int, last: LastInsert, i: int) -> Any:
    """The promise that an insert or adjust breaks by itself, or KEPT."""
    if kind == ADJUST:
        return ADJUSTED
    if start < last.start[i]:
        return WENT_BACK
    if strict and start == last.start[i] and last.times[i] > 0:
        return STOOD_STILL
    return KEPT


@inlined
def note_insert(last: LastInsert, i: int, start: int, counts: int) -> None:
    """An input has said one more insert, which counts (1) or came before it joined (0)."""
    again = start == last.start[i]
    last.times[i] = last.times[i] + 1 if again else 1
    last.number[i] = last.number[i] + counts if again else counts
    last.start[i] = start


@compiled
def queue_up(
    strict: bool, i: int, kind: Any, start: Any, last: LastInsert, sides: Sides, rows: Any
) -> tuple[int, int, int]:
    """The rows of input i that may matter once it joins. Returns where it stopped, how many, and a fate."""
    kept = 0
    for row in range(len(kind)):
        if kind[row] == STABLE:
            sides.reached[i] = max(sides.reached[i], start[row])
        else:
            fate = fate_of(strict, kind[row], start[row], last, i)
            if fate != KEPT:
                return row, kept, fate
            note_insert(last, i, start[row], 0)
            if start[row] < sides.guarantee[i]:
                continue
        rows[kept] = row
        kept += 1
    return len(kind), kept, KEPT


@compiled
def _least_guarantee(sides: Sides) -> Any:
    """What the output has to reach before any input may join."""
    least = FOREVER
    for i in range(len(sides.attached)):
        if sides.attached[i] and not sides.joined[i]:
            least = min(least, sides.guarantee[i])
    return least


@inlined
def put_first(ties: Ties, end: int) -> Any:
    """R0: an input shows the event of this start."""
    if ties.used[0]:
        return KEPT
    append(ties, np.uint64(0), np.uint64(0), end, 1)
    return COMES_OUT


@inlined
def put_numbered(ties: Ties, number: int, low: Any, high: Any, end: int) -> Any:
    """R1: an input shows its event of this number, which all show alike."""
    if number == ties.used[0]:
        append(ties, low, high, end, 1)
        return COMES_OUT
    alike = low == ties.low[number] and high == ties.high[number] and end == ties.end[number]
    return KEPT if alike else DIFFERED


@inlined
def put_alike(ties: Ties, i: int, is_tied: bool, low: Any, high: Any, end: int) -> Any:
    """R2: an input shows one more copy of an event, perhaps more than are out."""
    row = row_of(ties, low, high, end) if is_tied else append(ties, low, high, end, 0)
    ties.shown[row, i] += 1
    if ties.shown[row, i] <= ties.given[row]:
        return KEPT
    ties.given[row] = ties.shown[row, i]
    return COMES_OUT


@inlined
def has_shown(keys: Ties, low: Any, high: Any) -> Any:
    """An input has shown this identity at its last start."""
    return keys.shown[row_of(keys, low, high, 0), 0] > 0


@inlined
def note_key(keys: Ties, at_last: bool, is_tied: bool, low: Any, high: Any) -> None:
    """An input has said one more insert, at its last start or at a new one."""
    if not at_last:
        keys.used[0] = 0
    if is_tied:
        keys.shown[row_of(keys, low, high, 0), 0] = 1


@compiled
def merge(
    case: int,
    i: int,
    elements: tuple[Any, Any, Any],
    identified: tuple[Any, Any],
    ties: Ties,
    keys: Ties,
    last: LastInsert,
    sides: Sides,
    reached: tuple[int, int],
    rows: Any,
    leave_out: bool,
    repeats: Any,
) -> tuple[int, int, int, int, int, int, int]:
    """Let input i say elements until one breaks a promise, or an input may have to join after it.

    ``elements`` are the columns kind, start and end; ``identified`` the rows of `find_tied` with their
    identities; ``keys`` what the input has shown at its last start, where it declares a key; ``reached`` the
    stable and the latest start that are out. Returns where it stopped, how many ``rows`` come out, the stable
    and the latest start, the row of the latest start's event if that is alone and not identified, how many
    ``repeats`` of a key were left out, and the fate of the element at the stop.
    """
    kind, start, end = elements
    tied, words = identified
    stable, latest = reached
    waiting = _least_guarantee(sides)
    out, next_tied, alone, again = 0, 0, NONE, 0
    keyed = sides.keyed[i] and case != R0
    for row in range(len(kind)):
        time = start[row]
        if kind[row] == STABLE:
            sides.reached[i] = max(sides.reached[i], time)
            if time <= stable:
                continue
            stable = time
            comes_out = True
        else:
            low = high = np.uint64(0)
            is_tied = next_tied < len(tied) and tied[next_tied] == row
            if is_tied:
                low, high = words[next_tied, 0], words[next_tied, 1]
                next_tied += 1
            fate = fate_of(case == R0, kind[row], time, last, i)
            if fate != KEPT:
                return row, out, stable, latest, alone, again, fate
            at_last = time == last.start[i]
            if keyed and is_tied and at_last and has_shown(keys, low, high):
                if not leave_out:
                    return row, out, stable, latest, alone, again, REPEATED
                repeats[again] = row
                again += 1
                continue
            if time < latest or time < stable:
                if keyed:
                    note_key(keys, at_last, is_tied, low, high)
                note_insert(last, i, time, 1)
                continue
            if time > latest:
                latest = time
                ties.used[0] = 0
                alone = NONE if is_tied else row
            number = last.number[i] if at_last else 0
            if case == R2:
                fate = put_alike(ties, i, is_tied, low, high, end[row])
            elif case == R1:
                fate = put_numbered(ties, number, low, high, end[row])
            else:
                fate = put_first(ties, end[row])
                sides.disagreements[i] += end[row] != ties.end[0]
            if fate == DIFFERED:
                return row, out, stable, latest, alone, again, fate
            if keyed:
                note_key(keys, at_last, is_tied, low, high)
            note_insert(last, i, time, 1)
            comes_out = fate == COMES_OUT
        if comes_out:
            rows[out] = row
            out += 1
        if latest >= waiting or stable >= waiting:
            return row + 1, out, stable, latest, alone, again, KEPT
    return len(kind), out, stable, latest, alone, again, KEPT
