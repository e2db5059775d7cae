"""What goes wrong with inputs: they leave, restart with repeats, join late, and lose events.

Faults take streams and give streams with attach and detach among the elements; `interleave` makes of several
such streams one recording in arrival order.
"""

from collections.abc import Mapping, Sequence
from random import Random
from typing import TypeAlias

from anabranch.model.elements import Adjust, Attach, Control, Detach, Element, Event, Insert, Tagged
from anabranch.model.properties import Case
from anabranch.model.time import FOREVER
from anabranch.testing.presentations import Habits, present

Faulty: TypeAlias = list[Element | Control]


def detach(stream: Sequence[Element], random: Random) -> Faulty:
    """The input says part of its stream and leaves."""
    return [*stream[: random.randint(0, len(stream))], Detach()]


def restart(stream: Sequence[Element], again: Sequence[Element], random: Random) -> Faulty:
    """The input leaves in the middle, comes back, and tells everything again in another presentation."""
    return [*detach(stream, random), Attach(), *again]


def late_join(
    events: Sequence[Event],
    random: Random,
    *,
    guarantee: int,
    case: Case = Case.R4,
    habits: Habits | None = None,
) -> Faulty:
    """The input joins late: it shows every event that ends at or after its guarantee, and some others."""
    known = [event for event in events if event.end >= guarantee or random.random() < 0.3]
    return [Attach(guarantee), *present(known, random, case=case, habits=habits)]


def gap(stream: Sequence[Element], random: Random, *, lost: float = 0.3) -> list[Element]:
    """The input never shows some payloads at some starts; what is left is valid."""
    keys = sorted({_key(element) for element in stream if isinstance(element, Insert)})
    missing = {key for key in keys if random.random() < lost}
    return [
        element
        for element in stream
        if not (isinstance(element, Insert | Adjust) and _key(element) in missing)
    ]


def _key(element: Insert | Adjust) -> tuple[str, int]:
    return str(dict(element.payload)), element.start


def interleave(inputs: Mapping[str, Sequence[Element | Control]], random: Random) -> list[Tagged]:
    """All inputs in one recording, each in its own order."""
    turns = [name for name, stream in inputs.items() for _ in stream]
    random.shuffle(turns)
    steps = {name: iter(stream) for name, stream in inputs.items()}
    return [Tagged(name, next(steps[name])) for name in turns]


def noise(stream: Sequence[Element], random: Random, *, horizon: int = 9) -> list[Element]:
    """The stream with elements strewn in that mostly break a rule, at or next to a boundary."""
    noisy: list[Element] = []
    seen: list[Insert | Adjust] = []
    for element in stream:
        noisy.append(element)
        if isinstance(element, Insert | Adjust):
            seen.append(element)
        while seen and random.random() < 0.4:
            noisy.append(_odd_one(random.choice(seen), random, horizon))
    return noisy


def _odd_one(like: Insert | Adjust, random: Random, horizon: int) -> Element:
    start = random.choice((like.start, random.randint(-1, horizon)))
    end = random.choice((like.end, start, start - 1, FOREVER, random.randint(-1, horizon)))
    old_end = random.choice((like.end, start, FOREVER, random.randint(-1, horizon)))
    if random.random() < 0.5:
        return Insert(like.payload, start, end)
    return Adjust(like.payload, start, old_end, end)
