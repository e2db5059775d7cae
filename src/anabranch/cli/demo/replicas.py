"""What two replicas say about the readings: rows in an order, with guesses and corrections, of their own.

East hears every sensor at once. It leaves the end of a reading open and says it when the next reading comes,
now and then rounded up to ten seconds first. It dies half way and comes back with a guarantee: it repeats
what it had said in full, and of what it missed it has only what ends at or after the guarantee.

West guesses that a reading lasts twenty seconds, and twenty more as long as it does. Three of its sensors
are on a slow link, a minute behind.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from random import Random

from anabranch.cli.demo.readings import LENGTH, SENSORS, Reading
from anabranch.model.time import FOREVER

DIES, RETURNS, GUARANTEE = 260, 420, 380
REPEATS = 200
"""East repeats what ended in so many seconds before it died."""
GUESS = 20
SLOW = SENSORS[3:]
STEP = 10
"""Seconds between stables."""


@dataclass(frozen=True, slots=True)
class Row:
    """What a replica says, and when; ``end`` is the new one where ``old_end`` is set."""

    said: int
    kind: str
    start: int
    sensor: str | None = None
    value: float | None = None
    end: int | None = None
    old_end: int | None = None

    @property
    def key(self) -> tuple[str | None, float | None, int]:
        """Which reading it is about."""
        return self.sensor, self.value, self.start


def east(random: Random, truth: list[Reading]) -> list[Row]:
    """What east says, until it dies and after it came back."""
    heard = _heard(
        random, [(reading, list(_open_ended(random, reading))) for reading in truth], (1, 3), (1, 3)
    )
    rows = [row for rows in heard.values() for row in rows if row.said < DIES]
    rows += _stables(15, STEP, DIES)
    rows += [Row(RETURNS, "detach", GUARANTEE), Row(RETURNS, "attach", GUARANTEE)]
    for reading, own in heard.items():
        if own[-1].said < DIES and reading.end >= DIES - REPEATS:
            rows += [replace(row, said=RETURNS + 1) for row in own]
        elif reading.end >= GUARANTEE:
            rows += _caught_up(own)
    rows += [*_stables(15, RETURNS + STEP, LENGTH + 20), Row(LENGTH + 20, "stable", FOREVER)]
    return sorted(rows, key=lambda row: row.said)


def west(random: Random, truth: list[Reading]) -> list[Row]:
    """What west says."""
    heard = _heard(random, [(reading, list(_guessed(reading))) for reading in truth], (2, 6), (50, 60))
    rows = [row for rows in heard.values() for row in rows]
    rows += [*_stables(70, STEP, LENGTH + 80), Row(LENGTH + 80, "stable", FOREVER)]
    return sorted(rows, key=lambda row: row.said)


def _open_ended(random: Random, reading: Reading) -> Iterator[Row]:
    """Rows whose ``said`` is when they could be known."""
    yield _insert(reading, FOREVER)
    rounded = -(-reading.end // 10) * 10
    if rounded != reading.end and random.random() < 0.25:
        yield _adjust(reading, reading.end, FOREVER, rounded)
        yield _adjust(reading, reading.end + 8, rounded, reading.end)
    else:
        yield _adjust(reading, reading.end, FOREVER, reading.end)


def _guessed(reading: Reading) -> Iterator[Row]:
    guess = reading.start + GUESS
    yield _insert(reading, guess)
    while guess < reading.end:
        yield _adjust(reading, guess, guess, guess + GUESS)
        guess += GUESS
    if guess != reading.end:
        yield _adjust(reading, reading.end, guess, reading.end)


def _insert(reading: Reading, end: int) -> Row:
    return Row(reading.start, "insert", reading.start, reading.sensor, reading.value, end)


def _adjust(reading: Reading, known: int, old_end: int, end: int) -> Row:
    return Row(known, "adjust", reading.start, reading.sensor, reading.value, end, old_end)


def _heard(
    random: Random,
    known: list[tuple[Reading, list[Row]]],
    quick: tuple[int, int],
    slow: tuple[int, int],
) -> dict[Reading, list[Row]]:
    """The rows of each reading when they have come over the link of its sensor, which keeps their order."""
    said: dict[Reading, list[Row]] = {reading: [] for reading, _ in known}
    for sensor in SENSORS:
        last = 0
        rows = [(row, reading) for reading, rows in known if reading.sensor == sensor for row in rows]
        for row, reading in sorted(rows, key=lambda one: one[0].said):
            last = max(last, row.said + random.randint(*(slow if sensor in SLOW else quick)))
            said[reading].append(replace(row, said=last))
    return said


def _stables(lag: int, begin: int, end: int) -> Iterator[Row]:
    for said in range(begin, end, STEP):
        if said > lag:
            yield Row(said, "stable", said - lag)


def _caught_up(own: list[Row]) -> list[Row]:
    """A reading as east has it at its return, and what it says about it from then on."""
    past = [row for row in own if row.said < RETURNS]
    rest = [replace(row, said=max(row.said, RETURNS + 3)) for row in own[len(past) :]]
    if not past:
        return rest
    return [replace(past[0], said=RETURNS + 2, end=past[-1].end), *rest]
