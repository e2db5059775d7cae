"""Every case of merge in this checkout and in another one: CPU seconds in turn, and their ratio.

    git worktree add /tmp/before COMMIT
    ./run bench merge_beside /tmp/before
    ./run bench merge_beside /tmp/before --cases R0 R3 --rounds 5

Each checkout has a process of its own, with the packages of this one, and merges the streams of its
`./run bench merge cases`. They run one after the other, never at once, and who begins changes with every
round; a ratio is the median of those of the rounds. Above 1 this checkout is the slower one.
"""

import argparse
import gc
import os
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from statistics import median

from merge import InOrder, in_turn, merged, replicas

from anabranch import Case
from anabranch.testing.workload import Workload

EVENTS = {100: 300_000, 1000: 100_000}
"""Events of each replica, by the bytes of their payloads."""
MERGES = 8
"""How often R0 to R2 merge them in a round: once takes 20 ms."""


def main() -> None:
    """Measure, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], prog="./run bench merge_beside")
    parser.add_argument("other", type=Path, help="the folder of the other checkout")
    parser.add_argument("--cases", nargs="+", default=[case.name for case in Case], help="such as R0 R3")
    parser.add_argument("--rounds", type=int, default=9, help="how often each is run (default %(default)s)")
    given = parser.parse_args()
    here = Path(__file__).parents[1]
    workers = [_worker(folder) for folder in (here, given.other.resolve())]
    print(f"{'':<20}{'bytes':>6}{'here, s':>10}{'there, s':>10}{'ratio':>8}   median of {given.rounds}")
    for case in given.cases:
        for order in ("in order", "20 % late")[: 2 if case in ("R3", "R4") else 1]:
            for width in EVENTS:
                what = f"{case} {width} {order}"
                spent = [_seconds(workers, what, number) for number in range(given.rounds)]
                ratio = median(mine / other for mine, other in spent)
                mine, other = (median(column) for column in zip(*spent, strict=True))
                name = f"{case}, {order}"
                print(f"{name:<20}{width:>6}{mine:>10.4f}{other:>10.4f}{ratio:>8.3f}", flush=True)
    for worker in workers:
        worker.communicate()


def _worker(checkout: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-P", __file__, "--worker"],
        env=os.environ | {"PYTHONPATH": f"{checkout / 'src'}{os.pathsep}{checkout / 'benchmarks'}"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def _seconds(workers: list[subprocess.Popen[str]], what: str, number: int) -> tuple[float, float]:
    """CPU seconds of both workers for the same work; the second begins in every other round."""
    found = {}
    for worker in workers[:: -1 if number % 2 else 1]:
        assert worker.stdin is not None
        assert worker.stdout is not None
        worker.stdin.write(f"{what}\n")
        worker.stdin.flush()
        found[worker.pid] = float(worker.stdout.readline())
    mine, other = (found[worker.pid] for worker in workers)
    return mine, other


def work() -> None:
    """Be one of the two: merge what is asked for, print the CPU seconds; the first time does not count."""
    asked = ""
    for line in sys.stdin:
        case, width, order = line.strip().split(" ", 2)
        if line != asked:
            asked = line
            kind = partial(InOrder, disorder=0.0) if order == "in order" else Workload
            streams = replicas(kind(events=EVENTS[int(width)], payload_bytes=int(width)))
            turns = in_turn(streams)
            merged(Case[case], turns, len(streams))
        gc.collect()
        times = MERGES if case in ("R0", "R1", "R2") else 1
        begin = time.process_time()
        for _ in range(times):
            merged(Case[case], turns, len(streams))
        print((time.process_time() - begin) / times, flush=True)


if __name__ == "__main__":
    work() if sys.argv[1:] == ["--worker"] else main()
