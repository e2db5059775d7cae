"""Kills by the hundred, in the middle of micro-batches: of the driver, of Python workers, of executors.

    ./run kills                         a hundred
    ./run kills --count 30 --seed 7
    ./run kills --seed 7 --only 12      the round that kill 12 is of

Every round is a session with three queries (folders to a folder, topics to a topic exactly once, a frame to a
table of Delta's or of Parquet alone), drawn from the seed alone. A kill happens when a query is at a drawn
place of a drawn micro-batch, or up to a quarter of a second later. In the end each sink must hold what the
replicas mean and, row by row, what the same query gives without kills.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from collections import Counter
from itertools import count, cycle
from pathlib import Path

WIDTHS = (4, 12, 19, 7, 5)
HEAD = ("kill", "victim", "how it went on", "verdict", "s", "when: query, micro-batch, how far")


def rounds(seed: int, victims: tuple[str, ...], total: int):
    """Rounds with so many kills together."""
    from survival.rounds import Round

    first = 1
    for number, victim in zip(count(), cycle(victims), strict=False):
        one = Round.drawn(seed, number, victim, first)
        one.kills = one.kills[: total + 1 - first]
        if not one.kills:
            return
        yield one
        first += len(one.kills)


def line_of(kill, wrong: dict[str, str]) -> str:
    """One kill for a person."""
    if kill.struck is None:
        return in_columns(kill.number, kill.victim, "", "missed", "", "its place was not reached")
    verdict = "WRONG" if wrong.keys() & kill.calls.keys() else "right"
    later = f" + {kill.delay * 1000:.0f} ms" if kill.delay else ""
    seconds = f"{kill.seconds:.1f}"
    return in_columns(kill.number, kill.victim, kill.went_on, verdict, seconds, kill.when + later)


def in_columns(*words: object) -> str:
    """Words under each other."""
    return "  ".join([*(f"{word!s:<{width}}" for word, width in zip(words, WIDTHS, strict=False)), words[-1]])


def say(*lines: str) -> None:
    """Print at once."""
    print(*lines, sep="\n", flush=True)  # noqa: T201


def main() -> int:
    """Run rounds until one is wrong or all kills are done."""
    from survival.killing import StuckError
    from survival.rounds import VICTIMS, forget

    from anabranch.testing.broker import Broker

    parser = argparse.ArgumentParser(prog="./run kills", description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--count", type=int, default=100, help="how many kills (default 100)")
    parser.add_argument("--seed", type=int, default=1, help="what everything is drawn from (default 1)")
    parser.add_argument("--only", type=int, metavar="K", help="only the round that kill K is of")
    parser.add_argument("--victim", choices=VICTIMS, help="kill only these (default: all in turn)")
    options = parser.parse_args()
    victims = (options.victim,) if options.victim else VICTIMS
    again = f"./run kills --count {options.count} --seed {options.seed}"
    again += f" --victim {options.victim}" if options.victim else ""
    done, begin = Counter(), time.monotonic()
    place = Path(tempfile.mkdtemp(prefix="kills-"))
    say(f"seed {options.seed}", in_columns(*HEAD))
    with Broker() as broker:
        for one in rounds(options.seed, victims, max(options.count, options.only or 0)):
            if options.only and options.only not in {kill.number for kill in one.kills}:
                continue
            folder, problem, wrong = place / one.name, None, {}
            try:
                wrong = asyncio.run(one.run(folder, broker))
            except StuckError as error:
                problem = str(error)
            for kill in one.kills:
                say(line_of(kill, wrong))
                done[kill.victim] += kill.struck is not None
            if problem or wrong:
                last = max((kill.number for kill in one.kills if kill.struck), default=one.kills[-1].number)
                words = [problem] if problem else [f"{name}: {what}" for name, what in wrong.items()]
                say("", f"{one.master}, files in {folder}", *words, f"again: {again} --only {last}")
                return 1
            forget(folder)
    seconds = time.monotonic() - begin
    kinds = ", ".join(f"{number} of {victim}s" for victim, number in done.items())
    say(f"\n{done.total()} kills ({kinds}) in {seconds:.0f} s: every sink is right")
    place.rmdir()
    return 0


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    sys.exit(main())
