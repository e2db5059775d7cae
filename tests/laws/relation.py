"""The laws of a relation, stated over anything that behaves like one."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Protocol

from anabranch.model.elements import Element
from anabranch.model.notation import text
from anabranch.model.relation import Relation
from anabranch.model.validity import Quarantine, Rule
from anabranch.oracle.payload import payload_key
from anabranch.oracle.relation import Row, World


class Subject(Protocol):
    """What is judged: it takes elements, refuses some, and says what it holds."""

    stable: int

    def apply(self, element: Element) -> Rule | None: ...

    def bag(self) -> Counter[Row]: ...


class Compiled:
    """The relation of the model, one element at a time."""

    def __init__(self) -> None:
        self.aside = Quarantine()
        self.relation = Relation(self.aside)

    @property
    def stable(self) -> int:
        return self.relation.frontier

    def apply(self, element: Element) -> Rule | None:
        known = len(self.aside.violations)
        self.relation.apply(element)
        return self.aside.violations[-1].rule if len(self.aside.violations) > known else None

    def bag(self) -> Counter[Row]:
        return bag_of(self.relation)


def bag_of(relation: Relation) -> Counter[Row]:
    """The events of a relation in the oracle's words."""
    bag: Counter[Row] = Counter()
    for event, count in relation.current().rows():
        bag[payload_key(event.payload), event.start, event.end] += count
    return bag


def agrees_with_the_oracle_after_every_element(
    make: Callable[[], Subject], stream: Sequence[Element]
) -> None:
    """Same verdict, same frontier, same events, whatever came before."""
    subject, world = make(), World()
    for position, element in enumerate(stream, 1):
        seen = text(stream[:position])
        assert subject.apply(element) == world.apply(element), seen
        assert subject.stable == world.stable, seen
        assert subject.bag() == world.bag(), seen
