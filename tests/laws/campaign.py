"""Random merges and plans by the thousand beside the oracle, in every case, policy, fault and operator.

    ./run campaign                          a million cases
    ./run campaign --cases 5000000 --seed 7
    ./run campaign --plans --cases 200000   plans alone

A case is drawn from its seed alone. Of eight, five are trials (`laws.trial`): what comes out of every batch
must be what the oracle gives for its elements, one by one; all of it must be valid, and in the end right. One
is a plan (`laws.plans`), one is a flood of senseless elements (`laws.flood`), and one breaks promises to a
merge that may generalise (`laws.generalising`). On a failure the seed is printed, and the recording, made as
small as it goes, is written to a file that ``anabranch merge`` replays; a flood is printed, and a plan.
"""

import argparse
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

from laws import flood, generalising, plans
from laws.trial import Trial, fault_of, shrunk

from anabranch import Batch, Case, Pace, Tagged, text, write
from anabranch.model.output_policy import FollowLeader, Lead, OutputPolicy, Quorum


def command(path: str, case: Case | None, policy: OutputPolicy, *, more: tuple[str, ...] = ()) -> str:
    """How the command line replays a recording."""
    words = ["anabranch merge", path, *([f"--case {case.name}"] if case else []), f"--policy {policy.name}"]
    if isinstance(policy, Quorum):
        words[-1] += f"={policy.fraction}"
    if isinstance(policy, FollowLeader):
        words[-1] += f"={Lead(policy.by).value}"
    words += [f"--lag {policy.lag}"] if policy.lag else []
    return " ".join([*words, *more])


def _more(trial: Trial) -> tuple[str, ...]:
    lossy = ",".join(sorted(trial.scenario.lossy))
    return (
        *([f"--lossy {lossy}"] if lossy else []),
        *([f"--pace {trial.pace.value}"] if trial.pace is not Pace.SLOWEST else []),
    )


def breaks_promises(seed: int) -> bool:
    """A case is one of a merge that may generalise."""
    return seed % 8 == 7


def is_flood(seed: int) -> bool:
    """A case is a flood."""
    return seed % 8 == 6


def is_plan(seed: int) -> bool:
    """A case is a plan."""
    return seed % 8 == 5


def wrong_with(seed: int) -> str | None:
    """What is wrong with a case, or None."""
    if is_plan(seed):
        return plans.fault_of(seed)
    if is_flood(seed):
        return flood.fault_of(flood.Flood.drawn(seed))
    if breaks_promises(seed):
        return generalising.outcome_of(generalising.Schedule.drawn(seed)).wrong
    return fault_of(Trial.drawn(seed))


def failures(seeds: range, judge: Callable[[int], str | None] = wrong_with) -> list[tuple[int, str]]:
    """The seeds that fail, with what is wrong."""
    found = []
    for seed in seeds:
        try:
            wrong = judge(seed)
        except Exception as error:  # whatever it is, the seed tells
            wrong = f"{type(error).__name__}: {error}"
        if wrong is not None:
            found.append((seed, wrong))
    return found


def report(seed: int, wrong: str, folder: Path) -> str:
    """A failure as a person needs it; writes the recording, if there is one."""
    if is_plan(seed):
        return f"seed {seed}: {wrong}\n{plans.recorded(seed)}"
    if is_flood(seed):
        small = flood.shrunk(flood.Flood.drawn(seed))
        turns = "\n".join(map(str, small.turns))
        return f"seed {seed}: {small.case.name}, {small.policy}, a flood\n{wrong}\nsmallest flood:\n{turns}"
    path = folder / f"merge-{seed}.jsonl"
    if breaks_promises(seed):
        schedule = generalising.shrunk(generalising.Schedule.drawn(seed))
        words, recording = schedule.words, schedule.recording
        case = schedule.declared if schedule.forced else None
        facts = ("--on-broken generalise", *(() if case else (f"--declare {_facts(schedule)}",)))
        replay = command(str(path), case, schedule.policy, more=facts)
    else:
        trial = shrunk(Trial.drawn(seed))
        words, recording = trial.words, trial.scenario.recording
        replay = command(str(path), trial.case, trial.scenario.policy, more=_more(trial))
    return "\n".join(
        [
            f"seed {seed}: {words}",
            wrong,
            "smallest recording:",
            _written(path, recording),
            f"replay: {replay}",
        ]
    )


def _facts(schedule: generalising.Schedule) -> str:
    return ",".join(fact.name.lower().replace("_", "-") for fact in schedule.declared.value)


def _written(path: Path, recording: list[Tagged]) -> str:
    write(str(path), [Batch.of(recording)])
    return text(recording)


def main() -> int:
    """Run cases until one fails or all have passed."""
    parser = argparse.ArgumentParser(prog="./run campaign", description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--cases", type=int, default=1_000_000, help="how many (default 1000000)")
    parser.add_argument("--seed", type=int, default=1_000_000, help="the first seed (default 1000000)")
    parser.add_argument("--processes", type=int, default=2, help="how many at once (default 2)")
    parser.add_argument("--plans", action="store_true", help="plans alone; else one case in eight is a plan")
    options = parser.parse_args()
    judge = plans.fault_of if options.plans else wrong_with
    chunks = [
        range(first, min(first + 500, options.seed + options.cases))
        for first in range(options.seed, options.seed + options.cases, 500)
    ]
    begin, done = time.monotonic(), 0
    with ProcessPoolExecutor(options.processes) as pool:
        for chunk, found in zip(chunks, pool.map(partial(failures, judge=judge), chunks), strict=True):
            for seed, wrong in found[:1]:
                told = plans.recorded(seed) if options.plans else report(seed, wrong, Path.cwd())
                print(f"\nseed {seed}: {wrong}\n{told}" if options.plans else f"\n{told}")
                pool.shutdown(cancel_futures=True)
                return 1
            done += len(chunk)
            rate = done / (time.monotonic() - begin)
            print(f"\r{done} of {options.cases} cases, {rate:.0f} per second", end="", file=sys.stderr)
    print(f"\n{done} cases from seed {options.seed}: all as the oracle has them")
    return 0


if __name__ == "__main__":
    sys.exit(main())
