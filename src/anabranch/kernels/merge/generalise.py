"""A merge whose inputs promise less than it relied on goes on in a more general case.

What is out stays out. Where the old case had made something stable by relying on the promise, that cannot be
taken back; all else is as if R4 had merged the inputs from the beginning (`tests/laws/generalising.py`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from anabranch.kernels.merge.broken import Broken
from anabranch.kernels.merge.choice import ORDERED, Choice, Side, choose
from anabranch.kernels.merge.moving import known_to, tell, tell_in_order
from anabranch.kernels.merge.ordered import Ordered
from anabranch.kernels.merge.r3 import R3
from anabranch.model.batch import Batch
from anabranch.model.clock import tick_text
from anabranch.model.output_policy import HalfFrozen
from anabranch.model.properties import Case, Fact

if TYPE_CHECKING:
    from anabranch.kernels.merge.merge import Merge

_CASES = list(Case)


def make_room(merge: Merge, name: str, side: Side) -> Batch:
    """What comes out when a running merge has to take in an input that promises less than its case needs."""
    if merge.kernel is None:
        return Batch.of([])
    wanted = choose(merge.declared_now() | {name: side}, merge.policy, merge.forced)
    running = merge.kernel.case
    if _CASES.index(wanted.case) <= _CASES.index(running):
        return Batch.of([])
    if isinstance(merge.kernel, Ordered) and merge.trail is None:
        error = ValueError(f"{running.name} is running, and {name!r} needs {wanted.reason}")
        error.add_note(
            "Attach it before the first push, or let the merge generalise (on_broken=Generalise())."
        )
        raise error
    merge.declared[name] = side
    return _move(merge, wanted, f"{name} was attached")


def go_on_without(merge: Merge, name: str, fact: Fact, why: str) -> Batch:
    """What comes out when a merge goes on in the next case that does not need a fact of an input."""
    assert merge.kernel is not None
    running = merge.kernel.case
    one = merge.inputs[name]
    declared = (one.declared.properties or (merge.forced or running).value).without(fact)
    one.declared = merge.declared[name] = replace(one.declared, properties=declared)
    merge.sides.keyed[one.number] &= Fact.KEYED in declared
    if running is Case.R4 or (fact is Fact.KEYED and running in (Case.R1, Case.R2)):
        # It does not rely on it.
        merge.moves.append(f"{running.name} stays at {tick_text(merge.kernel.stable)}: {why}")
        return Batch.of([])
    inputs = {
        n: replace(s, properties=running.value if s.properties is None else s.properties)
        for n, s in merge.declared_now().items()
    }
    wanted = choose(inputs, merge.policy)
    if _CASES.index(wanted.case) <= _CASES.index(running):
        case = _CASES[_CASES.index(running) + 1]
        wanted = Choice(case, f"{case.name}: the next more general case")
    return _move(merge, wanted, why)


def _move(merge: Merge, wanted: Choice, why: str) -> Batch:
    old = merge.kernel
    assert old is not None
    if merge.sides.free() is None:
        merge.sides = merge.sides.doubled()
        old.widen(merge.sides)
    merge.forced = None
    try:
        news = _go_on(merge, old, wanted.case)
    except Broken as broken:
        # What is out or shown by the old case need not be within the new one, but is within the most general.
        wanted = Choice(Case.R4, f"R4: what is out or shown is not {broken.fact}")
        news = _go_on(merge, old, Case.R4)
    merge.choice = wanted
    merge.moves.append(f"{old.case.name} to {wanted.case.name} at {tick_text(old.stable)}: {why}")
    if wanted.case not in ORDERED:
        merge.trail = None
    return news


def _go_on(merge: Merge, old: object, case: Case) -> Batch:
    """Replace a kernel by one of a more general case; what comes out at that."""
    sides, kernel = merge.sides, merge.made(case)
    merge.kernel = kernel
    if isinstance(old, Ordered):
        assert merge.trail is not None, "a merge that may generalise keeps what is not final"
        given = merge.trail.events(None, old.stable).told_apart_by(merge.identity)
        shown = {
            one.number: merge.trail.events(one.number, old.stable).told_apart_by(merge.identity)
            for one in merge.inputs.values()
        }
        if isinstance(kernel, Ordered):
            return tell_in_order(kernel, old, sides, given, shown)
        news = tell(kernel, sides, given, shown, old.stable, merge.policy)
        for one in merge.inputs.values():
            # In order an input may join at events that are as late as its guarantee; without, at a stable.
            sides.joined[one.number] = one.forced or sides.guarantee[one.number] <= old.stable
        return news
    assert isinstance(old, R3), "nothing is more general than R4"
    assert not isinstance(kernel, Ordered)
    known = known_to(old)
    return tell(kernel, sides, known.given, known.shown, old.stable, HalfFrozen(), known.evidence)
