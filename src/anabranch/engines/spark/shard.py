"""One shard of a level of a plan: what it hears in a micro-batch, in order, and what comes of it.

It is one flow, and a gate for every edge into the level. A replica speaks through channels, each in its own
order; what it promises is the least of them. A micro-batch is heard in rounds, one stretch of every channel
of every edge in each: first the events of all, then the stables, so that nobody is late only because another
came first. In a channel whose order is not known an adjust waits for the end that it corrects (`patience`),
and stables count at the end of the micro-batch. No clock, no randomness: the same parcels give the same.

All shards are at one frontier after a micro-batch, but for operators whose frontiers depend on events:
rounds, channels and frontiers follow from what every shard is told, never from events, which others do not
see.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import zip_longest

import numpy as np
from numpy.typing import NDArray

from anabranch.engines.entrance import Entrance
from anabranch.engines.flow import Flow
from anabranch.engines.settings import check_settings
from anabranch.engines.spark.answering import Answering
from anabranch.engines.spark.assignment import Assignment
from anabranch.engines.spark.order import (
    ParcelRows,
    Turn,
    one_after_the_other,
    origin_of,
    snapshots_of,
    turns_of,
)
from anabranch.engines.spark.patience import set_aside
from anabranch.engines.spark.transport.parcel import Parcel, Voice
from anabranch.kernels.kernel import Refused, State, Step
from anabranch.kernels.store.saved import from_bytes, to_bytes, version_of
from anabranch.model.application import VALID
from anabranch.model.batch import KINDS, Batch, Kind, concat
from anabranch.model.identity import Words
from anabranch.model.op import Op
from anabranch.model.time import BEGINNING
from anabranch.model.validity import Rule
from anabranch.plan.levels import OUTPUT
from anabranch.progress.gate import Gate
from anabranch.progress.gate import refused as refused_by_times
from anabranch.rows.refusal import Refusal

ENOUGH = 4_096
"""Events that are pushed at once; fewer wait for those of other channels: a push by itself costs 0.3 ms."""
TOGETHER = 65_536
"""Elements of the output that are put into one batch, at most."""
BYTES = 8 << 20
"""Bytes of payloads that are pushed, or put into one batch, at once: ten parcels of 5 MB pass through Spark
faster than one of 50 MB."""
VERSION = 3
IDLE = "\x1f"
"""What stands between the name of an edge and that of a replica."""


@dataclass(slots=True)
class Heard:
    """What came of a micro-batch."""

    outputs: dict[str, list[Batch]] = field(default_factory=dict)
    """Without stables: the frontier after it says as much."""
    refused: list[Refusal] = field(default_factory=list)
    heard: Counter[str] = field(default_factory=Counter)
    dropped: int = 0
    """Rows that were left out and not told."""

    @property
    def output(self) -> list[Batch]:
        """What comes out of the query."""
        return self.outputs.get(OUTPUT, [])


class Shard:
    """State: a flow, a gate for every edge, and how many rows of each replica were refused there."""

    def __init__(
        self, assignment: Assignment, number: int = 0, states: dict[str, State] | None = None
    ) -> None:
        self.assignment, self.number = assignment, number
        self.answering = Answering(assignment, number)
        self.flow = Flow(assignment.level.outputs, states, agreed=True)
        self.inlets = {edge.name: edge.inlet for edge in assignment.level.edges}
        self.gates = {
            name: Gate(inlet.admission(), Entrance(self.flow, name, partial(self._refuse, name)))
            for name, inlet in self.inlets.items()
        }
        self._sources = {edge.name for edge in assignment.level.edges if edge.source is not None}
        self.left_out: Counter[tuple[str, str]] = Counter()
        """How many rows of each replica of an edge were refused at the gate, since the beginning."""
        self._now = Heard()
        self._waiting: list[ParcelRows] = []
        self._whose = ("", "")
        self._events = self._bytes = 0
        self._aside: dict[tuple[str, str], list[list[ParcelRows]]] = {}
        self._at_the_end: dict[tuple[str, str, str], int] = {}
        if states is None:
            for gate in self.gates.values():
                gate.open()
            self.flow.run()

    @property
    def frontier(self) -> int:
        """The stable of what comes out, which is that of every shard, or of the first edge that goes on."""
        return self.flow.frontier(next(iter(self.flow.output)))

    def stables(self) -> dict[str, int]:
        """The stable of everything that comes out, by its name."""
        return {name: self.flow.frontier(name) for name in self.flow.output}

    @property
    def nbytes(self) -> int:
        """Bytes of state."""
        return sum(report.nbytes for report in self.flow.reports().values())

    def hear(self, parcels: Sequence[Parcel], idle: Iterable[str] | None = None) -> Heard:
        """What comes of the parcels of one micro-batch, in whatever order they are given.

        ``idle`` are the replicas that nobody waits for while they are silent; None: as the query says.
        """
        self._now, self._aside, self._at_the_end = Heard(), {}, {}
        assert all(parcel.edge in self.inlets for parcel in parcels), "a parcel is of an edge of the level"
        channels: list[tuple[str, list[Turn]]] = []
        speaking: set[tuple[str, str]] = set()
        for edge, inlet in self.inlets.items():
            mine = [parcel for parcel in parcels if parcel.edge == edge]
            self.gates[edge].snapshots = snapshots_of(mine)
            turns = turns_of(mine, at_one_instant=inlet.of_changes)
            for name in sorted({self._name(edge, replica) for replica, _ in turns}):
                speaking.add((edge, name))
                self.gates[edge].present(name)
            if not inlet.of_changes and turns:
                turns, aside = set_aside(turns, lambda who, *events, at=edge: self._shows(at, who, *events))
                self._aside |= {(edge, replica): parts for replica, parts in aside.items()}
            channels += [(edge, said) for said in turns.values()]
        self._wait_for_none_of(self.assignment.idle if idle is None else idle, speaking)
        for turns_now in zip_longest(*(turns for _, turns in channels)):
            for (edge, _), turn in zip(channels, turns_now, strict=True):
                if turn is not None:
                    self._says(edge, turn)
            self._push_waiting()
            self._promise()
        for edge, replica in list(self._aside):
            self._says_what_waited(edge, replica)
        self._push_waiting()
        self._settle(self._at_the_end)
        self._promise()
        heard = self._now
        heard.refused, heard.dropped = self.answering.taken()
        for name in self.flow.output:
            heard.outputs[name] = list(_together(self.flow.parts(name)))
        return heard

    def step_on(self, heard: Heard) -> None:
        """Let what goes on to later levels pass the steps on its way; what they refuse is answered for."""
        for edge in self.assignment.later:
            origin = self.assignment.level.outputs[edge.name]
            for node in edge.steps:
                step = node.operator()
                assert isinstance(step, Step), "what is between two levels has no state"
                results = [step.map(batch) for batch in heard.outputs[edge.name]]
                heard.outputs[edge.name] = [one.events for one in results]
                for refused in (group for one in results for group in one.refused):
                    self.answering.of_step(node, origin, refused)
        refused_now, dropped = self.answering.taken()
        heard.refused += refused_now
        heard.dropped += dropped

    def _name(self, edge: str, replica: str) -> str:
        return replica if self.inlets[edge].replicas else ""

    def _shows(
        self, edge: str, replica: str, words: Words, start: NDArray[np.int64], end: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        return self.flow.shows(edge, self._name(edge, replica), words, start, end)

    def _wait_for_none_of(self, idle: Iterable[str], speaking: set[tuple[str, str]]) -> None:
        """Let replicas be idle that are said to be and do not speak; one that nobody knows is an error."""
        for one in idle:
            edge, _, name = one.partition(IDLE)
            gate = self.gates[edge]
            if name not in gate.frontiers and name not in gate.left:
                known = ", ".join(map(repr, [*gate.frontiers, *sorted(gate.left)])) or "none"
                error = ValueError(
                    f"a replica that is idle has spoken before or is awaited, {name!r} has and is neither"
                )
                error.add_note(f"Spell it as its rows do, or leave it out of idle; known are: {known}.")
                raise error
            if name in gate.frontiers and (edge, name) not in speaking:
                gate.idle(name)

    def _says(self, edge: str, turn: Turn) -> None:
        """Let a channel say what it says; stables of unordered channels wait until the end."""
        spoken = turn.voice.sequence - 1
        for part in turn.parts:
            kind = self._count(edge, part)
            begin = 0
            for cut in np.flatnonzero(kind >= Kind.ATTACH).tolist():
                self._elements(edge, part, part.rows[begin:cut])
                place = int(part.sequences()[cut])
                if place > spoken + 1:
                    self._know(edge, turn.voice)
                self._says_what_waited(edge, turn.voice.replica)
                self._control(edge, part, part.rows[cut : cut + 1])
                begin, spoken = cut + 1, place
            self._elements(edge, part, part.rows[begin:])
        if turn.last > spoken:
            self._know(edge, turn.voice)

    def _says_what_waited(self, edge: str, replica: str) -> None:
        """Let a replica say what was set aside, before it comes or goes or the micro-batch ends."""
        if not self._aside.get((edge, replica)):
            return
        for part in self._aside[edge, replica].pop(0):
            self._count(edge, part)
            self._elements(edge, part, part.rows)

    def _count(self, edge: str, part: ParcelRows) -> NDArray[np.int8]:
        """Count what sources say by kind, and changes by what happened; the kinds."""
        kind = part.parcel.kind[part.rows]
        if edge not in self._sources:
            return kind
        counts = dict(zip(KINDS, np.bincount(kind, minlength=len(KINDS)).tolist(), strict=True))
        if self.inlets[edge].of_changes:
            ops = part.parcel.old_end[part.rows][kind == Kind.INSERT]
            counts |= {op.name.lower(): int((ops == op).sum()) for op in Op}
        self._now.heard.update({name: count for name, count in counts.items() if count})
        return kind

    def _know(self, edge: str, voice: Voice) -> None:
        """A channel has spoken, to this shard or to another."""
        gate, name = self.gates[edge], self._name(edge, voice.replica)
        if name in gate.frontiers:
            gate.speaks(name, voice.channel)

    def _elements(self, edge: str, part: ParcelRows, rows: NDArray[np.int64]) -> None:
        parcel, voice, gate = part.parcel, part.voice, self.gates[edge]
        if not len(rows):
            return
        name = self._name(edge, voice.replica)
        if name not in gate.frontiers:
            self._refuse_all(edge, part, rows)
            return
        reached = gate.speaks(name, voice.channel)
        if self.inlets[edge].of_changes and not voice.ordered:
            rows = rows[np.argsort(parcel.start[rows], kind="stable")]
        kind = parcel.kind[rows]
        if not voice.ordered:
            stables = parcel.start[rows][kind == Kind.STABLE]
            if len(stables):
                key = edge, name, voice.channel
                self._at_the_end[key] = max(int(stables.max()), self._at_the_end.get(key, BEGINNING))
                rows = rows[kind != Kind.STABLE]
                kind = parcel.kind[rows]
        rules = gate.admit(
            name, voice.channel, kind, parcel.start[rows], parcel.end[rows], parcel.old_end[rows]
        )
        if (rules != VALID).any():
            batch = _batch(replace(part, rows=rows))
            groups = refused_by_times(batch, rules, reached, of_changes=self.inlets[edge].of_changes)
            for one in _in_order(list(groups)):
                self.refuse(edge, name, one)
        events = replace(part, rows=rows[(rules == VALID) & (kind != Kind.STABLE)])
        if len(events.rows):
            self._wait(edge, name, events)

    def _wait(self, edge: str, name: str, events: ParcelRows) -> None:
        """Let events of a replica be pushed with those of its other channels, if they are few."""
        if self._whose != (edge, name):
            self._push_waiting()
        self._whose = edge, name
        self._waiting.append(events)
        payload, count = events.parcel.payload, len(events.rows)
        self._events += count
        self._bytes += payload.nbytes * count // max(payload.num_rows, 1)
        if self._events >= ENOUGH or self._bytes >= BYTES:
            self._push_waiting()

    def _push_waiting(self) -> None:
        if not self._waiting:
            return
        edge, name = self._whose
        parcel, rows = one_after_the_other(self._waiting)
        self._waiting, self._events, self._bytes = [], 0, 0
        batch = parcel.batch(rows, self.assignment.identities[edge]).with_origin(origin_of(parcel, rows))
        if self.inlets[edge].of_changes:
            self.answering.pushed.append((edge, batch))
        self.flow.push(edge, batch, name)

    def _control(self, edge: str, part: ParcelRows, row: NDArray[np.int64]) -> None:
        self._push_waiting()
        gate, name = self.gates[edge], self._name(edge, part.voice.replica)
        attaches = bool(part.parcel.kind[row[0]] == Kind.ATTACH)
        if not self.inlets[edge].replicas:
            if self.number == 0:
                self._refuse_all(edge, part, row)
            return
        refused = gate.refused_control(_batch(replace(part, rows=row)), name, attaches=attaches)
        if refused is not None:
            if self.number == 0:
                self.refuse(edge, part.voice.replica, refused)
            return
        if not attaches:
            mine = {
                key: self._at_the_end.pop(key) for key in list(self._at_the_end) if key[:2] == (edge, name)
            }
            self._settle(mine)
        if attaches:
            guarantee = int(part.parcel.start[row[0]])
            promises = guarantee != BEGINNING and gate.admission.is_complete(name)
            gate.attach(name, guarantee if promises else None)
        else:
            gate.detach(name)

    def _settle(self, times: dict[tuple[str, str, str], int]) -> None:
        """Let stables count that waited for the end."""
        for (edge, name, channel), time in times.items():
            self.gates[edge].reach(name, channel, time)

    def _promise(self) -> None:
        """Let every replica say how far its channels have come, where that is further than before."""
        for gate in self.gates.values():
            gate.promise()
        self.run()

    def run(self) -> None:
        """Let what was pushed and promised go through the flow, and answer for what it refuses."""
        self.flow.run()
        for node, refused in self.flow.refusals():
            self.answering.of_operator(node, refused)
        self.answering.pushed = []

    def _refuse_all(self, edge: str, part: ParcelRows, rows: NDArray[np.int64]) -> None:
        """Refuse rows of one who is not there."""
        batch, nothing = _batch(replace(part, rows=rows)), np.full(len(rows), BEGINNING)
        self.refuse(edge, part.voice.replica, Refused(Rule.DETACHED_INPUT, batch, nothing))

    def refuse(self, edge: str, replica: str, refused: Refused) -> None:
        """Answer for rows of a replica that do not pass the gate."""
        self.left_out[edge, replica] += len(refused.batch)
        self.answering.at_gate(edge, refused._replace(name=replica))

    def _refuse(self, edge: str, refused: Refused) -> None:
        self.refuse(edge, refused.name or "", refused)

    def dump(self) -> bytes:
        """The state as bytes, from which `load` goes on as if nothing had happened."""
        left_out = [[edge, name, count] for (edge, name), count in self.left_out.items()]
        values = {"settings": self.assignment.settings, "left_out": left_out}
        gates = {f"gate {name}": gate.saved() for name, gate in self.gates.items()}
        return to_bytes({"shard": State(VERSION, values, []), **gates, **self.flow.saved()})

    @classmethod
    def load(cls, assignment: Assignment, number: int, data: bytes) -> "Shard":
        """The shard that was dumped."""
        states = from_bytes(data)
        saved = version_of(states.pop("shard"), VERSION, "a shard")
        check_settings(saved.values["settings"], assignment.settings, state="checkpoint", reader="query")
        shard = cls(assignment, number, states)
        shard.left_out.update({(edge, name): count for edge, name, count in saved.values["left_out"]})
        for name, gate in shard.gates.items():
            gate.resume(states[f"gate {name}"])
        shard.flow.resume({name: gate.promised for name, gate in shard.gates.items()})
        return shard


def _in_order(groups: list[Refused]) -> list[Refused]:
    """What one channel said and was refused, in the order of its rows."""
    if len(groups) < 2:
        return groups
    singles = [
        one._replace(batch=one.batch[n : n + 1], known=one.known[n : n + 1])
        for one in groups
        for n in range(len(one.batch))
    ]
    return sorted(singles, key=lambda one: int(one.batch.origin.number[0]) if one.batch.origin else 0)


def _batch(part: ParcelRows) -> Batch:
    """Rows of a parcel with their origins."""
    return part.parcel.batch(part.rows).with_origin(origin_of(part.parcel, part.rows))


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
