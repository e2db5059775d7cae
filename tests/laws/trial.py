"""One random merge: `Merger` beside the scans of the oracle, batch by batch.

Streams, faults, policy, columns that do not tell events apart, how elements are cut into batches, where the
state is dumped and loaded, and what is refused on the way are drawn from a seed alone.
"""

from collections import Counter
from dataclasses import dataclass, replace
from random import Random

from laws.merge import COMINGS, FAULTS, LOSSES, POLICIES, Scenario
from laws.orders import order
from laws.refusals import ANSWERS, Refusals

from anabranch import BEGINNING, FOREVER, Attach, Case, Detach, Merger, Pace, Stable, Tagged, text
from anabranch.model.elements import Element
from anabranch.model.output_policy import FinalOnly, FollowLeader, Quorum
from anabranch.oracle.cleanse import Cleanse
from anabranch.oracle.indexed_merge import IndexedMerge
from anabranch.oracle.merge import OrderedMerge
from anabranch.oracle.payload import payload_key
from anabranch.oracle.relation import World
from anabranch.testing.references import Shape

ORDERED = (Case.R0, Case.R1, Case.R2)
CUT = "cut"
"""Elements have been left out of the recording: nothing is known of how it ends."""


@dataclass(frozen=True)
class Trial:
    """One random merge."""

    seed: int
    scenario: Scenario
    case: Case
    """The case that is forced: where inputs are lossy, R4 whatever they are."""
    pace: Pace = Pace.SLOWEST
    cuts: float = 0.2
    dumps: float = 0.1
    identity: bool = False
    """Payloads have a column that does not tell events apart."""
    answer: str | None = None
    """What is done with elements that are refused, which are then strewn in; None: there are none."""

    @classmethod
    def drawn(cls, seed: int, *, plain: bool = False) -> "Trial":
        """The trial of a seed; a plain one has only what a query on Spark can be told."""
        random = Random(seed)
        case = random.choice(list(Case))
        faults = FAULTS if case in ORDERED else FAULTS + LOSSES + (() if plain else COMINGS)
        policies = [p for p in POLICIES if not (case in ORDERED and isinstance(p, Quorum | FollowLeader))]
        fault, policy = random.choice(faults), random.choice(policies)
        if case is Case.R1 and fault == "gap":
            fault = "detach"  # a gap breaks the one order of ties that R1 relies on
        shape = Shape(events=20, horizon=25, payloads=5) if random.random() < 0.1 else None
        scenario = Scenario.drawn(random, case, fault, policy, shape)
        hurries = fault in ("lossy restart", *COMINGS) and random.random() < 0.5
        return cls(
            seed,
            scenario,
            Case.R4 if scenario.lossy else case,
            Pace.FASTEST if hurries else Pace.SLOWEST,
            cuts=random.choice((0.0, 0.2, 1.0)),
            dumps=random.choice((0.0, 0.05)),
            identity=not plain and random.random() < 0.25,
            answer=None if plain else random.choice((None, None, *ANSWERS)),
        )

    @property
    def words(self) -> str:
        """What kind of trial it is."""
        identity = ", told apart by a part of the payload" if self.identity else ""
        answer = f", what is refused: {self.answer}" if self.answer else ""
        return f"{self.case.name}, {self.scenario.policy}, {self.scenario.fault}{identity}{answer}"

    def runs(self) -> list[list[Tagged]]:
        """What one input says without a break, cut at random; attach and detach stand alone."""
        random = Random(self.seed)
        runs: list[list[Tagged]] = []
        for item in self.scenario.recording:
            alone = isinstance(item.element, Attach | Detach)
            goes_on = (
                runs
                and not alone
                and runs[-1][-1].input == item.input
                and not isinstance(runs[-1][-1].element, Attach | Detach)
                and random.random() >= self.cuts
            )
            if goes_on:
                runs[-1].append(item)
            else:
                runs.append([item])
        return runs


class Meaning:
    """The oracle under the names of the recording; every attach is an input of its own there."""

    def __init__(self, trial: Trial) -> None:
        policy = trial.scenario.policy
        ordered = trial.case in ORDERED
        self.merge = (
            OrderedMerge(trial.case, policy)
            if ordered
            else IndexedMerge(trial.case, order, policy, trial.pace)
        )
        final = isinstance(policy, FinalOnly) and not ordered
        self.cleanse = Cleanse(ordered=False, order=order) if final else None
        self.lossy = trial.scenario.lossy
        self.names: dict[str, str] = {}
        self.attaches = 0

    def attach(self, name: str, guarantee: int = BEGINNING) -> list[Element]:
        self.attaches += 1
        self.names[name] = f"{name}{self.attaches}"
        return self._out(self.merge.attach(self.names[name], guarantee, complete=name not in self.lossy))

    def detach(self, name: str) -> list[Element]:
        return self._out(self.merge.detach(self.names.pop(name)))

    def push(self, name: str, elements: list[Element]) -> list[Element]:
        out = [] if name in self.names else self.attach(name)
        return out + [e for x in elements for e in self._out(self.merge.push(self.names[name], x))]

    def _out(self, out: list[Element]) -> list[Element]:
        return out if self.cleanse is None else [e for x in out for e in self.cleanse.push(x)]


class Subject:
    """The merger under the same names, dumped and loaded now and then, and told what it has to refuse.

    Where only a part of a payload tells events apart, the rest says who said it.
    """

    def __init__(self, trial: Trial) -> None:
        self.identity = ["value"] if trial.identity else None
        self.random = Random(trial.seed)
        self.refusals = Refusals(trial.answer, trial.case in ORDERED, self.random)
        self.merger = Merger(
            trial.case,
            trial.scenario.policy,
            pace=trial.pace,
            identity=self.identity,
            **self.refusals.policies(),
        )
        self.lossy = trial.scenario.lossy
        self.dumps = trial.dumps

    def attach(self, name: str, guarantee: int = BEGINNING) -> list[Element]:
        self._restart()
        time = None if guarantee == BEGINNING else guarantee
        self.refusals.begin(name)
        return list(self.merger.attach(name, time, complete=name not in self.lossy).elements())

    def detach(self, name: str) -> list[Element]:
        self._restart()
        return list(self.merger.detach(name).elements())

    def push(self, name: str, elements: list[Element]) -> list[Element]:
        self._restart()
        out = [] if name in self.merger.inputs else self.attach(name)
        return out + self.refusals.push(self, name, [self._said(name, element) for element in elements])

    def _said(self, name: str, element: Element) -> Element:
        if self.identity is None or isinstance(element, Stable):
            return element
        return replace(element, payload={**element.payload, "by": name})

    def _restart(self) -> None:
        if self.random.random() < self.dumps:
            self.load()

    def load(self) -> None:
        """Go on from what was dumped."""
        self.merger = Merger.load(self.merger.dump(), **self.refusals.policies())


def told_apart(element: Element) -> Element:
    """An element without what does not tell events apart."""
    if isinstance(element, Stable):
        return element
    return replace(element, payload={"value": element.payload["value"]})


def fault_of(trial: Trial) -> str | None:
    """What is wrong with the merge of a trial, or None."""
    subject, meaning = Subject(trial), Meaning(trial)
    said, meant = World(), World()
    present: set[str] = set()
    for number, run in enumerate(trial.runs()):
        name = run[0].input
        match run[0].element:
            case Attach(guarantee):
                present.add(name)
                ours, theirs = subject.attach(name, guarantee), meaning.attach(name, guarantee)
            case Detach() if name in present:
                present.remove(name)
                ours, theirs = subject.detach(name), meaning.detach(name)
            case Detach():
                continue
            case _:
                present.add(name)
                elements = [item.element for item in run]
                ours, theirs = subject.push(name, elements), meaning.push(name, elements)
        if [told_apart(element) for element in ours] != theirs:
            return f"batch {number} gives\n{text(ours)}\nand not\n{text(theirs)}"
        for element in ours:
            if said.apply(element) is not None or meant.apply(told_apart(element)) is not None:
                return f"batch {number} gives {element}, which is not valid"
    return _end_is_wrong(trial, meant) or subject.refusals.miscounted(subject.merger)


def _end_is_wrong(trial: Trial, world: World) -> str | None:
    """What is wrong with the end; a gap leaves no one right relation, nor does not waiting for the slow."""
    scenario = trial.scenario
    if scenario.fault == CUT or scenario.fault in COMINGS:
        return None
    if world.stable != FOREVER:
        return "it does not end"
    if scenario.fault == "gap" or trial.pace is Pace.FASTEST:
        return None
    meant = Counter((payload_key(e.payload), e.start, e.end) for e in scenario.events)
    return None if world.bag() == meant else "the relation is not what was meant"


def is_valid(recording: list[Tagged]) -> bool:
    """Every input says a valid stream each time it is attached."""
    worlds: dict[str, World] = {}
    for item in recording:
        match item.element:
            case Attach() | Detach():
                worlds.pop(item.input, None)
            case element:
                if worlds.setdefault(item.input, World()).apply(element) is not None:
                    return False
    return True


def shrunk(trial: Trial) -> Trial:
    """A trial that fails with as few elements as can be left out one by one."""

    def fails(recording: list[Tagged]) -> bool:
        if not is_valid(recording):
            return False
        scenario = replace(trial.scenario, recording=recording, fault=CUT)
        try:
            return fault_of(replace(trial, scenario=scenario)) is not None
        except Exception:  # a merge that crashes is wrong too
            return True

    recording = list(trial.scenario.recording)
    if not fails(recording):
        return trial
    place = len(recording) - 1
    while place >= 0:
        fewer = recording[:place] + recording[place + 1 :]
        if fails(fewer):
            recording = fewer
        place = min(place, len(recording)) - 1
    return replace(trial, scenario=replace(trial.scenario, recording=recording))
