"""One random plan beside its meaning, push by push.

The plan, its streams, how they are cut and interleaved, and where the state is dumped and loaded are drawn
from a seed alone. After every push the output is valid, also against its own stables; what is out is what
the plan means of what came in, where that follows from the events alone, and at the end in every case; then
nothing is held.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from laws.operators import OPERATORS, Bag, Drawn, Operator

import anabranch as ab
from anabranch.model.elements import Adjust, Element, Insert, Stable
from anabranch.model.time import FOREVER
from anabranch.oracle.payload import payload_key
from anabranch.oracle.relation import World
from anabranch.plan.stream import Stream
from anabranch.testing.presentations import replicas
from anabranch.testing.references import Shape

SCHEMA = {"value": "string", "n": "int64"}


@dataclass(frozen=True)
class Plan:
    """A plan of a seed."""

    stream: Stream
    sources: tuple[str, ...]
    meaning: Callable[[dict[str, Bag], dict[str, int]], Bag]
    waits: bool
    text: str


def drawn_plan(random: Random, operators: Sequence[Operator] = OPERATORS) -> Plan:
    """Operators over one to three sources, one to four deep."""
    sources = tuple(f"s{n}" for n in range(random.randint(1, 3)))
    streams = {name: ab.source(name, SCHEMA) for name in sources}

    def over(depth: int) -> Plan:
        if depth == 0:
            name = random.choice(sources)
            return Plan(streams[name], sources, lambda bags, frontiers: bags[name], False, name)
        operator = random.choice(operators)
        below = [over(random.randint(0, depth - 1) if n else depth - 1) for n in range(operator.inputs)]
        drawn: Drawn = operator.draw(random, [one.stream for one in below])

        def meaning(bags: dict[str, Bag], frontiers: dict[str, int]) -> Bag:
            # Deep in a plan a frontier is not known by the sources alone: who waits is judged at the end.
            least = min(frontiers.values())
            return drawn.meaning([one.meaning(bags, frontiers) for one in below], [least] * len(below))

        waits = operator.waits or any(one.waits for one in below)
        inside = ", ".join(one.text for one in below)
        return Plan(drawn.stream, sources, meaning, waits, f"{operator.name}({inside})")

    return over(random.randint(1, 4))


def widened(element: Element) -> Element:
    """An element of the generators with a second column."""
    match element:
        case Insert(payload, start, end):
            return Insert(_wide(payload), start, end)
        case Adjust(payload, start, old_end, end):
            return Adjust(_wide(payload), start, old_end, end)
        case stable:
            return stable


def _wide(payload: Any) -> dict[str, Any]:
    return {**payload, "n": ord(payload["value"]) - ord("a")}


def interleaved(random: Random, streams: dict[str, list[Element]]) -> list[tuple[str, list[Element]]]:
    """Pieces of the streams in a random order."""
    left = {name: list(stream) for name, stream in streams.items()}
    pieces = []
    while any(left.values()):
        name = random.choice([name for name, rest in left.items() if rest])
        count = random.choice([1, 1, 1, 2, 5, 50])
        pieces.append((name, left[name][:count]))
        left[name] = left[name][count:]
    return pieces


@dataclass(frozen=True)
class Case:
    """A plan with what is pushed to it."""

    plan: Plan
    pieces: list[tuple[str, list[Element]]]
    dumps: set[int]
    """After which pushes the state is dumped and loaded."""

    @classmethod
    def drawn(cls, seed: int, operators: Sequence[Operator] = OPERATORS) -> "Case":
        """The case of a seed."""
        random = Random(seed)
        plan = drawn_plan(random, operators)
        shape = Shape(events=12, horizon=15, payloads=4) if random.random() < 0.3 else None
        streams = {
            name: [widened(element) for element in replicas(random, 1, shape=shape)[1][0]]
            for name in plan.sources
        }
        used = plan.stream.open().sources
        pieces = interleaved(random, {name: streams[name] for name in plan.sources if name in used})
        return cls(plan, pieces, {n for n in range(len(pieces)) if random.random() < 0.1})


def check(seed: int, operators: Sequence[Operator] = OPERATORS) -> None:
    """Judge the case of a seed."""
    case = Case.drawn(seed, operators)
    plan, job, output = case.plan, case.plan.stream.open(), World()
    worlds = {name: World() for name in job.sources}
    for n, (name, piece) in enumerate(case.pieces):
        for element in piece:
            assert worlds[name].apply(element) is None
        say(output, job.push(name, piece), plan)
        if not plan.waits:
            compare(plan, worlds, output)
        if n in case.dumps:
            job = plan.stream.open(job.dump())
    assert output.stable == FOREVER, f"{plan.text}: all sources are stable for ever, the output is not"
    compare(plan, worlds, output)
    status = job.status()
    assert status.live == 0, f"{plan.text} holds {status.live} at the end"


def fault_of(seed: int) -> str | None:
    """What is wrong with the case of a seed, or None."""
    try:
        check(seed)
    except AssertionError as wrong:
        return str(wrong)
    return None


def recorded(seed: int) -> str:
    """The case of a seed as a person needs it."""
    case = Case.drawn(seed)
    told = [f"{name}: {' '.join(str(element) for element in piece)}" for name, piece in case.pieces]
    return "\n".join([case.plan.text, case.plan.stream.explain(), *told])


def say(output: World, elements: Sequence[Element], plan: Plan) -> None:
    """Let the output say elements; the stable comes last, and nothing breaks a rule."""
    for element in elements:
        broken = output.apply(element)
        assert broken is None, f"{plan.text}: {element} breaks {broken}"
    assert not any(isinstance(element, Stable) for element in elements[:-1]), (
        f"{plan.text}: a stable comes last"
    )


def compare(plan: Plan, worlds: dict[str, World], output: World) -> None:
    """What is out is what the plan means."""
    bags = {
        name: [(tuple(sorted(dict(payload).items())), start, end) for payload, start, end in _rows(world)]
        for name, world in worlds.items()
    }
    frontiers = {name: world.stable for name, world in worlds.items()}
    meant = Counter((payload_key(dict(p)), s, e) for p, s, e in plan.meaning(bags, frontiers))
    assert Counter(output.rows) == meant, f"{plan.text}: {Counter(output.rows)} is out, {meant} is meant"


def _rows(world: World) -> list[Any]:
    """The events of a world with their payloads as they were: texts and whole numbers."""
    return [({name: value for name, (_, value) in key}, start, end) for key, start, end in world.rows]
