"""One random plan beside its meaning, push by push and operator by operator.

The plan, its streams, how they are cut and interleaved, and where the state is dumped and loaded are drawn
from a seed alone. Every operator of the plan is an output. After every push each output is valid, also
against its own stables; it is what the operator means of what its inputs are, it is stable as far as the
operator means of them, and at the end nothing is held.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from random import Random
from string import ascii_lowercase
from typing import Any

from laws.operators import OPERATORS, SCHEMA, Bag, Drawn, Operator

import anabranch as ab
from anabranch.model.elements import Adjust, Element, Insert, Stable
from anabranch.model.time import FOREVER
from anabranch.oracle.payload import payload_key
from anabranch.oracle.relation import World
from anabranch.plan.graph import Graph
from anabranch.plan.source import Source
from anabranch.plan.stream import Stream
from anabranch.testing.presentations import replicas
from anabranch.testing.references import Shape


@dataclass(frozen=True)
class Plan:
    """A plan of a seed: a source, or an operator over plans."""

    stream: Stream
    sources: tuple[str, ...]
    text: str
    drawn: Drawn | None = None
    """The operator; None: the plan is a source, and ``text`` its name."""
    below: tuple["Plan", ...] = ()
    waits: bool = False

    @property
    def operators(self) -> list["Plan"]:
        """Itself last, and all plans below it, but for sources."""
        found = [one for plan in self.below for one in plan.operators]
        return found if self.drawn is None else [*found, self]

    def known(self, worlds: Mapping[str, World]) -> tuple[Bag, int]:
        """What the plan means of its sources, and how far that is stable."""
        if self.drawn is None:
            return bag_of(worlds[self.text]), worlds[self.text].stable
        known = [one.known(worlds) for one in self.below]
        bags, frontiers = [bag for bag, _ in known], [frontier for _, frontier in known]
        return self.drawn.meaning(bags, frontiers), self.drawn.promise(bags, frontiers)


def drawn_plan(random: Random, operators: Sequence[Operator] = OPERATORS) -> Plan:
    """Operators over one to three sources, one to four deep."""
    sources = tuple(f"s{n}" for n in range(random.randint(1, 3)))
    streams = {name: ab.source(name, SCHEMA) for name in sources}

    def over(depth: int) -> Plan:
        if depth == 0:
            name = random.choice(sources)
            return Plan(streams[name], sources, name)
        operator = random.choice(operators)
        below = tuple(over(random.randint(0, depth - 1) if n else depth - 1) for n in range(operator.inputs))
        drawn = operator.draw(random, [one.stream for one in below])
        waits = operator.waits or any(one.waits for one in below)
        inside = ", ".join(one.text for one in below)
        return Plan(drawn.stream, sources, f"{operator.name}({inside})", drawn, below, waits)

    return over(random.randint(1, 4))


ROWS = [
    {name: value for name, value in zip(SCHEMA, row, strict=True) if value is not None}
    for row in product(["a", "b", "c", None], [0, 1, 2, 3, None], [0, 1, 2, None])
]


def drawn_stream(random: Random, **drawn: Any) -> list[Element]:
    """A stream of the generators whose payloads are rows, half of the time other rows for other payloads."""
    rows = {name: drawn_row(random) for name in ascii_lowercase}
    if random.random() < 0.5:
        rows = dict(zip(rows, random.sample(ROWS, len(rows)), strict=True))
    return [_with_row(element, rows) for element in replicas(random, 1, **drawn)[1][0]]


def drawn_row(random: Random) -> dict[str, Any]:
    """Columns of which none follows from another; what is null is left out."""
    return random.choice(ROWS)


def _with_row(element: Element, rows: Mapping[str, dict[str, Any]]) -> Element:
    match element:
        case Insert(payload, start, end):
            return Insert(rows[payload["value"]], start, end)
        case Adjust(payload, start, old_end, end):
            return Adjust(rows[payload["value"]], start, old_end, end)
        case stable:
            return stable


def drawn_shape(random: Random) -> Shape | None:
    """Few events for most cases; for one in two hundred more than tables and leaves begin with."""
    what = random.random()
    if what < 0.005:
        return Shape(events=250, horizon=300, payloads=12)
    return Shape(events=12, horizon=15, payloads=4) if what < 0.3 else None


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
        shape = drawn_shape(random)
        streams = {name: drawn_stream(random, shape=shape) for name in plan.sources}
        used = {node.name for node in Graph([plan.stream.node]).nodes if isinstance(node, Source)}
        pieces = interleaved(random, {name: streams[name] for name in plan.sources if name in used})
        return cls(plan, pieces, {n for n in range(len(pieces)) if random.random() < 0.1})


def check(seed: int, operators: Sequence[Operator] = OPERATORS) -> None:
    """Judge the case of a seed."""
    case = Case.drawn(seed, operators)
    judged = {f"{n}": plan for n, plan in enumerate(case.plan.operators)}
    outputs = {name: plan.stream for name, plan in judged.items()}
    job = ab.open(outputs)
    worlds = {name: World() for name in job.passes.sources} | {name: World() for name in judged}
    names = {id(plan): name for name, plan in judged.items()}
    for n, (name, piece) in enumerate(case.pieces):
        for element in piece:
            assert worlds[name].apply(element) is None
        output = job.push(name, piece)
        changed = {name} | {one for one in judged if output[one]}
        for one, plan in judged.items():
            say(worlds[one], output[one], plan)
            inputs = [below.text if below.drawn is None else names[id(below)] for below in plan.below]
            if not changed.isdisjoint([one, *inputs]):
                judge(plan, [worlds[given] for given in inputs], worlds[one])
        if n in case.dumps:
            job = ab.open(outputs, job.dump())
    assert worlds[names[id(case.plan)]].stable == FOREVER, (
        f"{case.plan.text}: all sources are stable for ever, the output is not"
    )
    status = job.status()
    assert status.live == 0, f"{case.plan.text} holds {status.live} at the end"


def judge(plan: Plan, inputs: Sequence[World], output: World) -> None:
    """Compare the output of an operator with what it means of its inputs."""
    assert plan.drawn is not None
    bags, frontiers = [bag_of(one) for one in inputs], [one.stable for one in inputs]
    promise = plan.drawn.promise(bags, frontiers)
    assert output.stable == promise, (
        f"{plan.text} is stable until {output.stable}, and {promise} is meant, where its inputs are until "
        f"{', '.join(map(str, frontiers))}"
    )
    meant = Counter((payload_key(dict(p)), s, e) for p, s, e in plan.drawn.meaning(bags, frontiers))
    assert plan.drawn.agrees(Counter(output.rows), meant, promise), (
        f"{plan.text}: {Counter(output.rows)} is out, {meant} is meant, where its inputs are stable until "
        f"{', '.join(map(str, frontiers))}"
    )


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


def compare(plan: Plan, worlds: Mapping[str, World], output: World) -> None:
    """What is out is what the plan means of its sources."""
    bag, _ = plan.known(worlds)
    meant = Counter((payload_key(dict(p)), s, e) for p, s, e in bag)
    assert Counter(output.rows) == meant, f"{plan.text}: {Counter(output.rows)} is out, {meant} is meant"


def bag_of(world: World) -> Bag:
    """The events of a world with their payloads as they were."""
    return [(_values(key), start, end) for key, start, end in world.rows]


@cache
def _values(key: Any) -> tuple[tuple[str, Any], ...]:
    """A payload of texts and whole numbers."""
    return tuple(sorted((name, value) for name, (_, value) in key))
