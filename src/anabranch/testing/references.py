"""Reference relations: what all replicas of one stream mean, drawn at random.

Everything in this package draws from a `random.Random` that is passed in. Seed it, and the result repeats;
let Hypothesis make it (``st.randoms(use_true_random=False)``), and failures shrink.
"""

from dataclasses import dataclass
from random import Random

from anabranch.model.elements import Event
from anabranch.model.properties import Case
from anabranch.model.time import FOREVER


@dataclass(frozen=True, slots=True)
class Shape:
    """How large a reference is and how much its events collide; small numbers collide more."""

    events: int = 5
    payloads: int = 3
    horizon: int = 9
    """Starts lie below this time, finite ends at or below it."""
    unending: float = 0.15
    """The share of events without an end."""
    repeats: float = 0.2
    """The share of events that are true duplicates, where the case allows them."""

    def __post_init__(self) -> None:
        if self.horizon < 2 or self.payloads < 1 or self.events < 0:
            raise ValueError(f"a shape needs a horizon of 2, one payload and no fewer than 0 events: {self}")


def reference(random: Random, *, case: Case = Case.R4, shape: Shape | None = None) -> list[Event]:
    """Events that streams of a case can denote, by start."""
    shape = shape or Shape()
    events: list[Event] = []
    taken: set[object] = set()
    for _ in range(random.randint(0, shape.events)):
        if events and case in (Case.R1, Case.R4) and random.random() < shape.repeats:
            events.append(random.choice(events))
            continue
        start = random.randrange(shape.horizon)
        name = "abcdefghijklmnopqrstuvwxyz"[random.randrange(min(shape.payloads, 26))]
        key = _key(case, name, start)
        if key in taken:
            continue
        if key is not None:
            taken.add(key)
        end = FOREVER if random.random() < shape.unending else random.randint(start + 1, shape.horizon)
        events.append(Event({"value": name}, start, end))
    return sorted(events, key=lambda event: (event.start, str(event.payload), event.end))


def _key(case: Case, name: str, start: int) -> object:
    """What at most one event of the case may have, or None."""
    match case:
        case Case.R0:
            return start
        case Case.R2 | Case.R3:
            return (name, start)
        case Case.R1 | Case.R4:
            return None
