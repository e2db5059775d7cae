"""What a merge says about itself: why it runs as it does, and how it is doing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from anabranch.kernels.merge.choice import choose
from anabranch.kernels.merge.nodes import ABSENT, LENGTH, SKIPPED
from anabranch.kernels.merge.ordered import Ordered
from anabranch.kernels.merge.r3 import R3
from anabranch.kernels.merge.r4 import R4
from anabranch.kernels.merge.status import Disagreement, InputStatus, Status, lag_of
from anabranch.model.clock import tick_text
from anabranch.model.output_policy import OutputPolicy, Pace
from anabranch.model.properties import Properties
from anabranch.model.time import BEGINNING

if TYPE_CHECKING:
    from anabranch.kernels.merge.merge import Merge

EXAMPLES = 100
"""Disagreements that are kept in full."""


def explanation(merge: Merge) -> str:
    """Which case merges the inputs and why, under which policy, and what tells events apart."""
    choice = merge.choice or choose(merge.declared_now(), merge.policy, merge.forced)
    by = "all payload columns" if merge.identity is None else ", ".join(merge.identity)
    lines = [
        choice.reason,
        f"policy {merge.policy}: {_first_line(merge.policy)}",
        f"events are told apart by {by}",
    ]
    for name, side in merge.declared_now().items():
        kind = "complete" if side.complete else "lossy"
        lines.append(f"{name}: {kind}, declared {side.properties or Properties()}")
    if any(not side.complete for side in merge.declared_now().values()):
        lines.append(
            f"lossy inputs: the stable follows the {merge.pace.value} while no complete one has joined"
        )
    return "\n".join(lines + merge.moves)


def status_of(merge: Merge) -> Status:
    """What the merge is doing."""
    choice = merge.choice or choose(merge.declared_now(), merge.policy, merge.forced)
    for name in merge.inputs:
        count_conduct(merge, name)
    queue = (
        (0, 0, 0) if merge.kernel is None or isinstance(merge.kernel, Ordered) else merge.kernel.nodes.queue
    )
    held = [one for one in (merge.kernel, merge.cleanse, merge.trail) if one is not None]
    inserts, adjusts, stables = merge.counts.tolist()
    return Status(
        case=choice.case.name,
        reason=choice.reason,
        policy=str(merge.policy),
        frontier=merge.frontier,
        inputs=_inputs(merge),
        live=sum(one.live for one in (merge.kernel, merge.cleanse) if one is not None),
        remembered=int(queue[LENGTH]),
        unchecked=int(queue[SKIPPED]),
        bytes=sum(one.nbytes for one in held),
        inserts=inserts,
        adjusts=adjusts,
        stables=stables,
        disagreements=tuple(merge.disagreements),
        moves=tuple(merge.moves),
        stuck=_stuck(merge),
    )


def count_conduct(merge: Merge, name: str) -> None:
    """Add what the kernel has counted for an input to its tally."""
    number, tally = merge.inputs[name].number, merge.tallies[name]
    for what in ("disagreements", "holes", "filled", "late", "removed"):
        column = getattr(merge.sides, what)
        setattr(tally, what, getattr(tally, what) + int(column[number]))
        column[number] = 0


def note_disagreements(merge: Merge, kernel: R3 | R4) -> None:
    """Keep the first disagreements that a kernel has noted."""
    names = {one.number: name for name, one in merge.inputs.items()}
    rows = kernel.notes.row[: kernel.notes.rows[0]][: EXAMPLES - len(merge.disagreements)]
    kernel.notes.rows[0] = 0
    payloads = kernel.noted
    for (number, _, start, shown, given), payload in zip(rows.tolist(), payloads, strict=False):
        merge.disagreements.append(
            Disagreement(
                names.get(number, "?"),
                {key: value for key, value in payload.items() if value is not None},
                start,
                None if shown == ABSENT else shown,
                None if given == ABSENT else given,
                kernel.stable,
            )
        )


def _inputs(merge: Merge) -> Mapping[str, InputStatus]:
    frontiers = {
        name: merge.inputs[name].frontier if name in merge.inputs else tally.frontier
        for name, tally in merge.tallies.items()
    }
    furthest = max(frontiers.values(), default=BEGINNING)
    total = max(int(merge.counts.sum()), 1)
    holding = _holding(merge)
    found = {}
    for name, tally in merge.tallies.items():
        one = merge.inputs.get(name)
        number = one.number if one else 0
        found[name] = InputStatus(
            attached=one is not None,
            complete=merge.declared[name].complete,
            joined=one is not None and bool(merge.sides.joined[number]),
            idle=one is not None and bool(merge.sides.idle[number]),
            guarantee=int(merge.sides.guarantee[number]) if one else BEGINNING,
            frontier=frontiers[name],
            lag=lag_of(frontiers[name], furthest),
            elements=tally.elements,
            led=tally.led,
            share=tally.led / total,
            disagreements=tally.disagreements,
            holes=tally.holes,
            filled=tally.filled,
            late=tally.late,
            refused=tally.refused,
            removed=tally.removed,
            holds=name in holding,
        )
    return found


def _holding(merge: Merge) -> set[str]:
    """The inputs that others would be further without: the slowest that are lossy, while these decide."""
    joined = {name: one for name, one in merge.inputs.items() if merge.sides.joined[one.number]}
    if merge.pace is not Pace.SLOWEST or any(merge.sides.complete[one.number] for one in joined.values()):
        return set()
    frontiers = {name: one.frontier for name, one in joined.items()}
    slowest = min(frontiers.values(), default=BEGINNING)
    furthest = max((one.frontier for one in merge.inputs.values()), default=BEGINNING)
    return {name for name, time in frontiers.items() if time == slowest < furthest}


def _stuck(merge: Merge) -> str | None:
    waiting = [name for name, one in merge.inputs.items() if not merge.sides.joined[one.number]]
    if not waiting or len(waiting) < len(merge.inputs):
        return None
    complete = [name for name in waiting if merge.sides.complete[merge.inputs[name].number]]
    if not complete:
        return None
    first = min(complete, key=lambda name: merge.sides.guarantee[merge.inputs[name].number])
    time = int(merge.sides.guarantee[merge.inputs[first].number])
    return (
        f"stuck: nobody who is attached shows the events before {tick_text(time)}, the guarantee of "
        f"{first}; attach an input that does, or force_join({first!r}) and lose what it does not show"
    )


def _first_line(policy: OutputPolicy) -> str:
    return (type(policy).__doc__ or "").split("\n")[0]
