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
from anabranch.model.output_policy import OutputPolicy, Pace
from anabranch.model.properties import Properties
from anabranch.model.time import BEGINNING, tick_text

if TYPE_CHECKING:
    from anabranch.kernels.merge.merger import Merger

EXAMPLES = 100
"""Disagreements that are kept in full."""


def explanation(merger: Merger) -> str:
    """Which case merges the inputs and why, under which policy, and what tells events apart."""
    choice = merger.choice or choose(merger.declared_now(), merger.policy, merger.forced)
    by = "all payload columns" if merger.identity is None else ", ".join(merger.identity)
    lines = [
        choice.reason,
        f"policy {merger.policy}: {_first_line(merger.policy)}",
        f"events are told apart by {by}",
    ]
    for name, side in merger.declared_now().items():
        kind = "complete" if side.complete else "lossy"
        lines.append(f"{name}: {kind}, declared {side.properties or Properties()}")
    if any(not side.complete for side in merger.declared_now().values()):
        lines.append(
            f"lossy inputs: the stable follows the {merger.pace.value} while no complete one has joined"
        )
    return "\n".join(lines + merger.moves)


def status_of(merger: Merger) -> Status:
    """What the merge is doing."""
    choice = merger.choice or choose(merger.declared_now(), merger.policy, merger.forced)
    for name in merger.inputs:
        count_conduct(merger, name)
    queue = (
        (0, 0, 0)
        if merger.kernel is None or isinstance(merger.kernel, Ordered)
        else merger.kernel.nodes.queue
    )
    held = [one for one in (merger.kernel, merger.cleanse, merger.trail) if one is not None]
    inserts, adjusts, stables = merger.counts.tolist()
    return Status(
        case=choice.case.name,
        reason=choice.reason,
        policy=str(merger.policy),
        frontier=merger.frontier,
        inputs=_inputs(merger),
        live=sum(one.live for one in (merger.kernel, merger.cleanse) if one is not None),
        remembered=int(queue[LENGTH]),
        unchecked=int(queue[SKIPPED]),
        bytes=sum(one.nbytes for one in held),
        inserts=inserts,
        adjusts=adjusts,
        stables=stables,
        disagreements=tuple(merger.disagreements),
        moves=tuple(merger.moves),
        stuck=_stuck(merger),
    )


def count_conduct(merger: Merger, name: str) -> None:
    """Add what the kernel has counted for an input to its tally."""
    number, tally = merger.inputs[name].number, merger.tallies[name]
    for what in ("disagreements", "holes", "filled", "late", "removed"):
        column = getattr(merger.sides, what)
        setattr(tally, what, getattr(tally, what) + int(column[number]))
        column[number] = 0


def note_disagreements(merger: Merger, kernel: R3 | R4) -> None:
    """Keep the first disagreements that a kernel has noted."""
    names = {one.number: name for name, one in merger.inputs.items()}
    rows = kernel.notes.row[: kernel.notes.rows[0]][: EXAMPLES - len(merger.disagreements)]
    kernel.notes.rows[0] = 0
    payloads = kernel.noted
    for (number, _, start, shown, given), payload in zip(rows.tolist(), payloads, strict=False):
        merger.disagreements.append(
            Disagreement(
                names.get(number, "?"),
                {key: value for key, value in payload.items() if value is not None},
                start,
                None if shown == ABSENT else shown,
                None if given == ABSENT else given,
                kernel.stable,
            )
        )


def _inputs(merger: Merger) -> Mapping[str, InputStatus]:
    said = {
        name: merger.inputs[name].said if name in merger.inputs else tally.said
        for name, tally in merger.tallies.items()
    }
    furthest = max(said.values(), default=BEGINNING)
    total = max(int(merger.counts.sum()), 1)
    holding = _holding(merger)
    found = {}
    for name, tally in merger.tallies.items():
        one = merger.inputs.get(name)
        number = one.number if one else 0
        found[name] = InputStatus(
            attached=one is not None,
            complete=merger.declared[name].complete,
            joined=one is not None and bool(merger.sides.joined[number]),
            idle=one is not None and bool(merger.sides.idle[number]),
            guarantee=int(merger.sides.guarantee[number]) if one else BEGINNING,
            frontier=said[name],
            lag=lag_of(said[name], furthest),
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


def _holding(merger: Merger) -> set[str]:
    """The inputs that others would be further without: the slowest that are lossy, while these decide."""
    joined = {name: one for name, one in merger.inputs.items() if merger.sides.joined[one.number]}
    if merger.pace is not Pace.SLOWEST or any(merger.sides.complete[one.number] for one in joined.values()):
        return set()
    said = {name: one.said for name, one in joined.items()}
    slowest = min(said.values(), default=BEGINNING)
    furthest = max((one.said for one in merger.inputs.values()), default=BEGINNING)
    return {name for name, time in said.items() if time == slowest < furthest}


def _stuck(merger: Merger) -> str | None:
    waiting = [name for name, one in merger.inputs.items() if not merger.sides.joined[one.number]]
    if not waiting or len(waiting) < len(merger.inputs):
        return None
    complete = [name for name in waiting if merger.sides.complete[merger.inputs[name].number]]
    if not complete:
        return None
    first = min(complete, key=lambda name: merger.sides.guarantee[merger.inputs[name].number])
    time = int(merger.sides.guarantee[merger.inputs[first].number])
    return (
        f"stuck: nobody who is attached shows the events before {tick_text(time)}, the guarantee of "
        f"{first}; attach an input that does, or force_join({first!r}) and lose what it does not show"
    )


def _first_line(policy: OutputPolicy) -> str:
    return (type(policy).__doc__ or "").split("\n")[0]
