"""What both engines drive: the flow of a plan, and a gate for each place where rows enter it.

A pass is: rows are admitted, channels promise, the flow runs. What gates and operators refuse in it is kept,
in order, until whoever drives asks for it and answers.
"""

from collections.abc import Mapping

from anabranch.engines.flow import Flow
from anabranch.kernels.kernel import Refused, State
from anabranch.model.batch import Batch
from anabranch.model.properties import Properties
from anabranch.plan.node import Node
from anabranch.plan.source import Source
from anabranch.progress.gate import Gate


class Entrance:
    """The place of a source in a flow, which is emptied before a replica comes, goes or idles."""

    def __init__(self, flow: Flow, source: Source, refused: list[tuple[Node, Refused]]) -> None:
        self.flow, self.source, self.refused = flow, source, refused

    def push(self, batch: Batch, name: str) -> None:
        """Valid events, and stables where they stand among them."""
        self.flow.push(self.source.name, batch, name)

    def advance(self, time: int, name: str) -> None:
        """A replica is stable until a time."""
        self.flow.advance(self.source.name, time, name)

    def begins(self, name: str, time: int | None) -> None:
        """A replica of changes sends, perhaps rows of a snapshot of a time."""
        self.flow.begins(self.source.name, name, time)

    def attach(
        self, name: str, guarantee: int | None, properties: Properties | None, *, complete: bool
    ) -> None:
        """A replica joins."""
        self.flow.flush()
        self.flow.attach(self.source.name, name, guarantee, properties, complete=complete)

    def detach(self, name: str) -> None:
        """A replica leaves."""
        self.flow.flush()
        self.flow.detach(self.source.name, name)

    def idle(self, name: str) -> None:
        """A replica is not waited for until it sends again."""
        self.flow.flush()
        self.flow.idle(self.source.name, name)

    def refuse(self, refused: Refused) -> None:
        """Rows are not used."""
        self.refused.append((self.source, refused))


class Drive:
    """State: a flow, its gates by the names of its sources, and what was refused and not asked for."""

    def __init__(
        self,
        outputs: Mapping[str, Node],
        states: Mapping[str, State] | None = None,
        *,
        shard: int | None = None,
    ) -> None:
        """A plan at its beginning, or with ``states`` as they were `saved`.

        ``shard``: it is one of several that have the rows of the same sources; all are told the same stables,
        attaches and detaches, and the first refuses what is wrong with these.
        """
        self.flow = Flow(outputs, states, agreed=shard is not None)
        self.sources = {node.name: node for node in self.flow.nodes if isinstance(node, Source)}
        self.refused: list[tuple[Node, Refused]] = []
        self.gates = {
            name: Gate(
                node.admission(),
                Entrance(self.flow, node, self.refused),
                keeps_stables=shard is None,
                refuses_controls=not shard,
            )
            for name, node in self.sources.items()
        }
        if states is None:
            for gate in self.gates.values():
                gate.open()
            self.flow.run()
            return
        for name, gate in self.gates.items():
            gate.resume(states[f"gate {name}"])
        self.flow.resume({name: gate.promised for name, gate in self.gates.items()})

    def settle(self) -> None:
        """Let count what channels without an order have shown: the pass ends."""
        for gate in self.gates.values():
            gate.settle()

    def run(self) -> None:
        """Let replicas promise what their channels do, and let all that came in go through the flow."""
        for gate in self.gates.values():
            gate.promise()
        self.flow.run()

    def refusals(self) -> list[tuple[Node, Refused]]:
        """What was refused since it was last asked for, with the source or operator that did."""
        refused = [*self.refused, *self.flow.refusals()]
        self.refused.clear()
        return refused

    def saved(self) -> dict[str, State]:
        """All of the state, by gate and operator."""
        return {f"gate {name}": gate.saved() for name, gate in self.gates.items()} | self.flow.saved()
