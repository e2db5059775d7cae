"""One shard of a fragment: what it hears in a micro-batch, in order, and what comes of it.

A replica speaks through channels, each in its own order; the replica's stable is the least of its channels'.
A micro-batch is heard in rounds, one stretch of every channel in each: first the events of all, then the
stables, so that no replica is late only because another came first. An attach of a replica that is attached
is a restart, if it has spoken: it leaves and joins anew. No clock, no randomness: the same parcels give the
same output.

In a channel whose order is not known an adjust waits for the end that it corrects (`patience`).

All shards are at one frontier after a micro-batch, but for what `FinalOnly` holds back: rounds, channels and
frontiers follow from what every shard is told, never from events, which others do not see.

Where replicas send changes, a table of each turns them into elements. They count in the order of their
channel, or by commit time and then in the order in which they are heard. Who begins with a snapshot is held
back until it has met the merge (`kernels/merge_changes.py`).
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anabranch.engines.spark.fragment import Fragment
from anabranch.engines.spark.order import (
    Stretch,
    Turn,
    one_after_the_other,
    place_text,
    turns_of,
)
from anabranch.engines.spark.patience import set_aside
from anabranch.engines.spark.shard_bytes import check_settings
from anabranch.engines.spark.transport.parcel import Parcel, Voice
from anabranch.kernels.answers import error_of, in_words, violations
from anabranch.kernels.kernel import Refused, Result, State
from anabranch.kernels.merge.merge import Merge
from anabranch.kernels.merge_changes import MergeChanges
from anabranch.kernels.store.saved import from_bytes, to_bytes, version_of
from anabranch.model.application import BROKEN, VALID, check_times
from anabranch.model.batch import KINDS, Batch, Kind, concat
from anabranch.model.clock_columns import dial_of
from anabranch.model.elements import Attach, Control, Element
from anabranch.model.op import Op
from anabranch.model.origin import Origin
from anabranch.model.time import BEGINNING, FOREVER
from anabranch.model.validity import Drop, Quarantine, Raise, Rule, Violation
from anabranch.rows.refusal import Refusal, change_text, refusal

ENOUGH = 4_096
"""Events that are merged at once; fewer wait for those of other channels: a push by itself costs 0.3 ms."""
TOGETHER = 65_536
"""Elements of the output that are put into one batch, at most."""
VERSION = 2
BYTES = 8 << 20
"""Bytes of payloads that are merged, or put into one batch, at once: ten parcels of 5 MB pass through Spark
faster than one of 50 MB."""


@dataclass(slots=True)
class Heard:
    """What came of a micro-batch."""

    output: list[Batch] = field(default_factory=list)
    """Without stables: the frontier after it says as much."""
    refused: list[Refusal] = field(default_factory=list)
    heard: Counter[str] = field(default_factory=Counter)
    dropped: int = 0
    """Rows that were left out and not told."""


class Shard:
    """State: a merge, of elements or of changes, and how far every channel of every replica has come."""

    def __init__(self, fragment: Fragment, number: int = 0) -> None:
        self.fragment, self.number = fragment, number
        self.changes = fragment.merge_changes()
        self.merge = fragment.merge() if self.changes is None else self.changes.merge
        self.answers = fragment.answers()
        self.frontiers: dict[str, dict[str, int]] = {}
        self._snapshots: dict[str, int] = {}
        self._now = Heard()
        self._waiting: list[Stretch] = []
        self._events = self._bytes = 0
        self._pushed: tuple[Parcel, NDArray[np.int64], Origin] | None = None
        self._aside: dict[str, list[list[Stretch]]] = {}
        for name in fragment.replicas:
            self._join(name, None)

    @property
    def frontier(self) -> int:
        """The stable of the output, which is that of every shard."""
        return min(self.merge.frontier, self.agreed)

    @property
    def agreed(self) -> int:
        """Where the merge is in every shard."""
        return self.merge.agreed

    @property
    def kernel(self) -> Merge | MergeChanges:
        """What merges the replicas."""
        return self.merge if self.changes is None else self.changes

    @property
    def nbytes(self) -> int:
        """Bytes of state."""
        return self.kernel.report().nbytes

    def snapshots(self) -> dict[str, tuple[int, int]]:
        """Of each replica that began with a snapshot its time, and how many rows begin there."""
        return {} if self.changes is None else self.changes.snapshots()

    def hear(self, parcels: Sequence[Parcel], idle: Iterable[str] | None = None) -> Heard:
        """What comes of the parcels of one micro-batch, in whatever order they are given.

        ``idle`` are the replicas that nobody waits for while they are silent; None: as the fragment says.
        """
        self._now, before = Heard(), self._left_out()
        channels = turns_of(parcels, at_one_instant=self.fragment.key is not None)
        self._snapshots = {}
        for voice in (voice for parcel in parcels for voice in parcel.voices):
            if voice.snapshot is not None:
                earliest = self._snapshots.get(voice.replica, FOREVER)
                self._snapshots[voice.replica] = min(earliest, voice.snapshot)
        for name in sorted({replica for replica, _ in channels}):
            if name not in self.merge.tallies:
                self._join(name, None)
        self._wait_for_none_of(
            self.fragment.idle if idle is None else idle, {replica for replica, _ in channels}
        )
        if self.fragment.key is None:
            channels, self._aside = set_aside(channels, self.merge.shows)
        at_the_end: dict[tuple[str, str], int] = {}
        for turns in zip_longest(*channels.values()):
            for turn in turns:
                if turn is not None:
                    self._says(turn, at_the_end)
            self._push_waiting()
            self._promise()
        for replica in self._aside:
            self._says_what_waited(replica, at_the_end)
        self._push_waiting()
        for (replica, channel), time in at_the_end.items():
            known = self.frontiers.get(replica, {})
            if replica in self.merge.inputs:
                known[channel] = max(time, known.get(channel, BEGINNING))
        self._promise()
        heard = self._now
        heard.output = list(_together(heard.output))
        heard.dropped = self._left_out() - before - len(heard.refused)
        return heard

    def _left_out(self) -> int:
        """Rows that were not used since the beginning."""
        counted = sum(tally.refused + tally.late for tally in self.merge.tallies.values())
        return counted + int(self.merge.sides.late.sum())

    def _wait_for_none_of(self, idle: Iterable[str], speaking: Set[str]) -> None:
        """Let replicas be idle that are said to be and do not speak; one that nobody knows is an error."""
        for name in idle:
            if name not in self.merge.tallies:
                known = ", ".join(map(repr, self.merge.tallies)) or "none"
                error = ValueError(
                    f"a replica that is idle has spoken before or is awaited, {name!r} has and is neither"
                )
                error.add_note(f"Spell it as its rows do, or leave it out of idle; known are: {known}.")
                raise error
            if name in self.merge.inputs and name not in speaking:
                self._says_out(self.kernel.idle(name))

    def _says(self, turn: Turn, at_the_end: dict[tuple[str, str], int]) -> None:
        """Let a channel say what it says; stables of unordered channels wait until the end."""
        spoken = turn.voice.sequence - 1
        for stretch in turn.stretches:
            kind = self._count(stretch)
            begin = 0
            for cut in np.flatnonzero(kind >= Kind.ATTACH).tolist():
                self._elements(stretch, stretch.rows[begin:cut], at_the_end)
                place = int(stretch.sequences()[cut])
                if place > spoken + 1:
                    self._know(turn.voice)
                self._says_what_waited(turn.voice.replica, at_the_end)
                self._control(stretch, stretch.rows[cut : cut + 1], at_the_end)
                begin, spoken = cut + 1, place
            self._elements(stretch, stretch.rows[begin:], at_the_end)
        if turn.last > spoken:
            self._know(turn.voice)

    def _says_what_waited(self, replica: str, at_the_end: dict[tuple[str, str], int]) -> None:
        """Let a replica say what was set aside, before it comes or goes or the micro-batch ends."""
        if not self._aside.get(replica):
            return
        for stretch in self._aside[replica].pop(0):
            self._count(stretch)
            self._elements(stretch, stretch.rows, at_the_end)

    def _count(self, stretch: Stretch) -> NDArray[np.int8]:
        """Count what is heard by kind, and changes by what happened; the kinds."""
        kind = stretch.parcel.kind[stretch.rows]
        counts = dict(zip(KINDS, np.bincount(kind, minlength=len(KINDS)).tolist(), strict=True))
        if self.fragment.key is not None:
            ops = stretch.parcel.old_end[stretch.rows][kind == Kind.INSERT]
            counts |= {op.name.lower(): int((ops == op).sum()) for op in Op}
        self._now.heard.update({name: count for name, count in counts.items() if count})
        return kind

    def _know(self, voice: Voice) -> None:
        """A channel has spoken, to this shard or to another."""
        if voice.replica in self.merge.inputs:
            self._reached_by(voice)

    def _reached_by(self, voice: Voice) -> int:
        """How far the channel that speaks has come."""
        if self.changes is not None and not self.frontiers[voice.replica]:
            self._says_out(self.changes.begins(voice.replica, self._snapshots.get(voice.replica)))
        return self.frontiers[voice.replica].setdefault(voice.channel, BEGINNING)

    def _elements(
        self, stretch: Stretch, rows: NDArray[np.int64], at_the_end: dict[tuple[str, str], int]
    ) -> None:
        parcel, voice = stretch.parcel, stretch.voice
        if not len(rows):
            return
        if voice.replica not in self.merge.inputs:
            self._refuse_all(Rule.DETACHED_INPUT, stretch, rows)
            return
        reached = self._reached_by(voice)
        if self.changes is not None and not voice.ordered:
            rows = rows[np.argsort(parcel.start[rows], kind="stable")]
        kind, start = parcel.kind[rows], parcel.start[rows]
        if not voice.ordered:
            stables = start[kind == Kind.STABLE]
            if len(stables):
                key = voice.replica, voice.channel
                at_the_end[key] = max(int(stables.max()), at_the_end.get(key, BEGINNING))
                rows = rows[kind != Kind.STABLE]
                kind, start = parcel.kind[rows], parcel.start[rows]
        rules = np.full(len(rows), VALID, np.int8)
        self.frontiers[voice.replica][voice.channel] = check_times(
            kind, start, parcel.end[rows], parcel.old_end[rows], reached, rules
        )
        if (rules != VALID).any():
            self._refuse_invalid(stretch, rows, rules, reached)
        events = replace(stretch, rows=rows[(rules == VALID) & (kind != Kind.STABLE)])
        if not len(events.rows):
            return
        if self.changes is None:
            self._wait(events)
            return
        origin = replace(origin_of(parcel, events.rows), ordered=voice.ordered)
        batch = parcel.batch(events.rows, self.fragment.key).with_origin(origin)
        self._push(voice.replica, parcel, events.rows, batch)

    def _wait(self, events: Stretch) -> None:
        """Let events of a replica be pushed with those of its other channels, if they are few."""
        if self._waiting and self._waiting[0].voice.replica != events.voice.replica:
            self._push_waiting()
        self._waiting.append(events)
        payload, count = events.parcel.payload, len(events.rows)
        self._events += count
        self._bytes += payload.nbytes * count // max(payload.num_rows, 1)
        if self._events >= ENOUGH or self._bytes >= BYTES:
            self._push_waiting()

    def _push_waiting(self) -> None:
        if not self._waiting:
            return
        replica = self._waiting[0].voice.replica
        parcel, rows = one_after_the_other(self._waiting)
        self._waiting, self._events, self._bytes = [], 0, 0
        self._push(replica, parcel, rows, parcel.batch(rows, self.fragment.identity))

    def _push(self, replica: str, parcel: Parcel, rows: NDArray[np.int64], batch: Batch) -> None:
        """Merge what comes of rows of a parcel."""
        if not len(batch):
            return
        origin = origin_of(parcel, rows) if batch.origin is None else batch.origin
        self._pushed = parcel, rows, origin
        self._says_out(self.kernel.push(replica, batch.with_origin(origin)))
        self._pushed = None

    def _refuse_changes(self, refused: Sequence[Refused]) -> None:
        """Answer for changes that do not fit, in the order of channels and numbers."""
        if isinstance(self.answers.on_invalid, Drop):
            return
        rows = [(group, group.batch.origin, row) for group in refused for row in range(len(group.batch))]
        found = [
            (origin.channel_of(row), int(origin.number[row]), group, row)
            for group, origin, row in rows
            if origin is not None
        ]
        for channel, number, group, row in sorted(found, key=lambda one: one[:2]):
            replica, known = group.name or "", int(group.known[row])
            own = self._own(replica, channel, number)
            raw = change_text(group.batch, row, self._roles, own)
            detail = in_words(group.detail, known, raw, dial_of(self.fragment.clock))
            violation = Violation(group.rule, number, raw, known, replica, detail)
            self._answer(violation, channel)

    def _control(
        self, stretch: Stretch, row: NDArray[np.int64], at_the_end: dict[tuple[str, str], int]
    ) -> None:
        self._push_waiting()
        replica = stretch.voice.replica
        element = stretch.parcel.batch(row).element(0)
        attached = replica in self.merge.inputs
        if not attached and not isinstance(element, Attach):
            self._refuse_all(Rule.DETACHED_INPUT, stretch, row)
            return
        guarantee = self._guarantee(replica, element)
        if attached and isinstance(element, Attach) and guarantee is None and not self.frontiers[replica]:
            return  # it was waited for, and has come: others must not go on without it meanwhile
        if attached:
            for channel in [key for key in at_the_end if key[0] == replica]:
                time = at_the_end.pop(channel)
                known = self.frontiers[replica]
                known[channel[1]] = max(time, known.get(channel[1], BEGINNING))
            self._promise()
            self._says_out(self.kernel.detach(replica))
            del self.frontiers[replica]
        if isinstance(element, Attach):
            self._join(replica, guarantee)

    def _guarantee(self, replica: str, element: Element | Control) -> int | None:
        """What an attach guarantees; nothing, if the replica is lossy."""
        if not isinstance(element, Attach) or not self.fragment.is_complete(replica):
            return None
        return None if element.guarantee == BEGINNING else element.guarantee

    def _join(self, replica: str, guarantee: int | None) -> None:
        complete, promised = self.fragment.is_complete(replica), self.fragment.promised()
        self._says_out(self.kernel.attach(replica, guarantee, promised, complete=complete))
        self.frontiers[replica] = {}

    def _promise(self) -> None:
        """Let every replica say how far its channels have come, where that is further than before."""
        if self.changes is not None:
            for replica in self.merge.inputs:
                self.changes.promise(replica, self.reached(replica))
            self._says_out(self.changes.settle())
            return
        for replica, one in self.merge.inputs.items():
            if self.reached(replica) > one.said:
                self._says_out(self.merge.advance(replica, self.reached(replica)))

    def reached(self, replica: str) -> int:
        """How far all channels of a replica have come."""
        channels = self.frontiers[replica]
        return min(channels.values()) if len(channels) >= (self.fragment.channels or 1) else BEGINNING

    def _says_out(self, result: Result) -> None:
        of_merge = (Rule.LATE, Rule.BROKEN_PROPERTY)
        self._refuse_changes([refused for refused in result.refused if refused.rule not in of_merge])
        for refused in result.refused:
            if refused.rule in of_merge:
                self._refuse(refused)
        if len(result.events):
            self._now.output.append(result.events)

    def _refuse(self, refused: Refused) -> None:
        """Answer for what the merge leaves out."""
        answer = self.answers.to(refused.rule)
        if isinstance(answer, Drop):
            return
        origin = refused.batch.origin
        for row, violation in enumerate(violations("", refused, dial_of(self.fragment.clock))):
            if isinstance(answer, Raise):
                raise error_of(violation)
            place, raw, own = f"shard {self.number}", None, None
            if origin is not None:
                whose = violation.input or "", origin.channel_of(row), violation.position
                place, own = self._place(*whose), self._own(*whose)
                raw = self._change_of(origin, row, own)
            self._now.refused.append(
                refusal(violation, place, self.fragment.clock, raw=raw, roles=self._roles, own=own)
            )

    def _change_of(self, origin: Origin, row: int, own: dict[str, Any]) -> str | None:
        """The change that a refused element comes of, where replicas send changes."""
        if self.fragment.key is None or self._pushed is None:
            return None
        parcel, rows, pushed = self._pushed
        there = (pushed.number == origin.number[row]) & (pushed.of_channels() == origin.of_channels()[row])
        found = rows[np.flatnonzero(there)[:1]]
        return change_text(parcel.batch(found), 0, self._roles, own) if len(found) else None

    @property
    def _roles(self) -> dict[str, str]:
        return dict(self.fragment.roles)

    def _place(self, replica: str, channel: str, number: int) -> str:
        return place_text(replica, channel, number, by_task=self.fragment.by_task)

    def _own(self, replica: str, channel: str, number: int) -> dict[str, Any]:
        """The columns that say whose a row is, and which."""
        values = {"replica": replica, "channel": channel, "sequence": number}
        return {column: values[role] for role, column in self._roles.items() if role in values}

    def _refuse_all(self, rule: Rule, stretch: Stretch, rows: NDArray[np.int64]) -> None:
        self._refuse_rows(stretch, rows, [rule] * len(rows), [BEGINNING] * len(rows))

    def _refuse_invalid(
        self, stretch: Stretch, rows: NDArray[np.int64], rules: NDArray[np.int8], reached: int
    ) -> None:
        invalid = rules != VALID
        kind, start = stretch.parcel.kind[rows], stretch.parcel.start[rows]
        stables = np.maximum.accumulate(np.where(kind == Kind.STABLE, start, BEGINNING))
        broken = [BROKEN[code] for code in rules[invalid].tolist()]
        if self.fragment.key is not None:
            late, of_changes = Rule.INSERT_BEHIND_STABLE, Rule.CHANGE_BEHIND_STABLE
            broken = [of_changes if rule is late else rule for rule in broken]
        self._refuse_rows(stretch, rows[invalid], broken, np.maximum(stables, reached)[invalid].tolist())

    def _refuse_rows(
        self, stretch: Stretch, rows: NDArray[np.int64], rules: Sequence[Rule], frontiers: Sequence[int]
    ) -> None:
        """Count rows as refused, and answer for each with the rule it breaks and the frontier it met."""
        replica = stretch.voice.replica
        self.merge.tallies[replica].refused += len(rows)
        if isinstance(self.answers.on_invalid, Drop):
            return
        batch, numbers = stretch.parcel.batch(rows), replace(stretch, rows=rows).sequences().tolist()
        for n, element in enumerate(batch.objects()):
            said: Element | Control | str = element
            if self.fragment.key is not None and batch.kind[n] == Kind.INSERT:
                own = self._own(replica, stretch.voice.channel, numbers[n])
                said = change_text(batch, n, self._roles, own)
            violation = Violation(rules[n], numbers[n], said, frontiers[n], replica)
            self._answer(violation, stretch.voice.channel)

    def _answer(self, violation: Violation, channel: str) -> None:
        answer = self.answers.on_invalid
        if isinstance(answer, Quarantine):
            replica, number = violation.input or "", violation.position
            own, place = self._own(replica, channel, number), self._place(replica, channel, number)
            clock, roles = self.fragment.clock, self._roles
            self._now.refused.append(refusal(violation, place, clock, roles=roles, own=own))
        else:
            answer(violation)

    def dump(self) -> bytes:
        """The state as bytes, from which `load` goes on as if nothing had happened."""
        values = {"settings": self.fragment.settings(), "frontiers": self.frontiers}
        return to_bytes({"shard": State(VERSION, values, []), "merge": self.kernel.saved()})

    @classmethod
    def load(cls, fragment: Fragment, number: int, data: bytes) -> "Shard":
        """The shard that was dumped."""
        sections = from_bytes(data)
        _, saved, _ = version_of(sections["shard"], VERSION, "a shard")
        check_settings(saved["settings"], fragment.settings())
        shard = cls.__new__(cls)
        shard.fragment, shard.number, shard.answers = fragment, number, fragment.answers()
        shard.frontiers = saved["frontiers"]
        shard._now, shard._pushed, shard._aside, shard._snapshots = Heard(), None, {}, {}
        shard._waiting, shard._events, shard._bytes = [], 0, 0
        kernel = fragment.loaded(sections["merge"])
        shard.changes = kernel if isinstance(kernel, MergeChanges) else None
        shard.merge = kernel.merge if isinstance(kernel, MergeChanges) else kernel
        return shard


def origin_of(parcel: Parcel, rows: NDArray[np.int64]) -> Origin:
    """Which rows of which channels rows of a parcel are."""
    voice = parcel.voice[rows]
    first = np.array([voice.sequence for voice in parcel.voices], np.int64)
    return Origin(first[voice] + parcel.row[rows], voice, tuple(voice.channel for voice in parcel.voices))


def _together(parts: list[Batch]) -> Iterator[Batch]:
    """The same elements in few batches."""
    waiting: list[Batch] = []
    count = size = 0
    for part in parts:
        if waiting and (count + len(part) > TOGETHER or size + part.payload.nbytes > BYTES):
            yield concat(waiting)
            waiting, count, size = [], 0, 0
        waiting.append(part)
        count += len(part)
        size += part.payload.nbytes
    if waiting:
        yield concat(waiting)
