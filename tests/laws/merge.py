"""What a logical merge must do, stated over anything that merges, in every case and through every fault."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from random import Random
from typing import Protocol

from anabranch import BEGINNING, FOREVER, Attach, Detach, Event, Relation, Stable, Tagged, text
from anabranch.model.consistency import incompatibility
from anabranch.model.elements import Element
from anabranch.model.properties import Case
from anabranch.oracle.payload import payload_key
from anabranch.oracle.relation import World
from anabranch.testing.faults import detach, gap, interleave, late_join, restart
from anabranch.testing.presentations import replicas


class Subject(Protocol):
    """What is judged."""

    def attach(self, name: str, guarantee: int = BEGINNING) -> list[Element]: ...

    def push(self, name: str, element: Element) -> list[Element]: ...

    def detach(self, name: str) -> list[Element]: ...


FAULTS = ("none", "detach", "restart", "late join", "gap")


@dataclass(frozen=True)
class Scenario:
    """What several inputs say in which order, and what they all mean."""

    case: Case
    fault: str
    events: list[Event]
    recording: list[Tagged]

    @classmethod
    def drawn(cls, random: Random, case: Case, fault: str) -> "Scenario":
        """A random one; one input is whole and stays."""
        events, (whole, second, third) = replicas(random, 3, case=case)
        others = {
            "none": lambda: {"b": second, "c": third},
            "detach": lambda: {"b": detach(second, random), "c": detach(third, random)},
            "restart": lambda: {"b": restart(second, third, random)},
            "late join": lambda: {
                "b": late_join(events, random, guarantee=random.randint(0, 9), case=case),
                "c": detach(third, random),
            },
            "gap": lambda: {"b": gap(second, random), "c": third},
        }[fault]()
        return cls(case, fault, events, interleave({"a": whole, **others}, random))


@dataclass
class Attachment:
    """One attach of one input: its name in the merge, and what it said."""

    name: str
    guarantee: int
    said: list[Element]


def played(subject: Subject, scenario: Scenario) -> Iterator[tuple[list[Element], list[Attachment]]]:
    """What comes out of each element, with all that has gone in; every attach has a name of its own."""
    everyone: list[Attachment] = []
    present: dict[str, Attachment] = {}

    def attach(name: str, guarantee: int) -> list[Element]:
        present[name] = Attachment(f"{name}{len(everyone)}", guarantee, [])
        everyone.append(present[name])
        return subject.attach(present[name].name, guarantee)

    for item in scenario.recording:
        match item.element:
            case Attach(guarantee):
                yield attach(item.input, guarantee), everyone
            case Detach() if item.input in present:
                yield subject.detach(present.pop(item.input).name), everyone
            case Detach():
                continue
            case element:
                out = [] if item.input in present else attach(item.input, BEGINNING)
                present[item.input].said.append(element)
                yield out + subject.push(present[item.input].name, element), everyone


def merges(make: Callable[[Case], Subject], scenario: Scenario) -> None:
    """The output is valid and compatible with the inputs after every element; in the end right and stable."""
    world, said = World(), []
    for out, inputs in played(make(scenario.case), scenario):
        for element in out:
            said.append(element)
            assert world.apply(element) is None, _shown(scenario, said)
            if scenario.fault != "gap":
                assert _incompatibility(said, inputs) is None, _shown(scenario, said)
    assert world.stable == FOREVER, _shown(scenario, said)
    if scenario.fault != "gap":
        meant = Counter((payload_key(e.payload), e.start, e.end) for e in scenario.events)
        assert world.bag() == meant, _shown(scenario, said)
    _is_not_chatty(scenario, said)


def _incompatibility(said: list[Element], inputs: list[Attachment]) -> object:
    """Judged against the inputs that were whole from the beginning, those that have left included."""
    whole = {i.name: _relation(i.said) for i in inputs if i.guarantee == BEGINNING}
    output = _relation(said)
    if not whole or output.frontier > max(relation.frontier for relation in whole.values()):
        return None
    return incompatibility(output, whole)


def _relation(elements: list[Element]) -> Relation:
    relation = Relation()
    relation.apply(elements)
    return relation


def _is_not_chatty(scenario: Scenario, said: list[Element]) -> None:
    """No more of anything comes out than went in, as LM theorem 1 should read."""
    came = Counter(type(item.element).__name__ for item in scenario.recording)
    went = Counter(type(element).__name__ for element in said)
    assert went["Insert"] <= came["Insert"], _shown(scenario, said)
    assert went["Adjust"] <= came["Insert"] + came["Adjust"], _shown(scenario, said)
    assert went["Stable"] <= came["Stable"], _shown(scenario, said)
    stables = [element.time for element in said if isinstance(element, Stable)]
    assert all(a < b for a, b in pairwise(stables)), _shown(scenario, said)


def _shown(scenario: Scenario, said: list[Element]) -> str:
    return f"in\n{text(scenario.recording)}\nout\n{text(said)}"
