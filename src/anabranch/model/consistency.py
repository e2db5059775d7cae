"""Whether prefixes can still become one stream: equivalence, mutual consistency, compatibility.

All three rest on one notion. What a stable L has settled of a relation is its events that start before L,
with every end that is at or after L taken as L (such an end is still open; that the event is there is not).
A valid stream can become exactly those relations that agree with what its last stable has settled. Hence:

- prefixes are equivalent when their relations are equal;
- inputs are mutually consistent when each agrees, up to its own stable, with the one whose stable is the
  greatest;
- an output is compatible with consistent inputs when its stable is not beyond theirs (C1) and it agrees, up
  to its stable, with the input whose stable is greatest: it holds nothing else (C2) and lacks nothing (C3).

For events that occur once this is C1 to C3 of LM III-D, as corrected; for bags it is the multiset rule.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

from anabranch.model.clock import lifetime_text, tick_text
from anabranch.model.events import Difference
from anabranch.model.relation import Relation
from anabranch.model.time import BEGINNING


def difference(left: Relation, right: Relation) -> Difference | None:
    """The first event that two relations do not have in equal number, if there is one."""
    return left.current().first_difference(right.current())


def _settled_difference(left: Relation, right: Relation, stable: int, since: int) -> Difference | None:
    if stable < since:
        return None
    ours, theirs = (relation.current().settled(stable, since=since) for relation in (left, right))
    return ours.first_difference(theirs)


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Two inputs that can no longer become one stream, and the first event that shows it."""

    input: str
    other: str
    stable: int
    difference: Difference

    def __str__(self) -> str:
        d = self.difference
        lifetime = lifetime_text(d.event.start, d.event.end)
        return (
            f"up to {tick_text(self.stable)}, {self.input!r} has {dict(d.event.payload)} {lifetime} "
            f"{d.left} times and {self.other!r} has it {d.right} times"
        )


def contradiction(
    inputs: Mapping[str, Relation], guarantees: Mapping[str, int] | None = None
) -> Contradiction | None:
    """What keeps inputs from being mutually consistent, if anything does.

    An input with a guarantee vouches only for events that end at or after it.
    """
    vouches = guarantees or {}
    for name, other in combinations(sorted(inputs, key=lambda name: inputs[name].frontier), 2):
        stable = inputs[name].frontier
        since = max(vouches.get(name, BEGINNING), vouches.get(other, BEGINNING))
        found = _settled_difference(inputs[name], inputs[other], stable, since)
        if found:
            return Contradiction(name, other, stable, found)
    return None


@dataclass(frozen=True, slots=True)
class Incompatibility:
    """The first reason why an output cannot follow its inputs: the condition of LM III-D that it breaks."""

    condition: str
    input: str
    stable: int
    difference: Difference | None = None

    def __str__(self) -> str:
        if self.difference is None:
            return f"C1: the output is stable to {tick_text(self.stable)}, beyond every input"
        event = self.difference.event
        lifetime = lifetime_text(event.start, event.end)
        verb = "holds what" if self.condition == "C2" else "lacks what"
        rest = "does not have" if self.condition == "C2" else "has"
        return (
            f"{self.condition}: up to {tick_text(self.stable)} the output {verb} {self.input!r} {rest}: "
            f"{dict(event.payload)} {lifetime}"
        )


def incompatibility(
    output: Relation, inputs: Mapping[str, Relation], guarantees: Mapping[str, int] | None = None
) -> Incompatibility | None:
    """Why an output cannot follow its mutually consistent inputs, if it cannot.

    An input with a guarantee vouches only for events that end at or after it.
    """
    ahead = sorted(inputs, key=lambda name: -inputs[name].frontier)
    if not ahead or output.frontier > inputs[ahead[0]].frontier:
        return Incompatibility("C1", ahead[0] if ahead else "nothing", output.frontier)
    for name in ahead:
        stable = min(output.frontier, inputs[name].frontier)
        found = _settled_difference(output, inputs[name], stable, (guarantees or {}).get(name, BEGINNING))
        if found:
            return Incompatibility("C2" if found.left > found.right else "C3", name, stable, found)
    return None
