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
from anabranch.model.batch import Batch, Kind
from anabranch.model.elements import Attach, Detach
from anabranch.model.time import BEGINNING
from anabranch.model.validity import InvalidElementError, Rule, Violation

if TYPE_CHECKING:
    from anabranch.engines.embedded.merger import Merger


def played(merger: Merger, recording: Batch, attach: Callable[[str, int | None], Batch]) -> Batch:
    """What comes out of a recording; where a turn raises, what came out before is with the error, or owed."""
    checked("a recording", recording, Batch)
    if recording.input is None:
        raise ValueError("a recording says which input said each element, this one is of a single stream")
    turns = np.flatnonzero(
        (np.diff(recording.input, prepend=-1) != 0)
        | (recording.kind >= Kind.ATTACH)
        | (np.roll(recording.kind, 1) >= Kind.ATTACH)
    )
    parts = [recording[:0].untagged()]
    try:
        for begin, end in pairwise([*turns.tolist(), len(recording)]):
            name, turn = recording.inputs[recording.input[begin]], recording[begin:end].untagged()
            if turn.kind[0] < Kind.ATTACH and name not in merger.merge.tallies:
                parts.append(attach(name, None))
            parts += _turn(merger, name, turn, attach)
    except InvalidElementError as error:
        error.output = whole([*parts, *([] if error.output is None else [error.output])])
        raise
    except BaseException:
        merger.owed = whole([*parts, *([] if merger.owed is None else [merger.owed])])
        raise
    return whole(parts)


def _turn(merger: Merger, name: str, turn: Batch, attach: Callable[[str, int | None], Batch]) -> list[Batch]:
    """What comes out of what one input says or does."""
    match turn.element(0) if turn.kind[0] >= Kind.ATTACH else None:
        case Attach() if name in merger.inputs:
            _refuse(merger, Rule.ALREADY_ATTACHED, name, turn)
            return []
        case Attach(guarantee):
            return [attach(name, None if guarantee == BEGINNING else guarantee)]
        case Detach() if name in merger.inputs:
            return [merger.detach(name)]
        case None if name in merger.inputs:
            return [merger.push(name, turn)]
        case _:
            _refuse(merger, Rule.DETACHED_INPUT, name, turn)
            return []


def _refuse(merger: Merger, rule: Rule, name: str, turn: Batch) -> None:
    """What an input may not say while it is, or is not, attached; the policy hears of each element."""
    merge = merger.merge
    tally = merge.tallies.setdefault(name, Tally())
    merge.declared.setdefault(name, Side())
    frontier = merge.inputs[name].frontier if name in merge.inputs else tally.frontier
    for row in range(len(turn)):
        tally.refused += 1
        position = tally.elements + tally.refused
        merger.answers.on_invalid(Violation(rule, position, turn.element(row), frontier, name))
