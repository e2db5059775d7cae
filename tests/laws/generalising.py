"""What a merge that generalises owes: whatever is broken wherever, what R4 gives from the beginning.

Inputs declare a case, or it is forced, and their streams are of any case, so that a promise is broken at some
place or at none. In the end the merge has what R4 has that was told the same, but for what was **already
out**: let L be the stable of the output when the merge left the cases in order (the beginning if it never was
in one, the end of time if it never left). Until then it relied on every input to be in order, also on those
that were not and had yet to show it. About a payload and start before L, the ends before L and the number of
events are out and stay. Where these are R4's, all of it is R4's in the end, and from L on all of it is.

Now and then events are told apart by one column, and each input has values of its own in another, which are
carried along: what is out is then adjusted with the payload that it has, whole.

With one input nothing is out that R4 would not have: what breaks a promise comes before a stable passes it.
In R3 neither: it is R4 for inputs that have shown no key twice.
"""

import zlib
from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass, replace
from random import Random

from laws.merge import POLICIES
from laws.orders import order

from anabranch import (
    BEGINNING,
    FOREVER,
    Adjust,
    Attach,
    Case,
    Detach,
    Generalise,
    Insert,
    Merger,
    Stable,
    Tagged,
    text,
)
from anabranch.model.elements import Control, Element, Event
from anabranch.model.output_policy import FinalOnly, FollowLeader, HalfFrozen, OutputPolicy, Quorum
from anabranch.model.properties import Properties
from anabranch.oracle.indexed_merge import IndexedMerge
from anabranch.oracle.relation import Row, World
from anabranch.testing.faults import detach, interleave, late_join, restart
from anabranch.testing.presentations import Habits, present
from anabranch.testing.references import Shape, reference

FAULTS = ("none", "alone", "detach", "restart", "late join")
ORDERED = (Case.R0, Case.R1, Case.R2)
UNENDED = "it does not end"


@dataclass(frozen=True)
class Schedule:
    """What several inputs say in which order, of which case they are said to be, and how they are merged."""

    seed: int
    declared: Case
    forced: bool
    policy: OutputPolicy
    fault: str
    recording: list[Tagged]
    cuts: float
    dumps: float
    promiseless: float
    """The chance that an input promises nothing when it is attached, where what they promise is declared."""
    carries: bool = False
    """Events are told apart by one column, and another one is carried along."""

    @classmethod
    def drawn(cls, seed: int) -> "Schedule":
        random = Random(seed)
        declared = random.choice([case for case in Case if case is not Case.R4])
        waits = declared in ORDERED
        policy = random.choice([p for p in POLICIES if not (waits and isinstance(p, Quorum | FollowLeader))])
        fault = random.choice(FAULTS)
        shape = Shape(events=random.choice((3, 5, 12)), payloads=random.choice((1, 3)), horizon=9)
        events = reference(random, case=random.choice(list(Case)), shape=shape)
        return cls(
            seed,
            declared,
            random.random() < 0.5,
            policy,
            fault,
            interleave(_inputs(random, fault, events), random),
            random.choice((0.0, 0.3, 1.0)),
            random.choice((0.0, 0.1)),
            random.choice((0.0, 0.0, 0.2)),
            random.random() < 0.4,
        )

    @property
    def words(self) -> str:
        """What kind of schedule it is."""
        forced = " forced" if self.forced else ""
        carries = ", another column is carried" if self.carries else ""
        return f"{self.declared.name}{forced}, generalising, {self.policy}, {self.fault}{carries}"

    @property
    def runs(self) -> list[list[Tagged]]:
        """What one input says without a break, cut at random; attach and detach stand alone."""
        random = Random(self.seed)
        runs: list[list[Tagged]] = []
        for item in self.recording:
            before = runs[-1][-1] if runs else None
            alone = isinstance(item.element, Attach | Detach)
            if (
                before is None
                or alone
                or isinstance(before.element, Attach | Detach)
                or before.input != item.input
                or random.random() < self.cuts
            ):
                runs.append([item])
            else:
                runs[-1].append(item)
        return runs


def _inputs(random: Random, fault: str, events: list[Event]) -> dict[str, list]:
    def stream() -> list[Element]:
        habits = Habits(
            disorder=random.choice((0, 1, 4)),
            revisions=random.choice((0.0, 0.2, 0.4)),
            comebacks=random.choice((0.0, 0.1)),
            spurious=random.choice((0.0, 0.3)),
        )
        case = random.choice((Case.R1, Case.R2, Case.R4, Case.R4))
        return present(events, random, case=case, habits=habits)

    match fault:
        case "alone":
            return {"a": stream()}
        case "none":
            return {"a": stream(), "b": stream(), "c": stream()}
        case "detach":
            return {"a": stream(), "b": detach(stream(), random), "c": detach(stream(), random)}
        case "restart":
            return {"a": stream(), "b": restart(stream(), stream(), random)}
        case _:
            joins = [
                late_join(events, random, guarantee=random.randint(0, 9), case=case)
                for case in random.choices((Case.R2, Case.R4), k=2)
            ]
            return {"a": stream(), "b": joins[0], "c": joins[1]}


class Generalising:
    """The merger, dumped and loaded now and then."""

    def __init__(self, schedule: Schedule) -> None:
        forced = schedule.declared if schedule.forced else None
        identity = ["value"] if schedule.carries else None
        self.merger = Merger(forced, schedule.policy, identity=identity, on_broken=Generalise())
        self.carries = schedule.carries
        self.properties: Properties | None = None if schedule.forced else schedule.declared.value
        self.random, self.dumps = Random(schedule.seed), schedule.dumps
        self.promiseless = schedule.promiseless

    def attach(self, name: str, guarantee: int = BEGINNING) -> list[Element]:
        time = None if guarantee == BEGINNING else guarantee
        promises = None if self.random.random() < self.promiseless else self.properties
        return list(self.merger.attach(name, time, promises).elements())

    def detach(self, name: str) -> list[Element]:
        return list(self.merger.detach(name).elements())

    def push(self, name: str, elements: list[Element]) -> list[Element]:
        if self.random.random() < self.dumps:
            self.merger = Merger.load(self.merger.dump(), on_broken=Generalise())
        return self.merger.push(
            name, [_carrying(name, one) for one in elements] if self.carries else elements
        )


class FromTheBeginning:
    """R4, which no promise can be broken to."""

    def __init__(self, schedule: Schedule) -> None:
        policy = schedule.policy
        if isinstance(policy, FinalOnly):
            policy = HalfFrozen(lag=policy.lag)
        self.merge = IndexedMerge(Case.R4, order, policy)
        self.names: dict[str, str] = {}
        self.attaches = 0

    def attach(self, name: str, guarantee: int = BEGINNING) -> list[Element]:
        self.attaches += 1
        self.names[name] = f"{name}{self.attaches}"
        return self.merge.attach(self.names[name], guarantee)

    def detach(self, name: str) -> list[Element]:
        return self.merge.detach(self.names.pop(name))

    def push(self, name: str, elements: list[Element]) -> list[Element]:
        return [e for element in elements for e in self.merge.push(self.names[name], element)]


def _carrying(name: str, element: Element) -> Element:
    """An element of an input with a column of which each input has values of its own."""
    if isinstance(element, Stable):
        return element
    noise = f"{name} {element.start} {zlib.crc32(repr(element.payload).encode()) % 5}"
    return replace(element, payload={**element.payload, "noise": noise})


def _plain(element: Element) -> Element:
    """An element without the column that is carried."""
    if isinstance(element, Stable):
        return element
    return replace(element, payload={k: v for k, v in element.payload.items() if k != "noise"})


@dataclass(frozen=True)
class Outcome:
    """What came of a schedule."""

    wrong: str | None
    """What is wrong, if something is."""
    moved: bool
    relied: bool = False
    """Something was out, by a promise that did not hold, that R4 would not have said."""


def outcome_of(schedule: Schedule) -> Outcome:
    """What a merge makes of a schedule, judged by what R4 makes of it from the beginning."""
    ours, theirs = Generalising(schedule), FromTheBeginning(schedule)
    worlds, said, carried = (World(), World()), [], World()
    there: set[str] = set()
    for run in schedule.runs:
        name = run[0].input
        for subject, world in zip((ours, theirs), worlds, strict=True):
            out: list[Element] = []
            match run[0].element:
                case Attach(guarantee):
                    out = subject.attach(name, guarantee)
                case Detach():
                    out = subject.detach(name) if name in there else []
                case _:
                    out = [] if name in there else subject.attach(name)
                    out += subject.push(name, [item.element for item in run])
            said += out if subject is ours else []
            for element in out:
                if subject is ours and carried.apply(element) is not None:
                    return Outcome(f"{element} names no event that is out in\n{text(said)}", False)
                if world.apply(_plain(element)) is not None:
                    return Outcome(f"{element} is not valid at the end of\n{text(said)}", False)
        there = there - {name} if isinstance(run[0].element, Detach) else there | {name}
    moved = bool(ours.merger.moves)
    if any(world.stable != FOREVER for world in worlds):
        return Outcome(UNENDED, moved)
    return _judged(schedule, _left_order(ours.merger), moved, *(world.bag() for world in worlds))


def _left_order(merger: Merger) -> int:
    """The stable at which a merge left the cases in order."""
    for move in merger.moves:
        if " stays at " in move:
            continue
        before, after = move.split(" at ")[0].split(" to ")
        if Case[before] in ORDERED and Case[after] not in ORDERED:
            words = move.split(" at ")[1].split(":")[0]
            return BEGINNING if words == "-∞" else FOREVER if words == "∞" else int(words)
    return FOREVER if Case[merger.status().case] in ORDERED else BEGINNING


def _judged(schedule: Schedule, left: int, moved: bool, ours: Counter[Row], theirs: Counter[Row]) -> Outcome:
    relied = False
    for key in {row[:2] for row in (*ours, *theirs)}:
        mine, right = _ends(ours, key), _ends(theirs, key)
        already_out = key[1] < left and _frozen(mine, left) != _frozen(right, left)
        if mine != right and (not already_out or schedule.fault == "alone"):
            wrong = f"{key} ends at {sorted(mine.elements())} and not at {sorted(right.elements())}"
            return Outcome(wrong, moved)
        relied = relied or mine != right
    return Outcome(None, moved, relied)


def _ends(bag: Counter[Row], key: tuple[Hashable, int]) -> Counter[int]:
    return Counter({row[2]: count for row, count in bag.items() if row[:2] == key})


def _frozen(ends: Counter[int], stable: int) -> Counter[int]:
    """What a stable leaves no choice about: the ends before it, and how many there are."""
    return Counter(min(end, stable) for end in ends.elements())


def shrunk(schedule: Schedule) -> Schedule:
    """A schedule that fails with as little as can be left out: an event everywhere, or one stable.

    What is left out of all inputs alike leaves them meaning the same.
    """

    def fails(recording: list[Tagged]) -> bool:
        try:
            return outcome_of(replace(schedule, recording=recording)).wrong not in (None, UNENDED)
        except Exception:  # a merge that crashes is wrong too
            return True

    recording = list(schedule.recording)
    place = len(recording) - 1
    while place >= 0:
        match recording[place].element:
            case Insert() | Adjust() as event:
                gone = {n for n, item in enumerate(recording) if _is_of(item.element, event)}
            case Stable(time) if time != FOREVER:
                gone = {place}
            case _:
                gone = set()
        fewer = [item for n, item in enumerate(recording) if n not in gone]
        if gone and fails(fewer):
            recording = fewer
        place = min(place, len(recording)) - 1
    return replace(schedule, recording=recording)


def _is_of(element: Element | Control, event: Insert | Adjust) -> bool:
    return (
        isinstance(element, Insert | Adjust)
        and element.payload == event.payload
        and element.start == event.start
    )
