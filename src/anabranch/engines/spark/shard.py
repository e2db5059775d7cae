"""One shard of a level of a plan: what it is sent in a micro-batch, in order, and its result.

It is one flow, and a gate for every edge into the level. A micro-batch is taken in rounds, one stretch of
every channel of every edge in each: first the events of all, then the promises, so that no row is late only
because another channel came first. In a channel whose order is not known an adjust waits for the end that it
corrects (`patience`). No clock, no randomness: the same parcels give the same.

All shards are at one frontier after a micro-batch, but for operators whose frontiers depend on events:
rounds, channels and frontiers follow from what every shard is told, never from events, which others do not
see.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import zip_longest

import numpy as np
from numpy.typing import NDArray

from anabranch.engines.drive import Drive
from anabranch.engines.settings import check_settings
from anabranch.engines.spark.assignment import Assignment
from anabranch.engines.spark.order import BYTES, ParcelRows, Turn, channel_rows, turns_of
from anabranch.engines.spark.patience import set_aside
from anabranch.engines.spark.shard_refusals import ShardRefusals
from anabranch.engines.spark.transport.parcel import Parcel
from anabranch.kernels.kernel import State, Step
from anabranch.kernels.store.saved import from_bytes, to_bytes, version_of
from anabranch.model.batch import KINDS, Batch, Kind, concat
from anabranch.model.identity import Words
from anabranch.model.op import Op
from anabranch.model.time import BEGINNING
from anabranch.plan.levels import OUTPUT
from anabranch.plan.source import Source
from anabranch.progress.channel_rows import ChannelRows
from anabranch.rows.refusal import Refusal

TOGETHER = 65_536
"""Elements of the output that are put into one batch, at most."""
VERSION = 4


@dataclass(slots=True)
class ShardResult:
    """The result of a micro-batch."""

    outputs: dict[str, list[Batch]] = field(default_factory=dict)
    """Without stables: the frontier after it says as much."""
    refused: list[Refusal] = field(default_factory=list)
    received: Counter[str] = field(default_factory=Counter)
    dropped: int = 0
    """Rows that were dropped."""

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
        self.refusals = ShardRefusals(assignment, number)
        self.drive = Drive(assignment.level.outputs, states, shard=number)
        self.flow, self.gates = self.drive.flow, self.drive.gates
        self.inlets = {edge.name: edge.inlet for edge in assignment.level.edges}
        assert self.gates.keys() == self.inlets.keys(), "a level has a gate for each of its edges"
        self._sources = {edge.name for edge in assignment.level.edges if edge.source is not None}
        self.left_out: Counter[tuple[str, str]] = Counter()
        """How many rows of each replica of an edge were refused at the gate, since the beginning."""
        self._now = ShardResult()
        self._aside: dict[tuple[str, str], list[list[ParcelRows]]] = {}

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

    def receive(
        self, parcels: Sequence[Parcel], idle: Iterable[tuple[str, str]] | None = None
    ) -> ShardResult:
        """What comes of the parcels of one micro-batch, in whatever order they are given.

        ``idle`` are edges with replicas that are not waited for while they send nothing; None: those of the
        query.
        """
        self._now, self._aside = ShardResult(), {}
        assert all(parcel.edge in self.inlets for parcel in parcels), "a parcel is of an edge of the level"
        rounds: list[dict[str, list[Turn]]] = []
        sending: dict[str, set[str]] = {}
        for edge, inlet in self.inlets.items():
            mine, gate = [parcel for parcel in parcels if parcel.edge == edge], self.gates[edge]
            gate.foresee(stretch for parcel in mine for stretch in parcel.stretches)
            channels = turns_of(mine, at_one_instant=inlet.of_changes)
            sending[edge] = {replica if inlet.replicas else "" for replica, _ in channels}
            for name in sorted(sending[edge]):
                if not gate.attendance.has_left(name):
                    gate.expect(name)
            if not inlet.of_changes and channels:
                channels, aside = set_aside(channels, partial(self._shows, edge))
                self._aside |= {(edge, replica): parts for replica, parts in aside.items()}
            for number, turns in enumerate(zip_longest(*channels.values())):
                if number == len(rounds):
                    rounds.append({})
                rounds[number][edge] = [turn for turn in turns if turn is not None]
        self._let_idle(self.assignment.idle if idle is None else idle, sending)
        for one in rounds:
            for edge, sent in one.items():
                self._admit(edge, sent)
            self._run()
        for edge, replica in list(self._aside):
            self._admit_what_waited(edge, replica)
        self.drive.settle()
        self._run()
        result = self._now
        result.refused, result.dropped = self.refusals.taken()
        for name in self.flow.output:
            result.outputs[name] = list(_together(self.flow.parts(name)))
        return result

    def step_on(self, result: ShardResult) -> None:
        """Let what goes on to later levels pass the steps on its way; what they refuse is answered for."""
        for edge in self.assignment.later:
            origin = self.assignment.level.outputs[edge.name]
            for node in edge.steps:
                step = node.operator()
                assert isinstance(step, Step), "what is between two levels has no state"
                results = [step.map(batch) for batch in result.outputs[edge.name]]
                result.outputs[edge.name] = [one.events for one in results]
                for refused in (group for one in results for group in one.refused):
                    self.refusals.of_step(node, origin, refused)
        refused_now, dropped = self.refusals.taken()
        result.refused += refused_now
        result.dropped += dropped

    def _shows(
        self, edge: str, replica: str, words: Words, start: NDArray[np.int64], end: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        return self.flow.shows(edge, replica if self.inlets[edge].replicas else "", words, start, end)

    def _let_idle(self, idle: Iterable[tuple[str, str]], sending: Mapping[str, Collection[str]]) -> None:
        """Let replicas be idle that may be and send nothing; one that is not known is an error."""
        for edge, name in idle:
            gate = self.gates[edge]
            if name not in gate.attendance.known:
                known = ", ".join(map(repr, gate.attendance.known)) or "none"
                error = ValueError(
                    f"a replica that is idle has sent rows before or is awaited, {name!r} has not and is not"
                )
                error.add_note(f"Spell it as its rows do, or leave it out of idle; known are: {known}.")
                raise error
            gate.idle_but([name], sending[edge])

    def _admit(self, edge: str, turns: Sequence[Turn]) -> None:
        """Let in what channels of an edge send in one round."""
        inlet, gate = self.inlets[edge], self.gates[edge]
        identity = self.assignment.identities[edge]
        for rows in channel_rows(turns, identity, replicas=inlet.replicas, by_start=inlet.of_changes):
            self._count(edge, rows)
            if inlet.of_changes:
                self.refusals.pushed.append((edge, rows))
            if not self._aside:
                gate.admit(rows)
                continue
            for part in rows.between_controls():
                if part.is_control():
                    self._admit_what_waited(edge, part.stretches[0].replica)
                gate.admit(part)
            gate.observe(rows)

    def _admit_what_waited(self, edge: str, replica: str) -> None:
        """Let in what a replica had to wait with, before it comes or goes or the micro-batch ends."""
        if not self._aside.get((edge, replica)):
            return
        parts = self._aside[edge, replica].pop(0)
        seen = [replace(part, stretch=replace(part.stretch, latest=BEGINNING)) for part in parts]
        for part in seen:
            self._admit(edge, [Turn(part.stretch, part.stretch.last, [part])])

    def _count(self, edge: str, rows: ChannelRows) -> None:
        """Count what sources send by kind, and changes by what happened."""
        if edge not in self._sources:
            return
        kind = rows.elements.kind
        counts = dict(zip(KINDS, np.bincount(kind, minlength=len(KINDS)).tolist(), strict=True))
        if self.inlets[edge].of_changes:
            ops = rows.elements.old_end[kind == Kind.INSERT]
            counts |= {op.name.lower(): int((ops == op).sum()) for op in Op}
        self._now.received.update({name: count for name, count in counts.items() if count})

    def _run(self) -> None:
        """Let what came in go through the flow, and answer for what gates and operators refuse."""
        self.drive.run()
        for node, refused in self.drive.refusals():
            if isinstance(node, Source):
                self.left_out[node.name, refused.name or ""] += len(refused.batch)
                self.refusals.at_gate(node.name, refused)
            else:
                self.refusals.of_operator(node, refused)
        self.refusals.pushed = []

    def dump(self) -> bytes:
        """The state as bytes, from which `load` goes on as if nothing had happened."""
        left_out = [[edge, name, count] for (edge, name), count in self.left_out.items()]
        values = {"settings": self.assignment.settings, "left_out": left_out}
        return to_bytes({"shard": State(VERSION, values, []), **self.drive.saved()})

    @classmethod
    def load(cls, assignment: Assignment, number: int, data: bytes) -> "Shard":
        """The shard that was dumped."""
        states = from_bytes(data)
        saved = version_of(states.pop("shard"), VERSION, "a shard")
        check_settings(saved.values["settings"], assignment.settings, state="checkpoint", reader="query")
        shard = cls(assignment, number, states)
        shard.left_out.update({(edge, name): count for edge, name, count in saved.values["left_out"]})
        return shard


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
