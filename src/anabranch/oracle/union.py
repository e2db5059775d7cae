"""The events of several relations, each as often as in all of them together."""

from collections.abc import Iterable

from anabranch.oracle.relation import Row, World


def united(inputs: Iterable[World]) -> list[Row]:
    """All events of all inputs."""
    return [row for world in inputs for row in world.rows]


def frontier(inputs: Iterable[World]) -> int:
    """What all inputs have promised."""
    return min(world.stable for world in inputs)
