"""A recording of several inputs, turn by turn through a merge."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from anabranch.engines.embedded.forms import whole
from anabranch.kernels.merge.choice import Side
from anabranch.kernels.merge.settings import checked
from anabranch.kernels.merge.tally import Tally
from anabranch.model.attendance import Attendance, Change, Presence
from anabranch.model.batch import Batch, Kind
from anabranch.model.elements import Attach
from anabranch.model.time import BEGINNING
from anabranch.model.validity import InvalidElementError, Rule, Violation

if TYPE_CHECKING:
    from anabranch.engines.embedded.merger import Merger


def merge_recording(merger: Merger, recording: Batch, attach: Callable[[str, int | None], Batch]) -> Batch:
    """What comes out of a recording; where a turn raises, what came out before is with the error, or owed."""
    checked("a recording", recording, Batch)
    if recording.input is None:
        raise ValueError("a recording says which input said each element, this one is of a single stream")
    turns = np.flatnonzero(
        (np.diff(recording.input, prepend=-1) != 0)
        | (recording.kind >= Kind.ATTACH)
        | (np.roll(recording.kind, 1) >= Kind.ATTACH)
    )
    parts, attendance = [recording[:0].untagged()], _attendance(merger)
    try:
        for begin, end in pairwise([*turns.tolist(), len(recording)]):
            name, turn = recording.inputs[recording.input[begin]], recording[begin:end].untagged()
            parts += _turn(merger, attendance, name, turn, attach)
    except InvalidElementError as error:
        error.output = whole([*parts, *([] if error.output is None else [error.output])])
        raise
    except BaseException:
        merger.owed = whole([*parts, *([] if merger.owed is None else [merger.owed])])
        raise
    return whole(parts)


def _attendance(merger: Merger) -> Attendance:
    """The inputs that a merger has now, and those that have left it."""
    attendance = Attendance()
    for name in merger.merge.tallies:
        attendance.known[name] = Presence.ATTACHED if name in merger.inputs else Presence.LEFT
    return attendance


def _turn(
    merger: Merger,
    attendance: Attendance,
    name: str,
    turn: Batch,
    attach: Callable[[str, int | None], Batch],
) -> list[Batch]:
    """What comes out of what one input sends or does."""
    control = turn.element(0) if turn.kind[0] >= Kind.ATTACH else None
    match control:
        case None:
            change = attendance.send(name)
        case Attach():
            change = attendance.attach(name)
        case _:
            change = attendance.detach(name)
    if isinstance(change, Rule):
        _refuse(merger, change, name, turn)
        return []
    if isinstance(control, Attach):
        return [attach(name, None if control.guarantee == BEGINNING else control.guarantee)]
    if control is not None:
        return [merger.detach(name)]
    joined = [attach(name, None)] if change is Change.ENTERS else []
    return [*joined, merger.push(name, turn)]


def _refuse(merger: Merger, rule: Rule, name: str, turn: Batch) -> None:
    """What an input may not send while it is, or is not, attached; the policy is told of each element."""
    merge = merger.merge
    tally = merge.tallies.setdefault(name, Tally())
    merge.declared.setdefault(name, Side())
    frontier = merge.inputs[name].frontier if name in merge.inputs else tally.frontier
    for row in range(len(turn)):
        tally.refused += 1
        position = tally.elements + tally.refused
        merger.answers.on_invalid(Violation(rule, position, turn.element(row), frontier, name))
