"""What several inputs said, each with the relation it denotes.

Inputs are attached and detached as `attendance` has it. One that is attached again begins anew, with a
relation of its own, because what it sends after a restart repeats or leaves out what it sent before.

Where the policy raises, all that is valid in the same batch has been applied.

Positions count all that an input says, attach and detach included, over all its restarts.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from anabranch.model.attendance import Attendance
from anabranch.model.batch import Batch, Kind
from anabranch.model.elements import Attach, Control, Element
from anabranch.model.relation import Relation
from anabranch.model.time import BEGINNING
from anabranch.model.validity import Policy, Quarantine, Raise, Rule, Violation


@dataclass(slots=True)
class Input:
    """State of one input: its relation, the time from which that is complete, and whether it is attached."""

    relation: Relation
    guarantee: int = BEGINNING
    attached: bool = True


@dataclass(slots=True)
class Recording:
    """State: the inputs by name. An untagged batch is what the input named ``alone`` said."""

    policy: Policy = field(default_factory=Raise)
    alone: str = "stream"
    inputs: dict[str, Input] = field(default_factory=dict)
    attendance: Attendance = field(default_factory=Attendance)
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
        rule = self.attendance.send(name)
        sender = self.inputs.setdefault(name, Input(Relation(input=tag)))
        if isinstance(rule, Rule):
            for row in range(len(part)):
                _refuse(rule, sender, part.element(row), policy)
            return
        sender.relation.policy = policy
        change = sender.relation.apply(part)
        if self.heard:
            self.heard(name, change.elements)

    def _control(self, name: str, tag: str | None, element: Element | Control, policy: Policy) -> None:
        attaches = isinstance(element, Attach)
        rule = self.attendance.attach(name) if attaches else self.attendance.detach(name)
        known = self.inputs.setdefault(name, Input(Relation(input=tag)))
        if isinstance(rule, Rule):
            _refuse(rule, known, element, policy)
        else:
            known.relation.position += 1
            if isinstance(element, Attach):
                anew = Relation(input=tag, position=known.relation.position)
                self.inputs[name] = known = Input(anew, element.guarantee)
        known.attached = self.attendance.is_attached(name)


def _refuse(rule: Rule, speaker: Input, element: Element | Control, policy: Policy) -> None:
    relation = speaker.relation
    relation.position += 1
    policy(Violation(rule, relation.position, element, relation.frontier, relation.input))
