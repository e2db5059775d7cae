"""What a logical merge must do, stated over anything that merges, in every case and through every fault."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from random import Random
from typing import Protocol

from anabranch import BEGINNING, FOREVER, Attach, Detach, Event, Insert, Relation, Stable, Tagged, text
from anabranch.model.consistency import incompatibility
from anabranch.model.elements import Element
from anabranch.model.output_policy import (
    EveryChange,
    FinalOnly,
    FirstThenFinal,
    FollowLeader,
    HalfFrozen,
    OutputPolicy,
    Quorum,
)
from anabranch.model.properties import Case
from anabranch.oracle.payload import payload_key
from anabranch.oracle.relation import World
from anabranch.testing.faults import detach, gap, interleave, late_join, restart
from anabranch.testing.presentations import Habits, replicas
from anabranch.testing.references import Shape


class Subject(Protocol):
    """What is judged."""

    def attach(self, name: str, guarantee: int = BEGINNING, *, complete: bool = True) -> list[Element]: ...

    def push(self, name: str, element: Element) -> list[Element]: ...

    def detach(self, name: str) -> list[Element]: ...


FAULTS = ("none", "detach", "restart", "late join", "gap")
LOSSES = ("lossy", "lossy whole", "lossy restart", "mixed", "mixed leaves")
COMINGS = ("comings",)
"""Complete and lossy inputs come and go as they like: nothing is known of how it ends."""

POLICIES = (
    FirstThenFinal(),
    EveryChange(),
    HalfFrozen(),
    FinalOnly(),
    FollowLeader(),
    FollowLeader(by="latest"),
    FollowLeader(by="unfrozen"),
    Quorum(fraction=0.6),
    FirstThenFinal(lag=2),
    EveryChange(lag=1),
)


@dataclass(frozen=True)
class Scenario:
    """What several inputs say in which order, and what they all mean."""

    case: Case
    fault: str
    events: list[Event]
    recording: list[Tagged]
    lossy: frozenset[str] = frozenset()
    policy: OutputPolicy = field(default_factory=FirstThenFinal)

    @classmethod
    def drawn(
        cls,
        random: Random,
        case: Case,
        fault: str,
        policy: OutputPolicy | None = None,
        shape: Shape | None = None,
    ) -> "Scenario":
        """A random one; of complete inputs one is whole, and but for 'mixed leaves' it stays."""
        policy = policy or FirstThenFinal()
        if fault in COMINGS:
            return cls._coming_and_going(random, case, policy, shape)
        if fault in LOSSES:
            return cls._with_losses(random, case, fault, policy, shape)
        events, (whole, second, third) = replicas(random, 3, case=case, shape=shape)
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
        return cls(case, fault, events, interleave({"a": whole, **others}, random), policy=policy)

    @classmethod
    def _coming_and_going(
        cls, random: Random, case: Case, policy: OutputPolicy, shape: Shape | None
    ) -> "Scenario":
        """Four inputs, each complete or lossy, each of which stays, leaves, restarts or joins late."""
        events, streams = replicas(random, 8, case=case, shape=shape)
        lossy = frozenset(name for name in "abcd" if random.random() < 0.5)
        inputs = {}
        for name in "abcd":
            stream, again = streams.pop(), streams.pop()
            if name in lossy:
                stream, again = gap(stream, random), gap(again, random)
            inputs[name] = {
                "stays": lambda stream=stream: stream,
                "leaves": lambda stream=stream: detach(stream, random),
                "restarts": lambda stream=stream, again=again: restart(stream, again, random),
                "joins": lambda: late_join(events, random, guarantee=random.randint(0, 9), case=case),
            }[random.choice(("stays", "leaves", "restarts", "stays" if name in lossy else "joins"))]()
        return cls(case, "comings", events, interleave(inputs, random), lossy, policy)

    @classmethod
    def _with_losses(
        cls, random: Random, case: Case, fault: str, policy: OutputPolicy, shape: Shape | None
    ) -> "Scenario":
        """Some inputs never show some events. Without removals, what is lost can be told from what is not."""
        revisions = 0.4 if case is Case.R3 else 0.0
        habits = (
            None
            if fault in ("mixed", "lossy whole")
            else Habits(revisions=revisions, comebacks=0, spurious=0)
        )
        events, (first, second, third) = replicas(random, 3, case=case, habits=habits, shape=shape)
        inputs, lossy = {
            "lossy": lambda: (
                {"a": gap(first, random), "b": gap(second, random), "c": gap(third, random)},
                "abc",
            ),
            "lossy whole": lambda: ({"a": first, "b": second, "c": third}, "abc"),
            "lossy restart": lambda: ({"a": first, "b": restart(gap(second, random), third, random)}, "ab"),
            "mixed": lambda: (
                {"a": first, "b": gap(second, random), "c": detach(gap(third, random), random)},
                "bc",
            ),
            "mixed leaves": lambda: ({"a": detach(first, random), "b": second, "c": third}, "bc"),
        }[fault]()
        if fault == "lossy":
            events = _union(events, inputs.values())
        attached = [Tagged(name, Attach()) for name in inputs]
        return cls(case, fault, events, attached + interleave(inputs, random), frozenset(lossy), policy)


def _union(events: list[Event], streams: Iterable[list[Element]]) -> list[Event]:
    """Those of the events that some stream shows (a gap leaves out a payload and start wholly)."""
    shown = {
        (payload_key(element.payload), element.start)
        for stream in streams
        for element in stream
        if isinstance(element, Insert)
    }
    return [event for event in events if (payload_key(event.payload), event.start) in shown]


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
        return subject.attach(present[name].name, guarantee, complete=name not in scenario.lossy)

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


def merges(make: Callable[[Scenario], Subject], scenario: Scenario) -> None:
    """The output is valid and compatible with the inputs after every element; in the end right and stable."""
    world, said = World(), []
    for out, inputs in played(make(scenario), scenario):
        for element in out:
            said.append(element)
            assert world.apply(element) is None, _shown(scenario, said)
            if scenario.fault != "gap" and not scenario.lossy:
                assert _incompatibility(said, inputs) is None, _shown(scenario, said)
        assert _stable_is_right(scenario, world.stable, inputs), _shown(scenario, said)
    assert world.stable == FOREVER, _shown(scenario, said)
    if scenario.fault != "gap":
        meant = Counter((payload_key(e.payload), e.start, e.end) for e in scenario.events)
        assert world.bag() == meant, _shown(scenario, said)
    _is_not_chatty(scenario, said)


def _stable_is_right(scenario: Scenario, stable: int, inputs: list[Attachment]) -> bool:
    """The output is as stable as the furthest complete input, or the slowest of lossy ones, less the lag."""
    if scenario.fault in ("late join", "lossy restart", "mixed leaves") or isinstance(
        scenario.policy, FinalOnly
    ):
        return True
    reached = [
        max((element.time for element in i.said if isinstance(element, Stable)), default=BEGINNING)
        for i in inputs
        if i.name[0] not in scenario.lossy or scenario.fault in ("lossy", "lossy whole")
    ]
    if scenario.fault in ("lossy", "lossy whole"):
        return stable == scenario.policy.lagging(min(reached))
    return stable == scenario.policy.lagging(max(reached))


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
    """No more of anything comes out than went in, as LM theorem 1 should read; but for chatty policies."""
    stables = [element.time for element in said if isinstance(element, Stable)]
    assert all(a < b for a, b in pairwise(stables)), _shown(scenario, said)
    if isinstance(scenario.policy, EveryChange | FollowLeader) or scenario.lossy:
        return
    came = Counter(type(item.element).__name__ for item in scenario.recording)
    went = Counter(type(element).__name__ for element in said)
    assert went["Insert"] <= came["Insert"], _shown(scenario, said)
    assert went["Adjust"] <= came["Insert"] + came["Adjust"], _shown(scenario, said)
    assert went["Stable"] <= came["Stable"], _shown(scenario, said)
    if isinstance(scenario.policy, FinalOnly):
        assert not went["Adjust"], _shown(scenario, said)


def _shown(scenario: Scenario, said: list[Element]) -> str:
    return f"in\n{text(scenario.recording)}\nout\n{text(said)}"
