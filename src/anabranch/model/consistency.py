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

from anabranch.model.events import Difference
from anabranch.model.relation import Relation
from anabranch.model.time import BEGINNING, tick_text


def difference(left: Relation, right: Relation) -> Difference | None:
    """The first event that two relations do not have in equal number, if there is one."""
    return left.current().first_difference(right.current())


def _settled_difference(left: Relation, right: Relation, stable: int, since: int) -> Difference | None:
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
        lifetime = f"[{tick_text(d.event.start)}, {tick_text(d.event.end)})"
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
    if not inputs:
        return None
    leader = max(inputs, key=lambda name: inputs[name].frontier)
    for name, relation in inputs.items():
        since = (guarantees or {}).get(name, BEGINNING)
        since = max(since, (guarantees or {}).get(leader, BEGINNING))
        if name == leader or relation.frontier < since:
            continue
        found = _settled_difference(relation, inputs[leader], relation.frontier, since)
        if found:
            return Contradiction(name, leader, relation.frontier, found)
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
        lifetime = f"[{tick_text(event.start)}, {tick_text(event.end)})"
        verb = "holds what" if self.condition == "C2" else "lacks what"
        rest = "does not have" if self.condition == "C2" else "has"
        return (
            f"{self.condition}: up to {tick_text(self.stable)} the output {verb} {self.input!r} {rest}: "
            f"{dict(event.payload)} {lifetime}"
        )


def incompatibility(output: Relation, inputs: Mapping[str, Relation]) -> Incompatibility | None:
    """Why an output cannot follow its mutually consistent inputs, if it cannot."""
    leader = max(inputs, key=lambda name: inputs[name].frontier)
    if output.frontier > inputs[leader].frontier:
        return Incompatibility("C1", leader, output.frontier)
    found = _settled_difference(output, inputs[leader], output.frontier, BEGINNING)
    if not found:
        return None
    return Incompatibility("C2" if found.left > found.right else "C3", leader, output.frontier, found)
