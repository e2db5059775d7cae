"""Output policies as numbers that compiled loops compare."""

from typing import NamedTuple

from anabranch.kernels.merge.sides import Sides
from anabranch.model.output_policy import (
    EveryChange,
    FinalOnly,
    FirstThenFinal,
    FollowLeader,
    HalfFrozen,
    Lead,
    OutputPolicy,
    Quorum,
)

FIRST, EVERY, WAIT, QUORUM, BY_STABLE, BY_LATEST, BY_UNFROZEN = range(7)

_REACTIONS: dict[type[OutputPolicy], int] = {
    FirstThenFinal: FIRST,
    EveryChange: EVERY,
    HalfFrozen: WAIT,
    FinalOnly: WAIT,
    Quorum: QUORUM,
}
_LEADS = {Lead.STABLE: BY_STABLE, Lead.LATEST: BY_LATEST, Lead.UNFROZEN: BY_UNFROZEN}


class Reaction(NamedTuple):
    """What a policy does at an insert or an adjust; how many inputs make a quorum."""

    code: int
    quorum: int = 1

    @classmethod
    def of(cls, policy: OutputPolicy, sides: Sides) -> "Reaction":
        """What a policy does while these inputs are attached."""
        quorum = policy.votes(int(sides.attached.sum())) if isinstance(policy, Quorum) else 1
        if isinstance(policy, FollowLeader):
            return cls(_LEADS[Lead(policy.by)])
        return cls(_REACTIONS[type(policy)], quorum)
