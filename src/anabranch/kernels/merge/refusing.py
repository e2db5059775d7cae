"""What a merge refuses: elements that are counted, left out, and told to a policy.

Where what is invalid is to be raised, it is before anything of its batch is used: the push has not taken
place. All else that is refused is noted, and told when the batch is done and its output is safe: what is
invalid first, then what breaks a promise or is late, which shows only while a batch is merged.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from anabranch.kernels.merge.choice import Side
from anabranch.kernels.merge.ordered import Ordered
from anabranch.kernels.merge.r3 import R3
from anabranch.kernels.merge.r4 import R4
from anabranch.kernels.merge.tally import Tally
from anabranch.model.application import BROKEN, VALID, check_times
from anabranch.model.batch import Batch, Kind
from anabranch.model.elements import Control, Element
from anabranch.model.properties import Fact
from anabranch.model.time import BEGINNING
from anabranch.model.validity import Drop, InvalidElementError, Policy, Raise, Rule, Violation

if TYPE_CHECKING:
    from anabranch.kernels.merge.merger import Merger, OnBroken


class BrokenPropertyError(InvalidElementError):
    """An input broke a property that was declared for it.

    The element was left out; all others were merged, and ``output`` is what came of them.
    """


def valid(merger: Merger, name: str, batch: Batch) -> Batch:
    """The elements that break no rule by their times; the others are raised, or noted for the policy."""
    one, tally = merger.inputs[name], merger.tallies[name]
    rules = np.full(len(batch), VALID, np.int8)
    said = check_times(batch.kind, batch.start, batch.end, batch.old_end, one.said, rules)
    first = tally.elements + tally.refused + 1
    invalid = np.flatnonzero(rules != VALID)
    if len(invalid) and not isinstance(merger.on_invalid, Drop):
        frontiers = np.maximum.accumulate(np.where(batch.kind == Kind.STABLE, batch.start, BEGINNING))
        for row, element in zip(invalid.tolist(), batch.take(invalid).elements(), strict=True):
            frontier = max(one.said, int(frontiers[row]))
            violation = Violation(BROKEN[rules[row]], first + row, element, frontier, name)
            if isinstance(merger.on_invalid, Raise):
                raise InvalidElementError(violation)
            merger.refused.append(violation)
    one.said = said
    tally.refused += len(invalid)
    return batch.take(rules == VALID) if len(invalid) else batch


def refuse(merger: Merger, rule: Rule, name: str, turn: Batch) -> None:
    """What an input may not say while it is, or is not, attached; the policy hears of each element."""
    tally = merger.tallies.setdefault(name, Tally())
    merger.declared.setdefault(name, Side())
    said = merger.inputs[name].said if name in merger.inputs else tally.said
    for row in range(len(turn)):
        tally.refused += 1
        position = tally.elements + tally.refused
        merger.on_invalid(Violation(rule, position, turn.element(row), said, name))


def leave_out(
    merger: Merger, name: str, fact: Fact, first: int, broken: Batch, rows: Iterable[int] = (0,)
) -> None:
    """Count elements that break a promise as refused, and note them for the policy."""
    assert merger.kernel is not None
    tally, stable = merger.tallies[name], merger.kernel.stable
    tally.elements -= len(broken)
    tally.refused += len(broken)
    if isinstance(merger.on_broken, Drop):
        return
    why = f"{merger.forced.name} was forced, so" if merger.forced else "as was declared,"
    for row, element in zip(rows, broken.elements(), strict=True):
        detail = f"{why} {name} must be {fact} ({fact.value}), and is not by {_brief(element)}"
        rule = Rule.BROKEN_PROPERTY
        merger.refused.append(Violation(rule, first + row, element, stable, name, detail))
        if isinstance(merger.on_broken, Raise):
            return


def note_repeats(merger: Merger, kernel: Ordered | R3 | R4, number: int, batch: Batch) -> None:
    """Leave out what repeats a key in a batch that an input has said."""
    if isinstance(kernel, R3 | R4) and len(kernel.repeats):
        name, first = said_by(merger, number, batch)
        leave_out(merger, name, Fact.KEYED, first, batch.take(kernel.repeats), kernel.repeats.tolist())


def note_late(merger: Merger, kernel: Ordered | R3 | R4, number: int, batch: Batch) -> None:
    """Note what came too late in a batch that an input has said."""
    if not isinstance(kernel, R4) or not len(kernel.late) or isinstance(merger.on_late, Drop):
        return
    name, first = said_by(merger, number, batch)
    for row, element in zip(kernel.late.tolist(), batch.take(kernel.late).elements(), strict=True):
        merger.refused.append(Violation(Rule.LATE, first + row, element, kernel.stable, name))


def said_by(merger: Merger, number: int, batch: Batch) -> tuple[str, int]:
    """The name of the input that has said a batch, and the position of its first element."""
    name = next(name for name, one in merger.inputs.items() if one.number == number)
    return name, merger.tallies[name].elements + merger.tallies[name].refused - len(batch) + 1


def answered(
    refused: list[Violation], on_invalid: Policy, on_broken: OnBroken, on_late: Policy
) -> Exception | None:
    """Tell the policies of all that was noted; the first error that comes of it.

    Where a function that sets aside fails, it is asked for the others all the same.
    """
    first: Exception | None = None
    answers = {Rule.LATE: on_late, Rule.BROKEN_PROPERTY: on_broken}
    for violation in refused:
        late = violation.rule is Rule.LATE
        answer = answers.get(violation.rule, on_invalid)
        assert isinstance(answer, Policy), "a merge that generalises leaves nothing out"
        try:
            if isinstance(answer, Raise):
                raise (InvalidElementError if late else BrokenPropertyError)(violation)
            answer(violation)
        except InvalidElementError as error:
            first = first or error
        except Exception as error:
            error.add_note(f"Refused, and not set aside: {violation.message}.")
            first = first or error
    return first


def _brief(element: Element | Control) -> str:
    words = str(element)
    return words if len(words) <= 200 else f"{words[:197]}..."
