"""What was truly measured. Times are seconds since `BEGIN`; in rows they are timestamps."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random

BEGIN = datetime(2026, 3, 2, 12, tzinfo=UTC)


@dataclass(frozen=True, slots=True, order=True)
class Reading:
    """What a sensor measured at a time."""

    at: int
    sensor: str
    value: float


def readings(random: Random, *, sensors: int, every: int, length: int) -> list[Reading]:
    """A reading of each sensor every few seconds."""
    found = []
    for number in range(sensors):
        tenths = random.randrange(150, 230)
        for at in range(random.randrange(every), length, every):
            found.append(Reading(at, f"s{number:02}", tenths / 10))
            tenths += random.randint(-3, 3)
    return sorted(found)


def moment(seconds: int) -> datetime:
    """Seconds of the scene as a time."""
    return BEGIN + timedelta(seconds=seconds)


def seconds(time: datetime) -> int:
    """A time as seconds of the scene; one without a zone is UTC."""
    return int((time.replace(tzinfo=time.tzinfo or UTC) - BEGIN).total_seconds())


def clock(time: int) -> str:
    """A time as it is shown."""
    return f"{moment(time):%H:%M:%S}"
