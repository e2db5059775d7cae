"""What the times of elements say: which rows break a rule, and how far channels are after them, compiled."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from anabranch.kernels.kernel import Refused
from anabranch.model.application import BROKEN, STABLE, VALID, rule_of_times
from anabranch.model.batch import Kind
from anabranch.model.compiled import compiled
from anabranch.model.op import Op
from anabranch.model.time import BEGINNING
from anabranch.model.validity import Rule
from anabranch.progress.channel_rows import Elements

_SNAPSHOT = int(Op.SNAPSHOT)
_ALL_OF_ONE = np.empty(0, np.int32)


class Look(NamedTuple):
    """Rows that were looked at and not used."""

    rules: NDArray[np.int8]
    """Of each row the number of the rule that it breaks, or VALID."""
    before: NDArray[np.int64]
    """By stretch: how far its channel had come."""
    reached: NDArray[np.int64]
    """By stretch: how far its channel is, by stables whose places are known."""
    waiting: NDArray[np.int64]
    """By stretch without an order: until when it is stable at the end of the pass, or BEGINNING."""
    latest: NDArray[np.int64]
    """By stretch: the greatest start of its valid events, those of a snapshot aside, or BEGINNING."""
    events: int
    invalid: int
    controls: int


def looked_at(
    elements: Elements,
    stretch: NDArray[np.int32] | None,
    before: NDArray[np.int64],
    ordered: NDArray[np.bool_],
    *,
    of_changes: bool,
) -> Look:
    """What the times of elements of some stretches say, whose channels have come so far before."""
    rules = np.empty(len(elements), np.int8)
    reached, count = before.copy(), len(before)
    waiting, latest = np.full(count, BEGINNING, np.int64), np.full(count, BEGINNING, np.int64)
    columns = elements.kind, elements.start, elements.end, elements.old_end
    whose = _ALL_OF_ONE if stretch is None else stretch
    found = look_at(*columns, whose, ordered, of_changes, rules, reached, waiting, latest)
    return Look(rules, before, reached, waiting, latest, *found)


@compiled
def look_at(
    kind: Any,
    start: Any,
    end: Any,
    old_end: Any,
    stretch: Any,
    ordered: Any,
    of_changes: bool,
    rules: Any,
    reached: Any,
    waiting: Any,
    latest: Any,
) -> tuple[int, int, int]:
    """Write what `Look` has; returns how many rows are events, break a rule, and are attaches or detaches.

    ``rules`` has an item for each row; ``reached``, ``waiting`` and ``latest`` have one for each stretch, and
    ``stretch`` none for rows that are all of the first.
    """
    events = invalid = controls = 0
    single = len(stretch) == 0
    for i in range(len(kind)):
        rules[i] = VALID
        n = 0 if single else stretch[i]
        if kind[i] == STABLE:
            if ordered[n]:
                reached[n] = max(reached[n], start[i])
            else:
                waiting[n] = max(waiting[n], start[i])
        elif kind[i] > STABLE:
            controls += 1
        else:
            events += 1
            rule = rule_of_times(kind[i], start[i], end[i], old_end[i], reached[n])
            if rule != VALID:
                rules[i] = rule
                invalid += 1
            elif start[i] > latest[n] and not (of_changes and old_end[i] == _SNAPSHOT):
                latest[n] = start[i]
    return events, invalid, controls


def refused(
    elements: Elements, rules: NDArray[np.int8], before: int, *, of_changes: bool, name: str | None = None
) -> Iterator[Refused]:
    """The rows of one channel that break rules by their times, in order, with the stable that each met."""
    stables = np.where(elements.kind == Kind.STABLE, elements.start, BEGINNING)
    met = np.maximum(np.maximum.accumulate(stables), before)
    broken = np.flatnonzero(rules != VALID)
    for rows in np.split(broken, np.flatnonzero(np.diff(rules[broken])) + 1):
        rule = BROKEN[rules[rows[0]]]
        if of_changes and rule is Rule.INSERT_BEHIND_STABLE:
            rule = Rule.CHANGE_BEHIND_STABLE
        yield Refused(rule, elements.take(rows), met[rows], name=name)
