"""What several inputs said, each with the relation it denotes.

An input that is not attached explicitly is attached, from the beginning, by its first element. One that is
detached says nothing until it is attached again; then it begins anew, with a relation of its own, because
what it says after a restart repeats or leaves out what it said before.

Where the policy raises, all that is valid in the same batch has been applied.

Positions count all that an input says, attach and detach included, over all its restarts.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from anabranch.model.batch import Batch, Kind
from anabranch.model.elements import Attach, Control, Element
from anabranch.model.relation import Relation
from anabranch.model.time import BEGINNING
from anabranch.model.validity import Policy, Quarantine, Raise, Rule, Violation


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
    heard: Callable[[str, Batch], object] | None = None
    """Told what each input said that was valid."""

    def apply(self, batch: Batch) -> None:
        """Let every input say its part of a batch; the policy hears of violations in the order of arrival."""
        if batch.input is None:
            self._says(self.alone, None, batch, self.policy)
            return
        found: list[tuple[int, Violation]] = []
        for name, rows in batch.rows_by_input().items():
            aside = Quarantine()
            first = self.inputs[name].relation.position + 1 if name in self.inputs else 1
            self._says(name, name, batch.take(rows).untagged(), aside)
            found += [(int(rows[violation.position - first]), violation) for violation in aside.violations]
        for _, violation in sorted(found, key=lambda row: row[0]):
            self.policy(violation)

    def close(self) -> None:
        """End the recording: where nobody spoke, the one input there is said nothing."""
        if not self.inputs:
            self.inputs[self.alone] = Input(Relation())

    def relations(self) -> dict[str, Relation]:
        """The relation of each input, of those that have left too."""
        return {name: an_input.relation for name, an_input in self.inputs.items()}

    def guarantees(self) -> dict[str, int]:
        """The time from which each input's relation is whole."""
        return {name: an_input.guarantee for name, an_input in self.inputs.items()}

    def _says(self, name: str, tag: str | None, part: Batch, policy: Policy) -> None:
        begin = 0
        for cut in np.flatnonzero(part.kind >= Kind.ATTACH).tolist():
            self._elements(name, tag, part[begin:cut], policy)
            self._control(name, tag, part.element(cut), policy)
            begin = cut + 1
        self._elements(name, tag, part[begin:], policy)

    def _elements(self, name: str, tag: str | None, part: Batch, policy: Policy) -> None:
        if not len(part):
            return
        speaker = self.inputs.setdefault(name, Input(Relation(input=tag)))
        if speaker.attached:
            speaker.relation.policy = policy
            change = speaker.relation.apply(part)
            if self.heard:
                self.heard(name, change.elements)
            return
        for row in range(len(part)):
            _refuse(Rule.DETACHED_INPUT, speaker, part.element(row), policy)

    def _control(self, name: str, tag: str | None, element: Element | Control, policy: Policy) -> None:
        known = self.inputs.get(name)
        match element:
            case Attach() if known and known.attached:
                _refuse(Rule.ALREADY_ATTACHED, known, element, policy)
            case Attach(guarantee):
                said = known.relation.position if known else 0
                self.inputs[name] = Input(Relation(input=tag, position=said + 1), guarantee)
            case _ if known is None or not known.attached:
                gone = self.inputs.setdefault(name, Input(Relation(input=tag), attached=False))
                _refuse(Rule.DETACHED_INPUT, gone, element, policy)
            case _:
                known.attached = False
                known.relation.position += 1


def _refuse(rule: Rule, speaker: Input, element: Element | Control, policy: Policy) -> None:
    relation = speaker.relation
    relation.position += 1
    policy(Violation(rule, relation.position, element, relation.frontier, relation.input))
