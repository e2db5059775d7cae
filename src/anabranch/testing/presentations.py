"""Physically different streams that mean the same relation.

A presentation tells each event as a little story (it appears, perhaps with a wrong end, is corrected, perhaps
vanishes and comes back), adds stories of events that never were, shuffles the stories together, and puts in
stables wherever what follows allows them, at the very edge of what it allows as often as not, and sometimes
behind one that was there before.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from random import Random

from anabranch.model.elements import Adjust, Element, Event, Insert, Payload, Stable, sync
from anabranch.model.properties import Case
from anabranch.model.time import BEGINNING, FOREVER
from anabranch.testing.references import Shape, reference


@dataclass(frozen=True, slots=True)
class Habits:
    """How a physical stream strays from the shortest one; shares and chances between 0 and 1."""

    disorder: int = 4
    """How far, in ticks, an element may come after later ones."""
    revisions: float = 0.4
    """The chance that an event is told with another end first."""
    comebacks: float = 0.1
    """The chance that an event is removed and inserted again."""
    spurious: float = 0.3
    """How many events that never were, per event."""
    stables: float = 0.4
    """The chance of a stable after an element."""
    closed: bool = True
    """The stream ends with stable(FOREVER)."""


def present(
    events: Sequence[Event], random: Random, *, case: Case = Case.R4, habits: Habits | None = None
) -> list[Element]:
    """One stream of a case that denotes these events."""
    habits = habits or Habits()
    match case:
        case Case.R0 | Case.R1:
            data = _in_order(events)
        case Case.R2:
            data = _in_order(random.sample(events, len(events)))
        case Case.R3 | Case.R4:
            data = _shuffled(list(_stories(events, random, case, habits)), random, habits)
    return list(_with_stables(data, random, habits))


def replicas(
    random: Random,
    count: int = 2,
    *,
    case: Case = Case.R4,
    shape: Shape | None = None,
    habits: Habits | None = None,
) -> tuple[list[Event], list[list[Element]]]:
    """A reference and this many presentations of it."""
    events = reference(random, case=case, shape=shape)
    return events, [present(events, random, case=case, habits=habits) for _ in range(count)]


def _in_order(events: Sequence[Event]) -> list[Insert | Adjust]:
    return [Insert(e.payload, e.start, e.end) for e in sorted(events, key=lambda event: event.start)]


def _stories(
    events: Sequence[Event], random: Random, case: Case, habits: Habits
) -> Iterator[list[Insert | Adjust]]:
    horizon = max((e.end for e in events if e.end != FOREVER), default=9)
    for event in events:
        yield list(_story(event, random, habits, horizon))
    taken = {(str(event.payload), event.start) for event in events}
    for event in events:
        if random.random() < habits.spurious:
            ghost = Event(event.payload, random.randrange(horizon), horizon + 1)
            if case is Case.R4 or (str(ghost.payload), ghost.start) not in taken:
                taken.add((str(ghost.payload), ghost.start))
                yield [*_story(ghost, random, habits, horizon), _removal(ghost)]


def _story(event: Event, random: Random, habits: Habits, horizon: int) -> Iterator[Insert | Adjust]:
    payload, start = event.payload, event.start
    if random.random() < habits.comebacks:
        first = _any_end(start, horizon, random)
        yield Insert(payload, start, first)
        yield Adjust(payload, start, first, start)
    end = event.end
    told = []
    while random.random() < habits.revisions:
        told.append(_any_end(start, horizon, random))
    yield Insert(payload, start, [*told, end][0])
    yield from _corrections(payload, start, [*told, end])


def _corrections(payload: Payload, start: int, ends: list[int]) -> Iterator[Adjust]:
    for old_end, end in pairwise(ends):
        if old_end != end:
            yield Adjust(payload, start, old_end, end)


def _removal(event: Event) -> Adjust:
    return Adjust(event.payload, event.start, event.end, event.start)


def _any_end(start: int, horizon: int, random: Random) -> int:
    return FOREVER if random.random() < 0.2 else random.randint(start + 1, max(horizon, start) + 1)


def _shuffled(stories: list[list[Insert | Adjust]], random: Random, habits: Habits) -> list[Insert | Adjust]:
    """The stories' elements roughly by sync time, each story in its own order."""
    keyed = []
    for number, story in enumerate(stories):
        delay = BEGINNING
        for step, element in enumerate(story):
            delay = max(delay, sync(element) + random.randint(0, habits.disorder))
            keyed.append((delay, random.random(), number, step, element))
    keyed.sort(key=lambda row: row[:2])
    turns = [number for _, _, number, _, _ in keyed]
    steps = [iter(story) for story in stories]
    return [next(steps[number]) for number in turns]


def _with_stables(data: list[Insert | Adjust], random: Random, habits: Habits) -> Iterator[Element]:
    room = list(accumulate((sync(element) for element in reversed(data)), min, initial=FOREVER))[::-1]
    earliest = min(0, *room)
    for i, element in enumerate(data):
        yield element
        latest = room[i + 1]
        while random.random() < habits.stables:
            if latest == FOREVER:
                latest = max((e.end for e in data if e.end != FOREVER), default=0) + 1
            yield Stable(latest if random.random() < 0.5 else random.randint(earliest, latest))
    if habits.closed:
        yield Stable(FOREVER)
