"""What the sensors of a house truly measured: a reading holds until the next one of its sensor.

Times are seconds since `BEGIN`; in files they are timestamps.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random

SENSORS = ("cellar", "hall", "kitchen", "loft", "porch", "stairs")
BEGIN = datetime(2026, 3, 2, 12, tzinfo=UTC)
LENGTH = 600
SHORTEST, LONGEST = 14, 45


@dataclass(frozen=True, slots=True, order=True)
class Reading:
    """An event: what a sensor measured, from when to when."""

    start: int
    sensor: str
    value: float
    end: int


def readings(random: Random) -> list[Reading]:
    """All readings of all sensors, by start."""
    found = []
    for sensor in SENSORS:
        start, tenths = random.randrange(8), random.randrange(150, 230)
        while start < LENGTH:
            end = start + random.randint(SHORTEST, LONGEST)
            if end > LENGTH - SHORTEST:
                end = LENGTH
            found.append(Reading(start, sensor, tenths / 10, end))
            start, tenths = end, tenths + random.choice((-4, -3, -2, -1, 1, 2, 3, 4))
    return sorted(found)


def clock(seconds: int) -> str:
    """A time as the demo shows it."""
    return f"{BEGIN + timedelta(seconds=seconds):%H:%M:%S}"
