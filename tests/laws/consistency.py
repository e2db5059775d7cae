"""Compatibility and mutual consistency, checked on every state of a small world.

The world is one payload at one start with at most two events; a rule is right when it agrees with the
definition by futures on all of it.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations_with_replacement, product

from anabranch import FOREVER, Insert, Relation, Stable
from anabranch.oracle.futures import Ends, Piece

START = 1
STABLES = (0, 1, 2, 3, 4, FOREVER)
PIECE = Piece(START, (2, 3, FOREVER), 2)
BAGS: list[Ends] = [bag for size in range(3) for bag in combinations_with_replacement(PIECE.ends, size)]
PREFIXES = list(product(BAGS, STABLES))

Prefix = tuple[Ends, int]


def relation_of(prefix: Prefix) -> Relation:
    """A relation that holds these ends and has reached this stable."""
    ends, stable = prefix
    relation = Relation()
    relation.apply([*(Insert({"value": "a"}, START, end) for end in ends), Stable(stable)])
    return relation


def consistent_inputs(most: int) -> Iterator[Sequence[Prefix]]:
    """All sets of up to this many inputs that can still become one stream."""
    for size in range(1, most + 1):
        for inputs in combinations_with_replacement(PREFIXES, size):
            if PIECE.consistent(inputs):
                yield inputs


def decides_consistency(rule: Callable[[Sequence[Prefix]], bool]) -> None:
    """The rule says of every pair of inputs whether they have a common future."""
    for inputs in combinations_with_replacement(PREFIXES, 2):
        assert rule(inputs) == PIECE.consistent(inputs), inputs


def decides_compatibility(
    rule: Callable[[Prefix, Sequence[Prefix]], bool], *, most_inputs: int = 2, most_events: int = 2
) -> None:
    """The rule says of every output whether it can follow every set of consistent inputs."""
    few = [prefix for prefix in PREFIXES if len(prefix[0]) <= most_events]
    for inputs in consistent_inputs(most_inputs):
        if any(len(bag) > most_events for bag, _ in inputs):
            continue
        greatest = max(stable for _, stable in inputs)
        for output in few:
            expected = output[1] <= greatest and PIECE.compatible(output, inputs)
            assert rule(output, inputs) == expected, (output, inputs)
