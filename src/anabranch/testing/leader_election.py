"""Leader election over replicas, as collectors of metrics do it: what it lets through, to compare with."""

from collections.abc import Iterable, Mapping
from typing import TypeVar

T = TypeVar("T")

TIMEOUT = 30
"""Seconds of silence after which another replica is followed: the default of Mimir's HA tracker."""


def leader_election(said: Mapping[str, Iterable[tuple[int, T]]], *, timeout: int = TIMEOUT) -> list[T]:
    """What one replica says until it is silent for longer than the timeout; then what the next speaker says.

    ``said`` has for each replica what it says, in its order, each with the time when it says it.
    """
    arrivals = sorted(
        ((now, name, n, what) for name, rows in said.items() for n, (now, what) in enumerate(rows)),
        key=lambda one: one[:3],
    )
    leader, heard, followed = "", -timeout - 1, []
    for now, name, _, what in arrivals:
        if name != leader and now - heard > timeout:
            leader = name
        if name == leader:
            heard = now
            followed.append(what)
    return followed
