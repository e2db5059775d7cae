"""What several inputs said, each with the relation it denotes.

An input that is not attached explicitly is attached, from the beginning, by its first element. One that is
detached says nothing until it is attached again; then it begins anew, with a relation of its own, because
what it says after a restart repeats or leaves out what it said before.

Positions count all that an input says, attach and detach included, over all its restarts.
"""

from dataclasses import dataclass, field

import numpy as np

from anabranch.model.batch import Batch, Kind
from anabranch.model.elements import Attach, Control, Element
from anabranch.model.relation import Relation
from anabranch.model.time import BEGINNING
from anabranch.model.validity import Policy, Raise, Rule, Violation


@dataclass(slots=True)
class Input:
    """State of one input: its relation, the time from which that is whole, and whether it is there."""

    relation: Relation
    guarantee: int = BEGINNING
    attached: bool = True


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
        speaker = self.inputs.setdefault(name, self._fresh(name, part))
        if speaker.attached:
            speaker.relation.apply(part)
            return
        for row in range(len(part)):
            self._violation(Rule.DETACHED_INPUT, speaker, part.element(row))

    def _control(self, name: str, part: Batch, row: int) -> None:
        known = self.inputs.get(name)
        match part.element(row):
            case Attach() as attach if known and known.attached:
                self._violation(Rule.ALREADY_ATTACHED, known, attach)
            case Attach(guarantee):
                self.inputs[name] = self._fresh(name, part, guarantee)
                self.inputs[name].relation.position = (known.relation.position if known else 0) + 1
            case detach if known is None or not known.attached:
                self._violation(Rule.DETACHED_INPUT, known or self._fresh(name, part), detach)
            case _:
                known.attached = False
                known.relation.position += 1

    def _fresh(self, name: str, part: Batch, guarantee: int = BEGINNING) -> Input:
        return Input(Relation(self.policy, None if part.input is None else name), guarantee)

    def _violation(self, rule: Rule, speaker: Input, element: Element | Control) -> None:
        relation = speaker.relation
        relation.position += 1
        self.policy(Violation(rule, relation.position, element, relation.frontier, relation.input))
