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
from anabranch.model.output_policy import HalfFrozen
from anabranch.model.properties import Case, Fact
from anabranch.model.time import tick_text

if TYPE_CHECKING:
    from anabranch.kernels.merge.merger import Merger

_CASES = list(Case)


def make_room(merger: Merger, name: str, side: Side) -> Batch:
    """What comes out when a running merge has to take in an input that promises less than its case needs."""
    if merger.kernel is None:
        return Batch.of([])
    wanted = choose(merger.declared_now() | {name: side}, merger.policy, merger.forced)
    running = merger.kernel.case
    if _CASES.index(wanted.case) <= _CASES.index(running):
        return Batch.of([])
    if isinstance(merger.kernel, Ordered) and merger.trail is None:
        error = ValueError(f"{running.name} is running, and {name!r} needs {wanted.reason}")
        error.add_note(
            "Attach it before the first push, or let the merge generalise (on_broken=Generalise())."
        )
        raise error
    merger.declared[name] = side
    return _move(merger, wanted, f"{name} was attached")


def go_on_without(merger: Merger, name: str, fact: Fact, why: str) -> Batch:
    """What comes out when a merge goes on in the next case that does not need a fact of an input."""
    assert merger.kernel is not None
    running = merger.kernel.case
    one = merger.inputs[name]
    declared = (one.declared.properties or (merger.forced or running).value).without(fact)
    one.declared = merger.declared[name] = replace(one.declared, properties=declared)
    merger.sides.keyed[one.number] &= Fact.KEYED in declared
    if running is Case.R4:
        return Batch.of([])
    inputs = {
        n: replace(s, properties=running.value if s.properties is None else s.properties)
        for n, s in merger.declared_now().items()
    }
    wanted = choose(inputs, merger.policy)
    if _CASES.index(wanted.case) <= _CASES.index(running):
        case = _CASES[_CASES.index(running) + 1]
        wanted = Choice(case, f"{case.name}: the next more general case")
    return _move(merger, wanted, why)


def _move(merger: Merger, wanted: Choice, why: str) -> Batch:
    old = merger.kernel
    assert old is not None
    if merger.sides.free() is None:
        merger.sides = merger.sides.doubled()
        old.widen(merger.sides)
    merger.forced = None
    try:
        news = _go_on(merger, old, wanted.case)
    except Broken as broken:
        # What is out or shown by the old case need not be within the new one, but is within the most general.
        wanted = Choice(Case.R4, f"R4: what is out or shown is not {broken.fact}")
        news = _go_on(merger, old, Case.R4)
    merger.choice = wanted
    merger.moves.append(f"{old.case.name} to {wanted.case.name} at {tick_text(old.stable)}: {why}")
    if wanted.case not in ORDERED:
        merger.trail = None
    return news


def _go_on(merger: Merger, old: object, case: Case) -> Batch:
    """Replace a kernel by one of a more general case; what comes out at that."""
    sides, kernel = merger.sides, merger.made(case)
    merger.kernel = kernel
    if isinstance(old, Ordered):
        assert merger.trail is not None, "a merge that may generalise keeps what is not final"
        given = merger.trail.events(None, old.stable).told_apart_by(merger.identity)
        shown = {
            one.number: merger.trail.events(one.number, old.stable).told_apart_by(merger.identity)
            for one in merger.inputs.values()
        }
        if isinstance(kernel, Ordered):
            return tell_in_order(kernel, old, sides, given, shown)
        news = tell(kernel, sides, given, shown, old.stable, merger.policy)
        for one in merger.inputs.values():
            # In order an input may join at events that are as late as its guarantee; without, at a stable.
            sides.joined[one.number] = one.forced or sides.guarantee[one.number] <= old.stable
        return news
    assert isinstance(old, R3), "nothing is more general than R4"
    assert not isinstance(kernel, Ordered)
    known = known_to(old)
    return tell(kernel, sides, known.given, known.shown, old.stable, HalfFrozen(), known.evidence)
