"""One shard of a fragment: what it hears in a micro-batch, in order, and what comes of it.

A replica speaks through channels, each in its own order; the replica's stable is the least of its channels'.
A micro-batch is heard in rounds, one stretch of every channel in each: first the events of all, then the
stables, so that no replica is late only because another came first. An attach of a replica that is attached
is a restart: it leaves and joins anew. No clock, no randomness: the same parcels give the same output.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

import msgspec
import numpy as np
from numpy.typing import NDArray

from anabranch.engines.spark.fragment import Fragment
from anabranch.engines.spark.parcel import Parcel, Voice
from anabranch.engines.spark.refusal import Refusal, refusal
from anabranch.model.application import BROKEN, VALID, check_times
from anabranch.model.batch import KINDS, Batch, Kind, concat
from anabranch.model.elements import Attach
from anabranch.model.time import BEGINNING
from anabranch.model.validity import Quarantine, Rule, Violation

MARK = b"anabranch-shard-1\n"
TOGETHER = 65_536
"""Elements of the output that are put into one batch."""


class StateFormatError(ValueError):
    """State that this version cannot read."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """Some rows of a parcel that one voice says."""

    voice: Voice
    parcel: Parcel
    rows: NDArray[np.int64]

    def sequences(self) -> NDArray[np.int64]:
        """The place of each row in its channel."""
        return self.voice.sequence + self.parcel.row[self.rows]


@dataclass(slots=True)
class Heard:
    """What came of a micro-batch."""

    output: list[Batch] = field(default_factory=list)
    """Without stables: the frontier after it says as much."""
    refused: list[Refusal] = field(default_factory=list)
    heard: Counter[str] = field(default_factory=Counter)


class _Saved(msgspec.Struct):
    frontiers: dict[str, dict[str, int]]
    fragment: str


class Shard:
    """State: a merge, and how far every channel of every replica has come."""

    def __init__(self, fragment: Fragment, number: int = 0) -> None:
        self.fragment, self.number = fragment, number
        self.merger = fragment.merger(self._refuse)
        self.frontiers: dict[str, dict[str, int]] = {}
        self._now = Heard()
        self._stretch: tuple[Stretch, NDArray[np.int64], int] | None = None
        for name in fragment.replicas:
            self._join(name, None)

    @property
    def frontier(self) -> int:
        """The stable of the output."""
        return self.merger.frontier

    def hear(self, parcels: Sequence[Parcel]) -> Heard:
        """What comes of the parcels of one micro-batch, in whatever order they are given."""
        self._now = Heard()
        channels = _stretches(parcels)
        for name in sorted({replica for replica, _ in channels}):
            if name not in self.merger.tallies:
                self._join(name, None)
        at_the_end: dict[tuple[str, str], int] = {}
        for turn in zip_longest(*channels.values()):
            for stretch in turn:
                if stretch is not None:
                    self._says(stretch, at_the_end)
            self._promise()
        for (replica, channel), time in at_the_end.items():
            known = self.frontiers.get(replica, {})
            if replica in self.merger.inputs:
                known[channel] = max(time, known.get(channel, BEGINNING))
        self._promise()
        heard = self._now
        heard.output = list(_together(heard.output))
        return heard

    def _says(self, stretch: Stretch, at_the_end: dict[tuple[str, str], int]) -> None:
        """Let a channel say what it says; stables of unordered channels wait until the end."""
        kind = stretch.parcel.kind[stretch.rows]
        counts = np.bincount(kind, minlength=len(KINDS)).tolist()
        self._now.heard.update({name: count for name, count in zip(KINDS, counts, strict=True) if count})
        if counts[Kind.ATTACH] or counts[Kind.DETACH]:
            begin = 0
            for cut in np.flatnonzero(kind >= Kind.ATTACH).tolist():
                self._elements(stretch, stretch.rows[begin:cut], at_the_end)
                self._control(stretch, stretch.rows[cut : cut + 1], at_the_end)
                begin = cut + 1
            self._elements(stretch, stretch.rows[begin:], at_the_end)
        else:
            self._elements(stretch, stretch.rows, at_the_end)

    def _elements(
        self, stretch: Stretch, rows: NDArray[np.int64], at_the_end: dict[tuple[str, str], int]
    ) -> None:
        parcel, voice = stretch.parcel, stretch.voice
        if not len(rows):
            return
        if voice.replica not in self.merger.inputs:
            self._refuse_all(Rule.DETACHED_INPUT, stretch, rows)
            return
        channels = self.frontiers[voice.replica]
        reached = channels.setdefault(voice.channel, BEGINNING)
        kind, start = parcel.kind[rows], parcel.start[rows]
        if not voice.ordered:
            stables = start[kind == Kind.STABLE]
            if len(stables):
                key = voice.replica, voice.channel
                at_the_end[key] = max(int(stables.max()), at_the_end.get(key, BEGINNING))
                rows = rows[kind != Kind.STABLE]
                kind, start = parcel.kind[rows], parcel.start[rows]
        rules = np.full(len(rows), VALID, np.int8)
        channels[voice.channel] = check_times(
            kind, start, parcel.end[rows], parcel.old_end[rows], reached, rules
        )
        if (rules != VALID).any():
            self._refuse_invalid(stretch, rows, rules, reached)
        events = rows[(rules == VALID) & (kind != Kind.STABLE)]
        if not len(events):
            return
        tally = self.merger.tallies[voice.replica]
        self._stretch = stretch, events, tally.elements + tally.refused + 1
        self._says_out(self.merger.push(voice.replica, parcel.batch(events, self.fragment.identity)))
        self._stretch = None

    def _control(
        self, stretch: Stretch, row: NDArray[np.int64], at_the_end: dict[tuple[str, str], int]
    ) -> None:
        replica = stretch.voice.replica
        element = stretch.parcel.batch(row).element(0)
        attached = replica in self.merger.inputs
        if not attached and not isinstance(element, Attach):
            self._refuse_all(Rule.DETACHED_INPUT, stretch, row)
            return
        if attached:
            for channel in [key for key in at_the_end if key[0] == replica]:
                time = at_the_end.pop(channel)
                known = self.frontiers[replica]
                known[channel[1]] = max(time, known.get(channel[1], BEGINNING))
            self._promise()
            self._says_out(self.merger.detach(replica))
            del self.frontiers[replica]
        if isinstance(element, Attach):
            self._join(replica, None if element.guarantee == BEGINNING else element.guarantee)

    def _join(self, replica: str, guarantee: int | None) -> None:
        complete = self.fragment.is_complete(replica)
        guarantee = guarantee if complete else None
        self._says_out(self.merger.attach(replica, guarantee, self.fragment.properties, complete=complete))
        self.frontiers[replica] = {}

    def _promise(self) -> None:
        """Let every replica say how far its channels have come, where that is further than before."""
        for replica, one in self.merger.inputs.items():
            channels = self.frontiers[replica]
            if len(channels) < (self.fragment.channels or 1):
                continue
            reached = min(channels.values())
            if reached > one.said:
                self._says_out(self.merger.push(replica, Batch.stable(reached, self.merger.schema)))

    def _says_out(self, output: Batch) -> None:
        if not len(output):
            return
        stables = output.kind == Kind.STABLE
        if stables.any():
            output = output[:-1] if stables[-1] and stables.sum() == 1 else output.take(~stables)
        if len(output):
            self._now.output.append(output)

    def _refuse(self, violation: Violation) -> None:
        """Hear from the merge what it leaves out."""
        place = f"shard {self.number}"
        if self._stretch is not None:
            stretch, rows, first = self._stretch
            row = violation.position - first
            if 0 <= row < len(rows):
                place = _place(stretch, rows[row])
        self._now.refused.append(refusal(violation, place))

    def _refuse_all(self, rule: Rule, stretch: Stretch, rows: NDArray[np.int64]) -> None:
        batch = stretch.parcel.batch(rows)
        tally = self.merger.tallies[stretch.voice.replica]
        for row in range(len(rows)):
            tally.refused += 1
            self._answer(rule, stretch, rows[row], batch, row, BEGINNING)

    def _refuse_invalid(
        self, stretch: Stretch, rows: NDArray[np.int64], rules: NDArray[np.int8], reached: int
    ) -> None:
        invalid = np.flatnonzero(rules != VALID)
        batch = stretch.parcel.batch(rows[invalid])
        self.merger.tallies[stretch.voice.replica].refused += len(invalid)
        for n, row in enumerate(invalid.tolist()):
            before = rows[:row][stretch.parcel.kind[rows[:row]] == Kind.STABLE]
            frontier = max(reached, int(stretch.parcel.start[before].max(initial=BEGINNING)))
            self._answer(BROKEN[rules[row]], stretch, rows[row], batch, n, frontier)

    def _answer(
        self, rule: Rule, stretch: Stretch, row: int, batch: Batch, place: int, frontier: int
    ) -> None:
        sequence = int(stretch.voice.sequence + stretch.parcel.row[row])
        violation = Violation(rule, sequence, batch.element(place), frontier, stretch.voice.replica)
        answer = self.merger.on_invalid
        if isinstance(answer, Quarantine):
            self._now.refused.append(refusal(violation, _place(stretch, row)))
        else:
            answer(violation)

    def dump(self) -> bytes:
        """The state as bytes, from which `load` goes on as if nothing had happened."""
        head = msgspec.json.encode(_Saved(self.frontiers, repr(self.fragment.case)))
        return b"".join([MARK, len(head).to_bytes(4, "little"), head, self.merger.dump()])

    @classmethod
    def load(cls, fragment: Fragment, number: int, data: bytes) -> "Shard":
        """The shard that was dumped."""
        if not data.startswith(MARK):
            error = StateFormatError(
                f"the state of a shard begins with {MARK!r}, this begins with {data[: len(MARK)]!r}"
            )
            error.add_note("Restart with the version that wrote the checkpoint, or begin a new one.")
            raise error
        begin = len(MARK) + 4
        length = int.from_bytes(data[len(MARK) : begin], "little")
        saved = msgspec.json.decode(data[begin : begin + length], type=_Saved)
        shard = cls.__new__(cls)
        shard.fragment, shard.number, shard.frontiers = fragment, number, saved.frontiers
        shard._now, shard._stretch = Heard(), None
        shard.merger = fragment.loaded(data[begin + length :], shard._refuse)
        return shard


def _place(stretch: Stretch, row: int) -> str:
    voice = stretch.voice
    where = f"{voice.replica}/{voice.channel}" if voice.channel else voice.replica
    return f"{where} row {voice.sequence + int(stretch.parcel.row[row])}"


def _stretches(parcels: Sequence[Parcel]) -> dict[tuple[str, str], list[Stretch]]:
    """What every channel of every replica says, in order."""
    found: dict[tuple[str, str], list[Stretch]] = {}
    for parcel in parcels:
        bounds = np.searchsorted(parcel.voice, np.arange(len(parcel.voices) + 1))
        for n, voice in enumerate(parcel.voices):
            rows = np.arange(bounds[n], bounds[n + 1])
            if len(rows):
                found.setdefault((voice.replica, voice.channel), []).append(Stretch(voice, parcel, rows))
    return {key: _in_order(found[key]) for key in sorted(found)}


def _in_order(stretches: list[Stretch]) -> list[Stretch]:
    """Stretches of one channel by sequence; those that overlap are cut where another goes on."""
    stretches.sort(key=lambda stretch: int(stretch.sequences()[0]))
    last, overlap = -1, False
    for stretch in stretches:
        sequences = stretch.sequences()
        overlap = overlap or int(sequences[0]) < last
        last = max(last, int(sequences[-1]))
    if not overlap:
        return stretches
    sequence = np.concatenate([stretch.sequences() for stretch in stretches])
    owner = np.repeat(np.arange(len(stretches)), [len(stretch.rows) for stretch in stretches])
    row = np.concatenate([stretch.rows for stretch in stretches])
    order = np.argsort(sequence, kind="stable")
    cuts = np.flatnonzero(np.diff(owner[order])) + 1
    return [
        Stretch(stretches[owner[part[0]]].voice, stretches[owner[part[0]]].parcel, row[part])
        for part in np.split(order, cuts)
    ]


def _together(parts: list[Batch]) -> Iterator[Batch]:
    """The same elements in few batches."""
    waiting: list[Batch] = []
    for part in parts:
        if waiting and sum(map(len, waiting)) + len(part) > TOGETHER:
            yield concat(waiting)
            waiting = []
        waiting.append(part)
    if waiting:
        yield concat(waiting)
