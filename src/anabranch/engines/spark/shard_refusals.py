"""What a shard does with rows that are not used: raise, drop, or give them back as they were."""

import numpy as np

from anabranch.engines.spark.assignment import Assignment
from anabranch.kernels.answers import error_of, violations
from anabranch.kernels.kernel import Refused
from anabranch.model.batch import Batch, Kind
from anabranch.model.clock_columns import dial_of
from anabranch.model.op import Op
from anabranch.model.origin import Origin
from anabranch.model.validity import Drop, Quarantine, Raise, Rule
from anabranch.plan.inlet import Inlet
from anabranch.plan.node import Node
from anabranch.progress.channel_rows import ChannelRows
from anabranch.rows.refusal import Refusal, refusal


class ShardRefusals:
    """State: what was refused in a micro-batch, and the changes that the flow is going through with."""

    def __init__(self, assignment: Assignment, number: int) -> None:
        self.assignment, self.number = assignment, number
        self.inlets = {edge.name: edge.inlet for edge in assignment.level.edges}
        self.refused: list[Refusal] = []
        self.dropped = 0
        """Rows that were left out and are not given back."""
        self.pushed: list[tuple[str, ChannelRows]] = []
        """Changes of this pass, by edge."""

    def of_operator(self, node: Node, refused: Refused) -> None:
        """Answer for what an operator leaves out."""
        self._answer(node, _edge_of(node, refused.name), refused)

    def of_step(self, node: Node, origin: Node, refused: Refused) -> None:
        """Answer for what a step leaves out of what an operator gives for a later level."""
        self._answer(node, _edge_of(origin, refused.name), refused)

    def at_gate(self, edge: str, refused: Refused) -> None:
        """Answer for rows that do not pass the gate of an edge."""
        self._answer(self.inlets[edge], edge, refused)

    def taken(self) -> tuple[list[Refusal], int]:
        """What was refused in a micro-batch, and how many rows were dropped."""
        taken, self.refused, self.dropped = (self.refused, self.dropped), [], 0
        return taken

    def _answer(self, node: Node, edge: str | None, refused: Refused) -> None:
        answer = self.assignment.answers.of(node).to(refused.rule)
        if isinstance(answer, Drop):
            self.dropped += len(refused.batch)
            return
        origin = refused.batch.origin
        for row, violation in enumerate(violations("", refused, dial_of(node.clock))):
            if isinstance(answer, Raise):
                raise error_of(violation)
            if edge is None or origin is None:
                one = refusal(violation, f"shard {self.number}", node.clock)
            else:
                change = self._change(edge, refused, origin, row) if self.inlets[edge].of_changes else None
                one = self.assignment.refused_rows_of(edge).refusal(
                    violation, violation.input or "", origin.channel_of(row), change
                )
            if isinstance(answer, Quarantine):
                self.refused.append(one)

    def _change(self, edge: str, refused: Refused, origin: Origin, row: int) -> Batch | None:
        """The change of a table that a row is, or of this pass the one that it comes of."""
        if refused.rule not in (Rule.LATE, Rule.BROKEN_PROPERTY):
            is_change = refused.batch.kind[row] == Kind.INSERT and int(refused.batch.old_end[row]) in set(Op)
            return refused.batch[row : row + 1] if is_change else None
        for batch in (rows.batch() for name, rows in self.pushed if name == edge):
            assert batch.origin is not None, "what is pushed is known by its origin"
            for n in np.flatnonzero(batch.origin.number == origin.number[row]).tolist():
                if batch.origin.channel_of(n) == origin.channel_of(row):
                    return batch[n : n + 1]
        return None


def _edge_of(node: Node, name: str | None) -> str | None:
    """The edge by which rows came that an operator refuses, where there is but one."""
    inputs = [
        one for one, port in zip(node.inputs, node.ports, strict=True) if port in ("", name) or name is None
    ]
    if isinstance(node, Inlet):
        return node.name
    found = {_edge_of(one, None) for one in inputs}
    return found.pop() if len(found) == 1 else None
