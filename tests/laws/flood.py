"""Floods: crowded, senseless elements from many inputs that come and go, through `Merger` in every case.

    PYTHONPATH=tests .venv/bin/python -m laws.flood --cases 10000 --seed 7

A flood is drawn from its seed alone. Few payloads and few starts: so events repeat, meet and are corrected
from ends that nobody showed, and a stable that comes alone may have much to say. What comes out is valid and
never behind its own stable; of small floods it is, batch by batch, what the oracle gives for the elements one
by one. Of those that break a rule by their times, or what the case needs, both hear nothing.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from random import Random
from typing import TypeAlias

from laws.merge import POLICIES
from laws.orders import order

from anabranch import BEGINNING, FOREVER, Adjust, Case, Drop, Insert, Merger, Pace, Stable, text
from anabranch.model.elements import Element
from anabranch.model.output_policy import FinalOnly, FollowLeader, OutputPolicy, Quorum
from anabranch.oracle.cleanse import Cleanse
from anabranch.oracle.indexed_merge import IndexedMerge
from anabranch.oracle.merge import Merge, OrderedMerge
from anabranch.oracle.payload import payload_key

ORDERED = (Case.R0, Case.R1, Case.R2)
NAMES = "abcdefghi"


@dataclass(frozen=True)
class Coming:
    """An input is attached."""

    name: str
    complete: bool
    guarantee: int | None


@dataclass(frozen=True)
class Act:
    """An input is detached, idle or made to join."""

    name: str
    what: str


@dataclass(frozen=True)
class Push:
    """An input says elements at once."""

    name: str
    elements: list[Element]


@dataclass(frozen=True)
class Dump:
    """The state is dumped and loaded."""


Turn: TypeAlias = Coming | Act | Push | Dump


@dataclass(frozen=True)
class Flood:
    """What many inputs do in turn, and how it is merged."""

    seed: int
    case: Case
    policy: OutputPolicy
    pace: Pace
    remember: int
    large: bool
    """Too large for the oracle."""
    turns: list[Turn]

    @classmethod
    def drawn(cls, seed: int, *, large: bool = False) -> "Flood":
        """A random one."""
        random = Random(seed)
        case = random.choice((*ORDERED, Case.R3, Case.R3, Case.R4, Case.R4, Case.R4, Case.R4))
        policies = [p for p in POLICIES if not (case in ORDERED and isinstance(p, Quorum | FollowLeader))]
        return cls(
            seed,
            case,
            random.choice(policies),
            random.choice(list(Pace)),
            random.choice((0, 2, 16_384)),
            large,
            _Drawing(random, case, large).turns(),
        )


class _Drawing:
    """The turns of a flood as they are drawn: who is attached, and what each of them has said is stable."""

    def __init__(self, random: Random, case: Case, large: bool) -> None:
        self.random, self.case, self.large = random, case, large
        self.said: dict[str, int] = {}
        self.complete: dict[str, bool] = {}
        self.honest = random.choice((0.0, 0.5, 0.9)) if case is Case.R4 else 1.0
        self.payloads = [{"value": f"v{n}"} for n in range(random.randint(1, 4))]
        self.width = random.randint(1, 6)
        self.lengths = random.choice((2 * self.width, 2 * self.width, 300))
        self.adjusts = 0.03 if case in ORDERED else random.choice((0.1, 0.5, 0.9))
        self.stables = random.choice((0.0, 0.02, 0.15))

    def turns(self) -> list[Turn]:
        turns: list[Turn] = [self._coming() for _ in range(self.random.randint(1, 3))]
        for _ in range(self.random.randint(3, 8) if self.large else self.random.randint(5, 25)):
            turns.append(self._turn())
        return turns

    def _turn(self) -> Turn:
        random, draw = self.random, self.random.random()
        if not self.said or (draw < 0.12 and len(self.said) < len(NAMES)):
            return self._coming()
        name = random.choice(list(self.said))
        if draw < 0.20:
            del self.said[name]
            return Act(name, "detach")
        if draw < 0.23:
            return Act(name, "force_join")
        if draw < 0.26 and not self.complete[name]:
            return Act(name, "idle")
        if draw < 0.32:
            return Dump()
        if draw < 0.45:
            return Push(name, [self._stable(name)])
        size = random.randint(100, 1500) if self.large else random.randint(1, 25)
        return Push(name, self._elements(name, size))

    def _coming(self) -> Coming:
        name = self.random.choice([name for name in NAMES if name not in self.said])
        self.complete[name] = self.random.random() < self.honest
        joins_late = self.complete[name] and self.random.random() < 0.15
        self.said[name] = 0
        return Coming(name, self.complete[name], self.random.randint(0, 8) if joins_late else None)

    def _elements(self, name: str, size: int) -> list[Element]:
        elements: list[Element] = []
        while len(elements) < size:
            if elements and self.random.random() < 0.1:
                elements.append(elements[-1])
            else:
                elements.append(self._element(name))
        if self.case in ORDERED and self.random.random() < 0.8:
            elements.sort(key=lambda e: e.time if isinstance(e, Stable) else e.start)
        return elements

    def _element(self, name: str) -> Element:
        random, said = self.random, self.said[name]
        if random.random() < self.stables:
            return self._stable(name)
        payload = random.choice(self.payloads)
        start = max(0, said + random.randint(-2, self.width))
        if random.random() >= self.adjusts:
            return Insert(payload, start, self._end(start))
        end = start if random.random() < 0.25 else self._end(start)
        return Adjust(payload, start, self._end(start), end)

    def _stable(self, name: str) -> Stable:
        said = self.said[name]
        time = FOREVER if self.random.random() < 0.02 else said + self.random.randint(-1, 3)
        self.said[name] = max(said, min(time, 1_000))
        return Stable(time)

    def _end(self, start: int) -> int:
        return FOREVER if self.random.random() < 0.1 else start + self.random.randint(0, self.lengths)


class Subject:
    """The merger."""

    def __init__(self, flood: Flood) -> None:
        self.merger = Merger(
            flood.case,
            flood.policy,
            pace=flood.pace,
            remember=flood.remember,
            on_invalid=Drop(),
            on_broken=Drop(),
        )

    def said_to(self, turn: Turn) -> list[Element]:
        """What comes out of a turn."""
        match turn:
            case Coming(name, complete, guarantee):
                return list(self.merger.attach(name, guarantee, complete=complete).elements())
            case Act(name, what):
                return list(getattr(self.merger, what)(name).elements())
            case Push(name, elements):
                return self.merger.push(name, elements)
            case Dump():
                self.merger = Merger.load(self.merger.dump(), on_invalid=Drop(), on_broken=Drop())
                return []


class Meaning:
    """The oracle, in which every attach has a name of its own, and which hears what nothing is wrong with."""

    def __init__(self, flood: Flood) -> None:
        self.merge: Merge = (
            OrderedMerge(flood.case, flood.policy)
            if flood.case in ORDERED
            else IndexedMerge(flood.case, order, flood.policy, flood.pace)
        )
        self.case = flood.case
        final = isinstance(flood.policy, FinalOnly) and flood.case not in ORDERED
        self.cleanse = Cleanse(ordered=False, order=order) if final else None
        self.names: dict[str, str] = {}
        self.attaches = 0
        self.stable: dict[str, int] = {}
        self.latest: dict[str, int] = {}

    def said_to(self, turn: Turn) -> list[Element]:
        """What comes out of a turn."""
        match turn:
            case Coming(name, complete, guarantee):
                self.attaches += 1
                self.names[name] = f"{name}{self.attaches}"
                self.stable[name] = self.latest[name] = BEGINNING
                time = BEGINNING if guarantee is None else guarantee
                return self._out(self.merge.attach(self.names[name], time, complete=complete))
            case Act(name, "detach"):
                return self._out(self.merge.detach(self.names.pop(name)))
            case Act(name, what):
                return self._out(getattr(self.merge, what)(self.names[name]))
            case Push(name, elements):
                return self._woken(name) + [e for element in elements for e in self._heard(name, element)]
            case Dump():
                return []

    def _woken(self, name: str) -> list[Element]:
        """An input that says something is not idle, even if all of it is refused."""
        side = self.names[name]
        return self._out(self.merge.push(side, Stable(BEGINNING))) if self.merge.sides[side].idle else []

    def _heard(self, name: str, element: Element) -> list[Element]:
        if self._is_wrong(name, element):
            return []
        return self._out(self.merge.push(self.names[name], element))

    def _is_wrong(self, name: str, element: Element) -> bool:
        """An element breaks a rule by its times, or what the case needs."""
        match element:
            case Stable(time):
                self.stable[name] = max(self.stable[name], time)
                return False
            case Insert(payload, start, end):
                if end <= start or start < self.stable[name]:
                    return True
                if self.case is Case.R3:
                    node = self.merge.nodes.get((start, payload_key(payload)))
                    return node is not None and bool(node.shown(self.names[name]))
            case Adjust(start=start, old_end=old_end, end=end):
                behind = min(old_end, end) < self.stable[name] or self.stable[name] == FOREVER
                if end < start or behind or self.case in ORDERED:
                    return True
        if self.case in ORDERED:
            latest, self.latest[name] = self.latest[name], max(self.latest[name], start)
            return start < latest or (self.case is Case.R0 and start == latest)
        return False

    def _out(self, out: list[Element]) -> list[Element]:
        return out if self.cleanse is None else [e for x in out for e in self.cleanse.push(x)]


class Output:
    """The events that came out, and how far they are stable."""

    def __init__(self) -> None:
        self.events: Counter[tuple[str, int, int]] = Counter()
        self.stable = BEGINNING

    def fault_of(self, element: Element) -> str | None:
        """Why an element may not come now, or None; then it has come."""
        match element:
            case Stable(time):
                if time <= self.stable:
                    return "is not beyond the stable"
                self.stable = time
            case Insert(payload, start, end):
                if not self.stable <= start < end:
                    return f"is behind the stable {self.stable} or empty"
                self.events[payload["value"], start, end] += 1
            case Adjust(payload, start, old_end, end):
                if min(old_end, end) < self.stable or self.stable == FOREVER or end < start:
                    return f"is behind the stable {self.stable} or negative"
                if not self.events[payload["value"], start, old_end]:
                    return "changes an event that is not there"
                self.events[payload["value"], start, old_end] -= 1
                self.events[payload["value"], start, end] += end > start
        return None


def fault_of(flood: Flood) -> str | None:
    """What is wrong with the merge of a flood, or None."""
    # R1 leaves out what differs from the event of its number, which only a merge that counts can tell.
    judged = not flood.large and flood.case is not Case.R1
    subject, meaning, output = Subject(flood), Meaning(flood), Output()
    for number, turn in enumerate(flood.turns):
        ours = subject.said_to(turn)
        theirs = meaning.said_to(turn) if judged else ours
        if ours != theirs:
            return f"turn {number}, {turn}, gives\n{text(ours)}\nand not\n{text(theirs)}"
        for element in ours:
            wrong = output.fault_of(element)
            if wrong is not None:
                return f"turn {number} gives {element}, which {wrong}"
        if output.stable != subject.merger.frontier:
            return (
                f"after turn {number} the frontier is {subject.merger.frontier}, and {output.stable} is out"
            )
    return None


def shrunk(flood: Flood) -> Flood:
    """A flood that fails with as few elements as can be left out one by one; who comes and goes stays."""

    def fails(turns: list[Turn]) -> bool:
        try:
            return fault_of(replace(flood, turns=turns)) is not None
        except Exception:  # a merge that crashes is wrong too
            return True

    turns = list(flood.turns)
    for place in range(len(turns) - 1, -1, -1):
        if isinstance(turns[place], Push | Dump) and fails(turns[:place] + turns[place + 1 :]):
            del turns[place]
    for place, turn in enumerate(turns):
        if not isinstance(turn, Push):
            continue
        elements = list(turn.elements)
        for n in range(len(elements) - 1, -1, -1):
            fewer = Push(turn.name, elements[:n] + elements[n + 1 :])
            if fails([*turns[:place], fewer, *turns[place + 1 :]]):
                turns[place], elements = fewer, fewer.elements
    return replace(flood, turns=turns)


def failures(seeds: Iterable[int], *, large: bool = False) -> list[tuple[int, str]]:
    """The seeds that fail, with what is wrong."""
    found = []
    for seed in seeds:
        try:
            wrong = fault_of(Flood.drawn(seed, large=large))
        except Exception as error:  # whatever it is, the seed tells
            wrong = f"{type(error).__name__}: {error}"
        if wrong is not None:
            found.append((seed, wrong))
    return found


def main() -> int:
    """Let floods come until one fails or all have passed."""
    parser = argparse.ArgumentParser(prog="laws.flood", description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--cases", type=int, default=10_000, help="how many (default 10000)")
    parser.add_argument("--seed", type=int, default=0, help="the first seed (default 0)")
    parser.add_argument("--large", action="store_true", help="large ones, which the oracle does not judge")
    options = parser.parse_args()
    for seed in range(options.seed, options.seed + options.cases):
        for _, wrong in failures([seed], large=options.large):
            print(f"seed {seed}: {Flood.drawn(seed, large=options.large)}\n{wrong}")
            return 1
    print(f"{options.cases} floods from seed {options.seed}: all hold")
    return 0


if __name__ == "__main__":
    sys.exit(main())
