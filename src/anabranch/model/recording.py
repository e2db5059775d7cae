"""What several inputs said, each with the relation it denotes.

An input that is not attached explicitly is attached, from the beginning, by its first element. One that is
detached says nothing until it is attached again; then it begins anew, with a relation of its own, because
what it says after a restart repeats or leaves out what it said before.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from anabranch.model.batch import Batch, Kind
from anabranch.model.elements import Attach
from anabranch.model.relation import Relation
from anabranch.model.time import BEGINNING
from anabranch.model.validity import Policy, Quarantine, Raise, Rule, Violation


@dataclass(slots=True)
class Input:
    """State of one input: its relation, the time from which that is whole, and whether it is there."""

    relation: Relation
    guarantee: int = BEGINNING
    attached: bool = True
    elements: int = 0


@dataclass(slots=True)
class Recording:
    """State: the inputs by name. An untagged batch is what the input named ``alone`` said."""

    policy: Policy = field(default_factory=Raise)
    alone: str = "stream"
    inputs: dict[str, Input] = field(default_factory=dict)

    def apply(self, batch: Batch) -> None:
        """Let every input say its part of a batch, in order."""
        for name, part in (batch.split() if batch.input is not None else {self.alone: batch}).items():
            cuts = np.flatnonzero(part.kind >= Kind.ATTACH)
            begin = 0
            for cut in cuts.tolist():
                self._elements(name, part[begin:cut])
                self._control(name, part, cut)
                begin = cut + 1
            self._elements(name, part[begin:])

    def relations(self) -> dict[str, Relation]:
        """The relation of each input, of those that have left too."""
        return {name: an_input.relation for name, an_input in self.inputs.items()}

    def guarantees(self) -> dict[str, int]:
        """The time from which each input's relation is whole."""
        return {name: an_input.guarantee for name, an_input in self.inputs.items()}

    def _elements(self, name: str, part: Batch) -> None:
        if not len(part):
            return
        speaker = self.inputs.setdefault(name, Input(Relation(self._policy_for(name))))
        if not speaker.attached:
            for row in range(len(part)):
                self._violation(Rule.DETACHED_INPUT, name, speaker, part, row)
            return
        speaker.relation.apply(part)
        speaker.elements += len(part)

    def _control(self, name: str, part: Batch, row: int) -> None:
        known = self.inputs.get(name)
        match part.element(row):
            case Attach(guarantee):
                if known and known.attached:
                    self._violation(Rule.ALREADY_ATTACHED, name, known, part, row)
                    return
                fresh = Relation(self._policy_for(name), position=known.relation.position if known else 0)
                self.inputs[name] = Input(fresh, guarantee, elements=known.elements if known else 0)
            case _ if known is None or not known.attached:
                gone = known or Input(Relation(self._policy_for(name)))
                self._violation(Rule.DETACHED_INPUT, name, gone, part, row)
            case _:
                known.attached = False

    def _violation(self, rule: Rule, name: str, speaker: Input, part: Batch, row: int) -> None:
        frontier = speaker.relation.frontier
        self.policy(Violation(rule, speaker.elements + row + 1, part.element(row), frontier, name))

    def _policy_for(self, name: str) -> Policy:
        """The policy, told which input a violation is of."""
        if isinstance(self.policy, Quarantine) and name != self.alone:
            return Quarantine(_naming(name, self.policy))
        return self.policy


def _naming(name: str, policy: Quarantine) -> Callable[[Violation], object]:
    return lambda violation: policy(replace(violation, input=name))
