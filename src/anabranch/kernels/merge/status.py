"""What a merge is doing: who leads, who lags, who disagrees, and what is held."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Protocol, runtime_checkable

from anabranch.model.clock import Clock, length_text, lifetime_text, tick_text
from anabranch.model.elements import Payload
from anabranch.model.time import BEGINNING, FOREVER


@dataclass(frozen=True, slots=True)
class Disagreement:
    """An input showed something else than the output about an event when both were final about it.

    Ends are None where there is no event. ``since`` is the stable at which this was noticed.
    """

    input: str
    payload: Payload
    start: int
    shown: int | None
    given: int | None
    since: int

    def __str__(self) -> str:
        return self.text()

    def text(self, clock: Clock = Clock.TICKS) -> str:
        """The disagreement in words, with its times on a clock."""
        shown, given = self._event(self.shown, clock), self._event(self.given, clock)
        since = tick_text(self.since, clock)
        return f"{self.input} has {shown} where the output has {given} (noticed at {since})"

    def _event(self, end: int | None, clock: Clock) -> str:
        if end is None:
            return "none"
        return f"{dict(self.payload)} {lifetime_text(self.start, end, clock)}"


@runtime_checkable
class Comparing(Protocol):
    """A kernel that compares its inputs, and can say how each is doing."""

    def status(self) -> "Status":
        """What it is doing."""
        ...

    def snapshots(self) -> Mapping[str, tuple[int, int]]:
        """Of inputs that began with a snapshot its time, and how many rows begin there."""
        ...


@dataclass(frozen=True, slots=True)
class InputStatus:
    """One input, over all its attaches."""

    attached: bool
    complete: bool
    joined: bool
    """It may drive the stable of the output."""
    idle: bool
    guarantee: int
    frontier: int
    """The greatest stable it has said."""
    lag: int | None
    """How far its frontier is behind the furthest input's, in ticks; None where either is not a time."""
    elements: int
    led: int
    """Elements of the output that it brought about."""
    share: float
    """Of all elements of the output."""
    disagreements: int
    holes: int
    """Events of the output that it never showed though it is past them (lossy inputs)."""
    filled: int
    """Holes of others in which it was the first to show the event."""
    late: int
    refused: int
    """Elements left out because they were invalid or broke a property."""
    removed: int
    """Events that it shows and the output lacks, because the complete input that led never showed them."""
    holds: bool
    """What is final waits for it: it is lossy, and others are further."""


@dataclass(frozen=True, slots=True)
class Status:
    """A merge at one moment."""

    case: str
    reason: str
    policy: str
    frontier: int
    inputs: Mapping[str, InputStatus]
    live: int
    """Events that can still change (in R4, payloads and starts that have such events)."""
    remembered: int
    """Events that are final and wait to be compared with slower inputs."""
    unchecked: int
    """Events that were forgotten before every input had passed them."""
    bytes: int
    inserts: int
    adjusts: int
    stables: int
    disagreements: tuple[Disagreement, ...]
    """The first ones, as examples; each input counts all of its own."""
    moves: tuple[str, ...]
    """Changes to a more general case, and declarations that were dropped in the same one, and why."""
    stuck: str | None
    """Why no input can drive the output any more, and the way out."""

    @property
    def chattiness(self) -> float:
        """Adjusts per insert of the output."""
        return self.adjusts / self.inserts if self.inserts else 0.0

    def as_dict(self) -> dict[str, Any]:
        """The status as plain values."""
        return asdict(self) | {"chattiness": self.chattiness}

    def __str__(self) -> str:
        return self.text()

    def text(self, clock: Clock = Clock.TICKS) -> str:
        """The status as a table, with its times on a clock."""
        head = (
            f"{self.reason}\npolicy {self.policy}, stable until {tick_text(self.frontier, clock)}\n"
            f"out {self.inserts} inserts, {self.adjusts} adjusts, {self.stables} stables; "
            f"{self.live} live events, {self.remembered} remembered, {self.bytes} bytes"
        )
        rows: list[tuple[str, ...]] = [
            (
                "input",
                "stable",
                "lag",
                "elements",
                "led",
                "disagrees",
                "holes",
                "filled",
                "late",
                "refused",
                "removed",
                "",
            )
        ]
        rows += [(name, *_row(one, clock)) for name, one in self.inputs.items()]
        widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
        table = "\n".join(
            "  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip() for row in rows
        )
        removed = removals({name: one.removed for name, one in self.inputs.items()})
        tail = [
            f"{words}; inputs that may lose rows are lossy (complete=False, --lossy)" for words in removed
        ]
        tail += [one.text(clock) for one in self.disagreements[:5]] + list(self.moves) + [self.stuck or ""]
        return "\n".join([head, table, *(line for line in tail if line)])


def _row(one: InputStatus, clock: Clock) -> tuple[str, ...]:
    words = [] if one.complete else ["lossy"]
    if not one.attached:
        words.append("left")
    elif one.idle:
        words.append("idle")
    elif not one.joined:
        words.append("not joined")
    elif one.holds:
        words.append("holds what is final")
    return (
        tick_text(one.frontier, clock),
        "" if one.lag is None else length_text(one.lag, clock),
        str(one.elements),
        f"{one.share:.0%}",
        str(one.disagreements),
        str(one.holes),
        str(one.filled),
        str(one.late),
        str(one.refused),
        str(one.removed),
        ", ".join(words),
    )


def removals(removed: Mapping[str, int]) -> list[str]:
    """Which events of which inputs the output lacks because another did, in words.

    >>> removals({"north": 662, "south": 0})
    ['662 events of north that south does not have were removed']
    """
    others = {name: [other for other in removed if other != name] for name in removed}
    return [
        f"{count:,} {'events' if count > 1 else 'event'} of {name} that "
        f"{others[name][0] if len(others[name]) == 1 else 'the one that led'} does not have "
        f"{'were' if count > 1 else 'was'} removed"
        for name, count in removed.items()
        if count > 0
    ]


def lag_of(frontier: int, furthest: int) -> int | None:
    """How far one frontier is behind another, where both are times."""
    if frontier == furthest:
        return 0
    return None if frontier == BEGINNING or furthest == FOREVER else furthest - frontier
