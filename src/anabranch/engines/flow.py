"""The kernels and steps of a plan, connected: what goes in at its sources comes out at its outputs.

A pass goes through the operators once, each after its inputs. At an operator all events of a pass come before
all promises, so that nobody is late only because another came first; a promise goes on only where it is more
than the last. Both engines drive flows, the embedded one a single one, Spark one in every shard; nothing else
runs kernels. A flow decides nothing about what is refused: it collects it, for whoever drives it.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from anabranch.kernels.kernel import Joinable, Kernel, Refused, Report, Result, Settles, Shows, State, Step
from anabranch.model.application import STABLE
from anabranch.model.batch import Batch, concat, holds
from anabranch.model.identity import Words
from anabranch.model.properties import Properties
from anabranch.model.time import BEGINNING, FOREVER
from anabranch.plan.graph import Graph
from anabranch.plan.node import Node
from anabranch.plan.source import Source
from anabranch.plan.state_settings import operator_names
from anabranch.plan.validate import validated


@dataclass(slots=True)
class _Stage:
    """One operator, where what comes of it goes, and what it has been given and not taken yet."""

    node: Node
    kernel: Kernel | None = None
    settles: Settles | None = None
    """The kernel, where promises count once a pass is over."""
    joinable: Joinable | None = None
    """The kernel, where inputs come and go."""
    shows: Shows | None = None
    """The kernel, where it knows what an input has shown."""
    step: Step | None = None
    consumers: list[tuple[int, str | None]] = field(default_factory=list)
    """The stages after it, and the name by which each knows it; None: by the name of the replica."""
    outputs: list[str] = field(default_factory=list)
    frontiers: dict[str, int] = field(default_factory=dict)
    """What was promised to the consumers, by the name of the replica where there are several."""
    events: list[tuple[str, Batch]] = field(default_factory=list)
    promises: list[tuple[str, int]] = field(default_factory=list)


@dataclass(slots=True)
class Output:
    """What has come out of one output and was not taken yet."""

    frontier: int = BEGINNING
    events: list[Batch] = field(default_factory=list)


class Flow:
    """State: the kernels, and how far every operator has come."""

    def __init__(
        self,
        outputs: Mapping[str, Node],
        states: Mapping[str, State] | None = None,
        *,
        agreed: bool = False,
    ) -> None:
        """Operators at their beginning, or with ``states`` as they were `saved`.

        ``agreed``: nothing is promised but what all shards promise that are told the same promises.
        """
        self._agreed = agreed
        graph = Graph(validated(list(outputs.values())))
        self.nodes = graph.nodes
        self.stages = [_Stage(node) for node in graph.nodes]
        self.output = {name: Output() for name in outputs}
        self.refused: list[tuple[Node, Refused]] = []
        self._ends = False
        """What goes through now is the end of a source, not a promise that it has made."""
        self.midway = False
        """A pass has begun and has not come to its end; true between passes where one failed."""
        """What operators have not used, and was not taken yet."""
        self.names = operator_names(graph.nodes)
        for n, (node, inputs) in enumerate(zip(graph.nodes, graph.inputs, strict=True)):
            for number, port in zip(inputs, node.ports, strict=True):
                replicated = graph.nodes[number].replicated
                self.stages[number].consumers.append((n, None if replicated else port))
        for name, number in zip(outputs, graph.roots, strict=True):
            self.stages[number].outputs.append(name)
        self._nothing = {
            name: Batch.of([], schema=graph.nodes[number].schema)
            for name, number in zip(outputs, graph.roots, strict=True)
        }
        self.entrances = {node.name: n for n, node in enumerate(self.nodes) if isinstance(node, Source)}
        for name, stage in zip(self.names, self.stages, strict=True):
            self._make(stage, None if states is None else states.get(name))

    def _make(self, stage: _Stage, state: State | None) -> None:
        if isinstance(stage.node, Source):
            return
        with stage.node.line.named():
            operator = stage.node.operator(state)
        if isinstance(operator, Step):
            stage.step = operator
        else:
            stage.kernel = operator
            stage.settles = operator if isinstance(operator, Settles) else None
            stage.shows = operator if isinstance(operator, Shows) else None
            stage.joinable = operator if isinstance(operator, Joinable) else None
            stage.frontiers[""] = self._reached(operator)

    def resume(self, promised: Mapping[str, Mapping[str, int]]) -> None:
        """Know what sources, by the names of their replicas, had promised when the state was saved."""
        for stage in self.stages:
            known = dict(stage.promises)
            if isinstance(stage.node, Source):
                known = dict(promised.get(stage.node.name, {}))
            elif stage.kernel is not None:
                known = {"": self._reached(stage.kernel)}
            elif stage.step is not None:
                known = {name: stage.step.reached(time) for name, time in known.items()}
            stage.promises, stage.frontiers = [], {}
            for name, time in known.items():
                self._promise(stage, name, time)

    def push(self, source: str, batch: Batch, name: str = "") -> None:
        """Events of a source, or of one of its replicas."""
        self.stages[self.entrances[source]].events.append((name, batch))

    def advance(self, source: str, time: int, name: str = "") -> None:
        """A source, or one of its replicas, is stable until a time."""
        self.stages[self.entrances[source]].promises.append((name, time))

    def run(self) -> None:
        """Let all that was pushed and promised go through, events first at every operator: a whole pass."""
        self.midway = True
        for stage in self.stages:
            if stage.events or stage.promises:
                self._run(stage)
            if stage.settles is not None:
                self._take(stage, stage.settles.settle())
        self.midway = False

    def flush(self) -> None:
        """Let all that was pushed and promised go through, in the midst of a pass."""
        self.midway = True
        for stage in self.stages:
            if stage.events or stage.promises:
                self._run(stage)
        self.midway = False

    def begins(self, source: str, name: str, time: int | None) -> None:
        """A replica of a source of changes sends, here or to another shard, perhaps rows of a snapshot."""
        for stage in self._behind(source):
            if stage.settles is not None:
                self._take(stage, stage.settles.begins(name, time))

    def attach(
        self,
        source: str,
        name: str,
        guarantee: int | None = None,
        properties: Properties | None = None,
        *,
        complete: bool = True,
    ) -> None:
        """A replica of a source becomes an input of the operators behind it that have inputs come and go."""
        for stage, kernel in self._joinable(source):
            self._take(stage, kernel.attach(name, guarantee, properties, complete=complete))
        self.flush()

    def detach(self, source: str, name: str) -> None:
        """A replica of a source is an input of the operators behind it no more."""
        for stage, kernel in self._joinable(source):
            self._take(stage, kernel.detach(name))
        for stage in self._steps(source):
            stage.frontiers.pop(name, None)
        self.flush()

    def idle(self, source: str, name: str) -> None:
        """A replica of a source is not waited for until it sends again."""
        for stage, kernel in self._joinable(source):
            self._take(stage, kernel.idle(name))
        self.flush()

    def end(self, source: str, *, closes: bool) -> None:
        """A source is at its end: what has inputs come and go loses it, whatever steps are between.

        Its end is no evidence to these that there is nothing beyond it. Where it ``closes``, it is stable for
        ever to all others, and to those that have no other input.
        """
        self._end(self.entrances[source], closes)
        self._ends = True
        self.flush()
        self._ends = False

    def _end(self, number: int, closes: bool) -> None:
        for consumer, port in self.stages[number].consumers:
            stage = self.stages[consumer]
            if stage.step is not None:
                self._end(consumer, closes)
            elif port is None:
                continue
            elif (kernel := stage.joinable) and (len(kernel.inputs) > 1 or not closes):
                if port in kernel.inputs:
                    self._take(stage, kernel.detach(port))
            elif closes:
                stage.promises.append((port, FOREVER))

    def shows(
        self, source: str, name: str, identities: Words, start: NDArray[np.int64], end: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """How often a replica shows each of some events, where the first operator behind it knows."""
        first = self.stages[self.entrances[source]].consumers
        knowing = self.stages[first[0][0]].shows if len(first) == 1 else None
        if knowing is not None:
            return knowing.shows(name if first[0][1] is None else first[0][1], identities, start, end)
        return np.zeros(len(start), np.int64)

    def parts(self, output: str) -> list[Batch]:
        """What has come out of an output since it was last taken: events, without stables."""
        one = self.output[output]
        events, one.events = one.events, []
        return events

    def taken(self, output: str) -> Batch:
        """The same as one batch."""
        events = self.parts(output)
        return concat(events) if events else self._nothing[output]

    def frontier(self, output: str) -> int:
        """The stable of an output."""
        return self.output[output].frontier

    def refusals(self) -> list[tuple[Node, Refused]]:
        """What was refused since it was last asked for, with the operator that did."""
        refused, self.refused = self.refused, []
        return refused

    def kernels(self) -> Iterator[tuple[str, Node, Kernel]]:
        """Those that have state, with the name by which it is saved."""
        for name, stage in zip(self.names, self.stages, strict=True):
            if stage.kernel is not None:
                yield name, stage.node, stage.kernel

    def saved(self) -> dict[str, State]:
        """All of the state, by operator."""
        return {name: kernel.saved() for name, _, kernel in self.kernels()}

    def reports(self) -> dict[str, Report]:
        """What each kernel holds and has counted."""
        return {name: kernel.report() for name, _, kernel in self.kernels()}

    def _run(self, stage: _Stage) -> None:
        events, stage.events = stage.events, []
        promises, stage.promises = stage.promises, []
        if stage.kernel is not None:
            for name, batch in events:
                self._hand_on(stage, stage.kernel.push(name, batch))
            joinable = stage.joinable
            for name, time in promises:
                if joinable is not None and name not in joinable.inputs:
                    continue  # its source is at its end, and it has left
                if joinable is not None and self._ends and time == FOREVER and len(joinable.inputs) > 1:
                    self._hand_on(stage, joinable.detach(name))
                    continue
                if stage.settles is None:
                    self._hand_on(stage, stage.kernel.advance(name, time))
                else:
                    stage.settles.promise(name, time)
            self._promise(stage, "", self._reached(stage.kernel))
            return
        for name, batch in events:
            if stage.step is None:
                self._give(stage, name, batch)
            else:
                result = stage.step.map(batch)
                self._note(stage, result.refused)
                self._give(stage, name, result.events)
        for name, time in promises:
            self._promise(stage, name, time if stage.step is None else stage.step.reached(time))

    def _take(self, stage: _Stage, result: Result) -> None:
        """Hand on what comes of a call of a kernel; its frontier counts after its events."""
        assert stage.kernel is not None
        self._hand_on(stage, result)
        self._promise(stage, "", self._reached(stage.kernel))

    def _hand_on(self, stage: _Stage, result: Result) -> None:
        self._note(stage, result.refused)
        self._give(stage, "", result.events)

    def _reached(self, kernel: Kernel) -> int:
        """What a kernel promises; it may have joined an input early by events that other shards have not."""
        if self._agreed and hasattr(kernel, "agreed"):
            return min(kernel.frontier, kernel.agreed)
        return kernel.frontier

    def _note(self, stage: _Stage, refused: Iterable[Refused]) -> None:
        self.refused.extend((stage.node, one) for one in refused)

    def _give(self, stage: _Stage, name: str, batch: Batch) -> None:
        if not len(batch):
            return
        for number, port in stage.consumers:
            self.stages[number].events.append((name if port is None else port, batch))
        if stage.outputs:
            events = batch
            if holds(batch.kind, STABLE):
                events = batch.take(batch.kind < STABLE)
            for output in stage.outputs:
                self.output[output].events.append(events)

    def _promise(self, stage: _Stage, name: str, time: int) -> None:
        if time <= stage.frontiers.get(name, BEGINNING):
            return
        stage.frontiers[name] = time
        for number, port in stage.consumers:
            self.stages[number].promises.append((name if port is None else port, time))
        for output in stage.outputs:
            self.output[output].frontier = time

    def _joinable(self, source: str) -> Iterator[tuple[_Stage, Joinable]]:
        """The operators that the replicas of a source are inputs of, where inputs come and go."""
        for stage in self._behind(source):
            if stage.joinable is not None:
                yield stage, stage.joinable

    def _steps(self, source: str) -> Iterator[_Stage]:
        yield self.stages[self.entrances[source]]
        for stage in self._behind(source):
            if stage.step is not None:
                yield stage

    def _behind(self, source: str) -> Iterator[_Stage]:
        """The stages that replicas of a source come to under their names."""
        for stage, (_, port) in self._edges(self.entrances[source]):
            if port is None:
                yield stage

    def _edges(self, number: int) -> Iterator[tuple[_Stage, tuple[int, str | None]]]:
        for edge in self.stages[number].consumers:
            yield self.stages[edge[0]], edge
            if edge[1] is None and self.stages[edge[0]].kernel is None:
                yield from self._edges(edge[0])
