"""Who drives the stable of a merge, compiled (LM V-B, and its counterpart for lossy inputs).

A complete input may lead from the moment the output has reached its guarantee. A lossy one is waited for from
the moment it has caught up with the output, until it is idle.
"""

from typing import Any

import numpy as np

from anabranch.kernels.merge.reaction import BY_LATEST
from anabranch.kernels.merge.sides import Sides
from anabranch.model.compiled import inner
from anabranch.model.output_policy import Pace
from anabranch.model.slots import NONE
from anabranch.model.time import BEGINNING, FOREVER

PACES = {Pace.SLOWEST: 0, Pace.FASTEST: 1}
_SLOWEST = PACES[Pace.SLOWEST]


@inner
def join_all(sides: Sides, stable: int) -> None:
    """Let every input join that may."""
    for i in range(len(sides.attached)):
        if not sides.attached[i] or sides.joined[i]:
            continue
        if sides.complete[i]:
            sides.joined[i] = stable >= sides.guarantee[i]
        else:
            sides.joined[i] = not sides.idle[i] and sides.reached[i] >= stable


@inner
def leader(sides: Sides) -> Any:
    """Who decides what is absent: the furthest complete input that has joined, or NONE."""
    found = np.int64(NONE)
    for i in range(len(sides.attached)):
        leads = sides.attached[i] and sides.complete[i] and sides.joined[i]
        if leads and (found == NONE or _is_ahead(sides, sides.reached, i, found)):
            found = np.int64(i)
    return found


@inner
def _is_ahead(sides: Sides, far: Any, i: int, other: Any) -> Any:
    if far[i] != far[other]:
        return far[i] > far[other]
    return sides.attached_as[i] < sides.attached_as[other]


@inner
def _standing(sides: Sides, i: int) -> int:
    """Complete inputs that have joined are followed before others that have, and these before the rest."""
    return 0 if not sides.joined[i] else 2 if sides.complete[i] else 1


@inner
def followed(sides: Sides, far: Any) -> Any:
    """Whom the policy follows: of those who come first the furthest, by one of the columns of the inputs."""
    found, best = np.int64(NONE), 0
    for i in range(len(sides.attached)):
        if not sides.attached[i]:
            continue
        standing = _standing(sides, i)
        if found == NONE or standing > best or (standing == best and _is_ahead(sides, far, i, found)):
            found, best = np.int64(i), standing
    return found


@inner
def leads_by_shown(sides: Sides, i: int, code: int) -> Any:
    """Whether input i is followed where that goes by what inputs have shown."""
    return i == followed(sides, sides.latest if code == BY_LATEST else sides.unfrozen)


@inner
def next_stable(sides: Sides, pace: int) -> Any:
    """The stable that lossy inputs allow while no complete one leads."""
    time = np.int64(BEGINNING)
    found = False
    for i in range(len(sides.attached)):
        if sides.attached[i] and sides.joined[i] and not sides.complete[i]:
            reached = sides.reached[i]
            if not found or (reached < time if pace == _SLOWEST else reached > time):
                time = reached
            found = True
    return time


@inner
def passed_by_all(sides: Sides) -> Any:
    """The stable that every attached input that is not idle has reached."""
    time = np.int64(FOREVER)
    for i in range(len(sides.attached)):
        if sides.attached[i] and not sides.idle[i] and sides.reached[i] < time:
            time = sides.reached[i]
    return time
