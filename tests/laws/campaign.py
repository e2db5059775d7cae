"""Random merges by the thousand: `Merger` beside the scans of the oracle, in every case, policy and fault.

    ./run campaign                          a million cases
    ./run campaign --cases 5000000 --seed 7

A case is drawn from its seed alone: streams, faults, policy, how elements are cut into batches, where the
state is dumped and loaded. What comes out of every batch must be what the oracle gives for its elements, one
by one; all of it must be valid, and in the end right. On a failure the seed is printed, and the recording,
made as small as it goes, is written to a file that ``anabranch merge`` replays.
"""

import argparse
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

from laws.merge import FAULTS, LOSSES, POLICIES, Scenario

from anabranch import BEGINNING, FOREVER, Attach, Batch, Case, Detach, Merger, Pace, Tagged, text
from anabranch.model.elements import Element
from anabranch.model.identity import identities
from anabranch.model.output_policy import FinalOnly, FollowLeader, OutputPolicy, Quorum
from anabranch.model.rows import rows_of
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

    @classmethod
    def drawn(cls, seed: int) -> "Trial":
        random = Random(seed)
        case = random.choice(list(Case))
        faults = FAULTS if case in ORDERED else FAULTS + LOSSES
        policies = [p for p in POLICIES if not (case in ORDERED and isinstance(p, Quorum | FollowLeader))]
        fault, policy = random.choice(faults), random.choice(policies)
        if case is Case.R1 and fault == "gap":
            fault = "detach"  # a gap breaks the one order of ties that R1 relies on
        shape = Shape(events=20, horizon=25, payloads=5) if random.random() < 0.1 else None
        scenario = Scenario.drawn(random, case, fault, policy, shape)
        pace = Pace.FASTEST if fault == "lossy restart" and random.random() < 0.5 else Pace.SLOWEST
        forced = Case.R4 if scenario.lossy else case
        return cls(seed, scenario, forced, pace, random.choice((0.0, 0.2, 1.0)), random.choice((0.0, 0.05)))

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
    """The merger under the same names, dumped and loaded now and then."""

    def __init__(self, trial: Trial) -> None:
        self.merger = Merger(trial.case, trial.scenario.policy, pace=trial.pace)
        self.lossy = trial.scenario.lossy
        self.random = Random(trial.seed)
        self.dumps = trial.dumps

    def attach(self, name: str, guarantee: int = BEGINNING) -> list[Element]:
        time = None if guarantee == BEGINNING else guarantee
        return list(self.merger.attach(name, time, complete=name not in self.lossy).elements())

    def detach(self, name: str) -> list[Element]:
        return list(self.merger.detach(name).elements())

    def push(self, name: str, elements: list[Element]) -> list[Element]:
        if self.random.random() < self.dumps:
            self.merger = Merger.load(self.merger.dump())
        out = [] if name in self.merger.inputs else self.attach(name)
        return out + self.merger.push(name, elements)


ORDERS: dict[str, tuple[int, ...]] = {}


def order(payload) -> tuple[int, ...]:
    value = payload["value"]
    if value not in ORDERS:
        ORDERS[value] = tuple(identities(rows_of([payload]))[0].tolist())
    return ORDERS[value]


def fault_of(trial: Trial) -> str | None:
    """What is wrong with the merge of a trial, or None."""
    subject, meaning, world = Subject(trial), Meaning(trial), World()
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
        if ours != theirs:
            return f"batch {number} gives\n{text(ours)}\nand not\n{text(theirs)}"
        for element in ours:
            if world.apply(element) is not None:
                return f"batch {number} gives {element}, which is not valid"
    return _end_is_wrong(trial, world)


def _end_is_wrong(trial: Trial, world: World) -> str | None:
    """What is wrong with the end; a gap leaves no one right relation, nor does not waiting for the slow."""
    scenario = trial.scenario
    if scenario.fault == CUT:
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


def command(trial: Trial, path: str) -> str:
    """How the command line replays a trial."""
    policy: OutputPolicy = trial.scenario.policy
    words = ["anabranch merge", path, f"--case {trial.case.name}", f"--policy {policy.name}"]
    if isinstance(policy, Quorum):
        words[-1] += f"={policy.fraction}"
    words += [f"--lag {policy.lag}"] if policy.lag else []
    words += [f"--lossy {','.join(sorted(trial.scenario.lossy))}"] if trial.scenario.lossy else []
    words += [f"--pace {trial.pace.value}"] if trial.pace is not Pace.SLOWEST else []
    return " ".join(words)


def failures(seeds: range) -> list[tuple[int, str]]:
    """The seeds that fail, with what is wrong."""
    found = []
    for seed in seeds:
        try:
            wrong = fault_of(Trial.drawn(seed))
        except Exception as error:  # whatever it is, the seed tells
            wrong = f"{type(error).__name__}: {error}"
        if wrong is not None:
            found.append((seed, wrong))
    return found


def report(seed: int, wrong: str, folder: Path) -> str:
    """A failure as a person needs it; writes the recording."""
    from anabranch import write

    trial = shrunk(Trial.drawn(seed))
    path = folder / f"merge-{seed}.jsonl"
    write(str(path), [Batch.of(trial.scenario.recording)])
    return (
        f"seed {seed}: {trial.case.name}, {trial.scenario.policy}, {trial.scenario.fault}\n{wrong}\n"
        f"smallest recording:\n{text(trial.scenario.recording)}\nreplay: {command(trial, str(path))}"
    )


def main() -> int:
    """Run cases until one fails or all have passed."""
    parser = argparse.ArgumentParser(prog="./run campaign", description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--cases", type=int, default=1_000_000, help="how many (default 1000000)")
    parser.add_argument("--seed", type=int, default=1_000_000, help="the first seed (default 1000000)")
    parser.add_argument("--processes", type=int, default=2, help="how many at once (default 2)")
    options = parser.parse_args()
    chunks = [
        range(first, min(first + 500, options.seed + options.cases))
        for first in range(options.seed, options.seed + options.cases, 500)
    ]
    begin, done = time.monotonic(), 0
    with ProcessPoolExecutor(options.processes) as pool:
        for chunk, found in zip(chunks, pool.map(failures, chunks), strict=True):
            for seed, wrong in found[:1]:
                print(f"\n{report(seed, wrong, Path.cwd())}")
                pool.shutdown(cancel_futures=True)
                return 1
            done += len(chunk)
            rate = done / (time.monotonic() - begin)
            print(f"\r{done} of {options.cases} cases, {rate:.0f} per second", end="", file=sys.stderr)
    print(f"\n{done} cases from seed {options.seed}: all as the oracle has them")
    return 0


if __name__ == "__main__":
    sys.exit(main())
