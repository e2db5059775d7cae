"""Random valid streams, and a relation of the plainest kind to judge dialects by."""

from collections import Counter
from collections.abc import Callable, Iterable
from random import Random

from anabranch.model.dialects import DialectError
from anabranch.model.elements import Adjust, Element, Insert, Payload, Stable
from anabranch.model.time import BEGINNING, FOREVER

PAYLOADS = [{"v": "A"}, {"v": 1}, {"v": 1.0, "w": None}, {"v": True}, {"v": "A", "w": 2}]
TABLE = [{"id": 1, "v": "a"}, {"id": 1, "v": "b"}, {"id": 2, "v": "a"}, {"id": 2, "v": "b"}]


def label(payload: Payload) -> tuple:
    return tuple(sorted((name, type(v) is bool, v) for name, v in payload.items() if v is not None))


class Plain:
    """A list of events and a frontier; an element that is not valid trips an assertion."""

    def __init__(self) -> None:
        self.events: list[tuple[tuple, int, int]] = []
        self.frontier = BEGINNING

    def apply(self, element: Element) -> None:
        match element:
            case Insert(payload, start, end):
                assert self.frontier <= start < end, element
                assert self.frontier < FOREVER, element
                self.events.append((label(payload), start, end))
            case Adjust(payload, start, old_end, end):
                assert start <= end, element
                assert self.frontier <= min(old_end, end), element
                assert self.frontier < FOREVER, element
                self.events.remove((label(payload), start, old_end))
                if end > start:
                    self.events.append((label(payload), start, end))
            case Stable(time):
                self.frontier = max(self.frontier, time)

    def with_(self, element: Element) -> "Plain":
        after = Plain()
        after.events, after.frontier = list(self.events), self.frontier
        after.apply(element)
        return after

    def state(self) -> tuple[Counter, int]:
        return Counter(self.events), self.frontier

    def final(self) -> tuple[Counter, int]:
        """What the frontier leaves no doubt about: whole events, and starts of events whose end may move."""
        t = self.frontier
        whole = [e for e in self.events if t == FOREVER or e[2] < t]
        begun = [e[:2] for e in self.events if t < FOREVER and e[1] < t <= e[2]]
        return Counter(whole) + Counter(begun), t


def denoted(elements: Iterable[Element]) -> Plain:
    plain = Plain()
    for element in elements:
        plain.apply(element)
    return plain


Unsayable = Callable[[Plain, Element], bool]


def never(plain: Plain, element: Element) -> bool:
    return False


def stream(
    random: Random,
    *,
    length: int = 20,
    payloads: list[Payload] = PAYLOADS,
    avoid: Unsayable = never,
) -> list[Element]:
    """Inserts with duplicates, adjusts of every kind, and stables; what is to be avoided is not drawn."""
    plain, elements = Plain(), []
    while len(elements) < length and plain.frontier < FOREVER:
        element = _draw(plain, random, payloads)
        if not avoid(plain, element):
            plain.apply(element)
            elements.append(element)
        elif random.random() < 0.05:
            break
    return elements


def _draw(plain: Plain, random: Random, payloads: list[Payload]) -> Element:
    least = max(plain.frontier, 0)
    open_events = [event for event in plain.events if event[2] >= plain.frontier]
    kind = random.choice(["insert", "insert", "again", "adjust", "adjust", "adjust", "stable"])
    if kind == "stable":
        earlier = random.randrange(-1, least + 1)
        return Stable(random.choice([least, least + 1, least + 2, least + 3, earlier, FOREVER]))
    if kind == "adjust" and open_events:
        key, start, old_end = random.choice(open_events)
        end = random.choice([start, old_end, FOREVER, *range(start, start + 9)])
        return Adjust(_payload(key, random, payloads), start, old_end, max(end, start, plain.frontier))
    again = [event for event in open_events if event[1] >= plain.frontier]
    if kind == "again" and again:
        key, start, end = random.choice(again)
        return Insert(_payload(key, random, payloads), start, end)
    start = least + random.randrange(6)
    return Insert(random.choice(payloads), start, random.choice([FOREVER, *range(start + 1, start + 7)]))


def _payload(key: tuple, random: Random, payloads: list[Payload]) -> Payload:
    return random.choice([payload for payload in payloads if label(payload) == key])


def said(translate: Callable, inputs: list, **options) -> tuple[list[list], DialectError | None]:
    """What each input gave rise to before the next was asked for, and what stopped it.

    An error in the n-th input leaves n groups; one at the end leaves one group more than there are inputs.
    """
    groups: list[list] = []

    def feed():
        for item in inputs:
            groups.append([])
            yield item
        groups.append([])

    try:
        for output in translate(feed(), **options):
            groups[-1].append(output)
    except DialectError as error:
        return groups, error
    return groups, None


def reads_back_at_every_element(dialect, elements: list[Element], unsayable: Unsayable, **options) -> None:
    """What is written denotes the same after every element, up to the first that cannot be said."""
    written, error = said(dialect.write, elements, **options)
    read, trouble = said(dialect.read, [item for group in written for item in group], **options)
    assert trouble is None
    read_groups = iter(read)
    plain, back = Plain(), Plain()
    for position, element in enumerate(elements):
        if unsayable(plain, element):
            assert error is not None, elements[: position + 1]
            assert len(written) == position + 1, (error, elements[: position + 1])
            assert error.__notes__
            return
        plain.apply(element)
        for _ in written[position]:
            for said_back in next(read_groups):
                back.apply(said_back)
        assert back.state() == plain.state(), elements[: position + 1]
    assert error is None, error
