"""How a result differs from the truth, event by event."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from anabranch.cli.demo.readings import Reading


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is wrong with a result."""

    missing: list[Reading]
    """Readings that it does not have."""
    repeated: list[Reading]
    """Readings that it has once more than they happened; as often as that."""
    stale: list[tuple[Reading, int]]
    """Readings that it has, but not with their end; and the end it has."""
    spurious: list[Reading]
    """What it has and never happened."""

    @property
    def exact(self) -> bool:
        """The result is the truth."""
        return not (self.missing or self.repeated or self.stale or self.spurious)

    def counts(self) -> dict[str, int]:
        """How many of each."""
        return {name: len(getattr(self, name)) for name in ("missing", "repeated", "stale", "spurious")}


def judge(truth: Iterable[Reading], result: Iterable[Reading]) -> Verdict:
    """What is wrong with a result, where sensor, value and start tell the readings of the truth apart."""
    ends: dict[tuple[str, float, int], list[int]] = defaultdict(list)
    for one in result:
        ends[one.sensor, one.value, one.start].append(one.end)
    verdict = Verdict([], [], [], [])
    for one in truth:
        shown = ends.pop((one.sensor, one.value, one.start), [])
        if not shown:
            verdict.missing.append(one)
            continue
        if one.end not in shown:
            verdict.stale.append((one, max(shown)))
        verdict.repeated.extend([one] * (len(shown) - 1))
    for (sensor, value, start), others in ends.items():
        verdict.spurious.extend(Reading(start, sensor, value, end) for end in others)
    return verdict
